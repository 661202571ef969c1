//! A network as safetensors: its tensors by name, and its metadata as JSON in the header.

use std::path::Path;

use half::{bf16, f16};
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};

use crate::tensors::tensor_file::{
    EncodedTensor, METADATA_KEY, Tensors, check_finite, parse_description, read_tensors, write_described,
};
use crate::{DataError, Result, TensorsOf};

/// A name, the sizes (outermost first) and the numbers.
pub type NamedTensor = (String, Vec<usize>, Vec<f32>);

/// The precision of stored numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Precision {
    /// 32-bit floats.
    #[default]
    F32,
    /// 16-bit floats.
    ///
    /// Only tensors of several dimensions; the rest, one per cent of a network, keeps 32 bits: the variance of a channel
    /// may be outside the range of 16.
    F16,
}

/// The description of a network and its training. Readers ignore unknown fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkMetadata {
    /// The network by name, e.g. `resnet10`; empty in a file with nothing but a PCA.
    pub architecture: String,
    /// How a residual network begins: `photo` or `small`.
    #[serde(default)]
    pub stem: String,
    /// Height and width of its images.
    pub image_size: (usize, usize),
    /// The mean of each channel, of values in [0, 1].
    pub channel_mean: [f32; 3],
    /// The standard deviation of each channel.
    pub channel_deviation: [f32; 3],
    /// The part of an image that is used without augmentation: `whole` or `centre`.
    #[serde(default)]
    pub view: String,
    /// The classes of the classifier in the file, in the order of its rows; empty for a network alone.
    #[serde(default)]
    pub classes: Vec<String>,
    /// The settings of its training.
    #[serde(default)]
    pub recipe: serde_json::Value,
    /// Its accuracy on validation images, in [0, 1], if measured.
    #[serde(default)]
    pub accuracy: Option<f64>,
}

/// The contents of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkFile {
    /// All tensors of floating-point numbers, by name.
    pub tensors: Vec<NamedTensor>,
    /// Its metadata; `None` in files of other programs, such as torchvision's.
    pub metadata: Option<NetworkMetadata>,
}

/// Whether a file could be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// Its checksum is correct.
    Checksum,
    /// It has no checksum: another program or an older version wrote it.
    No,
}

impl NetworkMetadata {
    /// Refuses means and deviations that cannot normalise an image. `path` is the file.
    pub fn check(&self, path: impl AsRef<Path>) -> Result<()> {
        let wrong = |name: &str, at: usize, expected: &str, found: f32| {
            let place = format!("metadata `{METADATA_KEY}`, `{name}`, number {at}");
            Err(DataError::malformed(&path, place, expected, found.to_string()))
        };
        if let Some(at) = self.channel_mean.iter().position(|mean| !mean.is_finite()) {
            return wrong("channel_mean", at, "a finite number", self.channel_mean[at]);
        }
        let is_scale = |deviation: &f32| deviation.is_finite() && *deviation > 0.0;
        match self.channel_deviation.iter().position(|deviation| !is_scale(deviation)) {
            Some(at) => wrong("channel_deviation", at, "a positive number", self.channel_deviation[at]),
            None => Ok(()),
        }
    }
}

impl NetworkFile {
    /// Writes tensors and metadata; the file appears whole or not at all, and the same contents give the same bytes.
    pub fn save(&self, path: impl AsRef<Path>, precision: Precision) -> Result<()> {
        let path = path.as_ref();
        let mut encoded = Vec::with_capacity(self.tensors.len());
        for (name, shape, values) in &self.tensors {
            let place = || format!("tensor `{name}`");
            if shape.iter().product::<usize>() != values.len() {
                let found = format!("{} numbers", values.len());
                return Err(DataError::malformed(path, place(), format!("{shape:?}"), found));
            }
            let is_half = precision == Precision::F16 && shape.len() > 1;
            let fits =
                |value: f32| if is_half { f16::from_f32(value).is_finite() } else { value.is_finite() };
            if let Some(value) = values.iter().find(|value| !fits(**value)) {
                let expected = if is_half { "numbers that fit in 16 bits" } else { "finite numbers" };
                return Err(DataError::malformed(path, place(), expected, value.to_string()));
            }
            encoded.push(if is_half {
                EncodedTensor::f16(name, shape, values)
            } else {
                EncodedTensor::f32(name, shape, values)
            });
        }
        write_described(path, &encoded, &self.metadata.clone().unwrap_or_default())
    }

    /// Reads a file of this or another program. Counters (`*.num_batches_tracked`) are skipped; all other tensors must be of
    /// floating-point numbers, which are converted to 32 bits.
    ///
    /// Values that are not finite are refused, and so is a file with a wrong checksum.
    pub fn load(path: impl AsRef<Path>) -> Result<NetworkFile> {
        Ok(NetworkFile::load_verified(path)?.0)
    }

    /// As [`NetworkFile::load`]; also returns whether there was a checksum.
    pub fn load_verified(path: impl AsRef<Path>) -> Result<(NetworkFile, Verified)> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(DataError::io("read", path))?;
        NetworkFile::from_bytes(path, &bytes)
    }

    /// As [`NetworkFile::load_verified`], from the bytes of a file; `path` is its name in messages.
    pub fn from_bytes(path: impl AsRef<Path>, bytes: &[u8]) -> Result<(NetworkFile, Verified)> {
        let path = path.as_ref();
        let Tensors { tensors: file, json, is_checked } = read_tensors(path, bytes)?;
        let metadata = json.map(|json| parse_description(path, &json, TensorsOf::Network)).transpose()?;
        let mut tensors = Vec::new();
        for (name, view) in file.iter().filter(|(name, _)| !name.ends_with("num_batches_tracked")) {
            let values = decode(view.dtype(), view.data()).ok_or_else(|| {
                let found = format!("{:?}", view.dtype());
                DataError::malformed(path, format!("tensor `{name}`"), "floating-point numbers", found)
            })?;
            check_finite(path, name, &values)?;
            tensors.push((name.to_owned(), view.shape().to_vec(), values));
        }
        tensors.sort_by(|(a, _, _), (b, _, _)| a.cmp(b));
        let verified = if is_checked { Verified::Checksum } else { Verified::No };
        Ok((NetworkFile { tensors, metadata }, verified))
    }
}

