//! Features with the names of their examples, in the formats that [`ExampleTable`](crate::ExampleTable) reads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::{Float16Type, Float32Type};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, PrimitiveArray, StringArray};
use arrow_schema::{DataType, Field, Schema};
use half::f16;

use crate::ids_table::{ids_table_of, write_ids_table};
use crate::parquet_write::{ParquetWriter, dictionary_column, dictionary_type};
use crate::table::{NETWORK_KEY, NETWORK_MEMBER};
use crate::{AtomicFile, DataError, NpzWriter, Precision, Result, write_npy_f16, write_npy_f32};

/// How features are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureFormat {
    /// Columns `id`, `class` (if known for all) and `embedding`.
    Parquet,
    /// Arrays `features`, and `ids` and `labels` where all are integers; else a table `NAME.npz.ids.csv` beside it.
    Npz,
    /// The numbers alone, with a table `NAME.npy.ids.csv` beside it.
    Npy,
}

impl FeatureFormat {
    /// By the ending of the name.
    pub fn of(path: &Path) -> Result<FeatureFormat> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("parquet") => Ok(FeatureFormat::Parquet),
            Some("npz") => Ok(FeatureFormat::Npz),
            Some("npy") => Ok(FeatureFormat::Npy),
            other => {
                let found = format!("`.{}`", other.unwrap_or(""));
                Err(DataError::malformed(path, "file name", ".parquet, .npz or .npy", found))
            }
        }
    }
}

/// Rows of equal width with their names.
#[derive(Clone, Copy, Debug)]
pub struct FeatureFile<'a> {
    /// The name of each row.
    pub ids: &'a [String],
    /// The class of each row, where known.
    pub labels: &'a [Option<String>],
    /// Numbers per row.
    pub dim: usize,
    /// All rows, one after the other.
    pub values: &'a [f32],
    /// How numbers are stored.
    pub precision: Precision,
    /// The network that made them: what it is and a digest of it. Every format keeps it.
    pub network: Option<&'a str>,
}

impl FeatureFile<'_> {
    /// Writes everything; files appear whole or not at all. `settings` says how the features were made and is kept
    /// where the format allows it. Returns the table beside the file, if one was needed.
    pub fn write(&self, path: &Path, settings: &str) -> Result<Option<PathBuf>> {
        match FeatureFormat::of(path)? {
            FeatureFormat::Parquet => self.write_parquet(path, settings).map(|()| None),
            FeatureFormat::Npz => self.write_npz(path),
            FeatureFormat::Npy => {
                let mut file = AtomicFile::create(path)?;
                let written = match self.precision {
                    Precision::F32 => write_npy_f32(&mut file, &self.shape(), self.values),
                    Precision::F16 => write_npy_f16(&mut file, &self.shape(), &self.halves()),
                };
                written.map_err(DataError::io("write", path))?;
                let table = self.write_ids(path, self.network)?;
                file.commit()?;
                Ok(Some(table))
            }
        }
    }

    /// The classes, if all are known.
    pub fn classes(&self) -> Option<Vec<&str>> {
        self.labels.iter().map(Option::as_deref).collect()
    }

    fn shape(&self) -> [usize; 2] {
        [self.ids.len(), self.dim]
    }

    fn halves(&self) -> Vec<f16> {
        self.values.iter().map(|&value| f16::from_f32(value)).collect()
    }

    fn write_parquet(&self, path: &Path, settings: &str) -> Result<()> {
        const ROWS: usize = 16_384;
        let number = match self.precision {
            Precision::F32 => DataType::Float32,
            Precision::F16 => DataType::Float16,
        };
        let width = i32::try_from(self.dim).map_err(|_| {
            DataError::malformed(path, "width", "fewer numbers per row", self.dim.to_string())
        })?;
        let item = Arc::new(Field::new("item", number, false));
        let classes = self.classes();
        let mut fields = vec![Field::new("id", DataType::Utf8, false)];
        fields.extend(classes.as_ref().map(|_| Field::new("class", dictionary_type(), false)));
        fields.push(Field::new("embedding", DataType::FixedSizeList(item.clone(), width), false));
        let mut metadata = vec![("labelsieve".to_owned(), settings.to_owned())];
        metadata.extend(self.network.map(|network| (NETWORK_KEY.to_owned(), network.to_owned())));
        let mut writer = ParquetWriter::create(path, Schema::new(fields), &metadata)?;
        for start in (0..self.ids.len()).step_by(ROWS) {
            let rows = start..self.ids.len().min(start + ROWS);
            let values = &self.values[rows.start * self.dim..rows.end * self.dim];
            let numbers: ArrayRef = match self.precision {
                Precision::F32 => {
                    Arc::new(PrimitiveArray::<Float32Type>::from_iter_values(values.iter().copied()))
                }
                Precision::F16 => {
                    let halves = values.iter().map(|&value| f16::from_f32(value));
                    Arc::new(PrimitiveArray::<Float16Type>::from_iter_values(halves))
                }
            };
            debug_assert_eq!(numbers.len(), rows.len() * self.dim);
            let lists = FixedSizeListArray::try_new(item.clone(), width, numbers, None)
                .map_err(|error| DataError::undecodable(path, "Parquet", error))?;
            let mut columns: Vec<ArrayRef> =
                vec![Arc::new(StringArray::from_iter_values(&self.ids[rows.clone()]))];
            columns.extend(classes.as_ref().map(|classes| dictionary_column(classes[rows].iter().copied())));
            columns.push(Arc::new(lists));
            writer.write(columns)?;
        }
        writer.finish()
    }

    fn write_npz(&self, path: &Path) -> Result<Option<PathBuf>> {
        let mut writer = NpzWriter::create(path)?;
        writer = match self.precision {
            Precision::F32 => writer.f32("features", &self.shape(), self.values)?,
            Precision::F16 => writer.f16("features", &self.shape(), &self.halves())?,
        };
        let ids = integers(self.ids.iter().map(String::as_str));
        let classes = self.classes();
        let labels = classes.as_ref().and_then(|classes| integers(classes.iter().copied()));
        let complete = ids.is_some() && (labels.is_some() || self.labels.iter().all(Option::is_none));
        for (name, numbers) in [("ids", ids), ("labels", labels)] {
            if let Some(numbers) = numbers {
                writer = writer.i64(name, &[numbers.len()], &numbers)?;
            }
        }
        if let Some(network) = self.network {
            writer = writer.u8(NETWORK_MEMBER, &[network.len()], network.as_bytes())?;
        }
        let table = if complete { None } else { Some(self.write_ids(path, None)?) };
        writer.finish()?;
        if complete {
            remove_if_there(&ids_table_of(path))?; // left by an earlier file of this name, it would give these rows its ids
        }
        Ok(table)
    }

    /// The table of ids and classes beside the file.
    fn write_ids(&self, path: &Path, network: Option<&str>) -> Result<PathBuf> {
        let table = ids_table_of(path);
        write_ids_table(&table, self.ids, self.labels, network)?;
        Ok(table)
    }
}

