//! `labelsieve train`: a classifier from clean examples and candidates weighted by relevance.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use labelsieve::classifier::{Cosine, WeightMatrix, WeightedClass};
use labelsieve::evaluation::{CheckedClass, leave_one_out};
use labelsieve::{Classifier, Features};
use labelsieve_data::{ExampleTable, RelevanceTable, SavedClassifier, read_relevance};
use serde_json::json;

use super::finetune::{FineTune, FineTuneArguments};
use crate::attention::load_attention;
use crate::copies::{Copies, comparable_ids, identical_rows};
use crate::device::DeviceArguments;
use crate::hint::user_error;
use crate::inputs::{Columns, PoolFiles, RowsById, labels_of, load, rows_by_class, rows_by_id};
use crate::near_name::nearest;
use crate::options::Given;
use crate::outputs::{Files, OutputKind};
use crate::printer::Printer;
use crate::same_network::{MixedArguments, Origin, common_network};
use crate::table::percent;

/// Learn a classifier in which every candidate counts by its relevance
#[derive(Args)]
pub struct Train {
    /// Clean examples with their classes, as for `labelsieve clean`; not for finetune
    #[arg(long, value_name = "FILE")]
    clean: Option<PathBuf>,

    /// Noisy examples, as for `labelsieve clean`; not for finetune
    #[arg(long, value_name = "FILE")]
    noisy: Option<PathBuf>,

    /// Classes of the clean examples, for .npy: integers in .npy, or text with one class per line
    #[arg(long, value_name = "FILE")]
    clean_labels: Option<PathBuf>,

    /// Noisy classes of the noisy examples, for .npy
    #[arg(long, value_name = "FILE")]
    noisy_labels: Option<PathBuf>,

    #[command(flatten)]
    columns: Columns,

    #[command(flatten)]
    mixed: MixedArguments,

    /// Relevance of the candidates, as `labelsieve clean` writes it
    #[arg(long, value_name = "FILE")]
    relevance: PathBuf,

    /// What to learn
    #[arg(long, value_enum, default_value = "prototype")]
    classifier: ClassifierName,

    /// Generator of class weights, as `labelsieve train-attention` writes it
    #[arg(long, value_name = "FILE", required_if_eq("classifier", "attention"))]
    attention: Option<PathBuf>,

    /// Classifier of base classes to extend: W_A = [W_B, W]
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,

    /// Examples per step, for cosine and finetune [default: 512; finetune: 256]
    #[arg(long, value_name = "N")]
    batch_size: Option<usize>,

    /// Passes over all examples, for cosine and finetune [default: 30; finetune: 10]
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,

    /// Scale of the logits; with --base, that of the base classes
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    scale: Option<f32>,

    #[command(flatten)]
    fine_tune: FineTuneArguments,

    #[command(flatten)]
    device: DeviceArguments,

    /// Name of the backbone that made the features, kept in the file
    #[arg(long, value_name = "NAME")]
    backbone: Option<String>,

    /// The same seed gives the same result
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// File to write (.safetensors)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClassifierName {
    /// The weighted mean of each class
    Prototype,
    /// The weighted mean and what the base classes it resembles bring, by --attention
    Attention,
    /// A cosine classifier, learned from the prototypes on
    Cosine,
    /// The whole network with a cosine classifier on top; needs --network and --images instead of features
    Finetune,
}

/// The examples of one class in memory. Candidates of relevance zero count for nothing; what they would add if all
/// counted alike is kept as a sum.
struct ClassExamples {
    name: String,
    clean: Features,
    noisy: Features,
    relevance: Vec<f32>,
    irrelevant: Vec<f32>,
}

/// What the classes are learned from.
struct Examples {
    classes: Vec<ClassExamples>,
    /// The network that made the features, if the files say so.
    network: Option<String>,
}

/// Noisy rows of one class and their relevance.
#[derive(Default)]
struct WeightedRows {
    rows: Vec<usize>,
    relevance: Vec<f32>,
    /// Rows of relevance zero.
    irrelevant: Vec<usize>,
}

/// Rows in memory at a time that are only summed up.
const BLOCK: usize = 8192;

