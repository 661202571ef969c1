//! Parquet files with the bytes of images in a column.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Fields, SchemaRef};
use labelsieve_files::storage::regular_file::open_regular;
use labelsieve_files::tables::parquet_columns::ParquetFile;
use labelsieve_files::tables::parquet_groups::Groups;
use labelsieve_files::{ColumnRole, DataError, Result, Unread};
use labelsieve_matching::text::{for_each_text, is_textual};

use super::stream::{Sink, deliver};
use super::{Extent, ImageColumns, ImageError, LABEL_NAMES, MAX_IMAGE_BYTES, RowFilter, too_large};

const IMAGE_NAMES: [&str; 4] = ["image", "img", "jpg", "bytes"];
const ID_NAMES: [&str; 5] = ["id", "key", "uid", "image_path", "file_name"];

/// Rows per batch, unless they could exceed [`MAX_BATCH_BYTES`].
const BATCH_ROWS: usize = 32;

/// Rows per batch when only ids are read.
const ID_ROWS: usize = 4096;

/// Row groups up to this size are small enough to be read in full batches.
const MAX_BATCH_BYTES: u64 = 64 << 20;

/// The image of a row, or a description of the value found instead.
pub(super) type RowBytes = std::result::Result<Vec<u8>, String>;

/// A file and the columns to read.
#[derive(Clone, Debug)]
pub(super) struct ParquetImages {
    path: PathBuf,
    image: String,
    id: Option<String>,
    label: Option<String>,
    /// Class names by number, as Hugging Face stores them beside a column of numbers.
    label_names: Vec<String>,
    filters: Vec<RowFilter>,
    claimed_rows: usize,
}

