//! Candidates by text: names of classes in captions, titles and tags.

use std::collections::HashMap;
use std::path::PathBuf;

use labelsieve_matching::names::{
    CandidateStatistics, ClassEntry, ClassList, ClassMatch, MatchRule, Matcher, NameWarning, TextEncoding,
};
use labelsieve_matching::text::read_class_file as read_classes;
use numpy::PyArray1;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::errors::{data_error, value_error};
use crate::work::{Task, run};

/// Id, display name, names, names that exclude.
type ClassTuple = (String, String, Vec<String>, Vec<String>);
/// For every candidate its row, class, name and column, all by position; and warnings about the names.
type Found<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Vec<String>,
);

/// Examples searched between two checks for signals.
const BLOCK: usize = 4096;

/// Finds the classes that each row's texts name; a text comes with the position of its column.
#[pyfunction]
pub fn find_names<'py>(
    py: Python<'py>,
    rows: Vec<Vec<(usize, String)>>,
    classes: Vec<ClassTuple>,
    rule: &str,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Found<'py>> {
    let rule: MatchRule = serde_json::from_value(rule.into()).map_err(|_| {
        value_error(format!("rule: expected phrase, plural, any-word or substring, found `{rule}`"))
    })?;
    let entry = |(id, display_name, names, exclude)| ClassEntry { id, display_name, names, exclude };
    let classes = ClassList::new(classes.into_iter().map(entry).collect()).map_err(value_error)?;
    let matcher = Matcher::new(&classes, rule).map_err(value_error)?;
    let task = Task::new(rows.len());
    let watch = task.watch();
    let blocks = run(py, &task, progress.as_ref(), || {
        let search = |block: &[Vec<(usize, String)>]| -> labelsieve::Result<Vec<(usize, ClassMatch)>> {
            watch.check()?;
            let mut searcher = matcher.searcher();
            let mut found = Vec::new();
            for (row, texts) in block.iter().enumerate() {
                texts.iter().for_each(|(column, text)| searcher.push(*column, text, TextEncoding::Plain));
                searcher.take_found(|hit| found.push((row, hit)));
            }
            Ok(found)
        };
        rows.par_chunks(BLOCK).map(search).collect::<labelsieve::Result<Vec<_>>>()
    })?
    .map_err(value_error)?;
    let numbered = blocks.iter().enumerate();
    let found: Vec<(usize, ClassMatch)> =
        numbered.flat_map(|(b, block)| block.iter().map(move |&(row, hit)| (b * BLOCK + row, hit))).collect();
    let column = |of: fn(&(usize, ClassMatch)) -> usize| {
        PyArray1::from_iter(py, found.iter().map(|found| of(found) as i64))
    };
    let warnings = matcher.warnings().iter().map(|warning| in_words(warning, &classes)).collect();
    Ok((
        column(|(row, _)| *row),
        column(|(_, hit)| hit.class),
        column(|(_, hit)| hit.name),
        column(|(_, hit)| hit.column),
        warnings,
    ))
}

fn in_words(warning: &NameWarning, classes: &ClassList) -> String {
    let id = |class: usize| classes.classes()[class].id.as_str();
    match warning {
        NameWarning::Shared { words, classes } => {
            let ids: Vec<&str> = classes.iter().map(|&class| id(class)).collect();
            format!("`{words}` names {} classes: {}", ids.len(), ids.join(", "))
        }
        NameWarning::Unsearchable { class, name } => {
            format!("class `{}`: no text can contain `{name}`, which has no letters", id(*class))
        }
    }
}

/// The classes of a file: .toml, .csv, or .txt with one WordNet synset per line.
#[pyfunction]
pub fn read_class_file(path: PathBuf) -> PyResult<Vec<ClassTuple>> {
    let classes = read_classes(path).map_err(data_error)?;
    let tuple = |class: &ClassEntry| {
        (class.id.clone(), class.display_name.clone(), class.names.clone(), class.exclude.clone())
    };
    Ok(classes.classes().iter().map(tuple).collect())
}

/// The statistics of `match`: the number of candidates per class, given by the classes' ids, as JSON.
#[pyfunction]
pub fn candidate_statistics(classes: PathBuf, counts: HashMap<String, u64>) -> PyResult<String> {
    let classes = read_classes(classes).map_err(data_error)?;
    let of_class = |class: &ClassEntry| counts.get(&class.id).copied().unwrap_or(0);
    let counts: Vec<u64> = classes.classes().iter().map(of_class).collect();
    serde_json::to_string(&CandidateStatistics::new(&classes, &counts)).map_err(value_error)
}
