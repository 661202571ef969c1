//! A Parquet file of features that is one of several, to be joined into the file that one run would have written.

use std::path::{Path, PathBuf};

use arrow_schema::DataType;

use crate::examples::table::NETWORK_KEY;
use crate::tables::parquet_columns::ParquetFile;
use crate::{DataError, ExampleTable, Precision, Result, TableColumns};

/// What is known of such a file before its rows are read.
#[derive(Clone, Debug, PartialEq)]
pub struct FeaturePart {
    /// The file.
    pub path: PathBuf,
    /// Rows according to the file.
    pub n_rows: usize,
    /// Whether every row has a class.
    pub has_classes: bool,
    /// What all parts of one run have in common.
    pub kind: FeatureKind,
}

/// What the features of a run have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureKind {
    /// Numbers per row.
    pub dim: usize,
    /// How they are stored.
    pub precision: Precision,
    /// The network that made them.
    pub network: Option<String>,
    /// How they were made.
    pub settings: String,
}

/// Ids, classes and numbers of rows.
pub type ReadRows = (Vec<String>, Vec<Option<String>>, Vec<f32>);

impl FeaturePart {
    /// Opens a file that [`FeatureWriter`](crate::FeatureWriter) wrote.
    pub fn open(path: &Path) -> Result<FeaturePart> {
        let file = ParquetFile::open(path)?;
        let mut metadata = file.metadata();
        let list = file.schema().field_with_name("embedding").ok().map(|field| field.data_type().clone());
        let Some(DataType::FixedSizeList(item, width)) = list else {
            return Err(file.missing("a column `embedding`, as `labelsieve embed` writes it"));
        };
        let precision = match item.data_type() {
            DataType::Float16 => Precision::F16,
            _ => Precision::F32,
        };
        Ok(FeaturePart {
            path: path.to_path_buf(),
            n_rows: file.claimed_rows(),
            has_classes: file.schema().field_with_name("class").is_ok(),
            kind: FeatureKind {
                dim: usize::try_from(width).unwrap_or(0),
                precision,
                network: metadata.remove(NETWORK_KEY),
                settings: metadata.remove("labelsieve").unwrap_or_default(),
            },
        })
    }

    /// Reads its rows: ids, classes where all have one, and numbers.
    pub fn read(&self) -> Result<ReadRows> {
        let table = ExampleTable::open(&self.path, &TableColumns::default())?;
        if table.len() != self.n_rows {
            let expected = format!("{}, as the file says", self.n_rows);
            return Err(DataError::malformed(&self.path, "rows", expected, table.len().to_string()));
        }
        let rows: Vec<usize> = (0..table.len()).collect();
        let mut values = vec![0.0; table.len() * table.features.cols()];
        table.features.read_rows(&rows, &mut values)?;
        let ids = rows.iter().map(|&row| table.ids.get(row).into_owned()).collect();
        let class = |&row: &usize| table.labels.as_ref().map(|labels| labels.get(row).to_owned());
        Ok((ids, rows.iter().map(class).collect(), values))
    }
}