impl ParquetImages {
    pub(super) fn open(path: &Path, columns: &ImageColumns) -> Result<ParquetImages> {
        let file = ParquetFile::from_file(path, open_regular(path)?)?;
        let image = find_image(&file, path, columns).map_err(DataError::for_column(ColumnRole::Image))?;
        let id =
            file.find(columns.id.as_deref(), &ID_NAMES).map_err(DataError::for_column(ColumnRole::Id))?;
        let label = file.find(columns.label.as_deref(), &LABEL_NAMES);
        let label = label.map_err(DataError::for_column(ColumnRole::Label))?;
        for filter in &columns.filters {
            let found = file.find(Some(&filter.column), &[]);
            found.map_err(DataError::for_column(ColumnRole::Filter))?;
        }
        let filtered = columns.filters.iter().map(|filter| &filter.column);
        for name in filtered.chain(&id).chain(&label) {
            let kind = type_of(file.schema(), name);
            if let Some(kind) = kind.filter(|kind| !is_textual(kind)) {
                let place = format!("column `{name}`");
                return Err(DataError::malformed(path, place, "text or integers", kind.to_string()));
            }
        }
        let label_names = label.as_ref().map(|label| class_names(&file, label)).unwrap_or_default();
        Ok(ParquetImages {
            path: path.to_path_buf(),
            image,
            id,
            label,
            label_names,
            filters: columns.filters.clone(),
            claimed_rows: file.claimed_rows(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn len_hint(&self) -> Option<usize> {
        self.filters.is_empty().then_some(self.claimed_rows)
    }

    pub(super) fn visit(&self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        let id = self.path.display().to_string();
        let of = self.claimed_rows as u64;
        let unread_rows = |n| Extent::File(Some(Unread::Rows { n, of }));
        let filtered = self.filters.iter().map(|filter| &filter.column);
        let mut names: Vec<&str> = [&self.image].into_iter().chain(filtered).map(String::as_str).collect();
        names.extend(self.id.as_deref().into_iter().chain(self.label.as_deref()));
        let opened = open_regular(&self.path).and_then(|file| ParquetFile::from_file(&self.path, file));
        let groups = match opened.and_then(|file| file.groups(&names)) {
            Ok(groups) => groups,
            Err(error) => return sink(Err(ImageError { id, error, extent: unread_rows(of) })),
        };
        let mut first_row = 0;
        for group in 0..groups.len() {
            let n_rows = groups.rows(group);
            let mut n_read = 0;
            match self.read_group(&groups, group, first_row, &mut n_read, sink) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return ControlFlow::Break(()),
                // The following groups can still be read.
                Err(error) => {
                    let extent = unread_rows(n_rows.saturating_sub(n_read) as u64);
                    sink(Err(ImageError { id: id.clone(), error, extent }))?;
                }
            }
            first_row += n_rows;
        }
        ControlFlow::Continue(())
    }

    /// Reads one row group, whose first row has the number `first_row`, and counts the rows that could be read.
    fn read_group(
        &self,
        groups: &Groups,
        group: usize,
        first_row: usize,
        n_read: &mut usize,
        sink: &mut Sink<'_>,
    ) -> Result<ControlFlow<()>> {
        // The library reads whole batches, however large the images in them are.
        let is_small = groups.bytes(group) <= MAX_BATCH_BYTES;
        let mut batches = groups.batches(group, if is_small { BATCH_ROWS } else { 1 })?;
        while let Some(batch) = batches.next()? {
            if self.read_batch(&batch, first_row + *n_read, sink).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            *n_read += batch.num_rows();
        }
        Ok(ControlFlow::Continue(()))
    }

    fn read_batch(&self, batch: &RecordBatch, first_row: usize, sink: &mut Sink<'_>) -> ControlFlow<()> {
        let text = |name: &str, row: usize| {
            let mut value = None;
            if let Some(column) = batch.column_by_name(name) {
                for_each_text(column, row, &mut |text| value = Some(text.to_owned()));
            }
            value
        };
        for row in 0..batch.num_rows() {
            if !self.filters.iter().all(|filter| filter.passes(text(&filter.column, row).as_deref())) {
                continue;
            }
            let number = first_row + row;
            let id = self.id.as_ref().and_then(|id| text(id, row)).filter(|id| !id.is_empty());
            let id = id.unwrap_or_else(|| self.row_name(number));
            let label = self.label.as_ref().and_then(|label| text(label, row));
            let label = label.map(|label| self.class_name(label));
            let bytes = batch.column_by_name(&self.image).and_then(|column| bytes_at(column, row));
            let place = || format!("column `{}`, row {number}", self.image);
            let bytes = match bytes {
                Some(bytes) if bytes.len() as u64 > MAX_IMAGE_BYTES => {
                    Err(too_large(&self.path, place(), bytes.len() as u64))
                }
                Some(bytes) => Ok(bytes.to_vec()),
                None => Err(DataError::malformed(&self.path, place(), "the bytes of an image", "null")),
            };
            deliver(&id, label.as_deref(), bytes, sink)?;
        }
        ControlFlow::Continue(())
    }

    /// Reports the id and the number of every row, without its image.
    pub(super) fn locate(&self, note: &mut dyn FnMut(&str, usize)) -> Result<()> {
        let file = ParquetFile::from_file(&self.path, open_regular(&self.path)?)?;
        let Some(id) = &self.id else {
            (0..file.claimed_rows()).for_each(|row| note(&self.row_name(row), row));
            return Ok(());
        };
        let mut batches = file.batches(&[id], ID_ROWS)?;
        let mut row = 0;
        while let Some(batch) = batches.next()? {
            for at in 0..batch.num_rows() {
                let mut name = String::new();
                for_each_text(batch.column(0), at, &mut |text| text.clone_into(&mut name));
                if name.is_empty() {
                    name = self.row_name(row);
                }
                note(&name, row);
                row += 1;
            }
        }
        Ok(())
    }

    /// The column of images, row group by row group.
    pub(super) fn groups(&self) -> Result<Groups> {
        ParquetFile::from_file(&self.path, open_regular(&self.path)?)?.groups(&[&self.image])
    }

    /// `n` images of a row group after the first `skip`.
    pub(super) fn read_rows(
        &self,
        groups: &Groups,
        group: usize,
        skip: usize,
        n: usize,
    ) -> Result<Vec<RowBytes>> {
        let mut batches = groups.batches_from(group, skip, n)?;
        let mut rows = Vec::new();
        while let Some(batch) = batches.next()? {
            rows.extend((0..batch.num_rows()).map(|row| match bytes_at(batch.column(0), row) {
                Some(bytes) if bytes.len() as u64 > MAX_IMAGE_BYTES => Err(format!("{} bytes", bytes.len())),
                Some(bytes) => Ok(bytes.to_vec()),
                None => Err("null".to_owned()),
            }));
        }
        Ok(rows)
    }

    /// The error for a row without an image that can be read.
    pub(super) fn bad_row(&self, row: usize, found: String) -> DataError {
        let place = format!("column `{}`, row {row}", self.image);
        DataError::malformed(&self.path, place, "the bytes of an image", found)
    }

    /// The name of a row without an id.
    fn row_name(&self, row: usize) -> String {
        let stem = self.path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        format!("{stem}-{row}")
    }

    fn class_name(&self, label: String) -> String {
        let name = label.parse::<usize>().ok().and_then(|number| self.label_names.get(number));
        name.cloned().unwrap_or(label)
    }
}

fn find_image(file: &ParquetFile, path: &Path, columns: &ImageColumns) -> Result<String> {
    let holds_images = |name: &str| type_of(file.schema(), name).is_some_and(is_bytes);
    if let Some(name) = file.find(columns.image.as_deref(), &[])? {
        if holds_images(&name) {
            return Ok(name);
        }
        let found = type_of(file.schema(), &name).map(ToString::to_string).unwrap_or_default();
        let expected = "bytes, or a structure with a field `bytes`";
        return Err(DataError::malformed(path, format!("column `{name}`"), expected, found));
    }
    if let Some(name) = IMAGE_NAMES.into_iter().find(|name| holds_images(name)) {
        return Ok(name.to_owned());
    }
    let fields = file.schema().fields();
    let mut candidates = fields.iter().filter(|field| is_bytes(field.data_type()));
    match (candidates.next(), candidates.next()) {
        (Some(only), None) => Ok(only.name().clone()),
        _ => Err(file.missing("a column `image`, `img`, `jpg` or `bytes` of bytes, or exactly one of them")),
    }
}

fn type_of<'a>(schema: &'a SchemaRef, name: &str) -> Option<&'a DataType> {
    schema.fields().iter().find(|field| field.name() == name).map(|field| field.data_type())
}

fn is_bytes(kind: &DataType) -> bool {
    match kind {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => true,
        DataType::Struct(fields) => bytes_field(fields).is_some(),
        _ => false,
    }
}

/// Hugging Face stores an image as `{bytes, path}`.
fn bytes_field(fields: &Fields) -> Option<usize> {
    let is_it = |field: &arrow_schema::FieldRef| field.name() == "bytes" && is_bytes(field.data_type());
    fields.iter().position(is_it)
}

fn bytes_at(column: &ArrayRef, row: usize) -> Option<&[u8]> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Binary => Some(column.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Some(column.as_binary::<i64>().value(row)),
        DataType::BinaryView => Some(column.as_binary_view().value(row)),
        DataType::Struct(fields) => bytes_at(column.as_struct().column(bytes_field(fields)?), row),
        _ => None,
    }
}

/// The names of the classes in the `huggingface` metadata: `info.features.LABEL.names`.
fn class_names(file: &ParquetFile, label: &str) -> Vec<String> {
    let metadata = file.metadata();
    let json = metadata.get("huggingface").and_then(|text| serde_json::from_str(text).ok());
    let json: serde_json::Value = json.unwrap_or_default();
    let names = json["info"]["features"][label]["names"].as_array().cloned().unwrap_or_default();
    names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}
