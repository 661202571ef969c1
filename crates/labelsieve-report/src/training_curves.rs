//! A training as two pictures: accuracy and loss per epoch.

use std::path::{Path, PathBuf};

use labelsieve_files::work::{Error, Result};
use labelsieve_networks::curve::{Curves, paths};
use labelsieve_networks::training::Epoch;

use crate::{Axis, Figure, FigureKind, LineSeries, Point};

/// Draws trainings as lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrainingCurves;

impl Curves for TrainingCurves {
    fn check(&self, output: &Path) -> Result<()> {
        check(output)
    }

    fn draw(&self, output: &Path, title: &str, epochs: &[Epoch]) -> Result<[PathBuf; 2]> {
        draw(output, title, epochs)
    }
}

fn check(output: &Path) -> Result<()> {
    match paths(output).iter().find(|path| path.exists() && !crate::is_own_figure(path)) {
        None => Ok(()),
        Some(path) => Err(Error::input(
            format!("`{}` exists and is not a curve made by labelsieve", path.display()),
            "move it elsewhere, or choose another name for the output",
        )),
    }
}

/// Draws `OUTPUT.accuracy.svg` and `OUTPUT.loss.svg`, OUTPUT without its ending, and returns their names.
fn draw(output: &Path, title: &str, epochs: &[Epoch]) -> Result<[PathBuf; 2]> {
    let line = |name: &str, value: &dyn Fn(&Epoch) -> Option<f64>| LineSeries {
        name: name.to_owned(),
        points: epochs
            .iter()
            .filter_map(|epoch| Some(Point { x: epoch.epoch as f64, y: value(epoch)?, half_width: None }))
            .collect(),
    };
    let accuracy = vec![
        line("training images, augmented", &|epoch| Some(100.0 * epoch.accuracy)),
        line("validation images", &|epoch| epoch.validation.map(|share| 100.0 * share)),
    ];
    let loss = vec![line("loss", &|epoch| Some(epoch.loss))];
    let written = paths(output);
    let lines = [("accuracy", "accuracy (%)", accuracy), ("loss", "loss", loss)];
    for ((id, unit, series), path) in lines.into_iter().zip(&written) {
        let series = series.into_iter().filter(|line| !line.points.is_empty()).collect();
        let data = FigureKind::Lines { x: Axis::linear("epoch"), y: Axis::linear(unit), series };
        let title = format!("{title}: {id}");
        let figure = Figure { id: id.to_owned(), title, caption: String::new(), command: None, data };
        crate::write_figure(&figure, path)?;
    }
    Ok(written)
}
