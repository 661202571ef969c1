//! Writing features and ids in the formats that [`ExampleTable`](crate::ExampleTable) reads.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::{Float16Type, Float32Type};
use arrow_array::{ArrayRef, FixedSizeListArray, PrimitiveArray, StringArray};
use arrow_schema::{DataType, Field, Schema};
use half::f16;

use crate::arrays::npy::Dtype;
use crate::arrays::npy_write::npy_head;
use crate::examples::table::{NETWORK_KEY, NETWORK_MEMBER};
use crate::tables::ids_table::{ids_table_of, write_ids_table};
use crate::tables::parquet_write::{ParquetWriter, dictionary_column, dictionary_type};
use crate::{AtomicFile, DataError, NpzWriter, Precision, Result};

/// The format of a feature file.
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

/// The properties of a whole file.
#[derive(Clone, Copy, Debug)]
pub struct FeatureLayout<'a> {
    /// The number of rows.
    pub n_rows: usize,
    /// The number of rows with a class.
    pub n_with_class: usize,
    /// Numbers per row.
    pub dim: usize,
    /// How numbers are stored.
    pub precision: Precision,
    /// The fingerprint of the network that computed them (name and digest). Every format stores it.
    pub network: Option<&'a str>,
}

/// Some consecutive rows, with their ids and, where known, classes.
#[derive(Clone, Copy, Debug)]
pub struct FeatureRows<'a> {
    /// The id of each row.
    pub ids: &'a [String],
    /// The class of each row, where known.
    pub labels: &'a [Option<String>],
    /// The numbers, row by row.
    pub values: &'a [f32],
}

/// A file of features under construction: rows are added in portions and do not stay in memory. A Parquet file buffers one
/// row group; arrays keep all ids and classes, which are written to another array or to a table beside the file.
pub struct FeatureWriter<'a> {
    path: PathBuf,
    layout: FeatureLayout<'a>,
    sink: Sink,
    /// The ids that are not yet written.
    ids: Vec<String>,
    labels: Vec<Option<String>>,
    values: Vec<f32>,
    n_rows: usize,
}

enum Sink {
    Parquet { writer: Box<ParquetWriter>, item: Arc<Field>, width: i32 },
    Npz(Box<NpzWriter>),
    Npy(AtomicFile),
}

/// Rows per row group of a Parquet file, which is what its readers decode at a time.
const PARQUET_ROWS: usize = 16_384;

