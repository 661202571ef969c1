//! Accuracy of a classifier, and relevance against ground truth.
//!
//! `images` measures a network on images, `relevance` compares relevance with labels or decisions, and `output` holds the
//! results.

mod images;
mod output;
mod relevance;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use labelsieve::evaluation::{self, Accuracy, GroupGain, accuracy};
use labelsieve::{Classifier, Features, Scores};
use labelsieve_files::inputs::same_network::{MixedNetworks, Origin};
use labelsieve_files::inputs::tables::{Table, labels_of, load};
use labelsieve_files::work::{Error, Monitor, Result, option, words};
use labelsieve_files::{ExampleTable, read_relevance};
use labelsieve_networks::image_files::ImageSource;
use labelsieve_networks::opening::image_input::ImageFiles;
use labelsieve_numerics::Device;

pub use output::{AccuracyReport, ClassReport, RelevanceReport, Report, Shares};
pub use relevance::Truth;

use self::images::measure_images;
use self::output::{ModelAccuracy, accuracy_report};
use self::relevance::analyse;
use crate::inputs::classifier::{LoadedClassifier, ReadClassifier, load_classifier};

/// Measures a classifier on labelled examples, or relevance against ground truth, or both.
#[derive(Clone, Debug)]
pub struct Evaluate {
    /// The classifier.
    pub model: Option<MeasuredModel>,
    /// The relevance.
    pub relevance: Option<PathBuf>,
    /// Which candidates are really relevant.
    pub truth: Option<Truth>,
    /// Whether features of another network than the classifier's are taken.
    pub mixed: MixedNetworks,
    /// Where networks run.
    pub device: Device,
}

/// A classifier to be measured.
#[derive(Clone, Debug)]
pub struct MeasuredModel {
    /// A classifier of features; for images, a network with a classifier.
    pub path: PathBuf,
    /// Another one to compare with, class by class.
    pub baseline: Option<PathBuf>,
    /// The labelled examples.
    pub examples: LabelledExamples,
}

/// Examples whose classes are known.
#[derive(Clone, Debug)]
pub enum LabelledExamples {
    /// A table of features.
    Features(Table),
    /// Images.
    Images(ImageFiles),
}

impl Evaluate {
    /// Measures all that was asked for.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<Report> {
        self.run_with(load_classifier, monitor)
    }

    /// As [`Evaluate::run`], for classifiers of features that `read` knows.
    pub fn run_with(&self, read: ReadClassifier, monitor: &dyn Monitor) -> Result<Report> {
        let relevance = self.relevance.as_deref().map(read_relevance).transpose()?;
        let mut report = Report { accuracy: None, gain_by_pool_size: None, relevance: None };
        if let Some(model) = &self.model {
            let examples = open_examples(model, read, monitor)?;
            let found = self.measure(&model.path, &examples, read, monitor)?;
            let mut accuracy_report = accuracy_report(&found);
            accuracy_report.novel = found.novel.as_ref().map(Shares::from);
            if let Some(baseline) = &model.baseline {
                let before = self.measure(baseline, &examples, read, monitor)?;
                accuracy_report.baseline = Some(Shares::from(&before.accuracy));
                if let Some(relevance) = &relevance {
                    let mut sizes: HashMap<&str, usize> = HashMap::new();
                    for i in (0..relevance.ids.len()).filter(|&i| !relevance.is_clean[i]) {
                        *sizes.entry(relevance.classes.get(i)).or_default() += 1;
                    }
                    report.gain_by_pool_size = Some(gain_by_pool_size(&sizes, &found, &before));
                }
            }
            report.accuracy = Some(accuracy_report);
        }
        if let (Some(relevance), Some(truth)) = (&relevance, &self.truth) {
            report.relevance = Some(analyse(relevance, truth, monitor)?);
        }
        Ok(report)
    }

    fn measure(
        &self,
        model: &Path,
        examples: &TestExamples,
        read: ReadClassifier,
        monitor: &dyn Monitor,
    ) -> Result<ModelAccuracy> {
        match examples {
            TestExamples::Features(table) => measure_features(model, read(model)?, table, self.mixed),
            TestExamples::Images(source, files) => {
                let (classes, accuracy) =
                    measure_images(model, source, files.on_damage, self.device, monitor)?;
                Ok(ModelAccuracy { classes, accuracy, novel: None })
            }
        }
    }
}

