//! A Parquet file of features that is one of several, to be merged into the file that a single run would have written.

use std::path::{Path, PathBuf};

use arrow_schema::DataType;

use crate::examples::table::NETWORK_KEY;
use crate::tables::parquet_columns::ParquetFile;
use crate::{DataError, ExampleTable, Precision, Result, TableColumns};

/// The metadata of one part.
#[derive(Clone, Debug, PartialEq)]
pub struct FeaturePart {
    /// The file.
    pub path: PathBuf,
    /// The number of rows according to the file.
    pub n_rows: usize,
    /// Whether every row has a class.
    pub has_classes: bool,
    /// The properties that all parts of one run share.
    pub kind: FeatureKind,
}

/// The properties that all features of a run share.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureKind {
    /// Numbers per row.
    pub dim: usize,
    /// How they are stored.
    pub precision: Precision,
    /// The network that computed them.
    pub network: Option<String>,
    /// The settings of the run.
    pub settings: String,
}

/// The rows of a part.
#[derive(Clone, Debug, PartialEq)]
pub struct FeaturePartRows {
    /// The id of each row.
    pub ids: Vec<String>,
    /// The class of each row, if all have one.
    pub labels: Vec<Option<String>>,
    /// The numbers, row by row.
    pub values: Vec<f32>,
}

impl FeaturePart {
    /// Opens a file that [`FeatureWriter`](crate::FeatureWriter) wrote.
    pub fn open(path: &Path) -> Result<FeaturePart> {
        let file = ParquetFile::open(path)?;
        let mut metadata = file.metadata();
        let list = file.schema().field_with_name("embedding").ok().map(|field| field.data_type().clone());
        let Some(DataType::FixedSizeList(item, width)) = list else {
            return Err(file.missing("a column `embedding` of lists of one fixed size"));
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

    /// Reads its rows.
    pub fn read(&self) -> Result<FeaturePartRows> {
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
        let labels = rows.iter().map(class).collect();
        Ok(FeaturePartRows { ids, labels, values })
    }
}