fn remove_if_there(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(DataError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

fn integers<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Vec<i64>> {
    // `007` and `7` are different names of one number: only numbers that read back as they were written count.
    texts.map(|text| text.parse().ok().filter(|number: &i64| number.to_string() == text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExampleTable, TableColumns};

    fn read(path: &Path) -> (Vec<f32>, Vec<String>, Option<Vec<String>>) {
        let table = ExampleTable::open(path, &TableColumns::default()).unwrap();
        let mut values = vec![0.0; table.len() * table.features.cols()];
        let rows: Vec<usize> = (0..table.len()).collect();
        table.features.read_rows(&rows, &mut values).unwrap();
        let ids = rows.iter().map(|&row| table.ids.get(row).into_owned()).collect();
        let labels = table.labels.map(|labels| rows.iter().map(|&row| labels.get(row).to_owned()).collect());
        (values, ids, labels)
    }

    const VALUES: [f32; 4] = [0.5, -0.25, 1.0, 0.125]; // exact in 16 bits

    fn check(name: &str, ids: [&str; 2], labels: [Option<&str>; 2], expect_table: bool) {
        let folder = tempfile::tempdir().unwrap();
        for precision in [Precision::F32, Precision::F16] {
            let path = folder.path().join(name);
            let (ids, labels) = (ids.map(str::to_owned), labels.map(|label| label.map(str::to_owned)));
            for network in [None, Some("resnet10 0123456789abcdef")] {
                let (ids, labels) = (&ids, &labels);
                let file = FeatureFile { ids, labels, dim: 2, values: &VALUES, precision, network };
                let table = file.write(&path, "{}").unwrap();
                assert_eq!(table, expect_table.then(|| ids_table_of(&path)));
                let (values, read_ids, read_labels) = read(&path);
                assert_eq!(values, VALUES);
                assert_eq!(read_ids, *ids);
                let expected: Option<Vec<String>> = labels.iter().cloned().collect();
                assert_eq!(read_labels, expected);
                let read = ExampleTable::open(&path, &TableColumns::default()).unwrap();
                assert_eq!(read.network.as_deref(), network);
            }
        }
    }

    #[test]
    fn the_table_of_an_earlier_file_does_not_name_the_rows_of_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let write = |ids: [&str; 2], label: Option<&str>| {
            let (ids, labels) =
                (ids.map(str::to_owned), [label.map(str::to_owned), label.map(str::to_owned)]);
            let (precision, network) = (Precision::F32, None);
            let file =
                FeatureFile { ids: &ids, labels: &labels, dim: 2, values: &VALUES, precision, network };
            file.write(&path, "{}").unwrap();
        };
        write(["x", "y"], Some("owl"));
        assert!(ids_table_of(&path).exists());
        write(["5", "9"], None);
        assert!(!ids_table_of(&path).exists());
        assert_eq!(read(&path).2, None, "the classes of the earlier rows");
    }

    #[test]
    fn every_format_is_read_back() {
        check("a.parquet", ["x/1.jpg", "x/2.jpg"], [Some("owl"), Some("cat")], false);
        check("a.parquet", ["x/1.jpg", "x/2.jpg"], [Some("owl"), None], false);
        check("a.npz", ["5", "9"], [Some("3"), Some("1")], false);
        check("a.npz", ["5", "9"], [None, None], false);
        check("a.npz", ["5", "007"], [None, None], true);
        check("a.npz", ["5", "9"], [Some("owl"), Some("cat")], true);
        check("a.npy", ["5", "9"], [None, Some("cat")], true);
    }

    #[test]
    fn other_endings_are_refused() {
        let error = FeatureFormat::of(Path::new("a.csv")).unwrap_err().to_string();
        assert_eq!(error, "`a.csv`: file name: expected .parquet, .npz or .npy, found `.csv`");
    }
}
