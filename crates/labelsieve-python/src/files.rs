//! The files of a run, read and written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use labelsieve::Decision;
use labelsieve_files::{
    DecisionRow, ExampleTable, Ids, Labels, OptionalColumns, RelevanceRow, RelevanceWriter, SavedClassifier,
    TableColumns, read_decisions as read_decision_file, read_relevance as read_relevance_file,
    read_relevance_reasons, read_truth as read_truth_file,
};
use labelsieve_matching::read_candidates as read_candidate_file;
use labelsieve_report::RunDirectory;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{Rows, matrix};
use crate::errors::{data_error, value_error};
use crate::relevance::parse_decisions;

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_relevance, module)?)?;
    module.add_function(wrap_pyfunction!(write_relevance, module)?)?;
    module.add_function(wrap_pyfunction!(read_run, module)?)?;
    module.add_function(wrap_pyfunction!(read_candidates, module)?)?;
    module.add_function(wrap_pyfunction!(read_decisions, module)?)?;
    module.add_function(wrap_pyfunction!(read_truth, module)?)?;
    module.add_function(wrap_pyfunction!(read_features, module)?)?;
    module.add_function(wrap_pyfunction!(read_classifier, module)?)?;
    module.add_function(wrap_pyfunction!(write_classifier, module)?)
}

type Numbers<'py> = Bound<'py, PyArray1<f32>>;
type Flags<'py> = Bound<'py, PyArray1<bool>>;
type Texts = Vec<String>;

fn texts(labels: &Labels) -> Texts {
    (0..labels.len()).map(|row| labels.get(row).to_owned()).collect()
}

/// Ids, classes, relevance, probabilities if there are any (NaN where one is missing), is_clean, reasons, decisions if there are
/// any, and what the writer said about the run.
type RelevanceColumns<'py> = (
    Texts,
    Texts,
    Numbers<'py>,
    Option<Numbers<'py>>,
    Flags<'py>,
    Vec<Reasons>,
    Option<OptionalTexts>,
    BTreeMap<String, String>,
);

/// Texts, where there are any.
type OptionalTexts = Vec<Option<String>>;

/// The reasons of a row: name found, best clean example, its similarity, reciprocal neighbours.
type Reasons = (Option<String>, Option<String>, Option<f32>, Option<u32>);

