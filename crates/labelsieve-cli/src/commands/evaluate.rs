//! `labelsieve evaluate`: accuracy of a classifier, and relevance against known truth.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use labelsieve::Features;
use labelsieve::classifier::WeightMatrix;
use labelsieve::evaluation::{Accuracy, RelevanceAnalysis, SizeGroup, accuracy, group_by_pool_size};
use labelsieve_data::{ExampleTable, NetworkFile, SavedClassifier, read_relevance, read_truth};
use serde::Serialize;

use crate::hint::user_error;
use crate::inputs::{Columns, labels_of, load};
use crate::options::Given;
use crate::printer::Printer;
use crate::table::{layout, percent};

/// Measure a classifier on labelled examples, or relevance against known truth
#[derive(Args)]
pub struct Evaluate {
    /// Classifier, as `labelsieve train` writes it
    #[arg(long, value_name = "FILE", requires = "test")]
    model: Option<PathBuf>,

    /// Test examples with their true classes
    #[arg(long, value_name = "FILE", requires = "model")]
    test: Option<PathBuf>,

    /// Classes of the test examples, for .npy
    #[arg(long, value_name = "FILE")]
    test_labels: Option<PathBuf>,

    /// Another classifier to compare with, class by class; with --relevance, grouped by number of candidates
    #[arg(long, value_name = "FILE", requires = "model")]
    baseline: Option<PathBuf>,

    /// Relevance, as `labelsieve clean` writes it
    #[arg(long, value_name = "FILE", required_unless_present = "model")]
    relevance: Option<PathBuf>,

    /// Which candidates are really relevant: Parquet with `id`, `class` and `relevant`
    #[arg(long, value_name = "FILE", requires = "relevance")]
    truth: Option<PathBuf>,

    #[command(flatten)]
    columns: Columns,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Everything measured; what was not asked for is left out.
#[derive(Serialize)]
struct Report {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    accuracy: Option<AccuracyReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gain_by_pool_size: Option<Vec<SizeGroup>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    relevance: Option<RelevanceReport>,
}

#[derive(Serialize)]
struct AccuracyReport {
    n_test: usize,
    top_1: f64,
    top_5: f64,
    mean_class_top_1: f64,
    /// Accuracy of the examples of new classes alone, among the new classes alone, where there are base classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    novel: Option<Shares>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<Shares>,
    classes: Vec<ClassReport>,
}

#[derive(Serialize)]
struct Shares {
    top_1: f64,
    top_5: f64,
}

impl From<&Accuracy> for Shares {
    fn from(accuracy: &Accuracy) -> Shares {
        Shares { top_1: accuracy.top_1, top_5: accuracy.top_5 }
    }
}

#[derive(Serialize)]
struct ClassReport {
    class: String,
    n: usize,
    top_1: f64,
    top_5: f64,
}

#[derive(Serialize)]
struct RelevanceReport {
    all: RelevanceAnalysis,
    classes: BTreeMap<String, RelevanceAnalysis>,
    /// Candidates without a verdict.
    n_unknown: usize,
}

impl Evaluate {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        if given.has("images") {
            return Ok(()); // columns are of the images then
        }
        match &self.test {
            None => {
                let of_test = ["test_labels", "embedding_column", "label_column", "id_column"];
                given.refuse(&of_test, "evaluate without --test", "give --model and --test")
            }
            Some(test) => {
                given.refuse_columns([test.as_path()])?;
                match self.truth.is_none() && self.baseline.is_none() {
                    true => {
                        given.refuse(&["relevance"], "evaluate --model", "give --truth or --baseline with it")
                    }
                    false => Ok(()),
                }
            }
        }
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let relevance = self.relevance.as_deref().map(read_relevance).transpose()?;
        let mut report = Report { accuracy: None, gain_by_pool_size: None, relevance: None };
        if let (Some(model), Some(test)) = (&self.model, &self.test) {
            let table = self.columns.open(test, self.test_labels.as_deref())?;
            if table.is_empty() {
                return Err(user_error(
                    format!("`{}` holds no examples", table.path.display()),
                    "accuracy needs at least one test example",
                ));
            }
            let (saved, found) = self.measure(model, &table)?;
            let mut accuracy_report = accuracy_report(&saved, &found);
            if saved.n_base > 0 {
                accuracy_report.novel = novel_accuracy(&saved, &table)?.as_ref().map(Shares::from);
            }
            if let Some(baseline) = &self.baseline {
                let (other, before) = self.measure(baseline, &table)?;
                accuracy_report.baseline = Some(Shares::from(&before));
                if let Some(relevance) = &relevance {
                    let mut sizes: HashMap<&str, usize> = HashMap::new();
                    for i in (0..relevance.ids.len()).filter(|&i| !relevance.is_clean[i]) {
                        *sizes.entry(relevance.classes.get(i)).or_default() += 1;
                    }
                    report.gain_by_pool_size =
                        Some(gain_by_pool_size(&sizes, (&saved, &found), (&other, &before)));
                }
            }
            report.accuracy = Some(accuracy_report);
        }
        if let (Some(relevance), Some(truth)) = (&relevance, &self.truth) {
            report.relevance = Some(analyse(relevance, truth)?);
        } else if self.model.is_none() {
            return Err(user_error(
                "nothing to measure: no classifier and no truth",
                "give --model with --test, or --relevance with --truth",
            ));
        }
        if self.json { printer.json(&report) } else { report.print(printer) }
    }

