//! The jobs of the pipeline, from files to files.
//!
//! Each function takes the options of the command of its name, as a dictionary that `python/labelsieve/_jobs.py` has
//! filled, and returns what `--json` prints, as JSON.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use labelsieve::Method;
use labelsieve_files::inputs::same_network::MixedNetworks;
use labelsieve_files::inputs::tables::Table;
use labelsieve_files::work::byte_size::ByteSize;
use labelsieve_files::{Precision, Shard, TableColumns};
use labelsieve_jobs::device::Devices;
use labelsieve_jobs::evaluate::{Evaluate, LabelledExamples, MeasuredModel, Truth};
use labelsieve_jobs::inputs::pools::PoolFiles;
use labelsieve_jobs::memory::MemoryLimit;
use labelsieve_jobs::merge::Merge;
use labelsieve_jobs::plan::Plan;
use labelsieve_jobs::predict::{NewExamples, Predict};
use labelsieve_jobs::score::{Score, Share};
use labelsieve_jobs::train::{Classifier, Train};
use labelsieve_matching::job::{DownloadList, LeakCheck, LeakFate, Match};
use labelsieve_matching::names::{MatchRule, TextEncoding};
use labelsieve_matching::text::{OnBadRow, TextColumns, TextFormat};
use labelsieve_networks::embed::{Embed, JoinFeatures, OnEmpty, Reduction};
use labelsieve_networks::embed_text::EmbedText;
use labelsieve_networks::finetune::{FineTune, Softmax};
use labelsieve_networks::image_files::{ImageColumns, RowFilter};
use labelsieve_networks::images::OnDamage;
use labelsieve_networks::opening::built_in::BuiltIn;
use labelsieve_networks::opening::image_input::ImageFiles;
use labelsieve_networks::opening::onnx::OnnxOptions;
use labelsieve_numerics::Device;
use labelsieve_report::TrainingCurves;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

use crate::errors::value_error;
use crate::monitor;
use crate::relevance::parse_method;

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(match_files, module)?)?;
    module.add_function(wrap_pyfunction!(embed_files, module)?)?;
    module.add_function(wrap_pyfunction!(join_features, module)?)?;
    module.add_function(wrap_pyfunction!(embed_text_files, module)?)?;
    module.add_function(wrap_pyfunction!(score_files, module)?)?;
    module.add_function(wrap_pyfunction!(estimate_score_files, module)?)?;
    module.add_function(wrap_pyfunction!(merge_files, module)?)?;
    module.add_function(wrap_pyfunction!(plan_files, module)?)?;
    module.add_function(wrap_pyfunction!(train_files, module)?)?;
    module.add_function(wrap_pyfunction!(finetune_files, module)?)?;
    module.add_function(wrap_pyfunction!(predict_files, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate_files, module)?)
}

/// The options of a command by name.
struct Options<'py>(Bound<'py, PyDict>);

/// The callback of [`monitor::run`].
type Callback<'py> = Option<Bound<'py, PyAny>>;

impl<'py> Options<'py> {
    /// The value of an option; `_jobs.py` gives all of them.
    fn get<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<T> {
        let value = self.0.as_any().get_item(name)?;
        value.extract::<T>().map_err(|error| named(name, error.into()))
    }

    /// An option that is one of several words.
    fn choice<T>(&self, name: &str, parse: fn(&str) -> Option<T>) -> PyResult<T> {
        let word: String = self.get(name)?;
        parse(&word).ok_or_else(|| value_error(format!("{name}: there is no `{word}`")))
    }

    fn device(&self) -> PyResult<Device> {
        self.get::<String>("device")?.parse().map_err(value_error)
    }

    fn method(&self) -> PyResult<Method> {
        parse_method(&self.get::<String>("method")?)
    }

    fn mixed(&self) -> PyResult<MixedNetworks> {
        Ok(match self.get("allow_mixed")? {
            true => MixedNetworks::Accept,
            false => MixedNetworks::Refuse,
        })
    }

