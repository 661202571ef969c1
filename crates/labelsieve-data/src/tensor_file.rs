//! Safetensors files of ours: named `f32` tensors, and everything else as JSON under one key of the header.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{AtomicFile, DataError, Result};

/// The one key of the header's metadata. A single key, because several would be written in random order.
const METADATA_KEY: &str = "labelsieve";

/// A tensor to be written: name, shape, numbers.
pub(crate) type NamedTensor<'a> = (&'a str, Vec<usize>, &'a [f32]);

/// Writes `header` and `tensors`; the file appears whole or not at all.
pub(crate) fn write(path: &Path, header: &impl Serialize, tensors: &[NamedTensor]) -> Result<()> {
    let json = serde_json::to_string(header).map_err(undecodable(path))?;
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(_, _, values)| values.iter().flat_map(|value| value.to_le_bytes()).collect())
        .collect();
    let mut views = Vec::with_capacity(tensors.len());
    for ((name, shape, _), bytes) in tensors.iter().zip(&bytes) {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes).map_err(undecodable(path))?;
        views.push((*name, view));
    }
    let metadata = HashMap::from([(METADATA_KEY.to_owned(), json)]);
    let bytes = safetensors::serialize(views, Some(metadata)).map_err(undecodable(path))?;
    let mut file = AtomicFile::create(path)?;
    file.write_all(&bytes).map_err(DataError::io("write", path))?;
    file.commit()
}

/// A file whose header has been read and whose lengths have been checked.
pub(crate) struct TensorFile<'a> {
    path: &'a Path,
    bytes: Vec<u8>,
}

impl<'a> TensorFile<'a> {
    pub(crate) fn open(path: &'a Path) -> Result<TensorFile<'a>> {
        let bytes = std::fs::read(path).map_err(DataError::io("read", path))?;
        check_offsets(path, &bytes)?;
        Ok(TensorFile { path, bytes })
    }

    /// The JSON part, which must describe `what`, e.g. `classifier`.
    pub(crate) fn header<T: DeserializeOwned>(&self, what: &str) -> Result<T> {
        let (_, metadata) = SafeTensors::read_metadata(&self.bytes).map_err(undecodable(self.path))?;
        let json = metadata.metadata().as_ref().and_then(|pairs| pairs.get(METADATA_KEY));
        let json = json.ok_or_else(|| {
            let expected = format!("metadata `{METADATA_KEY}` of a saved {what}");
            DataError::malformed(self.path, "safetensors header", expected, "none")
        })?;
        serde_json::from_str(json).map_err(|error| {
            let (place, expected) =
                (format!("metadata `{METADATA_KEY}`"), format!("the description of a {what}"));
            DataError::malformed(self.path, place, expected, error.to_string())
        })
    }

    /// The numbers of a tensor, which must have this shape.
    pub(crate) fn numbers(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let tensors = SafeTensors::deserialize(&self.bytes).map_err(undecodable(self.path))?;
        let tensor = tensors.tensor(name).map_err(undecodable(self.path))?;
        if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
            let found = format!("{:?} of {:?}", tensor.shape(), tensor.dtype());
            let (place, expected) = (format!("tensor `{name}`"), format!("{shape:?} of F32"));
            return Err(DataError::malformed(self.path, place, expected, found));
        }
        let (quads, _) = tensor.data().as_chunks::<4>();
        Ok(quads.iter().map(|&quad| f32::from_le_bytes(quad)).collect())
    }
}

/// Compares the header with the length of the file before the library sums up what the header claims: the sum of
/// several enormous tensors overflows.
fn check_offsets(path: &Path, bytes: &[u8]) -> Result<()> {
    #[derive(serde::Deserialize)]
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

fn undecodable<E: std::fmt::Display>(path: &Path) -> impl Fn(E) -> DataError {
    move |error| DataError::undecodable(path, "safetensors", error)
}
