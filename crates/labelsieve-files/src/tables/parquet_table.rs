//! Parquet files with a column of embeddings.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use crate::examples::table::{ExampleTable, NETWORK_KEY, Spill, TableColumns};
use crate::tables::labels::LabelsBuilder;
use crate::tables::parquet_columns::{Column, ParquetFile};
use crate::{ArrayFile, ColumnRole, DataError, Dtype, Labels, Matrix, Result};

const EMBEDDING_NAMES: [&str; 3] = ["embedding", "features", "vector"];
const LABEL_NAMES: [&str; 2] = ["class", "label"];
const ID_NAMES: [&str; 4] = ["id", "key", "uid", "image_path"];

/// The classes and ids of rows.
pub struct RowNames {
    /// Number of rows.
    pub rows: usize,
    /// Their classes, if the file has them.
    pub labels: Option<Labels>,
    /// Their ids, if the file has them.
    pub ids: Option<Vec<String>>,
}

/// Opens a table with a column of embeddings. Only embeddings, labels and ids are decoded.
pub fn open_parquet(path: &Path, file: File, columns: &TableColumns) -> Result<ExampleTable> {
    let file = ParquetFile::from_file(path, file)?;
    let embedding = find_embedding(&file, columns).map_err(DataError::for_column(ColumnRole::Embedding))?;
    let limits = StorageLimits {
        // Floats hardly compress, so a file of n bytes holds at most about n of them: this bounds the allocation.
        max_numbers: file.file_len() as usize,
        claimed_rows: file.claimed_rows(),
        spill: columns.spill.as_ref(),
    };
    let network = file.metadata().remove(NETWORK_KEY);
    let mut features = Embeddings { path, limits, dim: None, store: EmbeddingStore::Memory(Vec::new()) };
    let names = read_names(file, columns, Some(&embedding), |column| features.append(column))?;
    let matrix = features.finish()?;
    Ok(ExampleTable { network, ..ExampleTable::new(path, matrix, names.labels, names.ids)? })
}

/// Reads label and id columns, and passes the batches of `embedding`, if given, to `visit`.
pub fn read_names(
    file: ParquetFile,
    columns: &TableColumns,
    embedding: Option<&str>,
    mut visit: impl FnMut(&Column<'_>) -> Result<()>,
) -> Result<RowNames> {
    let label = file.find(columns.label.as_deref(), &LABEL_NAMES);
    let label = label.map_err(DataError::for_column(ColumnRole::Label))?;
    let id = file.find(columns.id.as_deref(), &ID_NAMES).map_err(DataError::for_column(ColumnRole::Id))?;
    let mut names: Vec<&str> = embedding.into_iter().chain(label.as_deref()).chain(id.as_deref()).collect();
    if names.is_empty() {
        return Ok(RowNames { rows: file.claimed_rows(), labels: None, ids: None });
    }
    names.dedup(); // one column may serve as label and id
    let mut rows = 0;
    let mut labels = LabelsBuilder::default();
    let mut ids = Vec::new();
    file.for_each_batch(&names, |batch| {
        rows += batch.first().map_or(0, |column| column.array.len());
        for column in batch {
            if Some(column.name) == embedding {
                visit(column)?;
            }
            if Some(column.name) == label.as_deref() {
                column.for_each_text(&mut |text| labels.push(text))?;
            }
            if Some(column.name) == id.as_deref() {
                column.for_each_text(&mut |text| ids.push(text.to_owned()))?;
            }
        }
        Ok(())
    })?;
    Ok(RowNames { rows, labels: label.map(|_| labels.finish()), ids: id.map(|_| ids) })
}

fn find_embedding(file: &ParquetFile, columns: &TableColumns) -> Result<String> {
    if let Some(name) = file.find(columns.embedding.as_deref(), &EMBEDDING_NAMES)? {
        return Ok(name);
    }
    let fields = file.schema().fields();
    let mut lists = fields.iter().filter(|field| is_list_of_floats(field.data_type()));
    match (lists.next(), lists.next()) {
        (Some(only), None) => Ok(only.name().clone()),
        _ => Err(file.missing("a column `embedding`, `features` or `vector`, or exactly one list of floats")),
    }
}

fn is_list_of_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            matches!(item.data_type(), DataType::Float16 | DataType::Float32 | DataType::Float64)
        }
        _ => false,
    }
}

/// Rows of equal length, collected from lists.
struct Embeddings<'a> {
    path: &'a Path,
    limits: StorageLimits<'a>,
    dim: Option<usize>,
    store: EmbeddingStore,
}

/// The expected amount of numbers, and where to store them.
struct StorageLimits<'a> {
    max_numbers: usize,
    claimed_rows: usize,
    spill: Option<&'a Spill>,
}

