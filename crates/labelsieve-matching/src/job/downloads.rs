//! The photos of the candidates, each once, as a list that img2dataset downloads.

use std::path::PathBuf;

use labelsieve_files::counted;
use labelsieve_files::work::{Monitor, Result, SeenKeys};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::messages::MAX_SHOWN;
use crate::text::KeepColumn;
use crate::{DownloadListWriter, DownloadRow};

/// A list of photos to write.
#[derive(Clone, Debug)]
pub struct DownloadList {
    /// The file, `.parquet` or `.csv`.
    pub path: PathBuf,
    /// The column of their URLs; by default, one with a usual name.
    pub url_column: Option<String>,
}

impl DownloadList {
    /// The columns of URL and caption.
    pub(super) fn columns(&self) -> [KeepColumn; 2] {
        [KeepColumn::Url(self.url_column.clone()), KeepColumn::FirstText]
    }
}

/// Counts of a list of photos.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedPhotos {
    /// Photos in the list.
    #[serde(alias = "n_rows")] // the name in the description of a part
    pub n_photos: u64,
    /// Rows of the texts with candidates, but without a URL.
    pub n_without_url: u64,
}

/// The photo of a row that has candidates.
pub struct Photo {
    pub id: String,
    pub url: Option<String>,
    pub caption: Option<String>,
}

/// A list under construction. It keeps a digest of 16 bytes per photo to detect duplicates.
pub(super) struct ListWriter {
    writer: DownloadListWriter,
    seen: SeenKeys,
    listed: ListedPhotos,
    /// The first rows without a URL.
    without_url: Vec<String>,
    path: PathBuf,
}

impl ListWriter {
    pub(super) fn create(list: &DownloadList, metadata: &[(String, String)]) -> Result<ListWriter> {
        Ok(ListWriter {
            writer: DownloadListWriter::create(&list.path, metadata)?,
            seen: SeenKeys::default(),
            listed: ListedPhotos::default(),
            without_url: Vec::new(),
            path: list.path.clone(),
        })
    }

    /// Adds photos that are not listed yet.
    pub(super) fn add(&mut self, photos: &[Photo]) -> labelsieve_files::Result<()> {
        let mut rows = Vec::new();
        for Photo { id, url, caption } in photos {
            match url.as_deref().map(str::trim).filter(|url| !url.is_empty()) {
                None => {
                    self.listed.n_without_url += 1;
                    if self.without_url.len() < MAX_SHOWN {
                        self.without_url.push(id.clone());
                    }
                }
                Some(url) if self.seen.is_new(id) => {
                    rows.push(DownloadRow { url: url.to_owned(), caption: caption.clone(), id: id.clone() });
                }
                Some(_) => {}
            }
        }
        self.listed.n_photos += rows.len() as u64;
        self.writer.write(&rows)
    }

    pub(super) fn add_metadata(&mut self, key: String, value: String) {
        self.writer.add_metadata(key, value);
    }

    /// The description of a part.
    pub(super) fn detail(&self) -> serde_json::Value {
        json!({ "n_rows": self.listed.n_photos, "n_without_url": self.listed.n_without_url })
    }

    /// Completes the file and reports its contents.
    pub(super) fn finish(self, monitor: &dyn Monitor) -> Result<ListedPhotos> {
        self.writer.finish()?;
        let ListedPhotos { n_photos, n_without_url } = self.listed;
        if n_without_url > 0 {
            let more = if n_without_url > self.without_url.len() as u64 { ", …" } else { "" };
            let rows = counted(n_without_url as usize, "row");
            let names = self.without_url.join("`, `");
            monitor
                .warning(&format!("{rows} with candidates but without a URL, not listed: `{names}`{more}"));
        }
        let photos = counted(n_photos as usize, "photo");
        monitor.note(&format!("{photos} to download written to `{}`", self.path.display()));
        Ok(self.listed)
    }
}
