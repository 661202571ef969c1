//! The relevance of candidates: of one class, or of all classes of a labelled matrix.

use labelsieve::engine::{Engine, Job};
use labelsieve::graph::closest_clean;
use labelsieve::random::Stream;
use labelsieve::relevance::{MOST_OTHERS, others as negatives};
use labelsieve::schedule::batches;
use labelsieve::{ClassProblem, Features, Method, NoisyPool, Relevance};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Rows, features};
use crate::errors::{method_error, value_error};
use crate::process::device as open_device;
use crate::work::{Tasks, run};

/// Relevance and numbers of reciprocal neighbours, one per candidate.
type Scored<'py> = (Bound<'py, PyArray1<f32>>, Option<Bound<'py, PyArray1<u32>>>);

/// One class: the relevance of `noisy` by a method given as JSON.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the settings of one call, by keyword in Python")]
pub fn relevance<'py>(
    py: Python<'py>,
    clean: Rows<'py>,
    noisy: Rows<'py>,
    others: Option<Rows<'py>>,
    method: &str,
    seed: u64,
    device: &str,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Scored<'py>> {
    let method = parse_method(method)?;
    let opened = open_device(py, device)?;
    let clean = features(&clean, "clean")?;
    let others = others.map(|others| features(&others, "others")).transpose()?;
    let pool = NoisyPool::new(features(&noisy, "noisy")?);
    let tasks = Tasks::new(vec![rows_to_do(&method, clean.len(), pool.features().len())]);
    let mut problem = ClassProblem::new(&clean, &pool).map_err(method_error)?.watched(tasks.watch(0));
    if let Some(others) = &others {
        problem = problem.with_others(others).map_err(method_error)?;
    }
    let job = Job { problem, seed };
    let mut scored =
        run(py, &tasks, progress.as_ref(), || opened.engine().relevance(&method, &[job], &|_, _| ()))?
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
        let (codes, is_clean) = (self.codes.as_slice()?, self.is_clean.as_slice()?);
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

/// What is known about every row of a matrix; clean rows have relevance 1 and no reasons (-1, NaN).
type Cleaned<'py> = (
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<i64>>,
);

/// All classes of a matrix: relevance, most similar clean row, its similarity, number of reciprocal neighbours.
#[pyfunction]
pub fn clean<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    labels: Labelled<'py>,
    method: &str,
    seed: u64,
    device: &str,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Cleaned<'py>> {
    let method = parse_method(method)?;
    let opened = open_device(py, device)?;
    let all = features(&x, "X")?;
    let classes = labels.rows(all.len())?;
    let totals =
        classes.iter().map(|class| rows_to_do(&method, class.clean.len(), class.noisy.len())).collect();
    let tasks = Tasks::new(totals);
    let work = || score_classes(opened.engine(), &method, &all, &labels.names, &classes, seed, &tasks);
    let scored = run(py, &tasks, progress.as_ref(), work)?.map_err(method_error)?;

    let n = all.len();
    let (mut relevance, mut best) = (vec![1f32; n], vec![-1i64; n]);
    let (mut similarity, mut reciprocal) = (vec![f32::NAN; n], vec![-1i64; n]);
    for (class, scored) in classes.iter().zip(&scored) {
        let (found, closest) = scored;
        for (i, &row) in class.noisy.iter().enumerate() {
            relevance[row] = found.noisy()[i];
            best[row] = class.clean[closest[i].0] as i64;
            similarity[row] = closest[i].1;
            reciprocal[row] = found.reciprocal_neighbours().map_or(-1, |counts| i64::from(counts[i]));
        }
    }
    Ok((
        PyArray1::from_vec(py, relevance),
        PyArray1::from_vec(py, best),
        PyArray1::from_vec(py, similarity),
        PyArray1::from_vec(py, reciprocal),
    ))
}

/// The relevance of a class's candidates, and the closest clean example of each with its similarity.
type ScoredClass = (Relevance, Vec<(usize, f32)>);

/// Scores all classes, a batch of them in memory at a time.
fn score_classes(
    engine: &dyn Engine,
    method: &Method,
    all: &Features,
    names: &[String],
    classes: &[ClassRows],
    seed: u64,
    tasks: &Tasks,
) -> labelsieve::Result<Vec<ScoredClass>> {
    let clean: Vec<Features> = classes.iter().map(|class| all.select(&class.clean)).collect();
    let n_clean: usize = clean.iter().map(Features::len).sum();
    let n_others = |class: &ClassRows| match method {
        Method::Linear(_) => (n_clean - class.clean.len()).min(MOST_OTHERS),
        _ => 0,
    };
    let sizes: Vec<usize> = classes.iter().map(|class| class.noisy.len() + n_others(class)).collect();
    let mut scored: Vec<Option<ScoredClass>> = vec![None; classes.len()];
    for batch in batches(&sizes, all.dim()) {
        let input = |&c: &usize| {
            // As the command line: a class's stream depends on the seed and its name alone.
            let stream = Stream::new(seed).named(&names[c]);
            let others = match method {
                Method::Linear(_) => negatives(&clean, c, stream.branch(1)),
                _ => Features::empty(all.dim()),
            };
            (NoisyPool::new(all.select(&classes[c].noisy)), others, stream.bits(0))
        };
        let inputs: Vec<(NoisyPool, Features, u64)> = batch.iter().map(input).collect();
        let jobs = batch
            .iter()
            .zip(&inputs)
            .map(|(&c, (pool, others, seed))| {
                let problem = ClassProblem::new(&clean[c], pool)?.with_others(others)?;
                Ok(Job { problem: problem.watched(tasks.watch(c)), seed: *seed })
            })
            .collect::<labelsieve::Result<Vec<Job>>>()?;
        let relevance = engine.relevance(method, &jobs, &|_, _| ())?;
        for ((&c, job), relevance) in batch.iter().zip(&jobs).zip(relevance) {
            let closest = closest_clean(job.problem.clean, job.problem.noisy.features());
            scored[c] = Some((relevance, closest));
        }
    }
    Ok(scored.into_iter().map(|scored| scored.expect("every class is in a batch")).collect())
}

/// The paper's λ for this number of clean examples.
#[pyfunction]
pub fn paper_lambda(n_clean: usize) -> f32 {
    labelsieve::relevance::paper_lambda(n_clean)
}

fn parse_method(json: &str) -> PyResult<Method> {
    let method: Method =
        serde_json::from_str(json).map_err(|error| value_error(format!("method: {error}")))?;
    method.build().map_err(method_error)?; // refuses bad settings before any work
    Ok(method)
}

/// How far a class's [`labelsieve::Watch`] counts.
fn rows_to_do(method: &Method, n_clean: usize, n_noisy: usize) -> usize {
    match method {
        _ if n_noisy == 0 => 0, // nothing to score
        Method::Gcn(_) | Method::LabelPropagation(_) => n_noisy + n_clean + n_noisy, // graph, then training
        Method::Mlp(_) => n_clean + n_noisy,
        Method::Similarity(_) | Method::Linear(_) | Method::Beta(_) => n_noisy,
    }
}
