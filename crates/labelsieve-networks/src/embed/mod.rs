//! Turns images into features.
//!
//! ```text
//! ImageFiles ──decode──► batches ──Embedder──► unit rows ──journal──► [PCA] ──► file of features
//! ```
//!
//! The journal (`embedded.rs`) keeps finished batches, so that an interrupted run resumes and memory does not grow with the
//! number of images. `join.rs` joins the files of several runs.

mod embedded;
mod join;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use labelsieve_files::work::outputs::{Files, OutputKind, beside};
use labelsieve_files::work::{Context, Error, Monitor, Result, option, path_text, resume, words};
use labelsieve_files::{
    AtomicFile, DataError, FeatureFormat, FeatureLayout, FeatureRows, FeatureWriter, Journal, NetworkFile,
    NetworkMetadata, Precision,
};
use labelsieve_numerics::Device;
use serde::Serialize;
use serde_json::json;

pub use self::join::{JoinFeatures, JoinedFeatures};

use self::embedded::{EmbeddingProgress, Record};
use crate::devices::Devices;
use crate::image_files::ImageSource;
use crate::images::{Cause, DecodeLimits};
use crate::opening::embedder::{OpenedEmbedder, model_files, open_embedder};
use crate::opening::image_input::{ImageFiles, check_damage, encoded, warn_of_bad_files};
use crate::opening::onnx::OnnxOptions;
use crate::{Covariance, Pca, Preparation, centre_features, prepare, unit_features};

/// Turns images into features of unit length.
#[derive(Clone, Debug, Serialize)]
pub struct Embed {
    /// The network: the name of a built-in one, a file of this project, a ResNet with torchvision's names, a folder of
    /// `transformers`, timm or OpenCLIP, or an ONNX file.
    #[serde(serialize_with = "resume::debug")]
    pub model: PathBuf,
    /// The images.
    #[serde(flatten)]
    pub images: ImageFiles,
    /// Height and width that images are scaled to, if not the network's own size.
    pub image_size: Option<(usize, usize)>,
    /// Settings that an ONNX file does not contain.
    pub onnx: OnnxOptions,
    /// How features are reduced.
    #[serde(serialize_with = "resume::debug")]
    pub reduction: Reduction,
    /// Precision of stored features.
    #[serde(serialize_with = "resume::debug")]
    pub precision: Precision,
    /// Batch size.
    pub batch: NonZeroUsize,
    /// Where the network runs.
    #[serde(serialize_with = "resume::debug")]
    pub device: Device,
    /// The behaviour if no image is readable.
    #[serde(skip)]
    pub on_empty: OnEmpty,
    /// The file to write: `.parquet` with ids and classes, `.npz` or `.npy`.
    #[serde(serialize_with = "resume::debug")]
    pub output: PathBuf,
}

/// The behaviour if no image is readable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEmpty {
    /// Fail.
    #[default]
    Refuse,
    /// Write a file without rows: other parts may have some.
    Write,
}

/// How features are reduced.
#[derive(Clone, Debug, Default)]
pub enum Reduction {
    /// By the PCA in the network's file, if there is one.
    #[default]
    OfNetwork,
    /// By the PCA in this file.
    Pca(PathBuf),
    /// By a PCA of this width, fitted on these images and written to a file.
    Fit {
        /// Numbers per feature afterwards.
        width: NonZeroUsize,
        /// Where the PCA goes.
        output: PathBuf,
    },
}

/// A summary of the written features.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EmbedSummary {
    /// Rows that were written.
    pub n_images: usize,
    /// Numbers per row.
    pub dim: usize,
    /// Images that could not be read.
    pub n_skipped: usize,
    /// Files that could not be read to their end.
    pub n_damaged_files: usize,
    /// Rows with a class.
    pub n_with_class: usize,
    /// The table of ids and classes beside an array.
    #[serde(serialize_with = "path_text::perhaps")]
    pub ids_table: Option<PathBuf>,
    /// The list of unreadable images and files, if there are any.
    #[serde(serialize_with = "path_text::perhaps")]
    pub skipped_list: Option<PathBuf>,
    /// Share of the variance that a fitted PCA keeps.
    pub variance_kept: Option<f64>,
    /// Images per second of this run.
    pub images_per_second: f64,
}

