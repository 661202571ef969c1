//! Pictures in Parquet: the thumbnails of a run, and any other file with encoded images in a column.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::Result;
use crate::parquet_columns::{Column, ParquetFile};
use crate::parquet_table::ID_NAMES;
use crate::parquet_write::ParquetWriter;

/// The names under which pictures are looked for.
const IMAGE_NAMES: [&str; 3] = ["image", "jpg", "bytes"];
/// The names under which titles are looked for.
const TITLE_NAMES: [&str; 2] = ["title", "caption"];
/// Rows that are read together, unless that could be more than [`LARGEST_BATCH`].
const BATCH_ROWS: usize = 64;
/// Row groups up to this size are in memory before they are anything to worry about.
const LARGEST_BATCH: u64 = 64 << 20;

/// A small picture of an example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThumbnailRow {
    /// The example.
    pub id: String,
    /// The picture as an encoded JPEG, PNG, WebP or GIF.
    pub image: Vec<u8>,
    /// What its source calls it.
    pub title: Option<String>,
}

/// Writes thumbnails as they come; the file appears in [`ThumbnailWriter::finish`].
pub struct ThumbnailWriter {
    writer: ParquetWriter,
}

impl ThumbnailWriter {
    /// Starts a file that will be called `path`.
    pub fn create(path: impl AsRef<Path>) -> Result<ThumbnailWriter> {
        let schema = Schema::new(vec![
            Field::new("id", DataType::Utf8, false),
            Field::new("image", DataType::Binary, false),
            Field::new("title", DataType::Utf8, true),
        ]);
        Ok(ThumbnailWriter { writer: ParquetWriter::create(path.as_ref(), schema, &[])? })
    }

    /// Adds rows.
    pub fn write(&mut self, rows: &[ThumbnailRow]) -> Result<()> {
        self.writer.write(vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.id))),
            Arc::new(BinaryArray::from_iter_values(rows.iter().map(|row| &row.image))),
            Arc::new(StringArray::from_iter(rows.iter().map(|row| row.title.as_deref()))),
        ])
    }

    /// Completes the file and gives it its name.
    pub fn finish(self) -> Result<()> {
        self.writer.finish()
    }
}

/// Hands every picture of a Parquet file to `visit` with its id and, if the file has them, its title: columns `id`,
/// `key`, `uid` or `image_path`; `image`, `jpg` or `bytes`, binary or a struct with `bytes`; `title` or `caption`.
pub fn for_each_image(
    path: impl AsRef<Path>,
    mut visit: impl FnMut(&str, &[u8], Option<&str>) -> Result<()>,
) -> Result<()> {
    let file = ParquetFile::open(path.as_ref())?;
    let batch_rows = if file.largest_group() <= LARGEST_BATCH { BATCH_ROWS } else { 1 };
    let file = file.in_batches_of(batch_rows);
    let id = file
        .find(None, &ID_NAMES)?
        .ok_or_else(|| file.missing("a column `id`, `key`, `uid` or `image_path`"))?;
    let image =
        file.find(None, &IMAGE_NAMES)?.ok_or_else(|| file.missing("a column `image`, `jpg` or `bytes`"))?;
    let title = file.find(None, &TITLE_NAMES)?;
    let names: Vec<&str> = [id.as_str(), image.as_str()].into_iter().chain(title.as_deref()).collect();
    file.for_each_batch_with_nulls(&names, |columns| {
        let [id, image, rest @ ..] = columns else { unreachable!("as many columns as names") };
        id.check_nulls()?;
        let mut ids = Vec::with_capacity(id.array.len());
        id.for_each_text(&mut |text| ids.push(text.to_owned()))?;
        let titles = rest.first().map(Column::optional_texts).transpose()?;
        let bytes = bytes_of(image)?;
        for (row, id) in ids.iter().enumerate() {
            let title = titles.as_ref().and_then(|titles| titles[row].as_deref());
            let image = value_of(bytes, row).ok_or_else(|| image.bad_row(row, "an encoded image", "null"))?;
            visit(id, image, title)?;
        }
        Ok(())
    })
}

/// The bytes themselves, or the field `bytes` of a struct, as Hugging Face's tables have it.
fn bytes_of<'a>(column: &Column<'a>) -> Result<&'a ArrayRef> {
    let array = match column.array.as_struct_opt() {
        Some(fields) => fields.column_by_name("bytes"),
        None => Some(column.array),
    };
    let binary = |array: &&ArrayRef| {
        matches!(array.data_type(), DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
    };
    array.filter(binary).ok_or_else(|| column.bad_type("encoded images as binary values"))
}

fn value_of(array: &ArrayRef, row: usize) -> Option<&[u8]> {
    array.is_valid(row).then(|| match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().value(row),
        DataType::LargeBinary => array.as_binary::<i64>().value(row),
        _ => array.as_binary_view().value(row),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use arrow_array::{Int64Array, LargeBinaryArray, RecordBatch, StructArray};
    use parquet::arrow::ArrowWriter;

    use super::*;

    fn row(id: &str, image: &[u8], title: Option<&str>) -> ThumbnailRow {
        ThumbnailRow { id: id.to_owned(), image: image.to_vec(), title: title.map(str::to_owned) }
    }

    fn read(path: &Path) -> Result<Vec<ThumbnailRow>> {
        let mut rows = Vec::new();
        for_each_image(path, |id, image, title| {
            rows.push(row(id, image, title));
            Ok(())
        })?;
        Ok(rows)
    }

    fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("thumbnails.parquet");
        let mut writer = ThumbnailWriter::create(&path).unwrap();
        let rows: Vec<ThumbnailRow> = (0..200u8)
            .map(|i| ThumbnailRow {
                id: i.to_string(),
                image: vec![i; 3],
                title: (i % 2 == 0).then(|| format!("picture {i}")),
            })
            .collect();
        writer.write(&rows[..7]).unwrap();
        writer.write(&rows[7..]).unwrap();
        writer.finish().unwrap();
        assert_eq!(read(&path).unwrap(), rows);
    }

    #[test]
    fn other_layouts_are_understood() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("photos.parquet");
        let bytes: ArrayRef = Arc::new(LargeBinaryArray::from_vec(vec![b"one", b"two"]));
        let field = Arc::new(Field::new("bytes", DataType::LargeBinary, true));
        let nested: ArrayRef = Arc::new(StructArray::from(vec![(field, bytes.clone())]));
        for image in [bytes, nested] {
            write(&path, vec![("key", Arc::new(Int64Array::from(vec![5, 6]))), ("image", image)]);
            assert_eq!(read(&path).unwrap(), [row("5", b"one", None), row("6", b"two", None)]);
        }
    }

    #[test]
    fn what_is_no_picture_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("photos.parquet");
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![5, 6]));
        let check = |columns: Vec<(&str, ArrayRef)>, message: &str| {
            write(&path, columns);
            let error = read(&path).unwrap_err().to_string();
            assert!(error.ends_with(message), "{error}");
        };
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        check(vec![("id", ids.clone())], "expected a column `image`, `jpg` or `bytes`, found the columns id");
        check(
            vec![("id", ids.clone()), ("image", texts)],
            "column `image`: expected encoded images as binary values, found Utf8",
        );
        let gap: ArrayRef = Arc::new(BinaryArray::from_opt_vec(vec![Some(b"x"), None]));
        check(
            vec![("id", ids), ("image", gap)],
            "column `image`, row 1: expected an encoded image, found null",
        );
    }
}
