//! Classifiers from weighted examples, and their scores.

use labelsieve::classifier::{Cosine, WeightMatrix, WeightedClass};
use labelsieve::{Classifier, Features};
use labelsieve_files::inputs::copies::identical_rows;
use labelsieve_jobs::device::OpenDevice;
use numpy::{PyArray2, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{Rows, features, matrix};
use crate::errors::{method_error, value_error};
use crate::process::device as open_device;
use crate::relevance::Labelled;
use crate::work::{Task, run};

/// One unit row of weights per class: prototypes, or with `cosine` (settings as JSON) a cosine classifier. Candidates that
/// are clean examples of their own class count once, as clean.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the settings of one call, by keyword in Python")]
pub fn train<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    labels: Labelled<'py>,
    relevance: PyReadonlyArray1<'py, f32>,
    cosine: Option<&str>,
    seed: u64,
    device: &str,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let settings: Option<Cosine> = cosine
        .map(serde_json::from_str)
        .transpose()
        .map_err(|error| value_error(format!("settings of the cosine classifier: {error}")))?;
    let opened = open_device(py, device)?;
    let all = features(&x, "X")?;
    let classes = labels.rows(all.len())?;
    let relevance = relevance.as_slice()?;
    if relevance.len() != all.len() {
        return Err(value_error(format!(
            "relevance: expected {} numbers, found {}",
            all.len(),
            relevance.len()
        )));
    }
    let task = Task::new(all.len());
    let weights = run(py, &task, progress.as_ref(), || {
        let parts: Vec<(Features, Features, Vec<f32>)> = classes
            .iter()
            .map(|class| {
                let (clean, mut noisy) = (all.select(&class.clean), all.select(&class.noisy));
                let mut weights: Vec<f32> = class.noisy.iter().map(|&row| relevance[row]).collect();
                let copies = identical_rows(&clean, &noisy);
                if !copies.is_empty() {
                    let kept: Vec<usize> =
                        (0..noisy.len()).filter(|row| copies.binary_search(row).is_err()).collect();
                    noisy = noisy.select(&kept);
                    weights = kept.iter().map(|&row| weights[row]).collect();
                }
                (clean, noisy, weights)
            })
            .collect();
        let weighted = parts
            .iter()
            .map(|(clean, noisy, relevance)| WeightedClass::new(clean, noisy, relevance))
            .collect::<labelsieve::Result<Vec<_>>>()?;
        match (&settings, &*opened) {
            (None, opened) => opened.engine().prototypes(&weighted, all.dim(), Cosine::default().scale),
            (Some(cosine), OpenDevice::Cpu { .. }) => {
                cosine.train_watched(&weighted, all.dim(), seed, task.watch())
            }
            (Some(cosine), opened) => opened.engine().cosine(cosine, &weighted, all.dim(), seed),
        }
    })?
    .map_err(method_error)?;
    let weights = weights.weights();
    matrix(py, weights.block(0..weights.len()).to_vec(), weights.dim())
}

/// N×K cosines. Rows are normalised block by block, so that a large matrix is never copied.
#[pyfunction]
pub fn scores<'py>(py: Python<'py>, x: Rows<'py>, weights: Rows<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
    const BLOCK: usize = 8192;
    let classifier = WeightMatrix::new(features(&weights, "weights")?, 1.0).map_err(method_error)?;
    let (n, dim, k) = (x.shape()[0], x.shape()[1], classifier.n_classes());
    if dim != classifier.weights().dim() {
        let expected = classifier.weights().dim();
        return Err(value_error(format!("X has {dim} columns, but the classifier has {expected}")));
    }
    let numbers = x.as_slice()?;
    let task = Task::new(n);
    let values = run(py, &task, None, || {
        let mut values = Vec::with_capacity(n * k);
        for (b, block) in numbers.chunks(BLOCK * dim).enumerate() {
            task.watch().check()?;
            let rows = Features::new(block.to_vec(), dim).map_err(|error| in_block(error, b * BLOCK))?;
            values.extend(classifier.scores(&rows).values);
        }
        Ok(values)
    })?
    .map_err(method_error)?;
    matrix(py, values, k)
}

/// An error of a block, with the row counted from the start of the matrix.
fn in_block(error: labelsieve::Error, first_row: usize) -> labelsieve::Error {
    match error {
        labelsieve::Error::NotFinite { row, column, value } => {
            labelsieve::Error::NotFinite { row: first_row + row, column, value }
        }
        error => error,
    }
}