impl Embed {
    /// All images through the network, with the usual settings.
    pub fn new(model: &Path, images: ImageFiles, device: Device, output: &Path) -> Embed {
        Embed {
            model: model.to_path_buf(),
            images,
            image_size: None,
            onnx: OnnxOptions::default(),
            reduction: Reduction::default(),
            precision: Precision::F32,
            batch: NonZeroUsize::new(64).unwrap_or(NonZeroUsize::MIN),
            device,
            on_empty: OnEmpty::default(),
            output: output.to_path_buf(),
        }
    }

    /// Embeds all images, resuming where an earlier run of the same job stopped, and writes the features.
    pub fn run(&self, devices: &dyn Devices, monitor: &dyn Monitor) -> Result<EmbedSummary> {
        OutputKind::Features.target(&self.output)?;
        FeatureFormat::of(&self.output)?;
        if let Some(pca) = self.pca_output() {
            OutputKind::Weights.target(pca)?;
        }
        let source = self.images.open()?;
        let skipped = beside(&self.output, ".skipped.csv");
        self.check_outputs(&source, &skipped)?;
        if let Some(id) = source.id_listed_twice() {
            return Err(id_twice(id));
        }
        let mut opened =
            open_embedder(&self.model, self.image_size, &self.onnx, self.device, devices, monitor)?;
        let pca = self.read_pca(&opened)?;
        let settings = self.settings(&opened);
        let key =
            self.key()?.with(&settings).on_device(opened.device).with_fingerprint(source.fingerprint()?);
        let journal = beside(&self.output, ".partial");
        let mut embedded = EmbeddingProgress::default();
        let dim = opened.embedder.dim();
        let units = resume::RecordUnits { unit: "batches", total: None };
        let journal = resume::open_by_record(&journal, &key, units, monitor, |key, payload| {
            embedded.restore(key, payload, dim);
        })?;
        check_damage(self.images.on_damage, &embedded.skipped)?;
        let rate = self.embed(&source, &mut opened, &journal, &mut embedded, monitor)?;
        write_skipped(&skipped, &embedded)?;
        if embedded.n_rows == 0 && self.on_empty == OnEmpty::Refuse {
            let list = (!embedded.skipped.is_empty()).then_some(skipped.as_path());
            return Err(nothing_embedded(embedded.n_read, list));
        }
        let fitted = self.fit(&opened, &journal, &embedded)?;
        let variance_kept = fitted.as_ref().map(|fitted| f64::from(fitted.kept()));
        let pca = fitted.or(pca);
        let network = opened.fingerprint.text(pca.as_ref());
        let layout = FeatureLayout {
            n_rows: embedded.n_rows,
            n_with_class: embedded.n_with_class,
            dim: pca.as_ref().map_or(dim, Pca::width),
            precision: self.precision,
            network: Some(&network),
        };
        let mut writer = FeatureWriter::create(&self.output, layout, &settings.to_string())?;
        embedded.for_each(&journal, dim, |rows| {
            monitor.watch().check()?;
            add_rows(&mut writer, rows, pca.as_ref())
        })?;
        let ids_table = writer.finish()?;
        journal.remove()?;
        warn_of_bad_files(&embedded.skipped, monitor);
        let is_file = |cause: Cause| cause == Cause::BadFile;
        let n_damaged_files = embedded.skipped.iter().filter(|skipped| is_file(skipped.cause)).count();
        Ok(EmbedSummary {
            n_images: embedded.n_rows,
            dim: layout.dim,
            n_skipped: embedded.skipped.len() - n_damaged_files,
            n_damaged_files,
            n_with_class: embedded.n_with_class,
            ids_table,
            skipped_list: (!embedded.skipped.is_empty()).then_some(skipped),
            variance_kept,
            images_per_second: rate,
        })
    }

