//! `labelsieve embed`: images to features.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use labelsieve_data::images::ImageSource;
use labelsieve_data::{
    AtomicFile, DataError, FeatureFile, FeatureFormat, Journal, NetworkFile, NetworkMetadata, Precision,
};
use labelsieve_vision::images::{Cause, DecodeLimits};
use labelsieve_vision::{Covariance, Learner, Pca, Preparation, prepare, unit_features};
use serde::Serialize;
use serde_json::json;

use super::embedded::Embedded;
use crate::device::DeviceArguments;
use crate::hint::user_error;
use crate::image_inputs::{ImageArguments, encoded, warn_of_bad_files};
use crate::network::{OpenedNetwork, Wanted, open_network};
use crate::network_fingerprint::network_fingerprint;
use crate::outputs::{Files, OutputKind, beside};
use crate::printer::Printer;
use crate::resume;

/// Turn images into features of unit length
#[derive(Args, Serialize)]
pub struct Embed {
    /// Network: a file of `labelsieve pretrain`, or a ResNet-18 or -50 with torchvision's names (.safetensors)
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "resume::debug")]
    model: PathBuf,

    #[command(flatten)]
    #[serde(flatten)]
    images: ImageArguments,

    /// Height and width that images are scaled to, e.g. 224x224 [default: what the network was trained on]
    #[arg(long, value_name = "HxW", value_parser = parse_size)]
    image_size: Option<(usize, usize)>,

    /// Reduce features with this PCA, as --pca-output writes it [default: the one in the network's file, if any]
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "resume::debug")]
    pca: Option<PathBuf>,

    /// Fit a PCA of this width on these images (base classes, that is) and reduce their features with it
    #[arg(long, value_name = "WIDTH", requires = "pca_output", conflicts_with = "pca")]
    fit_pca: Option<NonZeroUsize>,

    /// Where the fitted PCA goes (.safetensors)
    #[arg(long, value_name = "FILE", requires = "fit_pca")]
    #[serde(serialize_with = "resume::debug")]
    pca_output: Option<PathBuf>,

    /// How numbers are stored
    #[arg(long, value_enum, default_value_t = StoredAs::F32)]
    dtype: StoredAs,

    /// Images that go through the network together
    #[arg(long, value_name = "N", default_value = "64", value_parser = parse_batch)]
    batch: NonZeroUsize,

    #[command(flatten)]
    #[serde(flatten)]
    device: DeviceArguments,

    /// Features to write: .parquet with ids and classes, .npz or .npy
    #[arg(short, long, value_name = "FILE")]
    #[serde(serialize_with = "resume::debug")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, Serialize, ValueEnum)]
enum StoredAs {
    F32,
    F16,
}

impl Embed {
    /// What the command does with its defaults: all `images` through `model`.
    pub fn with_defaults(
        model: &Path,
        images: ImageArguments,
        device: DeviceArguments,
        output: &Path,
    ) -> Embed {
        Embed {
            model: model.to_path_buf(),
            images,
            image_size: None,
            pca: None,
            fit_pca: None,
            pca_output: None,
            dtype: StoredAs::F32,
            batch: NonZeroUsize::new(64).unwrap_or(NonZeroUsize::MIN),
            device,
            output: output.to_path_buf(),
        }
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        OutputKind::Features.target(&self.output)?;
        FeatureFormat::of(&self.output)?;
        if let Some(pca) = &self.pca_output {
            OutputKind::Weights.target(pca)?;
        }
        let source = self.images.open()?;
        let skipped = beside(&self.output, ".skipped.csv");
        self.check_outputs(&source, &skipped)?;
        if let Some(id) = source.id_listed_twice() {
            return Err(id_twice(id));
        }
        let opened = open_network(&self.model, Wanted::Features, self.image_size)?;
        let pca = self.read_pca(&opened)?;
        let device = self.device.open_networks(printer)?;
        let mut learner = device.learners().learner(&opened.network, &opened.snapshot)?;

        let settings = json!({
            "command": "embed", "architecture": opened.metadata.architecture, "batch": self.batch,
            "image_size": opened.metadata.image_size, "view": opened.view, "device": device.kind(),
        });
        let key = self.key()?.with(&settings).on_device(device.kind()).with_images(&source)?;
        let journal = beside(&self.output, ".partial");
        let (journal, finished) = resume::open(&journal, &key, (None, "batches"), printer)?;
        let mut embedded = Embedded::default();
        for (key, payload) in finished {
            // A record that does not follow the one before is work that was never finished.
            if key != embedded.n_read.to_string() || !embedded.append_record(&payload, opened.network.dim()) {
                break;
            }
        }
        self.images.damage.check(&embedded.skipped)?;
        let rate = self.embed(&source, &opened, learner.as_mut(), &journal, &mut embedded, printer)?;
        self.write_skipped(&skipped, &embedded)?;
        if embedded.ids.is_empty() {
            return Err(user_error(
                format!("none of the {} images can be read", embedded.n_read),
                match embedded.skipped.is_empty() {
                    true => "check the sources and the --where conditions".to_owned(),
                    false => format!("`{}` says why", skipped.display()),
                },
            ));
        }
        let pca = self.reduce(pca, &opened, &mut embedded, printer)?;
        let dim = pca.as_ref().map_or(opened.network.dim(), Pca::width);
        let network = network_fingerprint(&opened, pca.as_ref())?;
        self.write(&embedded, dim, &network, &settings, printer)?;
        report(&embedded, &skipped, rate, printer);
        journal.remove()?;
        Ok(())
    }