impl Embeddings<'_> {
    /// Adds the rows of a batch.
    fn append(&mut self, column: &Column<'_>) -> Result<()> {
        let array = column.array;
        let is_first = self.dim.is_none();
        if !is_list_of_floats(array.data_type()) {
            return Err(column.bad_type("lists of floats"));
        }
        let n_rows = array.len();
        let (items, bounds): (&ArrayRef, Vec<usize>) = match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                (list.values(), list.value_offsets().iter().map(|&at| at as usize).collect())
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                (list.values(), list.value_offsets().iter().map(|&at| at as usize).collect())
            }
            _ => {
                let list = array.as_fixed_size_list();
                (list.values(), (0..=n_rows).map(|row| list.value_offset_at(row)).collect())
            }
        };
        for (row, bound) in bounds.windows(2).enumerate() {
            let length = bound[1] - bound[0];
            let dim = *self.dim.get_or_insert(length);
            if length != dim || length == 0 {
                let expected =
                    if dim == 0 { "numbers".to_owned() } else { format!("{dim} numbers as in row 0") };
                return Err(column.bad_row(row, expected, length.to_string()));
            }
        }
        let items = items.slice(bounds[0], bounds[n_rows] - bounds[0]);
        if let Some(nulls) = items.nulls().filter(|nulls| nulls.null_count() > 0) {
            let at = (0..nulls.len()).find(|&at| nulls.is_null(at)).unwrap_or(0);
            return Err(column.bad_row(at / self.dim.unwrap_or(1), "numbers", "null"));
        }
        if is_first && let Some(dim) = self.dim {
            self.store = self.limits.store(dim, items.data_type())?;
        }
        self.store.add(&items).map_err(DataError::io("write", self.limits.folder()))
    }

    fn finish(self) -> Result<Matrix> {
        let dim = self.dim.unwrap_or(0);
        match self.store {
            EmbeddingStore::Memory(values) => Ok(Matrix::in_memory(self.path, dim, values)),
            EmbeddingStore::File { file, dtype, len } => {
                let file = file.into_inner().map_err(|error| error.into_error());
                let file = file.map_err(DataError::io("write", self.limits.folder()))?;
                let shape = vec![len.checked_div(dim).unwrap_or(0), dim];
                Matrix::from_array(ArrayFile::without_header(self.path, file, dtype, shape)?)
            }
        }
    }
}

/// The numbers read so far, in memory or on disk.
enum EmbeddingStore {
    Memory(Vec<f32>),
    /// In the precision of the file, 16 or 32 bits.
    File {
        file: BufWriter<File>,
        dtype: Dtype,
        len: usize,
    },
}

impl StorageLimits<'_> {
    /// A store for rows of `dim` numbers of this type.
    fn store(&self, dim: usize, number: &DataType) -> Result<EmbeddingStore> {
        let len = self.claimed_rows.saturating_mul(dim).min(self.max_numbers);
        let spill = self.spill.filter(|spill| (len * size_of::<f32>()) as u64 > spill.above);
        let Some(spill) = spill else { return Ok(EmbeddingStore::Memory(Vec::with_capacity(len))) };
        let dtype = if *number == DataType::Float16 { Dtype::F16 } else { Dtype::F32 };
        let file = spill.scratch.file((len * dtype.size()) as u64);
        let file = file.map_err(DataError::io("write", self.folder()))?;
        Ok(EmbeddingStore::File { file: BufWriter::with_capacity(1 << 20, file), dtype, len: 0 })
    }

    fn folder(&self) -> &Path {
        self.spill.map_or(Path::new(""), |spill| spill.scratch.folder())
    }
}

impl EmbeddingStore {
    fn add(&mut self, items: &ArrayRef) -> std::io::Result<()> {
        match self {
            EmbeddingStore::Memory(values) => match items.data_type() {
                DataType::Float16 => {
                    values.extend(items.as_primitive::<Float16Type>().values().iter().map(|v| v.to_f32()));
                }
                DataType::Float32 => values.extend(items.as_primitive::<Float32Type>().values()),
                _ => values.extend(items.as_primitive::<Float64Type>().values().iter().map(|&v| v as f32)),
            },
            EmbeddingStore::File { file, len, .. } => {
                *len += items.len();
                match items.data_type() {
                    DataType::Float16 => {
                        write_all(file, items.as_primitive::<Float16Type>().values(), |v| v.to_le_bytes())?
                    }
                    DataType::Float32 => {
                        write_all(file, items.as_primitive::<Float32Type>().values(), |v| v.to_le_bytes())?
                    }
                    _ => write_all(file, items.as_primitive::<Float64Type>().values(), |v| {
                        (v as f32).to_le_bytes()
                    })?,
                }
            }
        }
        Ok(())
    }
}

fn write_all<T: Copy, const N: usize>(
    file: &mut impl Write,
    values: &[T],
    bytes: impl Fn(T) -> [u8; N],
) -> std::io::Result<()> {
    values.iter().try_for_each(|&value| file.write_all(&bytes(value)))
}

#[cfg(test)]
#[path = "parquet_table_tests.rs"]
mod tests;
