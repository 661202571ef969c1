//! Tars as webdataset and img2dataset write them: `KEY.jpg`, `KEY.txt`, `KEY.json`, `KEY.cls`, one after the other.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::stream::{Sink, deliver};
use super::{ImageColumns, ImageError, LABEL_NAMES, MOST_BYTES, is_image_name};
use crate::parquet_columns::ParquetFile;
use crate::{DataError, Result};

/// Headers begin at multiples of this.
const BLOCK: u64 = 512;

/// Files beside an image (class, JSON) that are larger are not read.
const MOST_SIDE_BYTES: u64 = 16 << 20;

/// One archive, and what to read of it.
#[derive(Clone, Debug)]
pub(super) struct Tar {
    path: PathBuf,
    /// img2dataset's table of downloads, `00000.parquet` beside `00000.tar`.
    table: Option<PathBuf>,
    n_successes: Option<usize>,
    columns: ImageColumns,
}

/// The files of one key.
#[derive(Default)]
struct Sample {
    key: String,
    image: Option<Result<Vec<u8>>>,
    label: Option<String>,
    json: Option<Value>,
}

impl Tar {
    pub(super) fn open(path: &Path, columns: &ImageColumns) -> Result<Tar> {
        File::open(path).map_err(DataError::io("open", path))?;
        let table = Some(path.with_extension("parquet")).filter(|table| table.is_file());
        let mut tar = Tar { path: path.to_path_buf(), table, n_successes: None, columns: columns.clone() };
        let successes = tar.successes()?;
        if successes.is_none() {
            tar.table = None; // some other table
        }
        tar.n_successes = successes.filter(|_| columns.filters.is_empty()).map(|keys| keys.len());
        Ok(tar)
    }

    pub(super) fn paths(&self) -> Vec<&Path> {
        [&self.path].into_iter().chain(&self.table).map(PathBuf::as_path).collect()
    }

    pub(super) fn len_hint(&self) -> Option<usize> {
        self.n_successes
    }

    pub(super) fn visit(&self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        match self.read(sink) {
            Ok(flow) => flow,
            Err(error) => sink(Err(ImageError { id: self.path.display().to_string(), error })),
        }
    }

    /// The keys of the downloads that succeeded; none without a table of img2dataset.
    fn successes(&self) -> Result<Option<HashSet<String>>> {
        let Some(table) = &self.table else { return Ok(None) };
        let file = ParquetFile::open(table)?;
        if ["key", "status"].iter().any(|name| file.schema().index_of(name).is_err()) {
            return Ok(None);
        }
        let mut keys = HashSet::new();
        file.for_each_batch(&["key", "status"], |columns| {
            let mut succeeded = Vec::new();
            columns[1].for_each_text(&mut |status| succeeded.push(status == "success"))?;
            let mut succeeded = succeeded.into_iter();
            columns[0].for_each_text(&mut |key| {
                if succeeded.next() == Some(true) {
                    keys.insert(key.to_owned());
                }
            })
        })?;
        Ok(Some(keys))
    }

