//! A network as safetensors: its tensors by name, and what is needed to use it as JSON in the header.

use std::path::Path;

use half::{bf16, f16};
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};

use crate::tensors::tensor_file::{
    METADATA_KEY, Tensors, check_finite, read_tensors, undecodable, unless_other_tensors, write_tensors,
};
use crate::{DataError, Result, TensorsOf};

/// A name, the sizes (outermost first) and the numbers.
pub type NamedTensor = (String, Vec<usize>, Vec<f32>);

/// How numbers are stored.
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

/// What a network is and how it was trained. Readers ignore fields they do not know.
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
    /// Which part of an image is used when nothing is random: `whole` or `centre`.
    #[serde(default)]
    pub view: String,
    /// The classes of the classifier in the file, in the order of its rows; none for a network alone.
    #[serde(default)]
    pub classes: Vec<String>,
    /// How it was trained.
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
    /// What we know about it; nothing in files from elsewhere, such as torchvision's.
    pub metadata: Option<NetworkMetadata>,
}

/// Whether a file could be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// Its checksum is right.
    Checksum,
    /// It has none: it comes from elsewhere or from an older version.
    No,
}

impl NetworkMetadata {
    /// Refuses means and deviations that cannot normalise an image. `path` is the file they come from.
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
    /// Writes tensors and metadata; the file appears whole or not at all, and the same contents are the same bytes.
    pub fn save(&self, path: impl AsRef<Path>, precision: Precision) -> Result<()> {
        let path = path.as_ref();
        let json =
            serde_json::to_string(&self.metadata.clone().unwrap_or_default()).map_err(undecodable(path))?;
        let mut encoded = Vec::with_capacity(self.tensors.len());
        for (name, shape, values) in &self.tensors {
            let place = || format!("tensor `{name}`");
            if shape.iter().product::<usize>() != values.len() {
                let found = format!("{} numbers", values.len());
                return Err(DataError::malformed(path, place(), format!("{shape:?}"), found));
            }
            let half = precision == Precision::F16 && shape.len() > 1;
            encoded.push((if half { Dtype::F16 } else { Dtype::F32 }, encode(values, half)));
            let fits = |value: f32| if half { f16::from_f32(value).is_finite() } else { value.is_finite() };
            if let Some(value) = values.iter().find(|value| !fits(**value)) {
                let expected = if half { "numbers that fit in 16 bits" } else { "finite numbers" };
                return Err(DataError::malformed(path, place(), expected, value.to_string()));
            }
        }
        let mut views = Vec::with_capacity(encoded.len());
        for ((name, shape, _), (dtype, bytes)) in self.tensors.iter().zip(&encoded) {
            views.push((name, TensorView::new(*dtype, shape.clone(), bytes).map_err(undecodable(path))?));
        }
        write_tensors(path, views, json)
    }

    /// Reads a file written by us or by others. Counters (`*.num_batches_tracked`) are left out; every other tensor
    /// must be of floating-point numbers, which become 32 bits wide.
    /// Values that are not finite are refused, and so is a file whose checksum is wrong.
    pub fn load(path: impl AsRef<Path>) -> Result<NetworkFile> {
        Ok(NetworkFile::load_verified(path)?.0)
    }

    /// The same, and whether there was a checksum to compare.
    pub fn load_verified(path: impl AsRef<Path>) -> Result<(NetworkFile, Verified)> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(DataError::io("read", path))?;
        NetworkFile::from_bytes(path, &bytes)
    }

    /// The same from the bytes of a file, which errors call `path`.
    pub fn from_bytes(path: impl AsRef<Path>, bytes: &[u8]) -> Result<(NetworkFile, Verified)> {
        let path = path.as_ref();
        let Tensors { tensors: file, json, is_checked } = read_tensors(path, bytes)?;
        let parsed = |json: String| {
            let metadata = serde_json::from_str(&json).map_err(|error| {
                let place = format!("metadata `{METADATA_KEY}`");
                DataError::malformed(path, place, "the description of a network", error.to_string())
            });
            metadata.map_err(unless_other_tensors(path, &json, TensorsOf::Network))
        };
        let metadata = json.map(parsed).transpose()?;
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

fn encode(values: &[f32], half: bool) -> Vec<u8> {
    if half {
        values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect()
    } else {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }
}

/// `None` for numbers that are not floating-point. The library has compared the length with the shape.
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
    fn other_files_of_ours_are_told_apart() {
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
