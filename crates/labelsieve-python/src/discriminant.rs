//! Discriminants from weighted examples, and what they make of new ones.

use std::path::PathBuf;

use labelsieve::classifier::discriminant::{ClassSums, Within};
use labelsieve::classifier::{Confidence, Discriminant, FittedDiscriminant, Shrinkage, WeightedClass};
use labelsieve::{Classifier, Error, Features, Scores};
use labelsieve_files::inputs::copies::identical_rows;
use labelsieve_files::{SavedClassifier, SavedConfidence};
use labelsieve_jobs::inputs::classifier::{discriminant_of, saved_confidence, saved_discriminant};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{Rows, features, matrix};
use crate::errors::{data_error, method_error, value_error};
use crate::relevance::Labelled;
use crate::work::{Task, run};

/// Rows that are scored at a time.
const BLOCK: usize = 8192;

/// A discriminant in memory.
#[pyclass(frozen, name = "Discriminant")]
pub struct PyDiscriminant {
    model: FittedDiscriminant,
    confidence: Confidence,
}

/// Means, covariance, its basis, shrinkage and the number of classes that the covariance was measured on.
type Parts<'py> =
    (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<f32>>, Option<Bound<'py, PyArray2<f32>>>, f64, usize);

#[pymethods]
impl PyDiscriminant {
    /// From the arrays that [`PyDiscriminant::parts`] and [`PyDiscriminant::confidence`] gave.
    #[new]
    fn new(
        means: Rows<'_>,
        covariance: Rows<'_>,
        basis: Option<Rows<'_>>,
        origin: (f64, usize),
        confidence: (f32, PyReadonlyArray1<'_, f32>),
    ) -> PyResult<PyDiscriminant> {
        let wide = |rows: &Rows<'_>| -> PyResult<Vec<f64>> {
            Ok(rows.as_slice()?.iter().map(|&value| f64::from(value)).collect())
        };
        let dim = means.shape()[1];
        let rank = basis.as_ref().map_or(dim, |basis| basis.shape()[0]);
        if covariance.shape() != [rank, rank] || basis.as_ref().is_some_and(|basis| basis.shape()[1] != dim) {
            return Err(value_error(format!("covariance: expected {rank} rows and columns")));
        }
        let within = match &basis {
            None => Within::of_matrix(wide(&covariance)?, dim),
            Some(basis) => Within::in_span(wide(basis)?, wide(&covariance)?, dim),
        };
        let (gamma, n_pooled) = origin;
        let model = FittedDiscriminant::new(wide(&means)?, within, n_pooled, gamma).map_err(method_error)?;
        let (temperature, distances) = confidence;
        Ok(PyDiscriminant { model, confidence: Confidence::new(temperature, distances.as_slice()?.to_vec()) })
    }

    /// Learns from examples weighted by `weights`; candidates that are clean examples of their own class count once.
    #[staticmethod]
    fn fit(
        py: Python<'_>,
        x: Rows<'_>,
        labels: Labelled<'_>,
        weights: PyReadonlyArray1<'_, f32>,
        shrinkage: &str,
    ) -> PyResult<PyDiscriminant> {
        let shrinkage: Shrinkage =
            shrinkage.parse().map_err(|error| value_error(format!("shrinkage: {error}")))?;
        let all = features(&x, "X")?;
        let classes = labels.rows(all.len())?;
        let weights = weights.as_slice()?;
        if weights.len() != all.len() {
            let found = weights.len();
            return Err(value_error(format!("weights: expected {} numbers, found {found}", all.len())));
        }
        let task = Task::new(all.len());
        let fitted = run(py, &task, None, || {
            let mut sums = ClassSums::new(all.dim(), classes.len(), all.len());
            for class in &classes {
                let clean = all.select(&class.clean);
                let noisy = all.select(&class.noisy);
                let copies = identical_rows(&clean, &noisy);
                let kept = |at: &usize| copies.binary_search(at).is_err();
                let kept: Vec<usize> = (0..noisy.len()).filter(kept).collect();
                let weights: Vec<f32> = kept.iter().map(|&at| weights[class.noisy[at]]).collect();
                sums.add(&WeightedClass::new(&clean, &noisy.select(&kept), &weights)?)?;
            }
            Discriminant { shrinkage }.fit(&sums, None, task.watch())
        })?
        .map_err(method_error)?;
        let confidence = fitted.left_out.confidence(1.0);
        // As a file, or a pickle, will hold it: a copy must not differ by a rounding.
        let model = fitted.model.rounded().map_err(method_error)?;
        Ok(PyDiscriminant { model, confidence })
    }

    /// The arrays that it is made of.
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Parts<'py>> {
        let saved = saved_discriminant(&self.model);
        let dim = self.model.dim();
        let means = self.model.means().iter().map(|&value| value as f32).collect();
        let rank = self.model.within().rank();
        let basis = saved.basis.map(|basis| matrix(py, basis, dim)).transpose()?;
        Ok((
            matrix(py, means, dim)?,
            matrix(py, saved.covariance, rank)?,
            basis,
            saved.shrinkage,
            saved.n_pooled,
        ))
    }

    /// The factor on scores before the softmax, and the distances of left-out examples.
    fn confidence<'py>(&self, py: Python<'py>) -> (f32, Bound<'py, PyArray1<f32>>) {
        let distances = self.confidence.distances().to_vec();
        (self.confidence.temperature(), PyArray1::from_vec(py, distances))
    }

    /// N×K scores: −½ the squared distance to each class, but for what is the same for all classes.
    fn scores<'py>(&self, py: Python<'py>, x: Rows<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let values = self.by_blocks(py, &x, |_, scores| scores.values)?;
        matrix(py, values, self.model.n_classes())
    }

    /// N×K probabilities, given that an example belongs to one of the classes.
    fn probabilities<'py>(&self, py: Python<'py>, x: Rows<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let of_rows = |_: &Features, scores: Scores| {
            scores.rows().flat_map(|row| self.confidence.probabilities(row)).collect()
        };
        matrix(py, self.by_blocks(py, &x, of_rows)?, self.model.n_classes())
    }

    /// For each example the share of examples of the classes that are as far from their class, or farther.
    fn typicality<'py>(&self, py: Python<'py>, x: Rows<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let values = self.by_blocks(py, &x, |rows, scores| {
            let distances = self.model.distances(rows, &scores);
            distances.into_iter().map(|distance| self.confidence.typicality(distance)).collect()
        })?;
        Ok(PyArray1::from_vec(py, values))
    }

    /// Writes it as `labelsieve train` does.
    fn save(
        &self,
        path: PathBuf,
        classes: Vec<String>,
        origin: (Option<String>, Option<String>),
        settings: &str,
    ) -> PyResult<()> {
        let settings =
            serde_json::from_str(settings).map_err(|error| value_error(format!("settings: {error}")))?;
        let (backbone, network) = origin;
        let is_known = !self.confidence.distances().is_empty();
        let confidence: Option<SavedConfidence> = is_known.then(|| saved_confidence(&self.confidence));
        let saved = SavedClassifier {
            classes,
            dim: self.model.dim(),
            weight: self.model.means().iter().map(|&value| value as f32).collect(),
            scale: labelsieve::classifier::Cosine::default().scale,
            backbone,
            network,
            n_base: 0,
            settings,
            discriminant: Some(saved_discriminant(&self.model)),
            confidence,
        };
        saved.save(path).map_err(data_error)
    }

    /// From a file that `labelsieve train` wrote; `None` if it holds another classifier.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Option<PyDiscriminant>> {
        let saved = py.detach(|| SavedClassifier::load(path)).map_err(data_error)?;
        let model = discriminant_of(&saved).map_err(|error| value_error(error.to_string()))?;
        Ok(model.map(|model| PyDiscriminant {
            model,
            confidence: match saved.confidence {
                Some(saved) => Confidence::new(saved.temperature, saved.distances),
                None => Confidence::new(1.0, Vec::new()),
            },
        }))
    }
}

impl PyDiscriminant {
    /// Works on a block of rows and its scores at a time, so that a large matrix is never copied.
    fn by_blocks(
        &self,
        py: Python<'_>,
        x: &Rows<'_>,
        of_rows: impl Fn(&Features, Scores) -> Vec<f32> + Send + Sync,
    ) -> PyResult<Vec<f32>> {
        let dim = x.shape()[1];
        let expected = self.model.dim();
        if dim != expected {
            return Err(value_error(format!("X has {dim} columns, but the classifier has {expected}")));
        }
        let numbers = x.as_slice()?;
        let task = Task::new(x.shape()[0]);
        run(py, &task, None, || {
            let mut values = Vec::new();
            for (block, rows) in numbers.chunks(BLOCK * dim).enumerate() {
                task.watch().check()?;
                let rows = Features::new(rows.to_vec(), dim).map_err(|error| match error {
                    Error::NotFinite { row, column, value } => {
                        Error::NotFinite { row: block * BLOCK + row, column, value }
                    }
                    error => error,
                })?;
                let scores = self.model.scores(&rows);
                values.extend(of_rows(&rows, scores));
            }
            Ok(values)
        })?
        .map_err(method_error)
    }
}