impl FeatureWriter<'_> {
    /// Starts a file, which appears whole or not at all. `settings` describes how the features were computed and is stored
    /// where the format allows it.
    pub fn create<'a>(path: &Path, layout: FeatureLayout<'a>, settings: &str) -> Result<FeatureWriter<'a>> {
        let shape = [layout.n_rows, layout.dim];
        let sink = match FeatureFormat::of(path)? {
            FeatureFormat::Parquet => parquet_sink(path, &layout, settings)?,
            FeatureFormat::Npz => {
                let mut writer = NpzWriter::create(path)?;
                writer.start_array("features", dtype(layout.precision), &shape)?;
                Sink::Npz(Box::new(writer))
            }
            FeatureFormat::Npy => {
                let mut file = AtomicFile::create(path)?;
                let head = npy_head(dtype(layout.precision), &shape);
                file.write_all(&head).map_err(DataError::io("write", path))?;
                Sink::Npy(file)
            }
        };
        Ok(FeatureWriter {
            path: path.to_path_buf(),
            layout,
            sink,
            ids: Vec::new(),
            labels: Vec::new(),
            values: Vec::new(),
            n_rows: 0,
        })
    }

    /// Adds rows.
    pub fn add(&mut self, rows: FeatureRows) -> Result<()> {
        if rows.labels.len() != rows.ids.len() || rows.values.len() != rows.ids.len() * self.layout.dim {
            let found = format!("{} classes and {} numbers", rows.labels.len(), rows.values.len());
            let expected = format!("{} rows of {}", rows.ids.len(), self.layout.dim);
            return Err(DataError::malformed(&self.path, "rows", expected, found));
        }
        self.n_rows += rows.ids.len();
        self.ids.extend_from_slice(rows.ids);
        self.labels.extend_from_slice(rows.labels);
        match &mut self.sink {
            Sink::Parquet { .. } => {
                self.values.extend_from_slice(rows.values);
                while self.ids.len() >= PARQUET_ROWS {
                    self.write_parquet(PARQUET_ROWS)?;
                }
                Ok(())
            }
            Sink::Npz(writer) => writer.write_bytes(&bytes(rows.values, self.layout.precision)),
            Sink::Npy(file) => {
                let bytes = bytes(rows.values, self.layout.precision);
                file.write_all(&bytes).map_err(DataError::io("write", &self.path))
            }
        }
    }

    /// Completes the file. Returns the table beside it, if one was needed.
    pub fn finish(mut self) -> Result<Option<PathBuf>> {
        if self.n_rows != self.layout.n_rows {
            let expected = format!("{}, as announced", self.layout.n_rows);
            return Err(DataError::malformed(&self.path, "rows", expected, self.n_rows.to_string()));
        }
        if matches!(self.sink, Sink::Parquet { .. }) && !self.ids.is_empty() {
            self.write_parquet(self.ids.len())?;
        }
        let FeatureWriter { path, layout, sink, ids, labels, .. } = self;
        let write_ids = |network: Option<&str>| {
            let table = ids_table_of(&path);
            write_ids_table(&table, &ids, &labels, network).map(|()| table)
        };
        match sink {
            Sink::Parquet { writer, .. } => writer.finish().map(|()| None),
            Sink::Npy(file) => {
                let table = write_ids(layout.network)?;
                file.commit()?;
                Ok(Some(table))
            }
            Sink::Npz(writer) => {
                let mut writer = *writer;
                let classes: Option<Vec<&str>> = labels.iter().map(Option::as_deref).collect();
                let numbers = classes.and_then(|classes| integers(classes.into_iter()));
                let ids_as_numbers = integers(ids.iter().map(String::as_str));
                let complete = ids_as_numbers.is_some() && (numbers.is_some() || layout.n_with_class == 0);
                for (name, numbers) in [("ids", ids_as_numbers), ("labels", numbers)] {
                    if let Some(numbers) = numbers {
                        writer = writer.i64(name, &[numbers.len()], &numbers)?;
                    }
                }
                if let Some(network) = layout.network {
                    writer = writer.u8(NETWORK_MEMBER, &[network.len()], network.as_bytes())?;
                }
                let table = if complete { None } else { Some(write_ids(None)?) };
                writer.finish()?;
                if complete {
                    remove_if_there(&ids_table_of(&path))?; // of an earlier file of this name, whose ids these rows would get
                }
                Ok(table)
            }
        }
    }

    /// Writes the first `n` buffered rows as a row group.
    fn write_parquet(&mut self, n: usize) -> Result<()> {
        let Sink::Parquet { writer, item, width } = &mut self.sink else { return Ok(()) };
        let ids: Vec<String> = self.ids.drain(..n).collect();
        let labels: Vec<Option<String>> = self.labels.drain(..n).collect();
        let values = self.values.drain(..n * self.layout.dim);
        let numbers: ArrayRef = match self.layout.precision {
            Precision::F32 => Arc::new(PrimitiveArray::<Float32Type>::from_iter_values(values)),
            Precision::F16 => {
                Arc::new(PrimitiveArray::<Float16Type>::from_iter_values(values.map(f16::from_f32)))
            }
        };
        let lists = FixedSizeListArray::try_new(item.clone(), *width, numbers, None)
            .map_err(|error| DataError::undecodable(&self.path, "Parquet", error))?;
        let mut columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from_iter_values(&ids))];
        if self.layout.n_with_class == self.layout.n_rows {
            columns.push(dictionary_column(labels.iter().map(|label| label.as_deref().unwrap_or_default())));
        }
        columns.push(Arc::new(lists));
        writer.write(columns)?;
        writer.end_group()
    }
}

fn parquet_sink(path: &Path, layout: &FeatureLayout, settings: &str) -> Result<Sink> {
    let number = match layout.precision {
        Precision::F32 => DataType::Float32,
        Precision::F16 => DataType::Float16,
    };
    let width = i32::try_from(layout.dim)
        .map_err(|_| DataError::malformed(path, "width", "fewer numbers per row", layout.dim.to_string()))?;
    let item = Arc::new(Field::new("item", number, false));
    let mut fields = vec![Field::new("id", DataType::Utf8, false)];
    if layout.n_with_class == layout.n_rows {
        fields.push(Field::new("class", dictionary_type(), false));
    }
    fields.push(Field::new("embedding", DataType::FixedSizeList(item.clone(), width), false));
    let mut metadata = vec![("labelsieve".to_owned(), settings.to_owned())];
    metadata.extend(layout.network.map(|network| (NETWORK_KEY.to_owned(), network.to_owned())));
    let writer = ParquetWriter::create(path, Schema::new(fields), &metadata)?;
    Ok(Sink::Parquet { writer: Box::new(writer), item, width })
}