    /// The settings that determine the features, except images and device. The journal holds features at full width and
    /// precision, so settings that are applied when the file is written are left out.
    pub fn key(&self) -> Result<resume::Key> {
        let afterwards = ["reduction", "precision", "device", "output"];
        let files = model_files(&self.model)?;
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        resume::Key::new("embed", self, &afterwards)?.with_files(&files)
    }

    /// The settings as stored in the file of features.
    fn settings(&self, opened: &OpenedEmbedder) -> serde_json::Value {
        let mut settings = json!({
            "command": "embed", "batch": self.batch, "image_size": opened.size, "view": opened.view,
            "device": opened.device,
        });
        if let (Some(settings), Some(facts)) = (settings.as_object_mut(), opened.description.as_object()) {
            settings.extend(facts.clone());
        }
        settings
    }

    fn pca_output(&self) -> Option<&Path> {
        match &self.reduction {
            Reduction::Fit { output, .. } => Some(output),
            Reduction::OfNetwork | Reduction::Pca(_) => None,
        }
    }

    /// Fails early if an output would replace an input or is not writable.
    fn check_outputs(&self, source: &ImageSource, skipped: &Path) -> Result<()> {
        let mut inputs = Files::default().reads_images(source.files()).reads(&model_files(&self.model)?);
        if let Reduction::Pca(path) = &self.reduction {
            inputs = inputs.reads([path]);
        }
        let outputs = [Some(self.output.as_path()), Some(skipped), self.pca_output()];
        let files = inputs.writes(outputs.into_iter().flatten());
        files.writes_beside(&self.output, &[".partial", ".ids.csv"]).check()?;
        for output in outputs.into_iter().flatten() {
            drop(AtomicFile::create(output)?);
        }
        Ok(())
    }

    fn read_pca(&self, opened: &OpenedEmbedder) -> Result<Option<Pca>> {
        let dim = opened.embedder.dim();
        let path = match &self.reduction {
            Reduction::OfNetwork => return Ok(opened.pca.clone()),
            Reduction::Fit { width, .. } if width.get() > dim => {
                return Err(Error::input(
                    words![
                        option("fit_pca"),
                        format!(": expected 1 to {dim}, the width of the features, found {width}"),
                    ],
                    "choose a smaller width",
                ));
            }
            Reduction::Fit { .. } => return Ok(None),
            Reduction::Pca(path) => path,
        };
        let in_file = || format!("`{}`", path.display());
        let pca = Pca::from_tensors(&NetworkFile::load(path)?.tensors).with_context(in_file)?;
        let pca = pca.ok_or_else(|| {
            Error::input(
                format!("`{}` does not contain a PCA", path.display()),
                words!["make one with ", option("fit_pca"), " and ", option("pca_output")],
            )
        })?;
        let found = pca.dim();
        if dim != found {
            let model = self.model.display();
            return Err(Error::input(
                format!(
                    "the PCA in `{}` is for features of {found}, but `{model}` makes {dim}",
                    path.display()
                ),
                "fit it on features of the same network",
            ));
        }
        Ok(Some(pca))
    }

