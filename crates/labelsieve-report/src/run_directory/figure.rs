//! `figures.json`: the data of figures.

use std::path::Path;

use labelsieve::evaluation::Bin;
use labelsieve_files::{DataError, Result};
use serde::{Deserialize, Serialize};

use super::{check_finite, check_ids};

/// A figure of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Short name, unique among the figures and the name of its file: letters, digits, `-` and `_`.
    pub id: String,
    /// The heading.
    pub title: String,
    /// A description of the data and how to read it.
    #[serde(default)]
    pub caption: String,
    /// The command that made it.
    #[serde(default)]
    pub command: Option<String>,
    /// The data and how to draw it.
    pub data: FigureKind,
}

/// The ways of drawing, each with its data; `kind` says which one it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FigureKind {
    /// Curves over a common axis, e.g. accuracy against λ, one curve per k.
    Lines {
        /// The horizontal axis.
        x: Axis,
        /// The vertical axis.
        y: Axis,
        /// The curves.
        series: Vec<LineSeries>,
    },
    /// Bars side by side in groups, e.g. one group per k and one bar per method.
    Bars {
        /// The groups, from left to right.
        groups: Vec<String>,
        /// The title of the horizontal axis, e.g. `clean examples per class`.
        #[serde(default)]
        x_label: String,
        /// The vertical axis.
        y: Axis,
        /// One bar in every group.
        series: Vec<BarSeries>,
    },
    /// The share of a class's candidates whose relevance is at most x: a panel per class, or, for many classes, a thin
    /// curve per class and a strong one for all of them together.
    CumulativeRelevance {
        /// The classes.
        classes: Vec<ClassRelevance>,
    },
    /// Relevance of relevant against irrelevant candidates: two histograms, and the ROC curve with its area.
    Separation {
        /// Relevance of the candidates that belong to their class.
        relevant: Vec<f32>,
        /// Relevance of those that do not.
        irrelevant: Vec<f32>,
    },
    /// Probabilities against the truth: of the candidates that are given 0.8, how many belong?
    Reliability {
        /// The curves.
        series: Vec<ReliabilitySeries>,
    },
    /// Candidates per class (sorted, logarithmic), classes per size and, where known, mean gain per size.
    PoolSizes {
        /// The classes.
        classes: Vec<PoolSize>,
        /// The title of the gain, e.g. `gain in top-5 accuracy (points)`.
        #[serde(default)]
        gain_label: String,
    },
}

/// An axis of a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The measure with its unit.
    pub label: String,
    /// How it is divided.
    #[serde(default)]
    pub scale: AxisScale,
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AxisScale {
    /// Equal steps.
    #[default]
    Linear,
    /// Equal factors; all values must be above 0.
    Log,
}

impl Axis {
    /// An axis of equal steps.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: AxisScale::Linear }
    }

    /// An axis of equal factors.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: AxisScale::Log }
    }
}

/// A curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineSeries {
    /// The name of the curve, e.g. `k = 5`.
    pub name: String,
    /// Its points; they are joined in the order of x.
    pub points: Vec<Point>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Its position.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// Half the width of the 95 % interval of `y`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_width: Option<f64>,
}

/// The bars of one kind, one per group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BarSeries {
    /// The name of the bars, e.g. a method.
    pub name: String,
    /// A height per group; `None` for no bar.
    pub values: Vec<Option<f64>>,
    /// Half widths of the 95 % intervals, one per group; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub half_widths: Vec<Option<f64>>,
}

/// The relevance of one class's candidates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassRelevance {
    /// The class.
    pub class: String,
    /// The relevance of its candidates, in any order.
    pub relevance: Vec<f32>,
    /// Which of them belong to the class, in the same order; empty if that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relevant: Vec<bool>,
}

/// Probabilities against the truth, from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReliabilitySeries {
    /// The name of the curve, e.g. a set of examples.
    pub name: String,
    /// Candidates by their probability, as [`labelsieve::evaluation::Calibration`] counts them.
    pub bins: Vec<Bin>,
}

