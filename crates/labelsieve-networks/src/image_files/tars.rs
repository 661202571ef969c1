//! Tars of webdataset and img2dataset: `KEY.jpg`, `KEY.txt`, `KEY.json`, `KEY.cls`, one after the other.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use labelsieve_files::storage::file_kind::is_image_name;
use labelsieve_files::storage::regular_file::open_regular;
use labelsieve_files::tables::parquet_columns::ParquetFile;
use labelsieve_files::{DataError, Result, Unread};
use serde_json::Value;

use super::stream::{Sink, deliver};
use super::{Extent, ImageColumns, ImageError, LABEL_NAMES, MAX_IMAGE_BYTES, too_large};

/// An error of a whole archive, and how much of it was not read, if known.
type Damage = Box<(DataError, Option<Unread>)>;

/// Headers begin at multiples of this.
const BLOCK: u64 = 512;

/// Larger files beside an image (class, JSON) are not read.
const MAX_SIDECAR_BYTES: u64 = 16 << 20;

/// An archive and the columns to read.
#[derive(Clone, Debug)]
pub(super) struct Tar {
    path: PathBuf,
    /// img2dataset's table of downloads, `00000.parquet` beside `00000.tar`.
    table: Option<PathBuf>,
    n_successes: Option<usize>,
    columns: ImageColumns,
}

/// The reading position in an archive.
struct ReadPosition {
    /// Where the next header, or the contents being read, should be.
    offset: u64,
    /// Whether the last file was read to its end.
    is_whole: bool,
    sample: Sample,
}

impl Default for ReadPosition {
    fn default() -> ReadPosition {
        ReadPosition { offset: 0, is_whole: true, sample: Sample::default() }
    }
}

/// The files of one key.
#[derive(Default)]
struct Sample {
    key: String,
    image: Option<Result<Vec<u8>>>,
    label: Option<String>,
    json: Option<Value>,
}

/// The location of the image of one key.
#[derive(Default)]
struct ImageLocation {
    key: String,
    /// ReadPosition and size.
    image: Option<(u64, u64)>,
    id: Option<String>,
}