    /// What decides the features, but for the images and the device. Those that are kept are as wide and as precise as the
    /// network made them: what becomes of them then is no part of it.
    pub fn key(&self) -> Result<resume::Key> {
        let afterwards = ["pca", "fit_pca", "pca_output", "dtype", "device", "output"];
        resume::Key::new("embed", self, &afterwards)?.with_files(&[&self.model])
    }

    /// Refuses outputs that would replace an input, before any work, and places that cannot be written to.
    fn check_outputs(&self, source: &ImageSource, skipped: &Path) -> Result<()> {
        let inputs = Files::default().reads_images(source.files()).reads([&self.model]).reads(&self.pca);
        let outputs = [Some(self.output.as_path()), Some(skipped), self.pca_output.as_deref()];
        let files = inputs.writes(outputs.into_iter().flatten());
        files.writes_beside(&self.output, &[".partial", ".ids.csv"]).check()?;
        for output in outputs.into_iter().flatten() {
            drop(AtomicFile::create(output)?);
        }
        Ok(())
    }

    fn read_pca(&self, opened: &OpenedNetwork) -> Result<Option<Pca>> {
        let dim = opened.network.dim();
        if let Some(width) = self.fit_pca.filter(|width| width.get() > dim) {
            return Err(user_error(
                format!("--fit-pca: expected 1 to {dim}, the width of the features, found {width}"),
                "choose a smaller width",
            ));
        }
        let Some(path) = &self.pca else {
            return Ok(if self.fit_pca.is_some() { None } else { opened.pca.clone() });
        };
        let in_file = || format!("`{}`", path.display());
        let pca = Pca::from_tensors(&NetworkFile::load(path)?.tensors).with_context(in_file)?;
        let pca = pca.ok_or_else(|| {
            user_error(
                format!("`{}` holds no PCA", path.display()),
                "make one with --fit-pca and --pca-output",
            )
        })?;
        let found = pca.dim();
        if dim != found {
            let model = self.model.display();
            return Err(user_error(
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
        opened: &OpenedNetwork,
        learner: &mut dyn Learner,
        journal: &Journal,
        embedded: &mut Embedded,
        printer: &Printer,
    ) -> Result<f64> {
        let progress = printer.progress(source.len_hint().unwrap_or(0) as u64, "images");
        progress.set_message(opened.metadata.architecture.clone());
        progress.set_position(embedded.n_read as u64);
        progress.reset_eta();
        let (began, n_before) = (Instant::now(), embedded.n_read);
        let preparation = Preparation {
            size: opened.metadata.image_size,
            view: opened.view,
            limits: DecodeLimits::default(),
            batch: self.batch.get(),
        };
        let mut seen: HashSet<String> = embedded.ids.iter().cloned().collect();
        let images = source.images_from(embedded.n_read)?.map(encoded);
        for prepared in prepare(images, preparation)? {
            let prepared = prepared?;
            if let Some(id) = prepared.ids.iter().find(|id| !seen.insert((*id).clone())) {
                return Err(id_twice(id));
            }
            self.images.damage.check(&prepared.skipped)?;
            let features = match &prepared.batch {
                Some(batch) => unit_features(learner, batch)?,
                None => Vec::new(),
            };
            for skipped in &prepared.skipped {
                printer.detail(&format!("skipped {}: {}", skipped.id, skipped.reason));
            }
            let first = embedded.n_read.to_string();
            journal.append(&first, &embedded.append(prepared, features))?;
            progress.set_position(embedded.n_read as u64);
        }
        progress.finish_and_clear();
        Ok((embedded.n_read - n_before) as f64 / began.elapsed().as_secs_f64().max(1e-9))
    }

    /// Applies a PCA, or fits one first. Returns it, if there is one.
    fn reduce(
        &self,
        pca: Option<Pca>,
        opened: &OpenedNetwork,
        embedded: &mut Embedded,
        printer: &Printer,
    ) -> Result<Option<Pca>> {
        let dim = opened.network.dim();
        let pca = match (pca, self.fit_pca, &self.pca_output) {
            (None, Some(width), Some(output)) => {
                let mut covariance = Covariance::new(dim);
                covariance.add(&embedded.features)?;
                let pca = Pca::fit(covariance, width.get())?;
                let share = 100.0 * pca.kept();
                let recipe =
                    json!({ "fitted_on": embedded.ids.len(), "network": opened.metadata.architecture });
                let metadata = NetworkMetadata { recipe, ..NetworkMetadata::default() };
                let file = NetworkFile { tensors: pca.tensors(), metadata: Some(metadata) };
                file.save(output, Precision::F32)?;
                printer.note(&format!(
                    "a PCA of width {width} keeps {share:.1} % of the variance, in `{}`",
                    output.display()
                ));
                Some(pca)
            }
            (pca, _, _) => pca,
        };
        if let Some(pca) = &pca {
            embedded.features = pca.apply(&embedded.features)?;
        }
        Ok(pca)
    }

    fn write(
        &self,
        embedded: &Embedded,
        dim: usize,
        network: &str,
        settings: &serde_json::Value,
        printer: &Printer,
    ) -> Result<()> {
        let precision = match self.dtype {
            StoredAs::F32 => Precision::F32,
            StoredAs::F16 => Precision::F16,
        };
        let (ids, labels) = (&embedded.ids, &embedded.labels);
        let file =
            FeatureFile { ids, labels, dim, values: &embedded.features, precision, network: Some(network) };
        let table = file.write(&self.output, &settings.to_string())?;
        printer.note(&format!(
            "{} images as rows of {dim} numbers in `{}`",
            ids.len(),
            self.output.display()
        ));
        if let Some(table) = table {
            printer.note(&format!(
                "their ids and classes are in `{}`; Parquet would hold all in one",
                table.display()
            ));
        }
        let n_known = labels.iter().flatten().count();
        if n_known > 0 && n_known < labels.len() {
            printer.warning(&format!("only {n_known} of {} images have a class", labels.len()));
        }
        Ok(())
    }

    /// Lists what could not be read; the list of an earlier run goes when there is nothing to list.
    fn write_skipped(&self, path: &Path, embedded: &Embedded) -> Result<()> {
        if embedded.skipped.is_empty() {
            if path.is_file() {
                std::fs::remove_file(path).map_err(DataError::io("remove", path))?;
            }
            return Ok(());
        }
        let rows = embedded.skipped.iter().map(|skipped| [skipped.id.as_str(), skipped.reason.as_str()]);
        Ok(labelsieve_data::write_csv(path, ["id", "reason"], rows)?)
    }
}

fn report(embedded: &Embedded, skipped: &Path, rate: f64, printer: &Printer) {
    printer.detail(&format!("{rate:.0} images per second"));
    warn_of_bad_files(&embedded.skipped, printer);
    let n_bad_files = embedded.skipped.iter().filter(|skipped| skipped.cause == Cause::BadFile).count();
    let n_skipped = embedded.skipped.len() - n_bad_files;
    let list = skipped.display();
    if n_skipped > 0 {
        let n_read = embedded.n_read - n_bad_files;
        printer.warning(&format!("{n_skipped} of {n_read} images were skipped; `{list}` says why"));
    }
    if n_bad_files > 0 {
        let files = if n_bad_files == 1 { "file was" } else { "files were" };
        printer.warning(&format!("{n_bad_files} damaged {files} not read to the end; see `{list}`"));
    }
}

/// Everything after `embed` finds examples by their ids.
fn id_twice(id: &str) -> anyhow::Error {
    user_error(
        format!("two of the images have the id `{id}`"),
        "put all images below one folder and embed that one, choose another --id-column, or embed the sources one by one \
         into files of their own",
    )
}

/// More do not fit any memory, and make nothing faster.
fn parse_batch(text: &str) -> std::result::Result<NonZeroUsize, String> {
    const MOST: usize = 1 << 16;
    let number = text.parse().ok().filter(|n: &NonZeroUsize| n.get() <= MOST);
    number.ok_or_else(|| format!("expected a number from 1 to {MOST}"))
}

/// `224` or `80x60`, height first.
fn parse_size(text: &str) -> std::result::Result<(usize, usize), String> {
    let number = |text: &str| text.parse().ok().filter(|n| (1..=4096).contains(n));
    let (height, width) = text.split_once('x').unwrap_or((text, text));
    number(height).zip(number(width)).ok_or_else(|| "expected HEIGHTxWIDTH, each from 1 to 4096".to_owned())
}
