//! What all our safetensors files have in common: one block of JSON in the header, whose numbers are not trusted.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde::Deserialize;

use crate::{AtomicFile, DataError, Result, TensorsOf, Wanted};

/// The one key of the header's metadata. A single key, because several would be written in random order.
pub const METADATA_KEY: &str = "labelsieve";

/// Writes tensors and the JSON that describes them, with a checksum over all of it; the file appears whole or not at all.
pub fn write_tensors<S: AsRef<str> + Ord + std::fmt::Display>(
    path: &Path,
    views: Vec<(S, TensorView<'_>)>,
    json: String,
) -> Result<()> {
    let metadata = HashMap::from([(METADATA_KEY.to_owned(), with_place_for_checksum(json))]);
    let mut bytes = safetensors::serialize(views, Some(metadata)).map_err(undecodable(path))?;
    if let Some(place) = checksum_place(&bytes) {
        let digits = format!("{:08x}", crc32fast::hash(&bytes));
        bytes[place].copy_from_slice(digits.as_bytes());
    }
    let mut file = AtomicFile::create(path)?;
    file.write_all(&bytes).map_err(DataError::io("write", path))?;
    file.commit()
}

/// The contents of a file of tensors.
pub struct Tensors<'a> {
    /// The tensors.
    pub tensors: SafeTensors<'a>,
    /// The JSON that describes them, where we wrote it.
    pub json: Option<String>,
    /// Whether the file has a checksum, which is then right. Older files have none, nor do those of others.
    pub is_checked: bool,
}

/// The tensors of a file, and what we wrote beside them.
pub fn read_tensors<'a>(path: &Path, bytes: &'a [u8]) -> Result<Tensors<'a>> {
    check_offsets(path, bytes).map_err(DataError::unless_other_kind(path, Wanted::Tensors))?;
    let is_checked = check_sum(path, bytes)?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(undecodable(path))?;
    let json = metadata.metadata().as_ref().and_then(|pairs| pairs.get(METADATA_KEY)).cloned();
    let tensors = SafeTensors::deserialize(bytes).map_err(undecodable(path))?;
    Ok(Tensors { tensors, json, is_checked })
}

/// The checksum is at the end of the JSON, as eight digits, and is computed with eight zeros in their place.
const CHECKSUM: &str = r#""checksum":"00000000"}"#;

/// The same as the header has it, where the JSON is a text in another JSON.
const ESCAPED: &[u8] = br#"\"checksum\":\""#;

fn with_place_for_checksum(json: String) -> String {
    match json.strip_suffix('}') {
        Some("{") => format!("{{{CHECKSUM}"),
        Some(fields) => format!("{fields},{CHECKSUM}"),
        None => json,
    }
}

/// Where the digits are, if there are any.
fn checksum_place(bytes: &[u8]) -> Option<std::ops::Range<usize>> {
    let length = usize::try_from(u64::from_le_bytes(*bytes.first_chunk()?)).ok()?;
    let header = bytes.get(8..length.checked_add(8)?)?;
    let start = 8 + memchr::memmem::rfind(header, ESCAPED)? + ESCAPED.len();
    let is_digits = bytes.get(start..start + 8)?.iter().all(u8::is_ascii_hexdigit);
    is_digits.then_some(start..start + 8)
}

/// Whether there is a checksum; an error if it is wrong.
fn check_sum(path: &Path, bytes: &[u8]) -> Result<bool> {
    let Some(place) = checksum_place(bytes) else { return Ok(false) };
    let mut hasher = crc32fast::Hasher::new();
    [&bytes[..place.start], b"00000000", &bytes[place.end..]].iter().for_each(|part| hasher.update(part));
    let expected = String::from_utf8_lossy(&bytes[place]);
    let found = format!("{:08x}", hasher.finalize());
    if expected == found {
        return Ok(true);
    }
    Err(DataError::malformed(path, "checksum", expected, format!("{found}: file is corrupt or was edited")))
}

/// Refuses a tensor in which a value is not finite.
pub fn check_finite(path: &Path, name: &str, values: &[f32]) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(at) => {
            let place = format!("tensor `{name}`, number {at}");
            Err(DataError::malformed(path, place, "a finite number", values[at].to_string()))
        }
    }
}

/// Refuses a scale that would reverse scores or make them all equal.
pub fn check_positive(path: &Path, name: &str, value: f32) -> Result<()> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    let place = format!("tensor `{name}`, number 0");
    Err(DataError::malformed(path, place, "a positive number", value.to_string()))
}

/// For `map_err`: replaces the error by [`DataError::OtherTensors`] if the file says that it is not what was wanted.
pub fn unless_other_tensors(
    path: &Path,
    json: &str,
    wanted: TensorsOf,
) -> impl FnOnce(DataError) -> DataError {
    let json: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let found = match () {
        () if json["architecture"].as_str().is_some_and(|name| !name.is_empty()) => Some(TensorsOf::Network),
        () if json["dim"].is_u64() && json["classes"].is_array() => Some(TensorsOf::Classifier),
        () => None,
    };
    let path = path.to_path_buf();
    move |error| match found.filter(|found| *found != wanted) {
        Some(found) => DataError::OtherTensors { path, wanted, found },
        None => error,
    }
}

/// Compares the header with the length of the file before the library sums up what the header claims: the sum of
/// several enormous tensors overflows.
fn check_offsets(path: &Path, bytes: &[u8]) -> Result<()> {
    #[derive(Deserialize)]
    struct Extent {
        data_offsets: (u64, u64),
    }
    let cut = || {
        let found = format!("a file of {} bytes", bytes.len());
        DataError::malformed(path, "safetensors header", "a length and that many bytes", found)
    };
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
    let (json, data) = rest.split_at_checked(length).ok_or_else(cut)?;
    let entries: BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(json).map_err(undecodable(path))?;
    for (name, entry) in entries.into_iter().filter(|(name, _)| name != "__metadata__") {
        let extent: Extent = serde_json::from_value(entry).map_err(undecodable(path))?;
        let (start, end) = extent.data_offsets;
        if start > end || end > data.len() as u64 {
            let expected = format!("data within {} bytes", data.len());
            return Err(DataError::malformed(
                path,
                format!("tensor `{name}`"),
                expected,
                format!("{start} to {end}"),
            ));
        }
    }
    Ok(())
}

/// Turns an error of the library into one that names the file.
pub fn undecodable<E: std::fmt::Display>(path: &Path) -> impl Fn(E) -> DataError {
    move |error| DataError::undecodable(path, "safetensors", error)
}
