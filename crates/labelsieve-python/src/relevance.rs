//! The relevance of candidates: of one class, or of all classes of a labelled matrix.

use std::sync::{Mutex, PoisonError};

use labelsieve::engine::Job;
use labelsieve::{ClassProblem, Decision, Features, Method, NoisyPool};
use labelsieve_jobs::scoring::{ClassRelevance, Scoring};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Rows, features};
use crate::errors::{job_error, method_error, value_error};
use crate::process::device as open_device;
use crate::work::{Task, run};

/// Relevance and numbers of reciprocal neighbours, one per candidate.
type OneClass<'py> = (Bound<'py, PyArray1<f32>>, Option<Bound<'py, PyArray1<u32>>>);

/// One class: the relevance of `noisy` by a method given as JSON.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the settings of one call, by keyword in Python")]
pub fn relevance<'py>(
    py: Python<'py>,
    clean: Rows<'py>,
    noisy: Rows<'py>,
    others: Option<Rows<'py>>,
    other_classes: Option<Rows<'py>>,
    method: &str,
    seed: u64,
    device: &str,
    decisions: Option<Vec<Option<String>>>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<OneClass<'py>> {
    let method = parse_method(method)?;
    let opened = open_device(py, device)?;
    let clean = features(&clean, "clean")?;
    let others = others.map(|others| features(&others, "others")).transpose()?;
    let pool = NoisyPool::new(features(&noisy, "noisy")?);
    let other_classes = other_classes.map(|rows| features(&rows, "other_classes")).transpose()?;
    let n_others = other_classes.as_ref().map_or(0, Features::len);
    let task = Task::new(rows_to_do(&method, clean.len(), pool.features().len(), n_others));
    let mut problem = ClassProblem::new(&clean, &pool).map_err(method_error)?.watched(task.watch());
    let decisions = decisions.map(parse_decisions).transpose()?;
    if let Some(decisions) = &decisions {
        problem = problem.with_decisions(decisions).map_err(method_error)?;
    }
    if let Some(others) = &others {
        problem = problem.with_others(others).map_err(method_error)?;
    }
    if let Some(rows) = &other_classes {
        problem = problem.with_other_classes(rows).map_err(method_error)?;
    }
    let job = Job { problem, seed };
    let mut scored =
        run(py, &task, progress.as_ref(), || opened.engine().relevance(&method, &[job], &|_, _| ()))?
            .map_err(method_error)?;
    let scored = scored.pop().expect("one job, one result");
    let counts = scored.reciprocal_neighbours().map(|counts| PyArray1::from_slice(py, counts));
    Ok((PyArray1::from_slice(py, scored.noisy()), counts))
}

/// The examples of a matrix by class: codes into `names`, and which are clean.
#[derive(FromPyObject)]
pub struct Labelled<'py> {
    names: Vec<String>,
    codes: PyReadonlyArray1<'py, i64>,
    is_clean: PyReadonlyArray1<'py, bool>,
}

/// The rows of one class.
#[derive(Clone, Default)]
pub struct ClassRows {
    pub clean: Vec<usize>,
    pub noisy: Vec<usize>,
}

impl Labelled<'_> {
    /// The rows of every class; a class without a clean one is refused by name.
    pub fn rows(&self, n: usize) -> PyResult<Vec<ClassRows>> {
        let codes = self.codes.as_slice()?;
        let is_clean = self.is_clean.as_slice()?;
        if codes.len() != n || is_clean.len() != n {
            return Err(value_error(format!(
                "labels: expected {n} codes and flags, found {} and {}",
                codes.len(),
                is_clean.len()
            )));
        }
        let mut classes = vec![ClassRows::default(); self.names.len()];
        for (row, (&code, &clean)) in codes.iter().zip(is_clean).enumerate() {
            let class = usize::try_from(code).ok().and_then(|code| classes.get_mut(code));
            let class = class.ok_or_else(|| value_error(format!("row {row}: no class number {code}")))?;
            if clean { &mut class.clean } else { &mut class.noisy }.push(row);
        }
        match classes.iter().position(|class| class.clean.is_empty()) {
            None => Ok(classes),
            Some(c) => Err(value_error(format!(
                "class `{}` has {} candidates but no clean example\nhint: set is_clean for at least one example \
                 of every class",
                self.names[c],
                classes[c].noisy.len()
            ))),
        }
    }
}

/// The relevance of every row of a matrix with its reasons; clean rows have relevance 1 and no reasons (-1, NaN). The flags say which
/// candidates are clean examples of their own class; the last are probabilities, from methods that know them.
type Cleaned<'py> = (
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<bool>>,
    Option<Bound<'py, PyArray1<f32>>>,
);

