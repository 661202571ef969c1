//! What all our safetensors files have in common: one block of JSON in the header, and no trust in its numbers.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde::Deserialize;

use crate::{AtomicFile, DataError, Result, TensorsOf, Wanted};

/// The one key of the header's metadata. A single key, because several would be written in random order.
pub(crate) const METADATA_KEY: &str = "labelsieve";

/// Writes tensors and the JSON that describes them; the file appears whole or not at all.
pub(crate) fn write_tensors<S: AsRef<str> + Ord + std::fmt::Display>(
    path: &Path,
    views: Vec<(S, TensorView<'_>)>,
    json: String,
) -> Result<()> {
    let metadata = HashMap::from([(METADATA_KEY.to_owned(), json)]);
    let bytes = safetensors::serialize(views, Some(metadata)).map_err(undecodable(path))?;
    let mut file = AtomicFile::create(path)?;
    file.write_all(&bytes).map_err(DataError::io("write", path))?;
    file.commit()
}

/// The tensors of a file, and the JSON that describes them where we wrote it.
pub(crate) fn read_tensors<'a>(path: &Path, bytes: &'a [u8]) -> Result<(SafeTensors<'a>, Option<String>)> {
    check_offsets(path, bytes).map_err(DataError::unless_other_kind(path, Wanted::Tensors))?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(undecodable(path))?;
    let json = metadata.metadata().as_ref().and_then(|pairs| pairs.get(METADATA_KEY)).cloned();
    Ok((SafeTensors::deserialize(bytes).map_err(undecodable(path))?, json))
}

/// For `map_err`: a file that says it holds something else than `wanted` is called what it is.
pub(crate) fn unless_other_tensors(
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
        DataError::malformed(path, "safetensors header", "a length and as many bytes", found)
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

pub(crate) fn undecodable<E: std::fmt::Display>(path: &Path) -> impl Fn(E) -> DataError {
    move |error| DataError::undecodable(path, "safetensors", error)
}