    fn measure(&self, model: &Path, table: &ExampleTable) -> Result<(SavedClassifier, Accuracy)> {
        let (saved, classifier) = load_classifier(model)?;
        if table.features.cols() != saved.dim {
            return Err(user_error(
                format!(
                    "`{}` has {} columns, but the classifier in `{}` has {}",
                    table.path.display(),
                    table.features.cols(),
                    model.display(),
                    saved.dim
                ),
                "extract all features with the same backbone",
            ));
        }
        let rows: Vec<usize> = (0..table.len()).collect();
        let labels = positions(table, &saved, &rows)?;
        let found = accuracy(&classifier, &load(table, &rows)?, &labels)?;
        Ok((saved, found))
    }
}

/// Reads a classifier from disk.
pub fn load_classifier(path: &Path) -> Result<(SavedClassifier, WeightMatrix)> {
    let saved = SavedClassifier::load(path).map_err(|error| match NetworkFile::load(path) {
        Ok(NetworkFile { metadata: Some(metadata), .. }) if !metadata.architecture.is_empty() => user_error(
            format!("`{}` is a network, not a classifier of features", path.display()),
            "`labelsieve predict --images` uses it; classifiers come from `labelsieve train`",
        ),
        _ => error.into(),
    })?;
    let weights = Features::new(saved.weight.clone(), saved.dim)?;
    let matrix = WeightMatrix::new(weights, saved.scale)?;
    Ok((saved, matrix))
}

/// The true classes of `rows` as positions among the classifier's classes.
fn positions(table: &ExampleTable, saved: &SavedClassifier, rows: &[usize]) -> Result<Vec<usize>> {
    let labels = labels_of(table, "--test-labels")?;
    let position: HashMap<&str, usize> =
        saved.classes.iter().enumerate().map(|(c, name)| (name.as_str(), c)).collect();
    rows.iter()
        .map(|&row| {
            position.get(labels.get(row)).copied().ok_or_else(|| {
                user_error(
                    format!(
                        "`{}`, row {row}: class `{}` is not among the {} classes of the classifier",
                        table.path.display(),
                        labels.get(row),
                        saved.classes.len()
                    ),
                    "test only on classes that the classifier was trained on, or train with --base",
                )
            })
        })
        .collect()
}

