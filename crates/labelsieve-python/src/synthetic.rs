//! Generated features with known truth, for examples and tests.

use labelsieve::synthetic::{Noise, Recipe};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

use crate::arrays::matrix;

/// X, class codes, is_clean, truth; then the test rows and their codes.
type Generated<'py> = (
    Bound<'py, PyArray2<f32>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray2<f32>>,
    Bound<'py, PyArray1<i64>>,
);

/// The sample of `labelsieve demo`, with other numbers if asked for; truth is true for clean rows.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the fields of a recipe, by keyword in Python")]
pub fn synthetic(
    py: Python<'_>,
    n_classes: usize,
    n_clean: usize,
    largest_pool: usize,
    noise_ratio: f32,
    clusters: usize,
    dim: usize,
    n_test: usize,
    seed: u64,
) -> PyResult<Generated<'_>> {
    let noise = if clusters == 0 { Noise::Everywhere } else { Noise::Clusters(clusters) };
    let recipe = Recipe { dim, n_classes, n_clean, largest_pool, noise_ratio, noise, n_test };
    let task = py.detach(|| recipe.generate(seed));
    let mut x = Vec::new();
    let mut codes = Vec::new();
    let mut is_clean = Vec::new();
    let mut truth = Vec::new();
    for (c, class) in task.classes.iter().enumerate() {
        for set in [&class.clean, &class.noisy] {
            x.extend_from_slice(set.block(0..set.len()));
        }
        let k = class.clean.len();
        let z = class.noisy.len();
        codes.extend(std::iter::repeat_n(c as i64, k + z));
        is_clean.extend((0..k + z).map(|i| i < k));
        truth.extend(std::iter::repeat_n(true, k).chain(class.truth.iter().copied()));
    }
    let test = task.test.block(0..task.test.len()).to_vec();
    let test_codes = task.test_labels.iter().map(|&label| label as i64).collect();
    Ok((
        matrix(py, x, dim)?,
        PyArray1::from_vec(py, codes),
        PyArray1::from_vec(py, is_clean),
        PyArray1::from_vec(py, truth),
        matrix(py, test, dim)?,
        PyArray1::from_vec(py, test_codes),
    ))
}
