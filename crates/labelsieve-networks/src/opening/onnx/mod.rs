//! Networks in ONNX files. Builds without the feature `onnx` report how to get it.

#[cfg(feature = "onnx")]
mod open;

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use labelsieve_files::work::{Error, Result, option, words};
use serde::Serialize;

#[cfg(feature = "onnx")]
pub use self::open::open;
#[cfg(feature = "onnx")]
pub use crate::onnx_runtime::look_in;

/// Settings that an ONNX file does not contain. Part of the resume key.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OnnxOptions {
    /// Mean of each channel, of pixels from 0 to 1.
    pub mean: Option<[f64; 3]>,
    /// Standard deviation of each channel.
    pub deviation: Option<[f64; 3]>,
    /// The output that holds the features.
    pub output: Option<String>,
}

/// Whether this is the name of an ONNX file.
pub fn is_onnx(model: &Path) -> bool {
    model.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("onnx"))
}

impl OnnxOptions {
    /// Rejects these settings for other models, which define them.
    pub fn check(&self, model: &Path) -> Result<()> {
        if is_onnx(model) || *self == OnnxOptions::default() {
            return Ok(());
        }
        Err(Error::input(
            words![
                option("image_mean"),
                ", ",
                option("image_std"),
                " and ",
                option("onnx_output"),
                format!(" are for .onnx files, but `{}` is not one", model.display()),
            ],
            "leave them out: other models define these themselves",
        ))
    }
}

/// All files of such a model: itself, its external weights, and the file beside it with the image preprocessing.
pub fn files(model: &Path) -> Vec<PathBuf> {
    let mut files = vec![model.to_path_buf()];
    files.extend(weights_beside(model));
    files.extend(sidecar_of(model));
    files
}

/// Large models keep their weights in other files: those that `x.onnx` names, and `x.onnx.data` (PyTorch), `x.onnx_data` and
/// `x.onnx_data_1` (Optimum) in any case.
fn weights_beside(model: &Path) -> Vec<PathBuf> {
    let name = model.file_name().unwrap_or_default().as_encoded_bytes();
    let usual = [[name, b".data"].concat(), [name, b"_data"].concat()];
    let folder = model.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let beside = entries
        .map(|entry| entry.file_name())
        .filter(|name| usual.iter().any(|usual| name.as_encoded_bytes().starts_with(usual)));
    let named = locations(model).unwrap_or_default(); // what cannot be read is refused when it is opened
    let all: BTreeSet<PathBuf> =
        beside.map(PathBuf::from).chain(named).map(|name| model.with_file_name(name)).collect();
    all.into_iter().filter(|path| path != model && path.is_file()).collect()
}

/// The files of external weights that an ONNX file names. Instead of parsing the file, this searches for entries of
/// `external_data` with the key `location`: field 1 is the key, field 2 the path.
fn locations(model: &Path) -> io::Result<BTreeSet<PathBuf>> {
    const KEY: &[u8] = b"\x0a\x08location\x12";
    const MAX_ENTRY_BYTES: usize = KEY.len() + 2 + 0x3fff; // a length in two bytes
    let mut file = std::fs::File::open(model)?;
    let mut found = BTreeSet::new();
    let mut bytes = Vec::new();
    while file.by_ref().take(1 << 20).read_to_end(&mut bytes)? > 0 {
        let windows = bytes.windows(KEY.len()).enumerate();
        for (start, _) in windows.filter(|(_, window)| window[0] == KEY[0] && *window == KEY) {
            found.extend(location(&bytes[start + KEY.len()..]));
        }
        bytes.drain(..bytes.len().saturating_sub(MAX_ENTRY_BYTES)); // an entry may be cut off here
    }
    Ok(found)
}

