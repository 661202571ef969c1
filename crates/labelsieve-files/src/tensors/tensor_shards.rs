//! The tensors of one or several safetensors files, read one by one on demand, so that a large model is never in memory twice.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use safetensors::tensor::{Metadata, TensorInfo};
use serde::Deserialize;

use crate::tensors::network_file::decode;
use crate::tensors::tensor_file::undecodable;
use crate::{DataError, Result};

/// Larger headers are corrupt; those of the largest models have a few hundred thousand bytes.
const MAX_HEADER_BYTES: u64 = 64 << 20;

/// Tensors in one or several files.
#[derive(Debug)]
pub struct TensorShards {
    shards: Vec<Shard>,
    /// The location of each tensor.
    tensors: BTreeMap<String, TensorLocation>,
}

#[derive(Debug)]
struct Shard {
    path: PathBuf,
    file: Mutex<File>,
}

#[derive(Debug)]
struct TensorLocation {
    shard: usize,
    start: u64,
    info: TensorInfo,
}

/// `model.safetensors.index.json`.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl TensorShards {
    /// Opens one file of tensors.
    pub fn open(path: &Path) -> Result<TensorShards> {
        let mut opened = TensorShards { shards: vec![], tensors: BTreeMap::new() };
        opened.add(path)?;
        Ok(opened)
    }

    /// Opens all files of an index, which are in its folder.
    pub fn open_index(path: &Path) -> Result<TensorShards> {
        let text = std::fs::read(path).map_err(DataError::io("read", path))?;
        let index: Index = serde_json::from_slice(&text)
            .map_err(|error| DataError::undecodable(path, "an index of tensors", error))?;
        let mut opened = TensorShards { shards: vec![], tensors: BTreeMap::new() };
        let mut files: Vec<&String> = index.weight_map.values().collect();
        files.sort();
        files.dedup();
        for name in files {
            if Path::new(name).components().count() != 1 || name == ".." {
                let expected = "files beside the index";
                return Err(DataError::malformed(path, "weight_map", expected, format!("`{name}`")));
            }
            opened.add(&path.with_file_name(name))?;
        }
        let missing = index.weight_map.iter().find(|(name, _)| !opened.tensors.contains_key(*name));
        if let Some((name, file)) = missing {
            let file = path.with_file_name(file);
            return Err(DataError::malformed(
                file,
                format!("tensor `{name}`"),
                "the tensor that the index promises",
                "none",
            ));
        }
        Ok(opened)
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        let mut file = File::open(path).map_err(DataError::io("open", path))?;
        let length = file.metadata().map_err(DataError::io("read", path))?.len();
        let cut = |expected: String| {
            DataError::malformed(path, "safetensors header", expected, format!("a file of {length} bytes"))
        };
        let mut start = [0; 8];
        if length < 8 {
            return Err(cut("a length and that many bytes".to_owned()));
        }
        file.read_exact(&mut start).map_err(DataError::io("read", path))?;
        let n_header = u64::from_le_bytes(start);
        if n_header > MAX_HEADER_BYTES.min(length - 8) {
            return Err(cut(format!("a header of {n_header} bytes")));
        }
        let mut header = start.to_vec();
        header.resize(8 + n_header as usize, 0);
        file.read_exact(&mut header[8..]).map_err(DataError::io("read", path))?;
        let metadata: Metadata = serde_json::from_slice(&header[8..]).map_err(undecodable(path))?;
        for (name, info) in metadata.tensors() {
            let (from, to) = info.data_offsets;
            let present = length - 8 - n_header;
            if from > to || to as u64 > present {
                let expected = format!("{} bytes of tensors", to);
                return Err(DataError::malformed(
                    path,
                    format!("tensor `{name}`"),
                    expected,
                    format!("{present}: file is truncated"),
                ));
            }
            let numbers = info.shape.iter().try_fold(1usize, |n, &side| n.checked_mul(side));
            let bytes = numbers.and_then(|n| n.checked_mul(info.dtype.bitsize())).map(|bits| bits / 8);
            if bytes != Some(to - from) {
                let expected = format!("{:?} numbers of shape {:?}", info.dtype, info.shape);
                return Err(DataError::malformed(
                    path,
                    format!("tensor `{name}`"),
                    expected,
                    format!("{} bytes", to - from),
                ));
            }
            let location = TensorLocation {
                shard: self.shards.len(),
                start: 8 + n_header + from as u64,
                info: info.clone(),
            };
            if self.tensors.insert(name.clone(), location).is_some() {
                return Err(DataError::malformed(
                    path,
                    format!("tensor `{name}`"),
                    "each tensor once",
                    "it is in two files",
                ));
            }
        }
        self.shards.push(Shard { path: path.to_path_buf(), file: Mutex::new(file) });
        Ok(())
    }

    /// The files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.shards.iter().map(|shard| shard.path.as_path())
    }

    /// The names of all tensors, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The shape of a tensor; `None` if there is no tensor of this name.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|location| location.info.shape.as_slice())
    }

    /// Reads the numbers of a tensor.
    pub fn values(&self, name: &str) -> Result<Vec<f32>> {
        let Some(location) = self.tensors.get(name) else {
            let path = self.files().next().unwrap_or(Path::new(""));
            return Err(DataError::malformed(
                path,
                format!("tensor `{name}`"),
                "a tensor of this name",
                "none",
            ));
        };
        let shard = &self.shards[location.shard];
        let mut bytes = vec![0; location.info.data_offsets.1 - location.info.data_offsets.0];
        {
            let mut file = shard.file.lock().unwrap_or_else(PoisonError::into_inner);
            file.seek(SeekFrom::Start(location.start)).map_err(DataError::io("read", &shard.path))?;
            file.read_exact(&mut bytes).map_err(DataError::io("read", &shard.path))?;
        }
        decode(location.info.dtype, &bytes).ok_or_else(|| {
            let found = format!("{:?}", location.info.dtype);
            DataError::malformed(&shard.path, format!("tensor `{name}`"), "floating-point numbers", found)
        })
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use safetensors::tensor::TensorView;

    use safetensors::tensor::Dtype;

    use super::*;

    fn bytes(tensors: &[(&str, Dtype, &[usize], Vec<u8>)]) -> Vec<u8> {
        let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
            (*name, TensorView::new(*dtype, shape.to_vec(), bytes).unwrap())
        });
        safetensors::serialize(views, None).unwrap()
    }

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn numbers_of_every_width_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let halves = |to: fn(f32) -> [u8; 2]| [1.5f32, -2.0].into_iter().flat_map(to).collect::<Vec<u8>>();
        let tensors = [
            ("a", Dtype::F32, &[1usize, 2][..], f32s(&[1.5, -2.0])),
            ("b", Dtype::F16, &[2][..], halves(|v| f16::from_f32(v).to_le_bytes())),
            ("c", Dtype::BF16, &[2][..], halves(|v| bf16::from_f32(v).to_le_bytes())),
            ("d", Dtype::I64, &[1][..], vec![0; 8]),
        ];
        std::fs::write(&path, bytes(&tensors)).unwrap();
        let opened = TensorShards::open(&path).unwrap();
        for name in ["a", "b", "c"] {
            assert_eq!(opened.values(name).unwrap(), [1.5, -2.0], "{name}");
        }
        assert_eq!((opened.shape("a"), opened.shape("x")), (Some(&[1, 2][..]), None));
        assert!(opened.values("d").unwrap_err().to_string().contains("floating-point"));
    }

    #[test]
    fn shards_are_one_set_of_tensors() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        write("m-1.safetensors", &bytes(&[("a", Dtype::F32, &[1], f32s(&[1.0]))]));
        write("m-2.safetensors", &bytes(&[("b", Dtype::F32, &[1], f32s(&[2.0]))]));
        let index = folder.path().join("model.safetensors.index.json");
        let write_index = |map: &str| std::fs::write(&index, format!(r#"{{"weight_map":{map}}}"#)).unwrap();
        write_index(r#"{"a":"m-1.safetensors","b":"m-2.safetensors"}"#);
        let opened = TensorShards::open_index(&index).unwrap();
        assert_eq!(opened.names().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(opened.values("b").unwrap(), [2.0]);

        write_index(r#"{"a":"m-1.safetensors","b":"m-1.safetensors"}"#);
        let message = TensorShards::open_index(&index).unwrap_err().to_string();
        assert!(message.contains("m-1.safetensors") && message.contains("tensor `b`"), "{message}");
        write_index(r#"{"a":"m-3.safetensors"}"#);
        let message = TensorShards::open_index(&index).unwrap_err().to_string();
        assert!(message.contains("m-3.safetensors"), "{message}");
        write_index(r#"{"a":"../m-1.safetensors"}"#);
        let message = TensorShards::open_index(&index).unwrap_err().to_string();
        assert!(message.contains("files beside the index"), "{message}");
    }

    #[test]
    fn a_file_truncated_at_any_length_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let whole =
            bytes(&[("a", Dtype::F32, &[3], f32s(&[1.0, 2.0, 3.0])), ("b", Dtype::F32, &[1], f32s(&[4.0]))]);
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let message = TensorShards::open(&path).unwrap_err().to_string();
            assert!(message.contains("model.safetensors"), "{length}: {message}");
        }
        let mut huge = whole.clone();
        huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        std::fs::write(&path, &huge).unwrap();
        assert!(TensorShards::open(&path).is_err());
    }
}