impl Train {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        OutputKind::Weights.target(&self.output)?;
        if self.classifier == ClassifierName::Finetune {
            return self.fine_tune(printer);
        }
        let files = &self.files()?;
        let others = [&self.attention, &self.base].into_iter().flatten().chain([&self.relevance]);
        Files::default().reads(files.paths()).reads(others).writes([&self.output]).check()?;
        let base = self.base.as_deref().map(SavedClassifier::load).transpose()?;
        let scale = self.scale.or(base.as_ref().map(|base| base.scale)).unwrap_or(Cosine::default().scale);
        let attention = self.attention.as_deref().map(load_attention).transpose()?;
        let others = [
            self.base.as_deref().zip(base.as_ref().map(|base| base.network.as_ref())),
            self.attention.as_deref().zip(attention.as_ref().map(|(_, network)| network.as_ref())),
        ];
        let others = others.into_iter().flatten().map(|(path, network)| Origin::new(path, network));
        let Examples { classes, network } = self.load(files, others.collect(), printer)?;
        let dim = classes[0].clean.dim();
        if let Some(base) = &base {
            self.check_base(base, files, &classes, dim)?;
        }
        drop(labelsieve_data::AtomicFile::create(&self.output)?);
        let weighted = classes
            .iter()
            .map(|class| WeightedClass::new(&class.clean, &class.noisy, &class.relevance))
            .collect::<labelsieve::Result<Vec<_>>>()?;
        let opened = self.device.open(printer)?;
        let engine = opened.engine();
        let (novel, settings) = match self.classifier {
            ClassifierName::Prototype | ClassifierName::Finetune => {
                (engine.prototypes(&weighted, dim, scale)?, json!({ "classifier": "prototype" }))
            }
            ClassifierName::Attention => {
                let path = self.attention.as_deref().context("--attention is missing")?;
                let (attention, _) = attention.context("--attention is missing")?;
                let generated = attention
                    .weights(&weighted)
                    .with_context(|| format!("cannot use `{}`", path.display()))?;
                let novel = WeightMatrix::new(generated.weights().clone(), scale)?;
                (novel, json!({ "classifier": "attention", "attention": path }))
            }
            ClassifierName::Cosine => {
                let usual = Cosine::default();
                let cosine = Cosine {
                    batch_size: self.batch_size.unwrap_or(usual.batch_size),
                    epochs: self.epochs.unwrap_or(usual.epochs),
                    scale,
                    ..usual
                };
                let settings = json!({ "classifier": "cosine", "cosine": cosine, "seed": self.seed });
                (engine.cosine(&cosine, &weighted, dim, self.seed)?, settings)
            }
        };
        let checked = weighted.iter().zip(&classes);
        let checked: Vec<CheckedClass> = checked
            .map(|(&learned, class)| CheckedClass { learned, irrelevant: &class.irrelevant })
            .collect();
        self.warn_if_cleaning_does_not_help(&checked, printer)?;
        let names = classes.iter().map(|class| class.name.clone()).collect();
        let saved = SavedClassifier { network, ..self.extend(base, novel, names, settings)? };
        saved.save(&self.output)?;
        printer.note(&format!(
            "{} classes of {dim} columns in `{}`",
            saved.classes.len(),
            self.output.display()
        ));
        Ok(())
    }

    /// Options of other kinds of training would be left aside without a word.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        const OF_FEATURES: [&str; 11] = [
            "clean",
            "noisy",
            "clean_labels",
            "noisy_labels",
            "embedding_column",
            "label_column",
            "id_column",
            "base",
            "attention",
            "scale",
            "backbone",
        ];
        const OF_NETWORKS: [&str; 11] = [
            "network",
            "images",
            "base_images",
            "base_filters",
            "image_column",
            "image_id_column",
            "base_label_column",
            "softmax",
            "rate",
            "final_rate",
            "strict",
        ];
        let name = self.classifier.to_possible_value();
        let name = format!("--classifier {}", name.as_ref().map_or("", |value| value.get_name()));
        if self.classifier == ClassifierName::Finetune {
            given.refuse(&OF_FEATURES, &name, "it takes --network, --images and --base-images")?;
            if self.fine_tune.base_images.is_empty() {
                let of_base = ["base_filters", "base_label_column", "softmax"];
                let who = "fine-tuning without --base-images";
                given.refuse(&of_base, who, "give --base-images, or leave it out")?;
            }
            return Ok(());
        }
        given.refuse(&OF_NETWORKS, &name, "these options belong to --classifier finetune")?;
        if self.classifier != ClassifierName::Attention {
            given.refuse(&["attention"], &name, "it belongs to --classifier attention")?;
        }
        if self.classifier != ClassifierName::Cosine {
            let hint = "it belongs to --classifier cosine and finetune";
            given.refuse(&["batch_size", "epochs"], &name, hint)?;
        }
        given.refuse_columns(self.clean.iter().chain(&self.noisy).map(PathBuf::as_path))
    }

    fn fine_tune(&self, printer: &Printer) -> Result<()> {
        let fine_tune = FineTune {
            arguments: &self.fine_tune,
            relevance: &self.relevance,
            epochs: self.epochs,
            batch_size: self.batch_size,
            device: &self.device,
            seed: self.seed,
            output: &self.output,
        };
        fine_tune.run(printer)
    }

    /// Features, which all kinds of training but one need.
    fn files(&self) -> Result<PoolFiles> {
        let (Some(clean), Some(noisy)) = (&self.clean, &self.noisy) else {
            let missing = if self.clean.is_none() { "--clean" } else { "--noisy" };
            return Err(user_error(
                format!("{missing} is missing"),
                "give --clean and --noisy, as for `labelsieve clean`",
            ));
        };
        Ok(PoolFiles {
            clean: clean.clone(),
            noisy: noisy.clone(),
            clean_labels: self.clean_labels.clone(),
            noisy_labels: self.noisy_labels.clone(),
        })
    }

    /// Reads all examples; `others` are further files that must be of the same network.
    fn load(&self, files: &PoolFiles, others: Vec<Origin>, printer: &Printer) -> Result<Examples> {
        let (clean, noisy) = files.open(&self.columns, &self.mixed, printer)?;
        let relevance = read_relevance(&self.relevance)?;
        let origins = [(&clean).into(), (&noisy).into(), (&relevance).into()].into_iter().chain(others);
        let origins: Vec<Origin> = origins.collect();
        self.mixed.check(&origins)?;
        let network = common_network(&origins);
        let mut noisy_rows = self.noisy_rows(files, &relevance, &rows_by_id(&noisy)?)?;
        let clean_rows = rows_by_class(labels_of(&clean, "--clean-labels")?);
        let known: HashSet<&str> = clean_rows.iter().map(|(name, _)| name.as_str()).collect();
        if let Some(unknown) = noisy_rows.keys().filter(|name| !known.contains(*name)).min() {
            return Err(user_error(
                format!(
                    "`{}` has candidates of class `{unknown}`, which has no clean example in `{}`",
                    self.relevance.display(),
                    clean.path.display()
                ),
                match nearest(unknown, clean_rows.iter().map(|(name, _)| name.as_str())) {
                    Some(meant) => {
                        format!("did you mean `{meant}`? class names must be spelled alike in both files")
                    }
                    None => {
                        "train with the same --clean file that the relevance was computed with".to_owned()
                    }
                },
            ));
        }
        let progress = printer.progress(clean_rows.len() as u64, "classes");
        let (mut classes, mut copies) = (Vec::with_capacity(clean_rows.len()), Copies::default());
        for (name, rows) in &clean_rows {
            let weighted = noisy_rows.remove(name.as_str()).unwrap_or_default();
            classes.push(read_class(name, (&clean, rows), (&noisy, weighted), &mut copies)?);
            progress.inc(1);
        }
        progress.finish_and_clear();
        copies.say("features", printer);
        Ok(Examples { classes, network })
    }

    /// For each class the noisy rows and their relevance, in the order of the relevance file.
    fn noisy_rows<'a>(
        &self,
        files: &PoolFiles,
        relevance: &'a RelevanceTable,
        by_id: &RowsById,
    ) -> Result<HashMap<&'a str, WeightedRows>> {
        let mut rows: HashMap<&str, WeightedRows> = HashMap::new();
        for i in (0..relevance.ids.len()).filter(|&i| !relevance.is_clean[i]) {
            let id = &relevance.ids[i];
            let row = by_id.get(id).ok_or_else(|| {
                user_error(
                    format!(
                        "`{}`, row {i}: the example `{id}` is not in `{}`",
                        self.relevance.display(),
                        files.noisy.display()
                    ),
                    "train with the same --noisy file that the relevance was computed with",
                )
            })?;
            let class = rows.entry(relevance.classes.get(i)).or_default();
            if relevance.relevance[i] > 0.0 {
                class.rows.push(row);
                class.relevance.push(relevance.relevance[i]);
            } else {
                class.irrelevant.push(row);
            }
        }
        Ok(rows)
    }

    /// Whether the new classes can stand beside the base classes; better asked before the training.
    fn check_base(
        &self,
        base: &SavedClassifier,
        files: &PoolFiles,
        classes: &[ClassExamples],
        dim: usize,
    ) -> Result<()> {
        let path = self.base.as_deref().unwrap_or(Path::new("")).display();
        if base.dim != dim {
            return Err(user_error(
                format!(
                    "the clean examples in `{}` have {dim} columns, but the base classes in `{path}` have {}",
                    files.clean.display(),
                    base.dim
                ),
                "extract all features with the same backbone",
            ));
        }
        let base_names: HashSet<&String> = base.classes.iter().collect();
        match classes.iter().find(|class| base_names.contains(&class.name)) {
            None => Ok(()),
            Some(twice) => Err(user_error(
                format!("class `{}` is a base class in `{path}` and a new one", twice.name),
                "give the new class another name, or leave it out of one of the two",
            )),
        }
    }

    /// W_A = [W_B, W].
    fn extend(
        &self,
        base: Option<SavedClassifier>,
        novel: WeightMatrix,
        names: Vec<String>,
        settings: serde_json::Value,
    ) -> Result<SavedClassifier> {
        let (all, classes, n_base, backbone) = match base {
            None => (novel, names, 0, None),
            Some(base) => {
                let base_weights = WeightMatrix::new(Features::new(base.weight, base.dim)?, base.scale)?;
                let n_base = base_weights.n_classes();
                let classes = base.classes.into_iter().chain(names).collect();
                (base_weights.with_novel(&novel)?, classes, n_base, base.backbone)
            }
        };
        let weights = all.weights();
        Ok(SavedClassifier {
            classes,
            dim: weights.dim(),
            weight: weights.block(0..weights.len()).to_vec(),
            scale: all.scale(),
            backbone: self.backbone.clone().or(backbone),
            network: None,
            n_base,
            settings,
        })
    }

    /// Nobody should end up below "all candidates alike" or "clean only" without being told.
    fn warn_if_cleaning_does_not_help(&self, classes: &[CheckedClass], printer: &Printer) -> Result<()> {
        let check = leave_one_out(classes)?;
        let Some(weighted) = check.weighted else { return Ok(()) };
        let say = |name: &str, share: Option<f64>| share.map(|share| format!("{name} {} %", percent(share)));
        let parts: Vec<String> = [
            say("by relevance", Some(weighted)),
            say("all candidates alike", check.untreated),
            say("clean only", check.clean_only),
        ]
        .into_iter()
        .flatten()
        .collect();
        printer.note(&format!(
            "prototypes on your {} clean examples, each left out in turn: {}",
            check.n,
            parts.join(", ")
        ));
        let best_other = check.untreated.unwrap_or(0.0).max(check.clean_only.unwrap_or(0.0));
        if weighted < best_other {
            printer.warning("on this check, relevance does worse than a simpler way");
            printer.hint("try another --lambda or --method in `labelsieve clean`; with few clean examples the check is rough");
        }
        Ok(())
    }
}

