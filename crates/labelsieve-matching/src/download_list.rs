//! Photos to download, in the layout that img2dataset reads.

use std::path::Path;
use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::{DataType, Field, Schema};
use labelsieve_files::Result;
use labelsieve_files::tables::table_write::TableWriter;

/// A photo to download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadRow {
    /// Its URL.
    pub url: String,
    /// Its caption.
    pub caption: Option<String>,
    /// The example.
    pub id: String,
}

/// Writes a list of photos; the file appears in [`DownloadListWriter::finish`].
///
/// Its columns are `url`, `caption`, `key` and `id`. The last two are the same: img2dataset replaces a column `key` by keys of
/// its own, and keeps a column `id`.
pub struct DownloadListWriter {
    writer: TableWriter,
}

impl DownloadListWriter {
    /// Starts a file that will be called `path`; its ending decides between Parquet and CSV.
    pub fn create(path: impl AsRef<Path>, metadata: &[(String, String)]) -> Result<DownloadListWriter> {
        let schema = Schema::new(vec![
            Field::new("url", DataType::Utf8, false),
            Field::new("caption", DataType::Utf8, true),
            Field::new("key", DataType::Utf8, false),
            Field::new("id", DataType::Utf8, false),
        ]);
        Ok(DownloadListWriter { writer: TableWriter::create(path.as_ref(), schema, metadata)? })
    }

    /// Adds photos.
    pub fn write(&mut self, rows: &[DownloadRow]) -> Result<()> {
        let ids = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.id)));
        self.writer.write(vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.url))),
            Arc::new(StringArray::from_iter(rows.iter().map(|row| row.caption.as_ref()))),
            ids.clone(),
            ids,
        ])
    }

    /// Adds metadata that is known only after the last row.
    pub fn add_metadata(&mut self, key: String, value: String) {
        self.writer.add_metadata(key, value);
    }

    /// Completes the file and gives it its name.
    pub fn finish(self) -> Result<()> {
        self.writer.finish()
    }
}