/// Decodes floating-point numbers; `None` for other types. The library has checked the length.
pub fn decode(dtype: Dtype, bytes: &[u8]) -> Option<Vec<f32>> {
    let pairs = bytes.as_chunks::<2>().0;
    let quads = bytes.as_chunks::<4>().0;
    let octets = bytes.as_chunks::<8>().0;
    Some(match dtype {
        Dtype::F32 => quads.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(),
        Dtype::F16 => pairs.iter().map(|&bytes| f16::from_le_bytes(bytes).to_f32()).collect(),
        Dtype::BF16 => pairs.iter().map(|&bytes| bf16::from_le_bytes(bytes).to_f32()).collect(),
        Dtype::F64 => octets.iter().map(|&bytes| f64::from_le_bytes(bytes) as f32).collect(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use safetensors::tensor::TensorView;

    use super::*;

    fn network() -> NetworkFile {
        NetworkFile {
            tensors: vec![
                ("bn1.running_var".to_owned(), vec![2], vec![1e6, 0.3]),
                ("conv1.weight".to_owned(), vec![1, 2, 1, 2], vec![0.1, -2.5, 3.0, 1e-3]),
            ],
            metadata: Some(NetworkMetadata {
                architecture: "resnet10".to_owned(),
                stem: "small".to_owned(),
                image_size: (64, 48),
                channel_mean: [0.4; 3],
                channel_deviation: [0.2; 3],
                view: "whole".to_owned(),
                classes: vec!["owl".to_owned(), "größe".to_owned()],
                recipe: serde_json::json!({"epochs": 3}),
                accuracy: Some(0.5),
            }),
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_the_same_twice() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a.safetensors", "b.safetensors"].map(|name| folder.path().join(name));
        network().save(&a, Precision::F32).unwrap();
        network().save(&b, Precision::F32).unwrap();
        assert_eq!(NetworkFile::load(&a).unwrap(), network());
        assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
    }

    #[test]
    fn half_precision_rounds_weights_and_keeps_variances() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        network().save(&path, Precision::F16).unwrap();
        let tensors = NetworkFile::load(&path).unwrap().tensors;
        assert_eq!(tensors[0], network().tensors[0]);
        let expected = [0.1f32, -2.5, 3.0, 1e-3].map(|value| f16::from_f32(value).to_f32());
        assert_eq!(tensors[1].2, expected);
        let mut large = network();
        large.tensors[1].2[0] = 1e5;
        let error = large.save(&path, Precision::F16).unwrap_err().to_string();
        assert!(
            error.ends_with("tensor `conv1.weight`: expected numbers that fit in 16 bits, found 100000"),
            "{error}"
        );
    }

    #[test]
    fn files_from_elsewhere_have_no_description_and_may_have_counters() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resnet18.safetensors");
        let one = 1f64.to_le_bytes();
        let count = 7i64.to_le_bytes();
        let halves = bf16::from_f32(2.0).to_le_bytes();
        let views = HashMap::from([
            ("a", TensorView::new(Dtype::F64, vec![1], &one).unwrap()),
            ("b", TensorView::new(Dtype::BF16, vec![1], &halves).unwrap()),
            ("bn1.num_batches_tracked", TensorView::new(Dtype::I64, vec![], &count).unwrap()),
        ]);
        std::fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
        let file = NetworkFile::load(&path).unwrap();
        assert_eq!(file.metadata, None);
        assert_eq!(
            file.tensors,
            [("a".to_owned(), vec![1], vec![1.0]), ("b".to_owned(), vec![1], vec![2.0])]
        );
        let views = HashMap::from([("n", TensorView::new(Dtype::I64, vec![1], &count).unwrap())]);
        std::fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
        let error = NetworkFile::load(&path).unwrap_err().to_string();
        assert!(error.ends_with("tensor `n`: expected floating-point numbers, found I64"), "{error}");
    }

    #[test]
    fn other_files_of_ours_are_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        let metadata = HashMap::from([(METADATA_KEY.to_owned(), r#"{"classes": ["a"]}"#.to_owned())]);
        let views: Vec<(&str, TensorView<'_>)> = Vec::new();
        std::fs::write(&path, safetensors::serialize(views, Some(metadata)).unwrap()).unwrap();
        let error = NetworkFile::load(&path).unwrap_err().to_string();
        assert!(
            error.contains("metadata `labelsieve`: expected the description of a network, found "),
            "{error}"
        );
    }

    proptest::proptest! {
        #[test]
        fn damage_is_read_or_refused(position in 0usize..2000, value: u8, cut in 0usize..3000) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.safetensors");
            network().save(&path, Precision::F16).unwrap();
            let mut bytes = std::fs::read(&path).unwrap();
            let position = position % bytes.len();
            bytes[position] = value;
            bytes.truncate(cut);
            std::fs::write(&path, bytes).unwrap();
            let _ = NetworkFile::load(&path);
        }
    }
}