fn dtype(precision: Precision) -> Dtype {
    match precision {
        Precision::F32 => Dtype::F32,
        Precision::F16 => Dtype::F16,
    }
}

fn bytes(values: &[f32], precision: Precision) -> Vec<u8> {
    match precision {
        Precision::F32 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Precision::F16 => values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect(),
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

    /// Writes the rows one by one.
    fn write(
        path: &Path,
        ids: &[String],
        labels: &[Option<String>],
        precision: Precision,
        network: Option<&str>,
    ) -> Option<PathBuf> {
        let n_with_class = labels.iter().flatten().count();
        let layout = FeatureLayout { n_rows: ids.len(), n_with_class, dim: 2, precision, network };
        let mut writer = FeatureWriter::create(path, layout, "{}").unwrap();
        for (row, values) in VALUES.chunks_exact(2).enumerate() {
            let ids = &ids[row..=row];
            let labels = &labels[row..=row];
            writer.add(FeatureRows { ids, labels, values }).unwrap();
        }
        writer.finish().unwrap()
    }

    fn check(name: &str, ids: [&str; 2], labels: [Option<&str>; 2], expect_table: bool) {
        let folder = tempfile::tempdir().unwrap();
        for precision in [Precision::F32, Precision::F16] {
            let path = folder.path().join(name);
            let ids = ids.map(str::to_owned);
            let labels = labels.map(|label| label.map(str::to_owned));
            for network in [None, Some("resnet10 0123456789abcdef")] {
                let table = write(&path, &ids, &labels, precision, network);
                assert_eq!(table, expect_table.then(|| ids_table_of(&path)));
                let (values, read_ids, read_labels) = read(&path);
                assert_eq!(values, VALUES);
                assert_eq!(read_ids, ids);
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
        let write_both = |ids: [&str; 2], label: Option<&str>| {
            let ids = ids.map(str::to_owned);
            let labels = [label.map(str::to_owned), label.map(str::to_owned)];
            write(&path, &ids, &labels, Precision::F32, None);
        };
        write_both(["x", "y"], Some("owl"));
        assert!(ids_table_of(&path).exists());
        write_both(["5", "9"], None);
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
    fn portions_make_the_same_bytes_whatever_their_size() {
        let folder = tempfile::tempdir().unwrap();
        let n_rows = PARQUET_ROWS + 1000;
        let ids: Vec<String> = (0..n_rows).map(|row| format!("photo {row}")).collect();
        let labels: Vec<Option<String>> = (0..n_rows).map(|row| Some(format!("c{}", row % 7))).collect();
        let values: Vec<f32> = (0..2 * n_rows).map(|i| (i * 37 % 1001) as f32).collect();
        for name in ["a.parquet", "a.npz", "a.npy"] {
            let bytes = |portion: usize| {
                let path = folder.path().join(name);
                let precision = Precision::F16;
                let network = Some("x 1");
                let layout = FeatureLayout { n_rows, n_with_class: n_rows, dim: 2, precision, network };
                let mut writer = FeatureWriter::create(&path, layout, "{}").unwrap();
                for start in (0..n_rows).step_by(portion) {
                    let end = n_rows.min(start + portion);
                    let ids = &ids[start..end];
                    let labels = &labels[start..end];
                    writer.add(FeatureRows { ids, labels, values: &values[2 * start..2 * end] }).unwrap();
                }
                writer.finish().unwrap();
                std::fs::read(&path).unwrap()
            };
            assert!(bytes(n_rows) == bytes(64), "{name}");
        }
    }

    #[test]
    fn a_file_with_fewer_rows_than_announced_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let layout =
            FeatureLayout { n_rows: 2, n_with_class: 0, dim: 2, precision: Precision::F32, network: None };
        let error = FeatureWriter::create(&path, layout, "{}").unwrap().finish().unwrap_err().to_string();
        assert!(error.ends_with("rows: expected 2, as announced, found 0"), "{error}");
        assert!(!path.exists());
    }

    #[test]
    fn other_endings_are_refused() {
        let error = FeatureFormat::of(Path::new("a.csv")).unwrap_err().to_string();
        assert_eq!(error, "`a.csv`: file name: expected .parquet, .npz or .npy, found `.csv`");
    }
}