/// The new classes by themselves: their test examples, and only they to choose from.
fn novel_accuracy(saved: &SavedClassifier, table: &ExampleTable) -> Result<Option<Accuracy>> {
    let all: Vec<usize> = (0..table.len()).collect();
    let labels = positions(table, saved, &all)?;
    let rows: Vec<usize> = all.into_iter().filter(|&row| labels[row] >= saved.n_base).collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let novel: Vec<usize> = rows.iter().map(|&row| labels[row] - saved.n_base).collect();
    let weights = Features::new(saved.weight[saved.n_base * saved.dim..].to_vec(), saved.dim)?;
    let classifier = WeightMatrix::new(weights, saved.scale)?;
    Ok(Some(accuracy(&classifier, &load(table, &rows)?, &novel)?))
}

fn accuracy_report(saved: &SavedClassifier, found: &Accuracy) -> AccuracyReport {
    let share = |right: usize, n: usize| right as f64 / n.max(1) as f64;
    let classes = saved.classes.iter().zip(&found.classes).filter(|(_, counts)| counts.n > 0);
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

/// What each class gained in top-1 accuracy over the baseline, averaged by number of candidates.
fn gain_by_pool_size(
    sizes: &HashMap<&str, usize>,
    (saved, found): (&SavedClassifier, &Accuracy),
    (other, before): (&SavedClassifier, &Accuracy),
) -> Vec<SizeGroup> {
    let top_1 = |counts: &labelsieve::evaluation::ClassCounts| counts.top_1 as f64 / counts.n as f64;
    let earlier: HashMap<&str, f64> = other
        .classes
        .iter()
        .zip(&before.classes)
        .filter(|(_, counts)| counts.n > 0)
        .map(|(name, counts)| (name.as_str(), top_1(counts)))
        .collect();
    let tested = saved.classes.iter().zip(&found.classes).filter(|(_, counts)| counts.n > 0);
    let (pool_sizes, gains): (Vec<usize>, Vec<f64>) = tested
        .filter_map(|(name, counts)| {
            let gain = top_1(counts) - earlier.get(name.as_str())?;
            Some((sizes.get(name.as_str()).copied().unwrap_or(0), gain))
        })
        .unzip();
    group_by_pool_size(&pool_sizes, &gains)
}

fn analyse(relevance: &labelsieve_data::RelevanceTable, truth: &Path) -> Result<RelevanceReport> {
    let truth = read_truth(truth)?;
    let known: HashMap<(&str, &str), bool> =
        (0..truth.ids.len()).map(|i| ((&truth.ids[i], truth.classes.get(i)), truth.relevant[i])).collect();
    let mut classes: BTreeMap<String, (Vec<f32>, Vec<bool>)> = BTreeMap::new();
    let (mut all, mut n_unknown) = ((Vec::new(), Vec::new()), 0);
    for i in (0..relevance.ids.len()).filter(|&i| !relevance.is_clean[i]) {
        let class = relevance.classes.get(i);
        let Some(&relevant) = known.get(&(&relevance.ids[i], class)) else {
            n_unknown += 1;
            continue;
        };
        let of_class = classes.entry(class.to_owned()).or_default();
        for (scores, flags) in [of_class, &mut all] {
            scores.push(relevance.relevance[i]);
            flags.push(relevant);
        }
    }
    if all.0.is_empty() {
        return Err(user_error(
            format!(
                "`{}` and `{}` have no candidate in common",
                relevance.path.display(),
                truth.path.display()
            ),
            "`id` and `class` must be spelled alike in both files",
        ));
    }
    let classes = classes.into_iter().map(|(name, (r, t))| (name, RelevanceAnalysis::new(&r, &t))).collect();
    Ok(RelevanceReport { all: RelevanceAnalysis::new(&all.0, &all.1), classes, n_unknown })
}

impl Report {
    fn print(&self, printer: &Printer) -> Result<()> {
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
                .map(|g| vec![g.range(), g.n_classes.to_string(), format!("{:+.1}", 100.0 * g.mean_gain)])
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