    /// Embeds the remaining images, with a journal record per batch. Returns images per second.
    fn embed(
        &self,
        source: &ImageSource,
        opened: &mut OpenedEmbedder,
        journal: &Journal,
        embedded: &mut EmbeddingProgress,
        monitor: &dyn Monitor,
    ) -> Result<f64> {
        let progress = monitor.progress(source.len_hint().unwrap_or(0) as u64, "images");
        progress.set_message(&opened.name);
        progress.set_position(embedded.n_read as u64);
        progress.reset_eta();
        let began = Instant::now();
        let n_before = embedded.n_read;
        let mut n_zero = 0;
        let preparation = Preparation {
            size: opened.size,
            view: opened.view,
            limits: DecodeLimits::default(),
            batch: self.batch.get(),
        };
        let images = source.images_from(embedded.n_read)?.map(encoded);
        for prepared in prepare(images, preparation)? {
            monitor.watch().check()?;
            let prepared = prepared?;
            check_damage(self.images.on_damage, &prepared.skipped)?;
            let mut features = match &prepared.batch {
                Some(batch) => unit_features(opened.embedder.as_mut(), batch)?,
                None => Vec::new(),
            };
            if let Some(centre) = &opened.centre {
                centre_features(&mut features, centre);
            }
            let rows = features.chunks_exact(opened.embedder.dim().max(1));
            n_zero += rows.filter(|row| row.iter().all(|value| *value == 0.0)).count();
            for skipped in &prepared.skipped {
                monitor.detail(&format!("skipped {}: {}", skipped.id, skipped.reason));
            }
            let first = embedded.n_read.to_string();
            let record = Record::new(prepared, features);
            let bytes = record.bytes();
            if let Some(id) = embedded.add(record) {
                return Err(id_twice(&id));
            }
            journal.append(&first, &bytes)?;
            progress.set_position(embedded.n_read as u64);
        }
        if n_zero > 0 {
            monitor.warning(&format!("{n_zero} images have all-zero feature vectors"));
        }
        Ok((embedded.n_read - n_before) as f64 / began.elapsed().as_secs_f64().max(1e-9))
    }

    /// Fits a PCA on all features and writes it, if requested.
    fn fit(
        &self,
        opened: &OpenedEmbedder,
        journal: &Journal,
        embedded: &EmbeddingProgress,
    ) -> Result<Option<Pca>> {
        let Reduction::Fit { width, output } = &self.reduction else { return Ok(None) };
        let dim = opened.embedder.dim();
        let mut covariance = Covariance::new(dim);
        let mut portion = Vec::new();
        embedded.for_each(journal, dim, |rows| {
            portion.extend_from_slice(rows.values);
            // Only whole portions: sums are rounded per portion, and must not depend on the batch size.
            let whole = portion.len() / (Covariance::PORTION * dim) * (Covariance::PORTION * dim);
            covariance.add(&portion[..whole])?;
            portion.drain(..whole);
            Ok(())
        })?;
        covariance.add(&portion)?;
        let pca = Pca::fit(covariance, width.get())?;
        let recipe = json!({ "fitted_on": embedded.n_rows, "network": opened.name });
        let metadata = NetworkMetadata { recipe, ..NetworkMetadata::default() };
        let file = NetworkFile { tensors: pca.tensors(), metadata: Some(metadata) };
        file.save(output, Precision::F32)?;
        Ok(Some(pca))
    }
}

fn add_rows(writer: &mut FeatureWriter, rows: FeatureRows, pca: Option<&Pca>) -> Result<()> {
    match pca {
        Some(pca) => writer.add(FeatureRows { values: &pca.apply(rows.values)?, ..rows })?,
        None => writer.add(rows)?,
    }
    Ok(())
}

/// Writes the list of unreadable images, or removes that of an earlier run if there are none.
fn write_skipped(path: &Path, embedded: &EmbeddingProgress) -> Result<()> {
    if embedded.skipped.is_empty() {
        if path.is_file() {
            std::fs::remove_file(path).map_err(DataError::io("remove", path))?;
        }
        return Ok(());
    }
    let rows = embedded.skipped.iter().map(|skipped| [skipped.id.as_str(), skipped.reason.as_str()]);
    Ok(labelsieve_files::write_csv(path, ["id", "reason"], rows)?)
}

/// `skipped` is the list of unreadable images.
fn nothing_embedded(n_read: usize, skipped: Option<&Path>) -> Error {
    Error::input(
        format!("no readable images ({n_read} tried)"),
        match skipped {
            None => words!["check ", option("images"), " and ", option("where")],
            Some(list) => words![format!("see the reasons in `{}`", list.display())],
        },
    )
}

/// Later steps find examples by id, so ids must be unique.
fn id_twice(id: &str) -> Error {
    Error::input(
        format!("two images have the same id `{id}`"),
        words![
            "put all images in one folder and embed that, choose another ",
            option("id_column"),
            ", or embed each source into a file of its own",
        ],
    )
}
