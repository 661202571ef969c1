//! The measured values, as JSON and as tables.

use std::collections::BTreeMap;

use labelsieve::evaluation::{Accuracy, Bin, GroupGain, RelevanceAnalysis, Reliability};
use labelsieve_files::counted;
use labelsieve_files::work::table::{layout, percent};
use serde::Serialize;

/// Everything measured; what was not asked for is left out.
#[derive(Serialize)]
pub struct Report {
    /// Accuracy of the classifier.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<AccuracyReport>,
    /// Gain of each class over the baseline, by its number of candidates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_by_pool_size: Option<Vec<GroupGain>>,
    /// Relevance against the truth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relevance: Option<RelevanceReport>,
}

/// Accuracy over all test examples and by class.
#[derive(Serialize)]
pub struct AccuracyReport {
    /// Test examples.
    pub n_test: usize,
    /// Share whose best guess is right.
    pub top_1: f64,
    /// Share with the right class among the five best guesses.
    pub top_5: f64,
    /// Mean over classes of the former.
    pub mean_class_top_1: f64,
    /// Accuracy of the examples of new classes alone, among the new classes alone, where there are base classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub novel: Option<Shares>,
    /// Accuracy of the classifier that it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Shares>,
    /// Classes with test examples.
    pub classes: Vec<ClassReport>,
}

/// Shares of examples that are right.
#[derive(Serialize)]
pub struct Shares {
    /// By the best guess.
    pub top_1: f64,
    /// By one of the five best.
    pub top_5: f64,
}

impl From<&Accuracy> for Shares {
    fn from(accuracy: &Accuracy) -> Shares {
        Shares { top_1: accuracy.top_1, top_5: accuracy.top_5 }
    }
}

/// Accuracy of one class.
#[derive(Serialize)]
pub struct ClassReport {
    /// Its name.
    pub class: String,
    /// Its test examples.
    pub n: usize,
    /// Share right by the best guess.
    pub top_1: f64,
    /// Share right by one of the five best.
    pub top_5: f64,
}

/// How well relevance tells the right candidates from the others.
#[derive(Serialize)]
pub struct RelevanceReport {
    /// Over all candidates.
    pub all: RelevanceAnalysis,
    /// By class.
    pub classes: BTreeMap<String, RelevanceAnalysis>,
    /// Probabilities against the truth, where the file has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Reliability>,
    /// Candidates without a verdict.
    pub n_unknown: usize,
    /// Candidates left out because the relevance was made with decisions about them, where any were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_settled: Option<usize>,
}

/// How well a classifier does.
pub struct ModelAccuracy {
    pub classes: Vec<String>,
    pub accuracy: Accuracy,
    /// The new classes by themselves, where there are base classes.
    pub novel: Option<Accuracy>,
}

pub fn accuracy_report(ModelAccuracy { classes, accuracy: found, .. }: &ModelAccuracy) -> AccuracyReport {
    let share = |right: usize, n: usize| right as f64 / n.max(1) as f64;
    let classes = classes.iter().zip(&found.classes).filter(|(_, counts)| counts.n > 0);
    AccuracyReport {
        n_test: found.classes.iter().map(|counts| counts.n).sum(),
        top_1: found.top_1,
        top_5: found.top_5,
        mean_class_top_1: found.mean_class_top_1,
        novel: None,
        baseline: None,
        classes: classes
            .map(|(class, counts)| ClassReport {
                class: class.clone(),
                n: counts.n,
                top_1: share(counts.top_1, counts.n),
                top_5: share(counts.top_5, counts.n),
            })
            .collect(),
    }
}

impl Report {
    /// As tables for people, line by line.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(accuracy) = &self.accuracy {
            let examples = counted(accuracy.n_test, "test example");
            let classes = accuracy.classes.len();
            lines.push(format!("{examples} of {}", counted(classes, "class")));
            let row = |name: &str, s: &Shares| vec![name.to_owned(), percent(s.top_1), percent(s.top_5)];
            let mut rows = vec![row("all", &Shares { top_1: accuracy.top_1, top_5: accuracy.top_5 })];
            rows.extend(accuracy.novel.as_ref().map(|novel| row("new classes alone", novel)));
            rows.extend(accuracy.baseline.as_ref().map(|baseline| row("baseline", baseline)));
            lines.extend(layout(&["", "top-1 %", "top-5 %"], &rows));
        }
        if let Some(groups) = &self.gain_by_pool_size {
            let row = |g: &GroupGain| {
                vec![g.group.range(), g.group.n_classes.to_string(), format!("{:+.1}", 100.0 * g.mean_gain)]
            };
            let rows: Vec<Vec<String>> = groups.iter().map(row).collect();
            lines.extend(layout(&["candidates", "classes", "top-1 gain"], &rows));
        }
        if let Some(relevance) = &self.relevance {
            let mut rows: Vec<Vec<String>> =
                relevance.classes.iter().map(|(name, a)| analysis_row(name, a)).collect();
            rows.push(analysis_row("all", &relevance.all));
            let header = ["class", "candidates", "noise", "relevant", "irrelevant", "AUC", "AP"];
            lines.extend(layout(&header, &rows));
            lines.extend(relevance.calibration.iter().flat_map(calibration_lines));
        }
        lines
    }
}

/// `0.7–0.8  120  0.75  0.71` for each stretch of probabilities, and what it comes to.
fn calibration_lines(calibration: &Reliability) -> Vec<String> {
    let row = |bin: &Bin| {
        let range = format!("{:.1}–{:.1}", bin.from, bin.to);
        vec![range, bin.n.to_string(), format!("{:.2}", bin.mean), format!("{:.2}", bin.share)]
    };
    let rows: Vec<Vec<String>> = calibration.bins.iter().map(row).collect();
    let mut lines = vec![String::new()];
    lines.extend(layout(&["probability", "candidates", "mean", "relevant"], &rows));
    lines.push(format!("expected calibration error {:.3}", calibration.expected_error));
    lines
}

fn analysis_row(name: &str, a: &RelevanceAnalysis) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.2}"));
    vec![
        name.to_owned(),
        (a.n_relevant + a.n_irrelevant).to_string(),
        format!("{:.2}", a.noise_ratio),
        number(a.mean_relevant),
        number(a.mean_irrelevant),
        number(a.auc),
        number(a.average_precision),
    ]
}