    fn on_damage(&self) -> PyResult<OnDamage> {
        Ok(if self.get("strict")? { OnDamage::Stop } else { OnDamage::Skip })
    }

    /// A table with the columns that were named; `labels` is the option of a separate file of labels.
    fn table(&self, path: PathBuf, labels: Option<&str>) -> PyResult<Table> {
        let columns = TableColumns {
            embedding: self.get("embedding_column")?,
            label: self.get("label_column")?,
            id: self.get("id_column")?,
            labels: labels.map(|labels| self.get::<Option<PathBuf>>(labels)).transpose()?.flatten(),
            spill: None,
        };
        Ok(Table { path, columns })
    }

    fn pools(&self, candidates: Option<PathBuf>) -> PyResult<PoolFiles> {
        Ok(PoolFiles {
            clean: match self.get::<Option<PathBuf>>("clean")? {
                Some(path) => Some(self.table(path, Some("clean_labels"))?),
                None => None,
            },
            class_text: self.get("class_text")?,
            pool: self.table(self.get("pool")?, Some("pool_labels"))?,
            candidates,
            base: None,
            mixed: self.mixed()?,
        })
    }

    /// All that is scored.
    fn scored(&self) -> PyResult<PoolFiles> {
        Ok(PoolFiles { base: self.get("base")?, ..self.pools(self.get("candidates")?)? })
    }

    /// Which classes are scored; `_jobs.py` gives a plan with a bin, a shard, or neither.
    fn share(&self) -> PyResult<Share> {
        let plan: (Option<PathBuf>, Option<usize>) = (self.get("plan")?, self.get("bin")?);
        Ok(match (plan, self.shard()?) {
            ((Some(plan), Some(bin)), _) => Share::Bin { plan, bin },
            (_, Some(shard)) => Share::Shard(shard),
            _ => Share::All,
        })
    }

    fn shard(&self) -> PyResult<Option<Shard>> {
        let shard: Option<(usize, usize)> = self.get("shard")?;
        Ok(shard.map(|(index, of)| Shard { index, of }))
    }

    /// A limit of memory, as text with a unit.
    fn memory(&self) -> PyResult<Option<MemoryLimit>> {
        let Some(text) = self.get::<Option<String>>("memory")? else { return Ok(None) };
        let size: ByteSize = text.parse().map_err(|error| value_error(format!("memory: {error}")))?;
        Ok(Some(MemoryLimit { bytes: size.0, scratch: self.get("scratch")? }))
    }

    /// Images whose ids are in the column that `id` names, and whose classes in that of `label`.
    fn images(&self, sources: Vec<PathBuf>, id: &str, label: Option<&str>) -> PyResult<ImageFiles> {
        let label = label.map(|label| self.get::<Option<String>>(label)).transpose()?.flatten();
        let columns =
            ImageColumns { image: self.get("image_column")?, id: self.get(id)?, label, filters: Vec::new() };
        Ok(ImageFiles { sources, columns, on_damage: self.on_damage()? })
    }

    /// Conditions on rows, each as `column=value`.
    fn filters(&self, name: &str) -> PyResult<Vec<RowFilter>> {
        let conditions: Vec<String> = self.get(name)?;
        let parsed = conditions.iter().map(|condition| condition.parse());
        parsed.collect::<Result<_, String>>().map_err(|error| value_error(format!("{name}: {error}")))
    }

    /// The images of commands that take features or images.
    fn image_choice(&self, sources: Vec<PathBuf>, label: Option<&str>) -> PyResult<ImageFiles> {
        let mut images = self.images(sources, "id_column", label)?;
        images.columns.filters = self.filters("where")?;
        Ok(images)
    }
}

/// An error of Python's about an option, with the option's name.
fn named(name: &str, error: PyErr) -> PyErr {
    Python::attach(|py| value_error(format!("{name}: {}", error.value(py))))
}