#[pyfunction]
fn read_relevance(py: Python<'_>, path: PathBuf) -> PyResult<RelevanceColumns<'_>> {
    let read = || {
        let table = read_relevance_file(&path)?;
        let rows: Vec<usize> = (0..table.ids.len()).collect();
        Ok((read_relevance_reasons(&path, &rows)?, table))
    };
    let (reasons, table) = py.detach(read).map_err(data_error)?;
    let reasons = reasons
        .into_iter()
        .map(|r| (r.matched_name, r.best_clean, r.best_clean_similarity, r.reciprocal_neighbours))
        .collect();
    let classes = texts(&table.classes);
    let relevance = PyArray1::from_vec(py, table.relevance);
    let is_clean = PyArray1::from_vec(py, table.is_clean);
    let ids = table.ids.iter().map(str::to_owned).collect();
    let word = |decision: Option<Decision>| decision.map(|decision| decision.to_string());
    let decisions = table.decisions.map(|decisions| decisions.into_iter().map(word).collect());
    let number = |probability: Option<f32>| probability.unwrap_or(f32::NAN);
    let probability = table.probability.map(|probability| probability.into_iter().map(number).collect());
    let probability = probability.map(|probability| PyArray1::from_vec(py, probability));
    Ok((ids, classes, relevance, probability, is_clean, reasons, decisions, table.metadata))
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the columns of a file")]
fn write_relevance(
    path: PathBuf,
    ids: Texts,
    classes: Texts,
    relevance: PyReadonlyArray1<'_, f32>,
    probability: Option<Vec<Option<f32>>>,
    is_clean: PyReadonlyArray1<'_, bool>,
    reasons: Vec<Reasons>,
    decisions: Option<OptionalTexts>,
    metadata: Vec<(String, String)>,
) -> PyResult<()> {
    let relevance = relevance.as_slice()?;
    let is_clean = is_clean.as_slice()?;
    let n_probability = probability.as_ref().map_or(ids.len(), Vec::len);
    let lengths = [classes.len(), relevance.len(), n_probability, is_clean.len(), reasons.len()];
    if let Some(found) = lengths.into_iter().find(|&length| length != ids.len()) {
        return Err(value_error(format!("columns: expected {} rows in each, found {found}", ids.len())));
    }
    let columns = ids.into_iter().zip(classes).zip(relevance).zip(is_clean).zip(reasons);
    let probability_of = |row: usize| probability.as_ref().and_then(|probability| probability[row]);
    let rows: Vec<RelevanceRow> = columns
        .enumerate()
        .map(|(row, ((((id, class), &relevance), &is_clean), reasons))| {
            let (matched_name, best_clean, best_clean_similarity, reciprocal_neighbours) = reasons;
            RelevanceRow {
                id,
                class,
                relevance,
                probability: probability_of(row),
                is_clean,
                matched_name,
                best_clean,
                best_clean_similarity,
                reciprocal_neighbours,
            }
        })
        .collect();
    let decisions = decisions.map(parse_decisions).transpose()?;
    let columns = OptionalColumns { probability: probability.is_some(), decision: decisions.is_some() };
    let mut writer = RelevanceWriter::create_with(path, columns, &metadata).map_err(data_error)?;
    let mut decisions = decisions.iter().flat_map(|decisions| decisions.chunks(65_536));
    rows.chunks(65_536)
        .try_for_each(|rows| writer.write_decided(rows, decisions.next().unwrap_or_default()))
        .map_err(data_error)?;
    writer.finish().map_err(data_error)
}

/// The description of a run, its tables and its figures, each as JSON.
#[pyfunction]
fn read_run(path: PathBuf) -> PyResult<(String, String, String)> {
    let run = RunDirectory::open(path).map_err(data_error)?;
    let tables = run.tables().map_err(data_error)?;
    let figures = run.figures().map_err(data_error)?;
    let json = |value: serde_json::Result<String>| value.map_err(value_error);
    Ok((
        json(serde_json::to_string(run.info()))?,
        json(serde_json::to_string(&tables))?,
        json(serde_json::to_string(&figures))?,
    ))
}

/// Ids, classes, matched names.
#[pyfunction]
fn read_candidates(py: Python<'_>, path: PathBuf) -> PyResult<(Texts, Texts, Texts)> {
    let table = py.detach(|| read_candidate_file(path)).map_err(data_error)?;
    let classes = texts(&table.classes);
    let ids = table.ids.iter().map(str::to_owned).collect();
    Ok((ids, classes, texts(&table.matched_names)))
}

/// Ids, classes, decisions, who made them and when.
#[pyfunction]
fn read_decisions(py: Python<'_>, path: PathBuf) -> PyResult<(Texts, Texts, OptionalTexts, Texts, Texts)> {
    let table = py.detach(|| read_decision_file(path)).map_err(data_error)?;
    let column = |field: fn(&DecisionRow) -> String| table.rows.iter().map(field).collect();
    let word = |row: &DecisionRow| row.decision.map(|decision| decision.to_string());
    Ok((
        column(|row| row.id.clone()),
        column(|row| row.class.clone()),
        table.rows.iter().map(word).collect(),
        column(|row| row.by.clone()),
        column(|row| row.at.clone()),
    ))
}

/// Ids, classes, whether they belong there.
#[pyfunction]
fn read_truth(py: Python<'_>, path: PathBuf) -> PyResult<(Texts, Texts, Flags<'_>)> {
    let table = py.detach(|| read_truth_file(path)).map_err(data_error)?;
    let ids = table.ids.iter().map(str::to_owned).collect();
    Ok((ids, texts(&table.classes), PyArray1::from_vec(py, table.relevant)))
}

/// X, labels, ids and the network that made X, the latter three where the file has them.
type Examples<'py> = (Bound<'py, PyArray2<f32>>, Option<Texts>, Option<Texts>, Option<String>);

#[pyfunction]
fn read_features(
    py: Python<'_>,
    path: PathBuf,
    labels: Option<PathBuf>,
    embedding_column: Option<String>,
    label_column: Option<String>,
    id_column: Option<String>,
) -> PyResult<Examples<'_>> {
    let columns =
        TableColumns { embedding: embedding_column, label: label_column, id: id_column, labels, spill: None };
    let read = || {
        let table = ExampleTable::open(path, &columns)?;
        let rows: Vec<usize> = (0..table.len()).collect();
        let mut values = vec![0f32; table.len() * table.features.cols()];
        table.features.read_rows(&rows, &mut values)?;
        Ok((table, values))
    };
    let (table, values) = py.detach(read).map_err(data_error)?;
    let ids = match table.ids {
        Ids::Given(ids) => Some(ids),
        Ids::RowNumbers(_) | Ids::WithTexts { .. } => None,
    };
    let rows = matrix(py, values, table.features.cols())?;
    Ok((rows, table.labels.as_ref().map(texts), ids, table.network))
}

/// Classes, weights, scale, backbone and network, number of base classes, settings as JSON.
type ClassifierParts<'py> =
    (Texts, Bound<'py, PyArray2<f32>>, f32, (Option<String>, Option<String>), usize, String);

#[pyfunction]
fn read_classifier(py: Python<'_>, path: PathBuf) -> PyResult<ClassifierParts<'_>> {
    let saved = py.detach(|| SavedClassifier::load(path)).map_err(data_error)?;
    let weight = matrix(py, saved.weight, saved.dim)?;
    let settings = saved.settings.to_string();
    Ok((saved.classes, weight, saved.scale, (saved.backbone, saved.network), saved.n_base, settings))
}

#[pyfunction]
fn write_classifier(
    path: PathBuf,
    classes: Texts,
    weight: Rows<'_>,
    scale: f32,
    origin: (Option<String>, Option<String>),
    n_base: usize,
    settings: &str,
) -> PyResult<()> {
    let settings =
        serde_json::from_str(settings).map_err(|error| value_error(format!("settings: {error}")))?;
    let ((backbone, network), dim) = (origin, weight.shape()[1]);
    let weight = weight.as_slice()?.to_vec();
    let saved = SavedClassifier {
        classes,
        dim,
        weight,
        scale,
        backbone,
        network,
        n_base,
        settings,
        discriminant: None,
        confidence: None,
    };
    saved.save(path).map_err(data_error)
}