/// The number of candidates of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolSize {
    /// The class.
    pub class: String,
    /// Its candidates.
    pub candidates: usize,
    /// The gain of the class by them, e.g. in points of accuracy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
}

pub(super) fn check_all(path: &Path, figures: &[Figure]) -> Result<()> {
    check_ids(path, "figure", figures.iter().map(|figure| figure.id.as_str()))?;
    figures.iter().try_for_each(|figure| check(path, figure))
}

fn check(path: &Path, figure: &Figure) -> Result<()> {
    let place = |part: &str| format!("figure `{}`, {part}", figure.id);
    match &figure.data {
        FigureKind::Lines { x, y, series } => series.iter().try_for_each(|series| {
            let place = |point: usize| place(&format!("series `{}`, point {point}", series.name));
            for (number, point) in series.points.iter().enumerate() {
                let values = [point.x, point.y, point.half_width.unwrap_or(0.0)];
                check_finite(path, || place(number), &values)?;
                for (name, axis, value) in [("x", x, point.x), ("y", y, point.y)] {
                    if axis.scale == AxisScale::Log && value <= 0.0 {
                        let place = format!("{}, `{name}`", place(number));
                        let expected = "a positive number on a logarithmic axis";
                        return Err(DataError::malformed(path, place, expected, value.to_string()));
                    }
                }
            }
            Ok(())
        }),
        FigureKind::Bars { groups, y, series, .. } => {
            if y.scale == AxisScale::Log {
                let expected = "a linear scale, since bars start at 0";
                return Err(DataError::malformed(path, place("`y`"), expected, "a logarithmic scale"));
            }
            series.iter().try_for_each(|series| {
                let place = place(&format!("series `{}`", series.name));
                let widths = &series.half_widths;
                if series.values.len() != groups.len() || ![0, groups.len()].contains(&widths.len()) {
                    let expected = format!("{} values, one per group, and as many half widths", groups.len());
                    let found = format!("{} and {}", series.values.len(), widths.len());
                    return Err(DataError::malformed(path, place, expected, found));
                }
                let numbers: Vec<f64> = series.values.iter().chain(widths).flatten().copied().collect();
                check_finite(path, || place, &numbers)
            })
        }
        FigureKind::CumulativeRelevance { classes } => classes.iter().try_for_each(|class| {
            let place = place(&format!("class `{}`", class.class));
            if ![0, class.relevance.len()].contains(&class.relevant.len()) {
                let expected = format!("{} entries in `relevant`", class.relevance.len());
                return Err(DataError::malformed(path, place, expected, class.relevant.len().to_string()));
            }
            check_relevance(path, &place, &class.relevance)
        }),
        FigureKind::Separation { relevant, irrelevant } => {
            check_relevance(path, &place("`relevant`"), relevant)?;
            check_relevance(path, &place("`irrelevant`"), irrelevant)
        }
        FigureKind::Reliability { series } => series.iter().try_for_each(|series| {
            let outside = |bin: &&Bin| [bin.mean, bin.share].iter().any(|v| !(0.0..=1.0).contains(v));
            match series.bins.iter().find(outside) {
                Some(Bin { mean, share, .. }) => {
                    let place = place(&format!("series `{}`", series.name));
                    let found = format!("{mean} and {share}");
                    Err(DataError::malformed(path, place, "`mean` and `share` in [0, 1]", found))
                }
                None => Ok(()),
            }
        }),
        FigureKind::PoolSizes { classes, .. } => classes.iter().try_for_each(|class| {
            let place = || place(&format!("class `{}`, `gain`", class.class));
            check_finite(path, place, &[class.gain.unwrap_or(0.0)])
        }),
    }
}

fn check_relevance(path: &Path, place: &str, relevance: &[f32]) -> Result<()> {
    match relevance.iter().position(|value| !(0.0..=1.0).contains(value)) {
        Some(at) => Err(DataError::malformed(
            path,
            format!("{place}, number {at}"),
            "a relevance in [0, 1]",
            relevance[at].to_string(),
        )),
        None => Ok(()),
    }
}
