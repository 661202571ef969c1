//! Photo sets for benchmarks: encoded images with their classes, roles and splits, in Parquet.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{BinaryArray, StringArray};
use arrow_schema::{DataType, Field, Schema};
use labelsieve_files::Result;
use labelsieve_files::tables::parquet_write::{ParquetWriter, dictionary_column, dictionary_type};

/// A photo and what it is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhotoRow {
    /// The photo.
    pub id: String,
    /// Its class.
    pub class: String,
    /// What its source calls it; may be empty.
    pub title: String,
    /// What its class is for.
    pub role: String,
    /// What it is for itself.
    pub split: String,
    /// An encoded image.
    pub image: Vec<u8>,
}

/// Writes photos as they come; the file appears in [`PhotoWriter::finish`].
pub struct PhotoWriter {
    writer: ParquetWriter,
}

impl PhotoWriter {
    /// Starts a file that will be called `path`.
    pub fn create(path: impl AsRef<Path>) -> Result<PhotoWriter> {
        let schema = Schema::new(vec![
            Field::new("id", DataType::Utf8, false),
            Field::new("class", dictionary_type(), false),
            Field::new("title", DataType::Utf8, false),
            Field::new("role", dictionary_type(), false),
            Field::new("split", dictionary_type(), false),
            Field::new("image", DataType::Binary, false),
        ]);
        Ok(PhotoWriter { writer: ParquetWriter::create(path.as_ref(), schema, &[])? })
    }

    /// Adds rows, which need not stay in memory.
    pub fn write(&mut self, rows: &[PhotoRow]) -> Result<()> {
        self.writer.write(vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.id))),
            dictionary_column(rows.iter().map(|row| row.class.as_str())),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.title))),
            dictionary_column(rows.iter().map(|row| row.role.as_str())),
            dictionary_column(rows.iter().map(|row| row.split.as_str())),
            Arc::new(BinaryArray::from_iter_values(rows.iter().map(|row| &row.image))),
        ])?;
        self.writer.end_group()
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
    use labelsieve_files::read_text_columns;

    #[test]
    fn what_is_written_is_read_back() {
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
}
