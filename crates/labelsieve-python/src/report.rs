//! The report of a run.

use std::path::PathBuf;

use labelsieve_report::{Report, RunDirectory};
use pyo3::prelude::*;

use crate::errors::data_error;
use crate::work::{Task, run};

/// Counts by name, and the pictures that could not be read: the example and the reason.
type Summary = (Vec<(&'static str, usize)>, Vec<(String, String)>);

/// Writes one HTML file from a run directory or, if `path` is a file, from a relevance file.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the package calls it by position")]
pub fn report(
    py: Python<'_>,
    path: PathBuf,
    output: PathBuf,
    truth: Option<PathBuf>,
    decisions: Option<PathBuf>,
    images: Option<PathBuf>,
    title: Option<String>,
    per_class: usize,
) -> PyResult<Summary> {
    let write = || {
        let mut report = if path.is_dir() {
            Report::of_run(&RunDirectory::open(&path)?)?
        } else {
            Report::of_relevance(&path)?
        };
        if let Some(truth) = truth {
            report = report.with_truth(truth);
        }
        if let Some(decisions) = decisions {
            report = report.with_decisions(decisions);
        }
        if let Some(images) = images {
            report = report.with_images(images);
        }
        if let Some(title) = title {
            report = report.with_title(title);
        }
        report.with_candidates_per_class(per_class).write(&output, &mut |_| ())
    };
    let summary = run(py, &Task::new(0), None, write)?.map_err(data_error)?;
    let counts = vec![
        ("tables", summary.tables),
        ("figures", summary.figures),
        ("classes", summary.classes),
        ("examples", summary.examples),
        ("pictures", summary.pictures),
        ("decisions", summary.decisions),
    ];
    Ok((counts, summary.unreadable))
}
