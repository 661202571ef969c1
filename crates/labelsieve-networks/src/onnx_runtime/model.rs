//! A network in an ONNX file, open, and as an embedder.

use std::path::{Path, PathBuf};

use ort::session::Session;

use crate::onnx_runtime::error::{Error, Result};
use crate::onnx_runtime::input::Input;
use crate::onnx_runtime::{library, output};
use crate::transformer::Normalisation;
use crate::{Batch, Embedder};

/// Pixels that go through a network at once; a file that fixes more asks for gigabytes.
const MAX_PIXELS: usize = 1 << 28;

/// An ONNX file that ONNX Runtime has read.
pub struct Model {
    path: PathBuf,
    session: Session,
    input: Input,
}

impl Model {
    /// Reads a file, with the ONNX Runtime that [`library::load`] finds.
    pub fn open(path: &Path) -> Result<Model> {
        let library = library::load()?;
        let refused =
            |error: ort::Error| Error::Model { path: path.to_path_buf(), reason: error.to_string() };
        let session = Session::builder(&library.environment)
            .and_then(|builder| Ok(builder.with_intra_threads(rayon::current_num_threads())?))
            .and_then(|builder| Ok(builder.with_deterministic_compute(true)?))
            .and_then(|mut builder| builder.commit_from_file(path))
            .map_err(refused)?;
        let input = Input::of(path, session.inputs())?;
        Ok(Model { path: path.to_path_buf(), session, input })
    }

    /// Its input.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// An embedder of images of `size`, height and width, whose features are the output of this name. It runs once, on
    /// black images: the file alone does not always say how wide its outputs are.
    pub fn embedder(
        mut self,
        size: (usize, usize),
        normalisation: Normalisation,
        output: Option<&str>,
    ) -> Result<OnnxEmbedder> {
        let (height, width) = size;
        let refused = |reason: String| Error::Model { path: self.path.clone(), reason };
        let n = self.input.batch.unwrap_or(2); // two rows, so that a row for each image is told from one for all
        let pixels = n.checked_mul(height).and_then(|rows| rows.checked_mul(width));
        if pixels.is_none_or(|pixels| pixels > MAX_PIXELS) {
            return Err(Error::Shape {
                path: self.path,
                what: format!("input `{}`", self.input.name),
                expected: format!("at most {MAX_PIXELS} pixels at once"),
                found: format!("{n}×{height}×{width}"),
            });
        }
        let black = Batch::new(height, width, vec![0; n * 3 * height * width]);
        let black = black.map_err(|error| refused(error.to_string()))?;
        let failed = |error: ort::Error| refused(error.to_string());
        let values = self.input.values(&black, n, &normalisation).map_err(failed)?;
        let outputs = self.session.run([values]).map_err(failed)?;
        let (output, dim) = output::choose(&self.path, &outputs, n, output)?;
        drop(outputs);
        let Model { path, session, input } = self;
        Ok(OnnxEmbedder { path, session, input, normalisation, output, dim })
    }
}

/// A network in an ONNX file that turns images into features.
pub struct OnnxEmbedder {
    path: PathBuf,
    session: Session,
    input: Input,
    normalisation: Normalisation,
    output: String,
    dim: usize,
}

impl OnnxEmbedder {
    /// The output that the features are read from.
    pub fn output(&self) -> &str {
        &self.output
    }

    /// Features of at most as many images as go into one run.
    fn run(&mut self, images: &Batch) -> crate::Result<Vec<f32>> {
        let path = self.path.display();
        let failed = |reason: String| crate::Error::Device(format!("`{path}`: {reason}"));
        let n = self.input.batch.unwrap_or(images.len());
        let values = self.input.values(images, n, &self.normalisation);
        let outputs = values.and_then(|values| self.session.run([values]));
        let outputs = outputs.map_err(|error| failed(error.to_string()))?;
        let value =
            outputs.get(&self.output).ok_or_else(|| failed(format!("no output `{}`", self.output)))?;
        let mut features = output::read(value).map_err(|error| failed(error.to_string()))?;
        if features.len() != n * self.dim {
            let found = features.len();
            let dim = self.dim;
            return Err(failed(format!(
                "output `{}`: expected {n}×{dim} numbers, found {found}",
                self.output
            )));
        }
        features.truncate(images.len() * self.dim);
        match features.iter().position(|value| !value.is_finite()) {
            None => Ok(features),
            Some(place) => Err(failed(format!(
                "output `{}`: expected finite numbers, found {} in column {}",
                self.output,
                features[place],
                place % self.dim
            ))),
        }
    }
}

impl Embedder for OnnxEmbedder {
    fn dim(&self) -> usize {
        self.dim
    }

    fn features(&mut self, images: &Batch) -> crate::Result<Vec<f32>> {
        let (height, width) = images.size();
        let at_once = self.input.batch.unwrap_or(images.len()).max(1);
        let mut features = Vec::with_capacity(images.len() * self.dim);
        for pixels in images.pixels().chunks(at_once * 3 * height * width) {
            features.extend(self.run(&Batch::new(height, width, pixels.to_vec())?)?);
        }
        Ok(features)
    }
}
