//! From images to features.

mod embedded;
mod join;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use labelsieve_files::work::outputs::{Files, OutputKind, beside};
use labelsieve_files::work::{Context, Error, Monitor, Result, path_text, resume};
use labelsieve_files::{
    AtomicFile, DataError, FeatureFormat, FeatureLayout, FeatureRows, FeatureWriter, Journal, NetworkFile,
    NetworkMetadata, Precision,
};
use labelsieve_numerics::Device;
use serde::Serialize;
use serde_json::json;

pub use self::join::{JoinFeatures, JoinedFeatures};

use self::embedded::{Embedded, Record};
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
    /// The network: the name of a built-in one, a file of ours, a ResNet with torchvision's names, a folder of `transformers`, timm
    /// or OpenCLIP, or an ONNX file.
    #[serde(serialize_with = "resume::debug")]
    pub model: PathBuf,
    /// The images.
    #[serde(flatten)]
    pub images: ImageFiles,
    /// Height and width that images are scaled to, if not what the network was trained on.
    pub image_size: Option<(usize, usize)>,
    /// What an ONNX file leaves open.
    pub onnx: OnnxOptions,
    /// How features are made narrower.
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
    /// What becomes of images of which none can be read.
    #[serde(skip)]
    pub on_empty: OnEmpty,
    /// The file to write: `.parquet` with ids and classes, `.npz` or `.npy`.
    #[serde(serialize_with = "resume::debug")]
    pub output: PathBuf,
}

/// What becomes of images of which none can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEmpty {
    /// An error.
    #[default]
    Refuse,
    /// A file without rows: others may have some.
    Write,
}

/// How features are made narrower.
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

/// What was embedded.
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
    /// The list of what could not be read, if anything could not.
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

    /// Embeds all images, or those that an earlier run of the same job did not reach, and writes the features.
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
        let mut embedded = Embedded::default();
        let dim = opened.embedder.dim();
        let journal = resume::open_by_record(
            &journal,
            &key,
            resume::RecordUnits { unit: "batches", total: None },
            monitor,
            |key, payload| {
                // A record that does not follow the one before is work that was never finished.
                let follows = key == embedded.n_read.to_string();
                if let Some(record) = Record::parse(payload, dim).filter(|_| follows) {
                    embedded.add(record);
                }
            },
        )?;
        check_damage(self.images.on_damage, &embedded.skipped)?;
        let rate = self.embed(&source, &mut opened, &journal, &mut embedded, monitor)?;
        write_skipped(&skipped, &embedded)?;
        if embedded.n_rows == 0 && self.on_empty == OnEmpty::Refuse {
            let list = (!embedded.skipped.is_empty()).then_some(skipped.as_path());
            return Err(nothing_embedded(embedded.n_read, list));
        }
        let (pca, variance_kept) = match self.fit(&opened, &journal, &embedded)? {
            Some(fitted) => {
                let kept = f64::from(fitted.kept());
                (Some(fitted), Some(kept))
            }
            None => (pca, None),
        };
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
            match &pca {
                Some(pca) => writer.add(FeatureRows { values: &pca.apply(rows.values)?, ..rows })?,
                None => writer.add(rows)?,
            }
            Ok(())
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

    /// What decides the features, but for the images and the device. Those that are kept are as wide and as precise as the
    /// network made them: what becomes of them then is no part of it.
    pub fn key(&self) -> Result<resume::Key> {
        let afterwards = ["reduction", "precision", "device", "output"];
        let files = model_files(&self.model)?;
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        resume::Key::new("embed", self, &afterwards)?.with_files(&files)
    }

    /// How features are made, as their file says it.
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

    /// Refuses outputs that would replace an input, before any work, and places that cannot be written to.
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
                    format!("--fit-pca: expected 1 to {dim}, the width of the features, found {width}"),
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
                "make one with --fit-pca and --pca-output",
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

    /// Embeds what is not yet done and notes every batch in the journal. Returns images per second.
    fn embed(
        &self,
        source: &ImageSource,
        opened: &mut OpenedEmbedder,
        journal: &Journal,
        embedded: &mut Embedded,
        monitor: &dyn Monitor,
    ) -> Result<f64> {
        let progress = monitor.progress(source.len_hint().unwrap_or(0) as u64, "images");
        progress.set_message(&opened.name);
        progress.set_position(embedded.n_read as u64);
        progress.reset_eta();
        let (began, n_before, mut n_zero) = (Instant::now(), embedded.n_read, 0);
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
            let (first, record) = (embedded.n_read.to_string(), Record::new(prepared, features));
            let bytes = record.bytes();
            if let Some(id) = embedded.add(record) {
                return Err(id_twice(&id));
            }
            journal.append(&first, &bytes)?;
            progress.set_position(embedded.n_read as u64);
        }
        if n_zero > 0 {
            monitor.warning(&format!(
                "{n_zero} of these images have all-zero features, which are similar to nothing: the network gives nothing for them"
            ));
        }
        Ok((embedded.n_read - n_before) as f64 / began.elapsed().as_secs_f64().max(1e-9))
    }

    /// Fits a PCA on all features and writes it, where one is asked for.
    fn fit(&self, opened: &OpenedEmbedder, journal: &Journal, embedded: &Embedded) -> Result<Option<Pca>> {
        let Reduction::Fit { width, output } = &self.reduction else { return Ok(None) };
        let dim = opened.embedder.dim();
        let (mut covariance, mut portion) = (Covariance::new(dim), Vec::new());
        embedded.for_each(journal, dim, |rows| {
            portion.extend_from_slice(rows.values);
            // Whole portions: where they are cut decides how sums are rounded, and the batch size shall not.
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

/// Lists what could not be read; the list of an earlier run goes when there is nothing to list.
fn write_skipped(path: &Path, embedded: &Embedded) -> Result<()> {
    if embedded.skipped.is_empty() {
        if path.is_file() {
            std::fs::remove_file(path).map_err(DataError::io("remove", path))?;
        }
        return Ok(());
    }
    let rows = embedded.skipped.iter().map(|skipped| [skipped.id.as_str(), skipped.reason.as_str()]);
    Ok(labelsieve_files::write_csv(path, ["id", "reason"], rows)?)
}

/// `skipped` is the list of those that could not be read.
fn nothing_embedded(n_read: usize, skipped: Option<&Path>) -> Error {
    Error::input(
        format!("no readable images ({n_read} tried)"),
        match skipped {
            None => "check the sources and the --where conditions".to_owned(),
            Some(list) => format!("`{}` says why", list.display()),
        },
    )
}

/// Everything after `embed` finds examples by their ids.
fn id_twice(id: &str) -> Error {
    Error::input(
        format!("two images have the same id `{id}`"),
        "put all images below one folder and embed that one, choose another --id-column, or embed the sources one by one \
         into files of their own",
    )
}
