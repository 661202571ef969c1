//! `labelsieve evaluate`: accuracy of a classifier, and relevance against known truth.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use labelsieve::Features;
use labelsieve::classifier::WeightMatrix;
use labelsieve::evaluation::{self, Accuracy, GroupGain, RelevanceAnalysis, accuracy};
use labelsieve_data::images::{ImageColumns, ImageSource, RowFilter};
use labelsieve_data::{ExampleTable, SavedClassifier, read_relevance, read_truth};

use super::evaluate_images::measure_images;
use super::evaluate_output::{Measured, RelevanceReport, Report, Shares, accuracy_report};
use crate::device::DeviceArguments;
use crate::hint::user_error;
use crate::image_inputs::DamageArguments;
use crate::inputs::{Columns, labels_of, load};
use crate::options::Given;
use crate::printer::Printer;
use crate::same_network::{MixedArguments, Origin};

/// Measure a classifier on labelled examples, or relevance against known truth
#[derive(Args)]
pub struct Evaluate {
    /// Classifier, as `labelsieve train` writes it; for --images, a network with one, as `train --classifier finetune`
    /// and `pretrain` write it
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,

    /// Test examples with their true classes
    #[arg(long, value_name = "FILE", requires = "model", conflicts_with = "images")]
    test: Option<PathBuf>,

    /// Test images with their true classes instead: folders (one per class, or with a metadata file), .parquet files
    /// with image bytes, .tar files
    #[arg(long, value_name = "SOURCE", num_args = 1.., requires = "model")]
    images: Vec<PathBuf>,

    /// Column of the image bytes [default: image, img, jpg or bytes]
    #[arg(long, value_name = "NAME", requires = "images")]
    image_column: Option<String>,

    /// Only images whose column has this value, e.g. split=test; may be repeated
    #[arg(long = "where", value_name = "COLUMN=VALUE", requires = "images")]
    filters: Vec<RowFilter>,

    /// Stop at the first image that cannot be read or decoded, and at the first damaged .parquet or .tar file
    #[arg(long, requires = "images")]
    strict: bool,

    /// Classes of the test examples, for .npy
    #[arg(long, value_name = "FILE")]
    test_labels: Option<PathBuf>,

    /// Another classifier to compare with, class by class; with --relevance, grouped by number of candidates
    #[arg(long, value_name = "FILE", requires = "model")]
    baseline: Option<PathBuf>,

    /// Relevance, as `labelsieve clean` writes it
    #[arg(long, value_name = "FILE")]
    relevance: Option<PathBuf>,

    /// Which candidates are really relevant: Parquet with `id`, `class` and `relevant`
    #[arg(long, value_name = "FILE", requires = "relevance")]
    truth: Option<PathBuf>,

    #[command(flatten)]
    device: DeviceArguments,

    #[command(flatten)]
    mixed: MixedArguments,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    columns: Columns,
}

impl Evaluate {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        if given.has("images") {
            let of_test = ["test_labels", "embedding_column"]; // the other columns are of the images then
            return given.refuse(&of_test, "evaluate --images", "it belongs to --test");
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
        self.check_request()?;
        let relevance = self.relevance.as_deref().map(read_relevance).transpose()?;
        let mut report = Report { accuracy: None, gain_by_pool_size: None, relevance: None };
        if let Some(model) = &self.model {
            let examples = self.open_examples(model, printer)?;
            let found = self.measure(model, &examples, printer)?;
            let mut accuracy_report = accuracy_report(&found);
            accuracy_report.novel = found.novel.as_ref().map(Shares::from);
            if let Some(baseline) = &self.baseline {
                let before = self.measure(baseline, &examples, printer)?;
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
            report.relevance = Some(analyse(relevance, truth)?);
        }
        if self.json { printer.json(&report) } else { report.print(printer) }
    }

    /// Two different things can be measured; what belongs to neither is answered with both.
    fn check_request(&self) -> Result<()> {
        let has_examples = self.test.is_some() || !self.images.is_empty();
        match (&self.model, &self.relevance) {
            (Some(_), _) if !has_examples => Err(user_error(
                "--model needs examples to be measured on",
                "give --test FEATURES for a classifier of `labelsieve train`, or --images SOURCE… for a network of \
                 `labelsieve train --classifier finetune` or `labelsieve pretrain`",
            )),
            (None, Some(_)) if self.truth.is_none() => Err(user_error(
                "--relevance needs the truth to be compared with",
                "give --truth FILE: Parquet with `id`, `class` and `relevant`",
            )),
            (None, None) => Err(user_error(
                "nothing to evaluate: give a classifier, or relevance",
                "for accuracy, `--model CLASSIFIER --test FEATURES` or `--model NETWORK --images SOURCE…`; for relevance, \
                 `--relevance FILE --truth FILE`",
            )),
            _ => Ok(()),
        }
    }

    /// Opens what to measure on. A model that does not go with it is named first.
    fn open_examples(&self, model: &Path, printer: &Printer) -> Result<TestExamples> {
        let Some(test) = &self.test else {
            let columns = ImageColumns {
                image: self.image_column.clone(),
                id: self.columns.id_column.clone(),
                label: self.columns.label_column.clone(),
                filters: self.filters.clone(),
            };
            return Ok(TestExamples::Images(ImageSource::open(&self.images, &columns)?));
        };
        load_classifier(model)?;
        let table = self.columns.open(test, self.test_labels.as_deref(), printer)?;
        if table.is_empty() {
            return Err(user_error(
                format!("`{}` holds no examples", table.path.display()),
                "accuracy needs at least one test example",
            ));
        }
        Ok(TestExamples::Features(Box::new(table)))
    }

    fn measure(&self, model: &Path, examples: &TestExamples, printer: &Printer) -> Result<Measured> {
        match examples {
            TestExamples::Features(table) => measure_features(model, table, &self.mixed),
            TestExamples::Images(source) => {
                let damage = DamageArguments { strict: self.strict };
                let (classes, accuracy) = measure_images(model, source, damage, &self.device, printer)?;
                Ok(Measured { classes, accuracy, novel: None })
            }
        }
    }
}

/// What a classifier is measured on.
enum TestExamples {
    Features(Box<ExampleTable>),
    Images(ImageSource),
}

fn measure_features(model: &Path, table: &ExampleTable, mixed: &MixedArguments) -> Result<Measured> {
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
    mixed.check(&[Origin::new(model, saved.network.as_ref()), table.into()])?;
    let rows: Vec<usize> = (0..table.len()).collect();
    let labels = positions(table, &saved, &rows)?;
    let accuracy = accuracy(&classifier, &load(table, &rows)?, &labels)?;
    let novel = if saved.n_base > 0 { novel_accuracy(&saved, table)? } else { None };
    Ok(Measured { classes: saved.classes, accuracy, novel })
}

/// Reads a classifier from disk.
pub fn load_classifier(path: &Path) -> Result<(SavedClassifier, WeightMatrix)> {
    let saved = SavedClassifier::load(path)?;
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

/// What each class gained in top-1 accuracy over the baseline, averaged by number of candidates.
fn gain_by_pool_size(sizes: &HashMap<&str, usize>, found: &Measured, before: &Measured) -> Vec<GroupGain> {
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
