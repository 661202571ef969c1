//! Reliability curves: the share of relevant candidates against the probability that a method gives them.

use std::path::{Path, PathBuf};

use labelsieve_files::DataError;
use labelsieve_files::work::Result;
use labelsieve_report::{Figure, FigureKind, ReliabilitySeries, write_figure};

use super::summary::Row;

/// Bins with fewer candidates are not drawn, since their shares are mostly chance.
const MIN_CANDIDATES: usize = 20;

/// Draws one figure per number of clean examples into `folder`.
pub fn write(set: &str, rows: &[Row], folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).map_err(DataError::io("write", folder))?;
    let mut paths = Vec::new();
    for of_shots in rows.chunk_by(|a, b| a.shots == b.shots) {
        let figure = figure(set, of_shots);
        let path = folder.join(format!("{}.svg", figure.id));
        write_figure(&figure, &path)?;
        paths.push(path);
    }
    Ok(paths)
}

fn figure(set: &str, rows: &[Row]) -> Figure {
    let shots = rows.first().map_or(0, |row| row.shots);
    let curve = |row: &Row| ReliabilitySeries {
        name: row.method.clone(),
        bins: row.reliability.iter().filter(|bin| bin.n >= MIN_CANDIDATES).copied().collect(),
    };
    let curves = rows.iter().map(curve).filter(|curve| !curve.bins.is_empty());
    Figure {
        id: format!("reliability-{set}-k{shots}"),
        title: format!("{set}, k = {shots}: predicted probability against ground truth"),
        caption: format!(
            "Candidates of all classes and draws in ten bins, those with at least {MIN_CANDIDATES} of them."
        ),
        command: Some("labelsieve-bench relevance".to_owned()),
        data: FigureKind::Reliability { series: curves.collect() },
    }
}