fn json(summary: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(summary).map_err(value_error)
}

#[pyfunction]
fn match_files<'py>(
    py: Python<'py>,
    options: Bound<'py, PyDict>,
    progress: Callback<'py>,
) -> PyResult<String> {
    let options = Options(options);
    let leaks = match options.get::<Option<PathBuf>>("features")? {
        None => None,
        Some(features) => Some(LeakCheck {
            guard_features: options.get("guard_features")?,
            features,
            near_duplicate: options.get("near_duplicate")?,
            fate: if options.get("drop_leaks")? { LeakFate::Drop } else { LeakFate::Flag },
            mixed: options.mixed()?,
        }),
    };
    let format = options.get::<Option<String>>("format")?;
    let format = format.map(|_| options.choice("format", text_format)).transpose()?;
    let columns = TextColumns {
        format,
        id: options.get("id_column")?,
        texts: options.get("text_columns")?,
        encoding: options.get::<bool>("percent_encoded")?.then_some(TextEncoding::Percent),
        keep: Vec::new(),
    };
    let download_list = match options.get::<Option<PathBuf>>("download_list")? {
        None => None,
        Some(path) => Some(DownloadList { path, url_column: options.get("url_column")? }),
    };
    let job = Match {
        classes: options.get("classes")?,
        texts: options.get("text")?,
        columns,
        rule: options.choice("rule", rule)?,
        on_bad_row: if options.get("strict")? { OnBadRow::Stop } else { OnBadRow::Skip },
        leaks,
        keep: options.get("keep")?,
        download_list,
        shard: options.shard()?,
        stats: options.get("stats")?,
        output: options.get("output")?,
    };
    json(&monitor::run(py, progress.as_ref(), |monitor| job.run(monitor))?)
}

fn rule(name: &str) -> Option<MatchRule> {
    serde_json::from_value(name.into()).ok()
}

fn text_format(name: &str) -> Option<TextFormat> {
    Some(match name {
        "yfcc" => TextFormat::Yfcc,
        "csv" => TextFormat::Csv,
        "tsv" => TextFormat::Tsv,
        "jsonl" => TextFormat::JsonLines,
        "parquet" => TextFormat::Parquet,
        _ => return None,
    })
}

#[pyfunction]
fn embed_files<'py>(
    py: Python<'py>,
    options: Bound<'py, PyDict>,
    progress: Callback<'py>,
) -> PyResult<String> {
    let options = Options(options);
    let fitted: (Option<NonZeroUsize>, Option<PathBuf>) =
        (options.get("fit_pca")?, options.get("pca_output")?);
    let reduction = match (options.get("pca")?, fitted) {
        (Some(path), _) => Reduction::Pca(path),
        (None, (Some(width), Some(output))) => Reduction::Fit { width, output },
        (None, _) => Reduction::OfNetwork,
    };
    let (model, output): (Option<PathBuf>, PathBuf) = (options.get("model")?, options.get("output")?);
    let model = model.unwrap_or_else(|| BuiltIn::usual().name.into());
    let images = options.image_choice(options.get("images")?, Some("label_column"))?;
    let job = Embed {
        image_size: options.get("image_size")?,
        onnx: OnnxOptions {
            mean: options.get("image_mean")?,
            deviation: options.get("image_std")?,
            output: options.get("onnx_output")?,
        },
        reduction,
        precision: options.choice("dtype", precision)?,
        batch: options.get("batch")?,
        on_empty: if options.get("may_be_empty")? { OnEmpty::Write } else { OnEmpty::Refuse },
        ..Embed::new(&model, images, options.device()?, &output)
    };
    json(&monitor::run(py, progress.as_ref(), |monitor| job.run(&Devices, monitor))?)
}