    fn read(&self, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        let mut wanted = self.successes()?;
        let file = File::open(&self.path).map_err(DataError::io("open", &self.path))?;
        let mut archive = tar::Archive::new(std::io::BufReader::with_capacity(1 << 20, file));
        let mut sample = Sample::default();
        let mut offset = 0; // where the next header, or the contents being read, should be
        let mut is_whole = true; // whether the last file was read to its end
        let result = archive.entries().and_then(|entries| {
            for entry in entries {
                let mut entry = entry?;
                let size = entry.size();
                offset = entry.raw_file_position();
                if !entry.header().entry_type().is_file() {
                    continue;
                }
                let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
                let (key, ending) = split_name(&name);
                if key != sample.key {
                    let finished =
                        std::mem::replace(&mut sample, Sample { key: key.to_owned(), ..Sample::default() });
                    if self.deliver(finished, &mut wanted, sink).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                is_whole = false;
                self.take_file(&mut sample, ending, &mut entry)?;
                is_whole = true;
                offset = offset.saturating_add(size).div_ceil(BLOCK).saturating_mul(BLOCK);
            }
            Ok(ControlFlow::Continue(()))
        });
        match result {
            Ok(ControlFlow::Break(())) => return Ok(ControlFlow::Break(())),
            Ok(ControlFlow::Continue(())) => {}
            Err(error) => {
                if is_whole && self.deliver(sample, &mut wanted, sink).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                let place = format!("byte {offset}");
                return Err(DataError::malformed(&self.path, place, "a complete tar", error.to_string()));
            }
        }
        if self.deliver(sample, &mut wanted, sink).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        match wanted.as_ref().and_then(|keys| keys.iter().min().map(|key| (key, keys.len()))) {
            Some((key, n)) if self.columns.filters.is_empty() => {
                let expected = "every download that succeeded, as the Parquet file beside it says";
                let found = format!("{n} missing, the first `{key}`");
                Err(DataError::malformed(&self.path, "end", expected, found))
            }
            _ => Ok(ControlFlow::Continue(())),
        }
    }

    /// Reads a file that matters.
    fn take_file<R: Read>(
        &self,
        sample: &mut Sample,
        ending: &str,
        entry: &mut tar::Entry<'_, R>,
    ) -> std::io::Result<()> {
        let is_image = match &self.columns.image {
            Some(image) => ending == image,
            None => is_image_name(ending),
        };
        let is_label = match &self.columns.label {
            Some(label) => ending == label,
            None => ending == "cls",
        };
        if is_image && sample.image.is_none() {
            sample.image = Some(match entry.size() {
                size if size > MOST_BYTES => {
                    let place = format!("`{}.{ending}`", sample.key);
                    let expected = format!("at most {MOST_BYTES} bytes");
                    Err(DataError::malformed(&self.path, place, expected, size.to_string()))
                }
                _ => Ok(read_whole(entry)?),
            });
        } else if is_label && entry.size() <= MOST_SIDE_BYTES {
            let text = String::from_utf8_lossy(&read_whole(entry)?).trim().to_owned();
            sample.label = Some(text).filter(|text| !text.is_empty());
        } else if ending == "json" && entry.size() <= MOST_SIDE_BYTES {
            sample.json = serde_json::from_slice(&read_whole(entry)?).ok();
        }
        Ok(())
    }

    fn deliver(
        &self,
        sample: Sample,
        wanted: &mut Option<HashSet<String>>,
        sink: &mut Sink<'_>,
    ) -> ControlFlow<()> {
        let Some(image) = sample.image else { return ControlFlow::Continue(()) };
        if wanted.as_mut().is_some_and(|wanted| !wanted.remove(&sample.key)) {
            return ControlFlow::Continue(()); // a failed download, or a key that came before
        }
        let value = |name: &str| match sample.json.as_ref()?.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            _ => None,
        };
        if !self.columns.filters.iter().all(|filter| filter.passes(value(&filter.column).as_deref())) {
            return ControlFlow::Continue(());
        }
        let label = sample.label.or_else(|| match &self.columns.label {
            Some(name) => value(name),
            None => LABEL_NAMES.into_iter().find_map(value),
        });
        let id = self.columns.id.as_deref().and_then(value).unwrap_or(sample.key);
        deliver(&id, label.as_deref(), image, sink)
    }
}

/// The library ends a file early when the archive ends early; that is an error here.
fn read_whole<R: Read>(entry: &mut tar::Entry<'_, R>) -> std::io::Result<Vec<u8>> {
    let size = entry.size();
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes)?;
    if bytes.len() as u64 == size {
        return Ok(bytes);
    }
    Err(std::io::Error::other(format!("an end after {} of {size} bytes of a file", bytes.len())))
}

/// `a/b/000.seg.png` is key `a/b/000` and ending `seg.png`: webdataset splits at the first dot of the file's own name.
pub(super) fn split_name(name: &str) -> (&str, &str) {
    let start = name.rfind('/').map_or(0, |slash| slash + 1);
    match name[start..].find('.') {
        Some(dot) => (&name[..start + dot], &name[start + dot + 1..]),
        None => (name, ""),
    }
}