/// All classes of a matrix: relevance, most similar clean row, its similarity, number of reciprocal neighbours.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the settings of one call, by keyword in Python")]
pub fn clean<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    labels: Labelled<'py>,
    method: &str,
    seed: u64,
    device: &str,
    decisions: Option<Vec<Option<String>>>,
    base: Option<Rows<'py>>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Cleaned<'py>> {
    let method = parse_method(method)?;
    let opened = open_device(py, device)?;
    let all = features(&x, "X")?;
    let classes = labels.rows(all.len())?;
    let base = base.map(|base| features(&base, "base")).transpose()?;
    if let Some(base) = &base {
        all.check_width("base", base, "X").map_err(method_error)?;
    }
    let decisions: Vec<Vec<Option<Decision>>> = match decisions.map(parse_decisions).transpose()? {
        None => Vec::new(),
        Some(all) => {
            let rows =
                |class: &ClassRows| class.noisy.iter().map(|&row| all.get(row).copied().flatten()).collect();
            classes.iter().map(rows).collect()
        }
    };
    let n_others = classes.len().saturating_sub(1) + base.as_ref().map_or(0, Features::len);
    let to_do =
        classes.iter().map(|class| rows_to_do(&method, class.clean.len(), class.noisy.len(), n_others));
    let task = Task::new(to_do.sum());
    let names: Vec<&str> = labels.names.iter().map(String::as_str).collect();
    let pool_sizes: Vec<usize> = classes.iter().map(|class| class.noisy.len()).collect();
    let found = Mutex::new(ScoredRows::new(all.len()));
    run(py, &task, progress.as_ref(), || {
        let clean: Vec<Features> = classes.iter().map(|class| all.select(&class.clean)).collect();
        let scoring = Scoring {
            method: &method,
            engine: opened.engine(),
            seed,
            names: &names,
            clean: &clean,
            base: base.as_ref(),
            pool_sizes: &pool_sizes,
            decisions: &decisions,
            recall: None,
        };
        let load = |class: usize| Ok(all.select(&classes[class].noisy));
        let every: Vec<usize> = (0..classes.len()).collect();
        scoring.run(&every, &load, task.watch(), &|class, scored| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.add(&all, &classes[class], &scored);
            Ok(())
        })
    })?
    .map_err(job_error)?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((
        PyArray1::from_vec(py, found.relevance),
        PyArray1::from_vec(py, found.best),
        PyArray1::from_vec(py, found.similarity),
        PyArray1::from_vec(py, found.reciprocal),
        PyArray1::from_vec(py, found.is_copy),
        found.has_probability.then(|| PyArray1::from_vec(py, found.probability)),
    ))
}

/// The result of [`clean`] while it is filled.
struct ScoredRows {
    relevance: Vec<f32>,
    /// NaN where a class has none.
    probability: Vec<f32>,
    has_probability: bool,
    best: Vec<i64>,
    similarity: Vec<f32>,
    reciprocal: Vec<i64>,
    is_copy: Vec<bool>,
}

impl ScoredRows {
    /// As if all were clean.
    fn new(n: usize) -> ScoredRows {
        ScoredRows {
            relevance: vec![1.0; n],
            probability: vec![1.0; n],
            has_probability: false,
            best: vec![-1; n],
            similarity: vec![f32::NAN; n],
            reciprocal: vec![-1; n],
            is_copy: vec![false; n],
        }
    }

    /// A class. Copies of its clean examples took no part: they keep the relevance of a clean example, and the reason is
    /// which one.
    fn add(&mut self, all: &Features, class: &ClassRows, scored: &ClassRelevance) {
        for (i, place) in scored.kept().enumerate() {
            let row = class.noisy[place];
            let (closest, similarity) = scored.closest[i];
            self.relevance[row] = scored.relevance[i];
            self.probability[row] = scored.probability.as_ref().map_or(f32::NAN, |p| p[i]);
            self.best[row] = class.clean[closest] as i64;
            self.similarity[row] = similarity;
            self.reciprocal[row] = scored.reciprocal.as_ref().map_or(-1, |counts| i64::from(counts[i]));
        }
        self.has_probability |= scored.probability.is_some();
        for &place in &scored.copies {
            let row = class.noisy[place];
            let original = class.clean.iter().find(|&&clean| all.row(clean) == all.row(row));
            self.best[row] = original.map_or(-1, |&clean| clean as i64);
            self.similarity[row] = 1.0;
            self.is_copy[row] = true;
        }
    }
}

/// One decision per row, where there is one.
pub fn parse_decisions(words: Vec<Option<String>>) -> PyResult<Vec<Option<Decision>>> {
    let parse = |word: Option<String>| word.map(|word| word.parse()).transpose();
    words.into_iter().map(parse).collect::<labelsieve::Result<_>>().map_err(method_error)
}

/// The paper's λ for this number of clean examples.
#[pyfunction]
pub fn paper_lambda(n_clean: usize) -> f32 {
    labelsieve::relevance::paper_lambda(n_clean)
}

/// A method from JSON; bad settings are refused before any work.
pub fn parse_method(json: &str) -> PyResult<Method> {
    let method: Method =
        serde_json::from_str(json).map_err(|error| value_error(format!("method: {error}")))?;
    method.build().map_err(method_error)?;
    Ok(method)
}

/// How far a class's [`labelsieve_numerics::Watch`] counts, beside `n_others` other classes.
fn rows_to_do(method: &Method, n_clean: usize, n_noisy: usize, n_others: usize) -> usize {
    match method {
        _ if n_noisy == 0 => 0, // nothing to score
        Method::Gcn(_) | Method::LabelPropagation(_) => n_noisy + n_clean + n_noisy, // graph, then training
        Method::Mixture(_) if n_others > 0 => n_noisy + n_noisy, // graph, then rounds
        Method::Mlp(_) => n_clean + n_noisy,
        Method::Auto(_) if n_others > 0 => n_noisy + n_noisy + n_clean + n_noisy, // graph, mixture, then training
        Method::Auto(_) => n_noisy + n_clean + n_noisy,
        Method::Similarity(_) | Method::Linear(_) | Method::Beta(_) | Method::Mixture(_) => n_noisy,
    }
}