/// Files of features as one, for `labelsieve.ray`.
#[pyfunction]
fn join_features<'py>(
    py: Python<'py>,
    options: Bound<'py, PyDict>,
    progress: Callback<'py>,
) -> PyResult<String> {
    let options = Options(options);
    let job = JoinFeatures { parts: options.get("parts")?, output: options.get("output")? };
    json(&monitor::run(py, progress.as_ref(), |monitor| job.run(monitor))?)
}

#[pyfunction]
fn embed_text_files<'py>(
    py: Python<'py>,
    options: Bound<'py, PyDict>,
    progress: Callback<'py>,
) -> PyResult<String> {
    let options = Options(options);
    let job = EmbedText {
        model: options.get("model")?,
        classes: options.get("classes")?,
        templates: options.get("templates")?,
        precision: options.choice("dtype", precision)?,
        output: options.get("output")?,
    };
    json(&monitor::run(py, progress.as_ref(), |monitor| job.run(monitor))?)
}

fn precision(name: &str) -> Option<Precision> {
    match name {
        "f32" => Some(Precision::F32),
        "f16" => Some(Precision::F16),
        _ => None,
    }
}

#[pyfunction]
fn score_files<'py>(
    py: Python<'py>,
    options: Bound<'py, PyDict>,
    progress: Callback<'py>,
) -> PyResult<String> {
    let options = Options(options);
    let job = clean_job(&options, options.get("output")?)?;
    json(&monitor::run(py, progress.as_ref(), |monitor| job.run(monitor))?)
}

/// What [`score_files`] would take.
#[pyfunction]
fn estimate_score_files<'py>(
    py: Python<'py>,
    options: Bound<'py, PyDict>,
    progress: Callback<'py>,
) -> PyResult<String> {
    let job = clean_job(&Options(options), PathBuf::new())?;
    json(&monitor::run(py, progress.as_ref(), |monitor| job.estimate(monitor))?)
}

fn clean_job(options: &Options, output: PathBuf) -> PyResult<Score> {
    Ok(Score {
        files: options.scored()?,
        decisions: options.get("decisions")?,
        method: options.method()?,
        device: options.device()?,
        seed: options.get("seed")?,
        share: options.share()?,
        output,
        memory: options.memory()?,
        recall: options.get("neighbours_approximate")?,
    })
}

#[pyfunction]
fn plan_files<'py>(
    py: Python<'py>,
    options: Bound<'py, PyDict>,
    progress: Callback<'py>,
) -> PyResult<String> {
    let options = Options(options);
    let memory: Option<String> = options.get("memory")?;
    let memory = memory.map(|size| size.parse::<ByteSize>()).transpose();
    let job = Plan {
        files: options.scored()?,
        decisions: options.get("decisions")?,
        method: options.method()?,
        device: options.device()?,
        seed: options.get("seed")?,
        bins: options.get("bins")?,
        memory: memory.map_err(|error| value_error(format!("memory: {error}")))?.map(|size| size.0),
        output: options.get("output")?,
    };
    json(&monitor::run(py, progress.as_ref(), |monitor| job.run(monitor))?)
}

#[pyfunction]
fn merge_files<'py>(
    py: Python<'py>,
    options: Bound<'py, PyDict>,
    progress: Callback<'py>,
) -> PyResult<String> {
    let options = Options(options);
    let job = Merge { parts: options.get("parts")?, output: options.get("output")? };
    json(&monitor::run(py, progress.as_ref(), |monitor| job.run(monitor))?)
}

