//! The thumbnails of a run: pictures in Parquet.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{BinaryArray, StringArray};
use arrow_schema::{DataType, Field, Schema};
use labelsieve_files::Result;
use labelsieve_files::tables::parquet_write::ParquetWriter;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image_files::{ImageColumns, ImageSource};
    use labelsieve_matching::text::{TextColumns, read_captions};

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
        let images = ImageSource::open(std::slice::from_ref(&path), &ImageColumns::default()).unwrap();
        let mut titles = read_captions(&[path], &TextColumns::default(), &|_| true).unwrap();
        let read = images.images().unwrap().map(|image| {
            let image = image.unwrap();
            ThumbnailRow { title: titles.remove(&image.id), id: image.id, image: image.bytes }
        });
        assert_eq!(read.collect::<Vec<_>>(), rows);
    }
}
