//! Writes encoded images with their texts to Parquet: photo sets for benchmarks, thumbnails of a run.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StringArray};
use arrow_schema::{DataType, Field, Schema};
use labelsieve_files::Result;
use labelsieve_files::tables::parquet_write::{ParquetWriter, dictionary_column, dictionary_type};

/// A row of a table of images.
pub trait ImageRow: Sized {
    /// Whether each call of [`ImageTableWriter::write`] ends a row group. Full-size photos fill one quickly, and rows must not
    /// stay in memory; thumbnails are better packed together.
    const GROUP_PER_WRITE: bool;

    /// The columns of the table.
    fn schema() -> Schema;

    /// The values of some rows, column by column.
    fn columns(rows: &[Self]) -> Vec<ArrayRef>;
}

/// Writes rows as they come; the file appears in [`ImageTableWriter::finish`].
pub struct ImageTableWriter<R> {
    writer: ParquetWriter,
    row: PhantomData<R>,
}

/// Writes a photo set.
pub type PhotoWriter = ImageTableWriter<PhotoRow>;

/// Writes thumbnails.
pub type ThumbnailWriter = ImageTableWriter<ThumbnailRow>;

impl<R: ImageRow> ImageTableWriter<R> {
    /// Starts a file that will be called `path`.
    pub fn create(path: impl AsRef<Path>) -> Result<ImageTableWriter<R>> {
        let writer = ParquetWriter::create(path.as_ref(), R::schema(), &[])?;
        Ok(ImageTableWriter { writer, row: PhantomData })
    }

    /// Adds rows.
    pub fn write(&mut self, rows: &[R]) -> Result<()> {
        self.writer.write(R::columns(rows))?;
        if R::GROUP_PER_WRITE {
            self.writer.end_group()?;
        }
        Ok(())
    }

    /// Completes the file and gives it its name.
    pub fn finish(self) -> Result<()> {
        self.writer.finish()
    }
}

/// A photo of a benchmark, with its class, role and split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhotoRow {
    /// The photo.
    pub id: String,
    /// Its class.
    pub class: String,
    /// Its title at the source; may be empty.
    pub title: String,
    /// The role of its class, e.g. `base` or `novel`.
    pub role: String,
    /// Its split, e.g. `train` or `test`.
    pub split: String,
    /// An encoded image.
    pub image: Vec<u8>,
}

impl ImageRow for PhotoRow {
    const GROUP_PER_WRITE: bool = true;

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("id", DataType::Utf8, false),
            Field::new("class", dictionary_type(), false),
            Field::new("title", DataType::Utf8, false),
            Field::new("role", dictionary_type(), false),
            Field::new("split", dictionary_type(), false),
            Field::new("image", DataType::Binary, false),
        ])
    }

    fn columns(rows: &[PhotoRow]) -> Vec<ArrayRef> {
        vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.id))),
            dictionary_column(rows.iter().map(|row| row.class.as_str())),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.title))),
            dictionary_column(rows.iter().map(|row| row.role.as_str())),
            dictionary_column(rows.iter().map(|row| row.split.as_str())),
            Arc::new(BinaryArray::from_iter_values(rows.iter().map(|row| &row.image))),
        ]
    }
}

/// A small picture of an example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThumbnailRow {
    /// The example.
    pub id: String,
    /// The picture as an encoded JPEG, PNG, WebP or GIF.
    pub image: Vec<u8>,
    /// Its title at the source.
    pub title: Option<String>,
}

impl ImageRow for ThumbnailRow {
    const GROUP_PER_WRITE: bool = false;

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("id", DataType::Utf8, false),
            Field::new("image", DataType::Binary, false),
            Field::new("title", DataType::Utf8, true),
        ])
    }

    fn columns(rows: &[ThumbnailRow]) -> Vec<ArrayRef> {
        vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.id))),
            Arc::new(BinaryArray::from_iter_values(rows.iter().map(|row| &row.image))),
            Arc::new(StringArray::from_iter(rows.iter().map(|row| row.title.as_deref()))),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image_files::{ImageColumns, ImageSource};
    use labelsieve_files::read_text_columns;
    use labelsieve_matching::text::{TextColumns, read_captions};

    #[test]
    fn photos_are_read_back_as_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("photos.parquet");
        let mut writer = PhotoWriter::create(&path).unwrap();
        let row = |i: u8| PhotoRow {
            id: i.to_string(),
            class: format!("class {}", i % 3),
            title: String::new(),
            role: "base".into(),
            split: "train".into(),
            image: vec![i; 3],
        };
        let rows: Vec<PhotoRow> = (0..20).map(row).collect();
        writer.write(&rows[..7]).unwrap();
        writer.write(&rows[7..]).unwrap();
        writer.finish().unwrap();
        let texts = read_text_columns(&path, &["id", "class", "role", "split"]).unwrap();
        assert_eq!((texts[1][4].as_str(), texts[2][4].as_str()), ("class 1", "base"));
        let images = ImageSource::open(std::slice::from_ref(&path), &ImageColumns::default()).unwrap();
        let images: Vec<Vec<u8>> = images.images().unwrap().map(|image| image.unwrap().bytes).collect();
        assert_eq!(images, rows.iter().map(|row| row.image.clone()).collect::<Vec<_>>());
    }

    #[test]
    fn thumbnails_are_read_back_as_written() {
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
        let images = ImageSource::open(std::slice::from_ref(&path), &ImageColumns::default()).unwrap();
        let mut titles = read_captions(&[path], &TextColumns::default(), &|_| true).unwrap();
        let read = images.images().unwrap().map(|image| {
            let image = image.unwrap();
            ThumbnailRow { title: titles.remove(&image.id), id: image.id, image: image.bytes }
        });
        assert_eq!(read.collect::<Vec<_>>(), rows);
    }
}
