//! Tensors with a JSON description in the header, as all our safetensors files have them.
//!
//! Input is not trusted: offsets are checked before the library sums them up, and a checksum covers the whole file.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

use half::f16;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{AtomicFile, DataError, ExpectedFile, Result, TensorsOf};

/// The one key of the header's metadata. A single key, because several would be written in random order.
pub const METADATA_KEY: &str = "labelsieve";

/// A tensor in the bytes of its file.
pub struct EncodedTensor<'a> {
    name: &'a str,
    shape: &'a [usize],
    dtype: Dtype,
    bytes: Vec<u8>,
}

impl<'a> EncodedTensor<'a> {
    /// Encodes numbers in 32 bits.
    pub fn f32(name: &'a str, shape: &'a [usize], values: &[f32]) -> EncodedTensor<'a> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        EncodedTensor { name, shape, dtype: Dtype::F32, bytes }
    }

    /// Encodes numbers in 16 bits.
    pub fn f16(name: &'a str, shape: &'a [usize], values: &[f32]) -> EncodedTensor<'a> {
        let bytes = values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect();
        EncodedTensor { name, shape, dtype: Dtype::F16, bytes }
    }
}

/// Writes tensors with their description; the file appears whole or not at all.
pub fn write_described(
    path: &Path,
    tensors: &[EncodedTensor<'_>],
    description: &impl Serialize,
) -> Result<()> {
    let json = serde_json::to_string(description).map_err(undecodable(path))?;
    let mut views = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let view = TensorView::new(tensor.dtype, tensor.shape.to_vec(), &tensor.bytes);
        views.push((tensor.name, view.map_err(undecodable(path))?));
    }
    write_tensors(path, views, json)
}

/// Parses the JSON that describes a `wanted` model. A description of another kind of model is [`DataError::OtherTensors`].
pub fn parse_description<T: DeserializeOwned>(path: &Path, json: &str, wanted: TensorsOf) -> Result<T> {
    let description = serde_json::from_str(json).map_err(|error| {
        let place = format!("metadata `{METADATA_KEY}`");
        let expected = match wanted {
            TensorsOf::Network => "the description of a network",
            TensorsOf::Classifier => "the description of a classifier",
        };
        DataError::malformed(path, place, expected, error.to_string())
    });
    description.map_err(unless_other_tensors(path, json, wanted))
}

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
    /// The JSON that describes them, in Labelsieve's own files.
    pub json: Option<String>,
    /// Whether the file has a checksum, which is then correct. Older files and those of other programs have none.
    pub is_checked: bool,
}

/// Reads the tensors of a file and their description.
pub fn read_tensors<'a>(path: &Path, bytes: &'a [u8]) -> Result<Tensors<'a>> {
    check_offsets(path, bytes).map_err(DataError::unless_other_kind(path, ExpectedFile::Tensors))?;
    let is_checked = check_sum(path, bytes)?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(undecodable(path))?;
    let json = metadata.metadata().as_ref().and_then(|pairs| pairs.get(METADATA_KEY)).cloned();
    let tensors = SafeTensors::deserialize(bytes).map_err(undecodable(path))?;
    Ok(Tensors { tensors, json, is_checked })
}

/// Reads a tensor of this name and shape, in single precision.
pub fn read_f32(path: &Path, tensors: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
    let tensor = tensors.tensor(name).map_err(undecodable(path))?;
    if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
        let found = format!("{:?} of {:?}", tensor.shape(), tensor.dtype());
        return Err(DataError::malformed(
            path,
            format!("tensor `{name}`"),
            format!("{shape:?} of F32"),
            found,
        ));
    }
    let (quads, _) = tensor.data().as_chunks::<4>();
    Ok(quads.iter().map(|&quad| f32::from_le_bytes(quad)).collect())
}

/// The checksum is stored at the end of the JSON, as eight digits, and is computed with eight zeros in their place.
const CHECKSUM: &str = r#""checksum":"00000000"}"#;

/// The key as it is escaped in the header, where the JSON is a string in another JSON.
const ESCAPED: &[u8] = br#"\"checksum\":\""#;

fn with_place_for_checksum(json: String) -> String {
    match json.strip_suffix('}') {
        Some("{") => format!("{{{CHECKSUM}"),
        Some(fields) => format!("{fields},{CHECKSUM}"),
        None => json,
    }
}

/// The position of the digits, if there are any.
fn checksum_place(bytes: &[u8]) -> Option<std::ops::Range<usize>> {
    let length = usize::try_from(u64::from_le_bytes(*bytes.first_chunk()?)).ok()?;
    let header = bytes.get(8..length.checked_add(8)?)?;
    let start = 8 + memchr::memmem::rfind(header, ESCAPED)? + ESCAPED.len();
    let is_digits = bytes.get(start..start + 8)?.iter().all(u8::is_ascii_hexdigit);
    is_digits.then_some(start..start + 8)
}

/// Verifies the checksum; false if there is none.
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

/// Refuses a tensor with a value that is not finite.
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

/// For `map_err`: replaces the error by [`DataError::OtherTensors`] if the JSON describes another kind of model.
fn unless_other_tensors(path: &Path, json: &str, wanted: TensorsOf) -> impl FnOnce(DataError) -> DataError {
    let json: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let found = if json["architecture"].as_str().is_some_and(|name| !name.is_empty()) {
        Some(TensorsOf::Network)
    } else if json["dim"].is_u64() && json["classes"].is_array() {
        Some(TensorsOf::Classifier)
    } else {
        None
    };
    let path = path.to_path_buf();
    move |error| match found.filter(|found| *found != wanted) {
        Some(found) => DataError::OtherTensors { path, wanted, found },
        None => error,
    }
}

/// Checks the header against the length of the file before the library sums up the claimed lengths, which may overflow.
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
