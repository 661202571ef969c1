//! Networks in ONNX files, in builds that have the feature `onnx`; in others, what to do instead.

#[cfg(feature = "onnx")]
mod open;

use std::path::{Path, PathBuf};

use serde::Serialize;

#[cfg(feature = "onnx")]
pub use labelsieve_onnx::look_in;

#[cfg(feature = "onnx")]
pub use self::open::open;
use crate::error::{Error, Result};

/// What an ONNX file may leave open, and how to choose. Part of the resume key.
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
    /// Refuses options for a model that is no ONNX file and knows these things itself.
    pub fn check(&self, model: &Path) -> Result<()> {
        if is_onnx(model) || *self == OnnxOptions::default() {
            return Ok(());
        }
        Err(Error::input(
            format!(
                "--image-mean, --image-std and --onnx-output are for .onnx files, and `{}` is none",
                model.display()
            ),
            "leave them out: other models say themselves what they need",
        ))
    }
}

/// All files that decide what such a model does: itself, its weights where they are in files of their own, and the file
/// beside it that says how images are prepared.
pub fn files(model: &Path) -> Vec<PathBuf> {
    let mut files = vec![model.to_path_buf()];
    files.extend(weights_beside(model));
    files.extend(sidecar_of(model));
    files
}

/// Large models keep their weights in `x.onnx.data` (PyTorch) or `x.onnx_data` (Optimum) beside `x.onnx`.
fn weights_beside(model: &Path) -> Vec<PathBuf> {
    let with = |ending: &str| PathBuf::from(format!("{}{ending}", model.display()));
    [".data", "_data"].map(with).into_iter().filter(|path| path.is_file()).collect()
}

/// `x.json` beside `x.onnx`, or `preprocessor_config.json` in its folder.
fn sidecar_of(model: &Path) -> Option<PathBuf> {
    let beside = [model.with_extension("json"), model.with_file_name("preprocessor_config.json")];
    beside.into_iter().find(|path| path.is_file())
}

/// Says that this build cannot, and which one can.
#[cfg(not(feature = "onnx"))]
pub fn open(
    model: &Path,
    _image_size: Option<(usize, usize)>,
    _options: &OnnxOptions,
    _device: labelsieve_cuda::Device,
    _monitor: &dyn crate::monitor::Monitor,
) -> Result<super::embedder::OpenedEmbedder> {
    Err(Error::input(
        format!("`{}`: this build of labelsieve has no ONNX", model.display()),
        "the Python package (`pip install labelsieve`) and the released programs have it; \
         to build one: `cargo install labelsieve-cli --features onnx`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(error.ends_with("are for .onnx files, and `x.safetensors` is none"), "{error}");
    }
}