#[pyfunction]
fn train_files<'py>(
    py: Python<'py>,
    options: Bound<'py, PyDict>,
    progress: Callback<'py>,
) -> PyResult<String> {
    let options = Options(options);
    let classifier = match options.get::<String>("classifier")?.as_str() {
        "prototype" => Classifier::Prototype,
        "cosine" => {
            Classifier::Cosine { batch_size: options.get("batch_size")?, epochs: options.get("epochs")? }
        }
        other => return Err(value_error(format!("classifier: there is no `{other}`"))),
    };
    let job = Train {
        files: options.pools(None)?,
        relevance: options.get("relevance")?,
        decisions: options.get("decisions")?,
        classifier,
        base: options.get("base")?,
        scale: options.get("scale")?,
        backbone: options.get("backbone")?,
        device: options.device()?,
        seed: options.get("seed")?,
        output: options.get("output")?,
    };
    json(&monitor::run(py, progress.as_ref(), |monitor| job.run(monitor))?)
}

#[pyfunction]
fn finetune_files<'py>(
    py: Python<'py>,
    options: Bound<'py, PyDict>,
    progress: Callback<'py>,
) -> PyResult<String> {
    let options = Options(options);
    let base_sources: Vec<PathBuf> = options.get("base_images")?;
    let base_images = match base_sources.is_empty() {
        true => None,
        false => {
            let mut base = options.images(base_sources, "image_id_column", Some("base_label_column"))?;
            base.columns.filters = options.filters("base_where")?;
            Some(base)
        }
    };
    let job = FineTune {
        network: options.get("network")?,
        relevance: options.get("relevance")?,
        decisions: options.get("decisions")?,
        images: options.images(options.get("images")?, "image_id_column", None)?,
        base_images,
        softmax: options.choice("softmax", softmax)?,
        rate: options.get("rate")?,
        final_rate: options.get("final_rate")?,
        epochs: options.get("epochs")?,
        batch_size: options.get("batch_size")?,
        device: options.device()?,
        seed: options.get("seed")?,
        output: options.get("output")?,
    };
    json(&monitor::run(py, progress.as_ref(), |monitor| job.run(&Devices, &TrainingCurves, monitor))?)
}

fn softmax(name: &str) -> Option<Softmax> {
    match name {
        "joint" => Some(Softmax::Joint),
        "separate" => Some(Softmax::Separate),
        _ => None,
    }
}

#[pyfunction]
fn predict_files<'py>(
    py: Python<'py>,
    options: Bound<'py, PyDict>,
    progress: Callback<'py>,
) -> PyResult<String> {
    let options = Options(options);
    let examples = match options.get::<Option<PathBuf>>("features")? {
        Some(features) => NewExamples::Features(options.table(features, None)?),
        None => NewExamples::Images(options.image_choice(options.get("images")?, None)?),
    };
    let job = Predict {
        model: options.get("model")?,
        examples,
        mixed: options.mixed()?,
        device: options.device()?,
        top: options.get("top")?,
        output: Some(options.get("output")?),
    };
    json(&monitor::run(py, progress.as_ref(), |monitor| job.run(monitor))?)
}

#[pyfunction]
fn evaluate_files<'py>(
    py: Python<'py>,
    options: Bound<'py, PyDict>,
    progress: Callback<'py>,
) -> PyResult<String> {
    let options = Options(options);
    let model = match options.get::<Option<PathBuf>>("model")? {
        None => None,
        Some(path) => Some(MeasuredModel {
            path,
            baseline: options.get("baseline")?,
            examples: match options.get::<Option<PathBuf>>("test")? {
                Some(test) => LabelledExamples::Features(options.table(test, Some("test_labels"))?),
                None => {
                    let images = options.image_choice(options.get("images")?, Some("label_column"))?;
                    LabelledExamples::Images(images)
                }
            },
        }),
    };
    let job = Evaluate {
        model,
        relevance: options.get("relevance")?,
        truth: match options.get::<Option<PathBuf>>("decisions")? {
            Some(decisions) => Some(Truth::Decisions(decisions)),
            None => options.get::<Option<PathBuf>>("truth")?.map(Truth::File),
        },
        mixed: options.mixed()?,
        device: options.device()?,
    };
    json(&monitor::run(py, progress.as_ref(), |monitor| job.run(monitor))?)
}