/// Opens what to measure on. A model that does not go with it is named first.
fn open_examples<'a>(
    model: &'a MeasuredModel,
    read: ReadClassifier,
    monitor: &dyn Monitor,
) -> Result<TestExamples<'a>> {
    let test = match &model.examples {
        LabelledExamples::Images(images) => return Ok(TestExamples::Images(images.open()?, images)),
        LabelledExamples::Features(test) => test,
    };
    read(&model.path)?;
    let table = test.open(monitor)?;
    if table.is_empty() {
        return Err(Error::input(
            format!("`{}` contains no examples", table.path.display()),
            "accuracy needs at least one test example",
        ));
    }
    Ok(TestExamples::Features(Box::new(table)))
}

/// Labelled examples of either kind.
enum TestExamples<'a> {
    Features(Box<ExampleTable>),
    Images(ImageSource, &'a ImageFiles),
}

fn measure_features(
    model: &Path,
    saved: LoadedClassifier,
    table: &ExampleTable,
    mixed: MixedNetworks,
) -> Result<ModelAccuracy> {
    if table.features.cols() != saved.dim {
        return Err(Error::input(
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
    mixed.check(&[Origin::new(model, saved.network.as_ref()), table.into()])?;
    let rows: Vec<usize> = (0..table.len()).collect();
    let labels = positions(table, &saved.classes, &rows)?;
    let accuracy = accuracy(saved.classifier.as_ref(), &load(table, &rows)?, &labels)?;
    let novel = if saved.n_base > 0 { novel_accuracy(&saved, table)? } else { None };
    Ok(ModelAccuracy { classes: saved.classes, accuracy, novel })
}

/// The true classes of `rows` as positions among the classifier's classes.
fn positions(table: &ExampleTable, classes: &[String], rows: &[usize]) -> Result<Vec<usize>> {
    let labels = labels_of(table, option("test_labels"))?;
    let position: HashMap<&str, usize> =
        classes.iter().enumerate().map(|(c, name)| (name.as_str(), c)).collect();
    rows.iter()
        .map(|&row| {
            position.get(labels.get(row)).copied().ok_or_else(|| {
                Error::input(
                    format!(
                        "`{}`, row {row}: class `{}` is not among the {} classes of the classifier",
                        table.path.display(),
                        labels.get(row),
                        classes.len()
                    ),
                    words![
                        "test only on classes that the classifier was trained on, or train with ",
                        option("base"),
                    ],
                )
            })
        })
        .collect()
}

/// The new classes by themselves: their test examples, and only they to choose from.
fn novel_accuracy(saved: &LoadedClassifier, table: &ExampleTable) -> Result<Option<Accuracy>> {
    let all: Vec<usize> = (0..table.len()).collect();
    let labels = positions(table, &saved.classes, &all)?;
    let rows: Vec<usize> = all.into_iter().filter(|&row| labels[row] >= saved.n_base).collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let novel: Vec<usize> = rows.iter().map(|&row| labels[row] - saved.n_base).collect();
    let classifier = NovelClasses { all: saved.classifier.as_ref(), n_base: saved.n_base };
    Ok(Some(accuracy(&classifier, &load(table, &rows)?, &novel)?))
}

/// A classifier that chooses among new classes only.
struct NovelClasses<'a> {
    all: &'a dyn Classifier,
    n_base: usize,
}

impl Classifier for NovelClasses<'_> {
    fn n_classes(&self) -> usize {
        self.all.n_classes() - self.n_base
    }

    fn scores(&self, features: &Features) -> Scores {
        let all = self.all.scores(features);
        let values = all.rows().flat_map(|scores| scores[self.n_base..].iter().copied()).collect();
        Scores { values, n_classes: self.n_classes() }
    }
}

/// Gain of each class in top-1 accuracy over the baseline, averaged by number of candidates.
fn gain_by_pool_size(
    sizes: &HashMap<&str, usize>,
    found: &ModelAccuracy,
    before: &ModelAccuracy,
) -> Vec<GroupGain> {
    let top_1 = |counts: &evaluation::ClassCounts| counts.top_1 as f64 / counts.n as f64;
    let earlier: HashMap<&str, f64> = before
        .classes
        .iter()
        .zip(&before.accuracy.classes)
        .filter(|(_, counts)| counts.n > 0)
        .map(|(name, counts)| (name.as_str(), top_1(counts)))
        .collect();
    let tested = found.classes.iter().zip(&found.accuracy.classes).filter(|(_, counts)| counts.n > 0);
    let (pool_sizes, gains): (Vec<usize>, Vec<f64>) = tested
        .filter_map(|(name, counts)| {
            let gain = top_1(counts) - earlier.get(name.as_str())?;
            Some((sizes.get(name.as_str()).copied().unwrap_or(0), gain))
        })
        .unzip();
    evaluation::gain_by_pool_size(&pool_sizes, &gains)
}