/// The examples of a class, without candidates that are its clean examples: by id where the tables have ids, and by the
/// numbers themselves.
fn read_class(
    name: &str,
    (clean_table, clean_rows): (&ExampleTable, &[usize]),
    (noisy_table, mut candidates): (&ExampleTable, WeightedRows),
    copies: &mut Copies,
) -> Result<ClassExamples> {
    if let Some(ids) = comparable_ids(clean_table, noisy_table, clean_rows) {
        let before = candidates.rows.len() + candidates.irrelevant.len();
        let is_copy = |row: &usize| ids.contains(noisy_table.ids.get(*row).as_ref());
        let kept = candidates.rows.iter().zip(&candidates.relevance).filter(|(row, _)| !is_copy(row));
        (candidates.rows, candidates.relevance) = kept.map(|(&row, &relevance)| (row, relevance)).unzip();
        candidates.irrelevant.retain(|row| !is_copy(row));
        copies.by_id += before - candidates.rows.len() - candidates.irrelevant.len();
    }
    let (clean, mut noisy) = (load(clean_table, clean_rows)?, load(noisy_table, &candidates.rows)?);
    let mut relevance = candidates.relevance;
    let same = identical_rows(&clean, &noisy);
    if !same.is_empty() {
        let kept: Vec<usize> = (0..noisy.len()).filter(|row| same.binary_search(row).is_err()).collect();
        noisy = noisy.select(&kept);
        relevance = kept.iter().map(|&row| relevance[row]).collect();
        copies.by_content += same.len();
    }
    let mut irrelevant = vec![0f64; clean.dim()];
    for block in candidates.irrelevant.chunks(BLOCK) {
        let rows = load(noisy_table, block)?;
        let same = identical_rows(&clean, &rows);
        for (_, row) in rows.rows().enumerate().filter(|(i, _)| same.binary_search(i).is_err()) {
            irrelevant.iter_mut().zip(row).for_each(|(sum, &v)| *sum += f64::from(v));
        }
        copies.by_content += same.len();
    }
    let irrelevant = irrelevant.iter().map(|&sum| sum as f32).collect();
    Ok(ClassExamples { name: name.to_owned(), clean, noisy, relevance, irrelevant })
}
