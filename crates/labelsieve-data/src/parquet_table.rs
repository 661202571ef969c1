//! Parquet files with a column of embeddings.

use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use crate::labels::LabelsBuilder;
use crate::parquet_columns::{Column, ParquetFile};
use crate::table::{ExampleTable, NETWORK_KEY, TableColumns};
use crate::{ColumnRole, DataError, Labels, Matrix, Result};

const EMBEDDING_NAMES: [&str; 3] = ["embedding", "features", "vector"];
const LABEL_NAMES: [&str; 2] = ["class", "label"];
const ID_NAMES: [&str; 4] = ["id", "key", "uid", "image_path"];

/// What a metadata file says about each row.
pub(crate) struct RowNames {
    pub(crate) rows: usize,
    pub(crate) labels: Option<Labels>,
    pub(crate) ids: Option<Vec<String>>,
}

/// Opens a table whose embeddings are in one column. Only embeddings, labels and ids are decoded.
pub(crate) fn open_parquet(path: &Path, file: File, columns: &TableColumns) -> Result<ExampleTable> {
    let file = ParquetFile::from_file(path, file)?;
    let embedding = find_embedding(&file, columns).map_err(DataError::for_column(ColumnRole::Embedding))?;
    let file_len = file.file_len() as usize;
    let claimed_rows = file.claimed_rows();
    let network = file.metadata().remove(NETWORK_KEY);
    let mut features = Embeddings::default();
    let names = read_names(file, columns, Some(&embedding), |column| {
        if features.dim.is_none() {
            // Floats hardly compress, so a file of n bytes holds at most about n of them: this bounds the allocation.
            let dim = features.append(column)?.unwrap_or(0);
            features.values.reserve(claimed_rows.saturating_mul(dim).min(file_len));
            return Ok(());
        }
        features.append(column).map(|_| ())
    })?;
    let matrix = Matrix::in_memory(path, features.dim.unwrap_or(0), features.values);
    Ok(ExampleTable { network, ..ExampleTable::new(path, matrix, names.labels, names.ids)? })
}

/// Reads label and id columns, and hands the batches of `embedding`, if given, to `visit`.
pub(crate) fn read_names(
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
    let (mut rows, mut labels, mut ids) = (0, LabelsBuilder::default(), Vec::new());
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
#[derive(Default)]
struct Embeddings {
    dim: Option<usize>,
    values: Vec<f32>,
}

impl Embeddings {
    /// Adds the rows of a batch and returns the number of columns, known from the first row on.
    fn append(&mut self, column: &Column<'_>) -> Result<Option<usize>> {
        let array = column.array;
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
        match items.data_type() {
            DataType::Float16 => {
                self.values.extend(items.as_primitive::<Float16Type>().values().iter().map(|v| v.to_f32()));
            }
            DataType::Float32 => self.values.extend(items.as_primitive::<Float32Type>().values()),
            _ => self.values.extend(items.as_primitive::<Float64Type>().values().iter().map(|&v| v as f32)),
        }
        Ok(self.dim)
    }
}

#[cfg(test)]
#[path = "parquet_table_tests.rs"]
mod tests;
