//! What `labelsieve evaluate` found, as JSON and as tables.

use std::collections::BTreeMap;

use anyhow::Result;
use labelsieve::evaluation::{Accuracy, GroupGain, RelevanceAnalysis};
use serde::Serialize;

use crate::printer::Printer;
use crate::table::{layout, percent};

/// Everything measured; what was not asked for is left out.
#[derive(Serialize)]
pub struct Report {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<AccuracyReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_by_pool_size: Option<Vec<GroupGain>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relevance: Option<RelevanceReport>,
}

#[derive(Serialize)]
pub struct AccuracyReport {
    pub n_test: usize,
    pub top_1: f64,
    pub top_5: f64,
    pub mean_class_top_1: f64,
    /// Accuracy of the examples of new classes alone, among the new classes alone, where there are base classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub novel: Option<Shares>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Shares>,
    pub classes: Vec<ClassReport>,
}

#[derive(Serialize)]
pub struct Shares {
    pub top_1: f64,
    pub top_5: f64,
}

impl From<&Accuracy> for Shares {
    fn from(accuracy: &Accuracy) -> Shares {
        Shares { top_1: accuracy.top_1, top_5: accuracy.top_5 }
    }
}

#[derive(Serialize)]
pub struct ClassReport {
    pub class: String,
    pub n: usize,
    pub top_1: f64,
    pub top_5: f64,
}

#[derive(Serialize)]
pub struct RelevanceReport {
    pub all: RelevanceAnalysis,
    pub classes: BTreeMap<String, RelevanceAnalysis>,
    /// Candidates without a verdict.
    pub n_unknown: usize,
}

/// How well a classifier does.
pub struct Measured {
    pub classes: Vec<String>,
    pub accuracy: Accuracy,
    /// The new classes by themselves, where there are base classes.
    pub novel: Option<Accuracy>,
}

pub fn accuracy_report(Measured { classes, accuracy: found, .. }: &Measured) -> AccuracyReport {
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
    pub fn print(&self, printer: &Printer) -> Result<()> {
        if let Some(accuracy) = &self.accuracy {
            printer.data(&format!(
                "{} test examples of {} classes",
                accuracy.n_test,
                accuracy.classes.len()
            ))?;
            let row = |name: &str, s: &Shares| vec![name.to_owned(), percent(s.top_1), percent(s.top_5)];
            let mut rows = vec![row("all", &Shares { top_1: accuracy.top_1, top_5: accuracy.top_5 })];
            rows.extend(accuracy.novel.as_ref().map(|novel| row("new classes alone", novel)));
            rows.extend(accuracy.baseline.as_ref().map(|baseline| row("baseline", baseline)));
            print_table(printer, &["", "top-1 %", "top-5 %"], &rows)?;
        }
        if let Some(groups) = &self.gain_by_pool_size {
            let rows: Vec<Vec<String>> = groups
                .iter()
                .map(|g| {
                    vec![
                        g.group.range(),
                        g.group.n_classes.to_string(),
                        format!("{:+.1}", 100.0 * g.mean_gain),
                    ]
                })
                .collect();
            print_table(printer, &["candidates", "classes", "top-1 gain"], &rows)?;
        }
        if let Some(relevance) = &self.relevance {
            let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.2}"));
            let row = |name: &str, a: &RelevanceAnalysis| {
                vec![
                    name.to_owned(),
                    (a.n_relevant + a.n_irrelevant).to_string(),
                    format!("{:.2}", a.noise_ratio),
                    number(a.mean_relevant),
                    number(a.mean_irrelevant),
                    number(a.auc),
                    number(a.average_precision),
                ]
            };
            let mut rows: Vec<Vec<String>> = relevance.classes.iter().map(|(name, a)| row(name, a)).collect();
            rows.push(row("all", &relevance.all));
            let header = ["class", "candidates", "noise", "relevant", "irrelevant", "AUC", "AP"];
            print_table(printer, &header, &rows)?;
            if relevance.n_unknown > 0 {
                printer.note(&format!("{} candidates without known truth are left out", relevance.n_unknown));
            }
        }
        Ok(())
    }
}

fn print_table(printer: &Printer, header: &[&str], rows: &[Vec<String>]) -> Result<()> {
    layout(header, rows).iter().try_for_each(|line| printer.data(line))
}