/// The length-prefixed path at the start of these bytes; `None` if it is cut off, not UTF-8, or outside of the folder, which
/// ONNX forbids.
fn location(bytes: &[u8]) -> Option<PathBuf> {
    let (length, rest) = match bytes {
        [length, rest @ ..] if *length < 0x80 => (usize::from(*length), rest),
        [low, high, rest @ ..] if *high < 0x80 => {
            (usize::from(*low & 0x7f) + usize::from(*high) * 0x80, rest)
        }
        _ => return None,
    };
    let mut path = PathBuf::new();
    for part in Path::new(std::str::from_utf8(rest.get(..length)?).ok()?).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::CurDir => (),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// `x.json` beside `x.onnx`, or `preprocessor_config.json` in its folder.
fn sidecar_of(model: &Path) -> Option<PathBuf> {
    let beside = [model.with_extension("json"), model.with_file_name("preprocessor_config.json")];
    beside.into_iter().find(|path| path.is_file())
}

/// Fails: this build does not support ONNX.
#[cfg(not(feature = "onnx"))]
pub fn open(
    model: &Path,
    _image_size: Option<(usize, usize)>,
    _options: &OnnxOptions,
    _device: labelsieve_numerics::Device,
    _monitor: &dyn labelsieve_files::work::Monitor,
) -> Result<super::embedder::OpenedEmbedder> {
    Err(Error::input(
        format!("`{}`: this build of labelsieve does not support ONNX", model.display()),
        "use the Python package (`pip install labelsieve`) or a released binary, or build it with \
         `cargo install labelsieve-cli --features onnx`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that names these, with other things around them.
    fn naming(locations: &[&str]) -> Vec<u8> {
        let mut bytes = vec![7; 100];
        for location in locations {
            bytes.extend(b"\x0a\x08location\x12");
            match location.len() {
                length @ ..0x80 => bytes.push(length as u8),
                length => bytes.extend([length as u8 | 0x80, (length >> 7) as u8]),
            }
            bytes.extend(location.as_bytes());
            bytes.extend(b"\x0a\x06offset\x12\x010");
        }
        bytes
    }

    #[test]
    fn weights_belong_to_the_model_that_names_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("parts")).unwrap();
        let long = "w".repeat(200);
        let present =
            ["weights.bin", "parts/1", &long, "x.onnx_data", "x.onnx_data_1", "other.bin", "y.onnx_data"];
        present.iter().for_each(|name| std::fs::write(at(name), "").unwrap());
        std::fs::write(folder.path().with_extension("outside"), "").unwrap();
        let outside = format!("../{}.outside", folder.path().file_name().unwrap().to_str().unwrap());
        let model = at("x.onnx");
        let names = ["./weights.bin", "weights.bin", "parts/1", &long, "absent", "x.onnx", &outside];
        std::fs::write(&model, naming(&names)).unwrap();
        let expected = [model.clone(), at("parts/1"), at("weights.bin"), at(&long)];
        let expected = [&expected[..], &[at("x.onnx_data"), at("x.onnx_data_1")]].concat();
        assert_eq!(files(&model), expected);
        std::fs::remove_file(folder.path().with_extension("outside")).unwrap();
    }

    #[test]
    fn names_of_weights_are_found_wherever_they_are_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("x.onnx");
        let entry = naming(&["weights.bin"]);
        for before in (0..150).step_by(4).map(|n| (1 << 20) - n) {
            std::fs::write(&model, [vec![0; before], entry.clone()].concat()).unwrap();
            assert_eq!(
                locations(&model).unwrap(),
                BTreeSet::from([PathBuf::from("weights.bin")]),
                "{before}"
            );
        }
        let whole = b"\x0bweights.bin";
        assert_eq!(location(whole), Some(PathBuf::from("weights.bin")));
        for bad in [&whole[..5], b"", b"\xff", b"\xff\xff\x01a", b"\x02\xff\xfe", b"\x02/a", b"\x04a/.."] {
            assert_eq!(location(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn files_beside_a_model_belong_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let model = at("x.onnx");
        assert!(is_onnx(&model) && is_onnx(Path::new("X.ONNX")) && !is_onnx(Path::new("onnx")));
        assert_eq!(files(&model), std::slice::from_ref(&model));
        std::fs::write(at("preprocessor_config.json"), "{}").unwrap();
        std::fs::write(at("x.onnx_data"), "").unwrap();
        std::fs::write(at("y.onnx.data"), "").unwrap(); // another's
        assert_eq!(files(&model), [model.clone(), at("x.onnx_data"), at("preprocessor_config.json")]);
        std::fs::write(at("x.json"), "{}").unwrap();
        assert_eq!(files(&model)[2], at("x.json"));
        let options = OnnxOptions { output: Some("y".to_owned()), ..OnnxOptions::default() };
        options.check(&model).unwrap();
        let error = options.check(Path::new("x.safetensors")).unwrap_err().to_string();
        assert!(error.ends_with("are for .onnx files, but `x.safetensors` is not one"), "{error}");
    }
}