impl Tar {
    pub(super) fn open(path: &Path, columns: &ImageColumns) -> Result<Tar> {
        open_regular(path)?;
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

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reports id, offset and size of every image that [`Tar::visit`] would deliver, without reading it, up to the first
    /// damage.
    pub(super) fn locate(&self, note: &mut dyn FnMut(&str, u64, u64)) -> Result<()> {
        let successes = self.successes()?;
        let failed = DataError::io("read", &self.path);
        let mut archive = tar::Archive::new(BufReader::new(open_regular(&self.path)?));
        let mut now = ImageLocation::default();
        let mut finish = |sample: ImageLocation| {
            let Some((offset, len)) = sample.image else { return };
            if successes.as_ref().is_some_and(|keys| !keys.contains(&sample.key)) {
                return; // a failed download
            }
            note(sample.id.as_deref().unwrap_or(&sample.key), offset, len);
        };
        for entry in archive.entries_with_seek().map_err(failed)?.map_while(std::result::Result::ok) {
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let (key, ending) = split_name(&name);
            if key != now.key {
                finish(std::mem::replace(
                    &mut now,
                    ImageLocation { key: key.to_owned(), ..ImageLocation::default() },
                ));
            }
            if self.is_image(ending) && now.image.is_none() {
                now.image = Some((entry.raw_file_position(), entry.size()));
            } else if ending == "json" && entry.size() <= MAX_SIDECAR_BYTES {
                let mut bytes = Vec::new();
                if entry.take(MAX_SIDECAR_BYTES).read_to_end(&mut bytes).is_err() {
                    break;
                }
                let json: Value = serde_json::from_slice(&bytes).unwrap_or_default();
                now.id = example_id(&json, self.columns.id.as_deref());
            }
        }
        finish(now);
        Ok(())
    }

    pub(super) fn visit(&self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        match self.read(sink) {
            Ok(flow) => flow,
            Err(damage) => {
                let (error, unread) = *damage;
                let id = self.path.display().to_string();
                sink(Err(ImageError { id, error, extent: Extent::File(unread) }))
            }
        }
    }

    /// The keys of successful downloads; `None` without a table of img2dataset.
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

    /// Reads all images; an error affects the rest of the archive.
    fn read(&self, sink: &mut Sink<'_>) -> std::result::Result<ControlFlow<()>, Damage> {
        let whole = |error| Damage::new((error, None));
        let mut wanted = self.successes().map_err(whole)?;
        let file = open_regular(&self.path).map_err(whole)?;
        let len = file.metadata().map_err(DataError::io("read", &self.path)).map_err(whole)?.len();
        let mut archive = tar::Archive::new(BufReader::with_capacity(1 << 20, file));
        let mut place = ReadPosition::default();
        match self.read_files(&mut archive, &mut wanted, &mut place, sink) {
            Ok(ControlFlow::Break(())) => return Ok(ControlFlow::Break(())),
            Ok(ControlFlow::Continue(())) => {}
            Err(error) => {
                if place.is_whole && self.deliver(place.sample, &mut wanted, sink).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                let unread = Unread::Bytes { n: len.saturating_sub(place.offset), of: len };
                let place = format!("byte {}", place.offset);
                let error = DataError::malformed(&self.path, place, "a complete tar", error.to_string());
                return Err(Damage::new((error, Some(unread))));
            }
        }
        if self.deliver(place.sample, &mut wanted, sink).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.check_end(archive.into_inner(), len)?;
        match wanted.as_ref().and_then(|keys| keys.iter().min().map(|key| (key, keys.len()))) {
            Some((key, n)) if self.columns.filters.is_empty() => {
                let expected = "every download listed as successful in the Parquet file beside it";
                let found = format!("{n} missing, the first `{key}`");
                let error = DataError::malformed(&self.path, "end", expected, found);
                Err(Damage::new((error, None))) // the message has the number
            }
            _ => Ok(ControlFlow::Continue(())),
        }
    }

    /// Delivers all samples but the last, which stays in `place`.
    fn read_files(
        &self,
        archive: &mut tar::Archive<BufReader<File>>,
        wanted: &mut Option<HashSet<String>>,
        place: &mut ReadPosition,
        sink: &mut Sink<'_>,
    ) -> std::io::Result<ControlFlow<()>> {
        for entry in archive.entries()? {
            let mut entry = entry?;
            let size = entry.size();
            place.offset = entry.raw_file_position();
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let (key, ending) = split_name(&name);
            if key != place.sample.key {
                let next = Sample { key: key.to_owned(), ..Sample::default() };
                let finished = std::mem::replace(&mut place.sample, next);
                if self.deliver(finished, wanted, sink).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            place.is_whole = false;
            self.take_file(&mut place.sample, ending, &mut entry)?;
            place.is_whole = true;
            place.offset = place.offset.saturating_add(size).div_ceil(BLOCK).saturating_mul(BLOCK);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// A tar ends with blocks of zeros. Without them it may have been truncated between two files; a header overwritten with
    /// zeros looks like the end, but more data follows.
    fn check_end(&self, mut rest: BufReader<File>, len: u64) -> std::result::Result<(), Damage> {
        let failed = |cause| Damage::new((DataError::io("read", &self.path)(cause), None));
        let end = rest.stream_position().map_err(failed)?;
        let mut last = [0; BLOCK as usize];
        if end < BLOCK
            || rest.seek_relative(-(BLOCK as i64)).and_then(|()| rest.read_exact(&mut last)).is_err()
        {
            last[0] = 1;
        }
        if last.iter().any(|&byte| byte != 0) {
            let found = "none: the file may be truncated";
            let error =
                DataError::malformed(&self.path, format!("byte {end}"), "the end-of-archive marker", found);
            return Err(Damage::new((error, None)));
        }
        loop {
            let bytes = rest.fill_buf().map_err(failed)?;
            if bytes.is_empty() {
                return Ok(());
            }
            if bytes.iter().any(|&byte| byte != 0) {
                let place = format!("byte {}", end - BLOCK);
                let error =
                    DataError::malformed(&self.path, place, "a complete tar", "zeros followed by more data");
                let unread = Unread::Bytes { n: len.saturating_sub(end), of: len };
                return Err(Damage::new((error, Some(unread))));
            }
            let n = bytes.len();
            rest.consume(n);
        }
    }

    fn is_image(&self, ending: &str) -> bool {
        match &self.columns.image {
            Some(image) => ending == image,
            None => is_image_name(ending),
        }
    }

    /// Reads a file of a sample if it is needed.
    fn take_file<R: Read>(
        &self,
        sample: &mut Sample,
        ending: &str,
        entry: &mut tar::Entry<'_, R>,
    ) -> std::io::Result<()> {
        let is_image = self.is_image(ending);
        let is_label = match &self.columns.label {
            Some(label) => ending == label,
            None => ending == "cls",
        };
        if is_image && sample.image.is_none() {
            sample.image = Some(match entry.size() {
                size if size > MAX_IMAGE_BYTES => {
                    Err(too_large(&self.path, format!("`{}.{ending}`", sample.key), size))
                }
                _ => Ok(read_whole(entry)?),
            });
        } else if is_label && entry.size() <= MAX_SIDECAR_BYTES {
            let text = String::from_utf8_lossy(&read_whole(entry)?).trim().to_owned();
            sample.label = Some(text).filter(|text| !text.is_empty());
        } else if ending == "json" && entry.size() <= MAX_SIDECAR_BYTES {
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
        let value = |name: &str| value_text(sample.json.as_ref()?.get(name)?);
        if !self.columns.filters.iter().all(|filter| filter.passes(value(&filter.column).as_deref())) {
            return ControlFlow::Continue(());
        }
        let label = sample.label.or_else(|| match &self.columns.label {
            Some(name) => value(name),
            None => LABEL_NAMES.into_iter().find_map(value),
        });
        let id = sample.json.as_ref().and_then(|json| example_id(json, self.columns.id.as_deref()));
        let id = id.unwrap_or(sample.key);
        deliver(&id, label.as_deref(), image, sink)
    }
}

/// The id of an example in its JSON file, if present: under `column`. img2dataset makes keys of its own and copies other
/// columns: in its files, the id is under `id` by default, where `match` finds it in img2dataset's tables too.
pub(super) fn example_id(json: &Value, column: Option<&str>) -> Option<String> {
    let is_img2dataset = || ["key", "status"].iter().all(|name| json.get(name).is_some());
    let column = column.or_else(|| is_img2dataset().then_some("id"))?;
    json.get(column).and_then(value_text)
}

/// A plain value of a JSON file as text.
fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// The library returns a short file when the archive ends early; that is an error here.
fn read_whole<R: Read>(entry: &mut tar::Entry<'_, R>) -> std::io::Result<Vec<u8>> {
    let size = entry.size();
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes)?;
    bytes.shrink_to_fit(); // growing doubles the capacity
    if bytes.len() as u64 == size {
        return Ok(bytes);
    }
    Err(std::io::Error::other(format!("a file that ends after {} of {size} bytes", bytes.len())))
}

/// `a/b/000.seg.png` is key `a/b/000` and ending `seg.png`: webdataset splits at the first dot of the file's own name.
pub(super) fn split_name(name: &str) -> (&str, &str) {
    let start = name.rfind('/').map_or(0, |slash| slash + 1);
    match name[start..].find('.') {
        Some(dot) => (&name[..start + dot], &name[start + dot + 1..]),
        None => (name, ""),
    }
}
