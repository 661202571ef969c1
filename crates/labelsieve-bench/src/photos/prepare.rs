//! Reading the inputs of a run: configuration, photos, candidates, clean draws, features.

use std::path::{Path, PathBuf};
use std::time::Instant;

use labelsieve_files::work::table::percent;
use labelsieve_files::work::{Context, Error, Monitor, Result, option, words};

use super::candidates::CandidateSet;
use super::config::{Backbone, Config};
use super::draws::Draws;
use super::features::{BackboneFeatures, FeatureTable};
use super::half::PhotoContext;
use super::photo_set::PhotoSet;
use super::{Photos, embedding};

/// The parts of a run that do not depend on the backbone.
pub struct BenchmarkInputs {
    pub config: Config,
    pub photos: PhotoSet,
    pub candidates: Vec<CandidateSet>,
    pub draws: Draws,
    /// One per backbone.
    pub tables: Vec<FeatureTable>,
    /// The number of photos without features, which are left out.
    pub n_without: usize,
    /// Seconds that embedding took.
    pub embedding: f64,
}

impl BenchmarkInputs {
    pub fn context<'a>(
        &'a self,
        candidates: &'a CandidateSet,
        backbone: &'a BackboneFeatures,
    ) -> PhotoContext<'a> {
        PhotoContext { photos: &self.photos, draws: &self.draws, candidates, backbone }
    }
}

/// The folder of the photo files: the given one, the one of the environment, or that of the configuration.
pub fn data_folder(config: &Path, given: Option<&Path>) -> PathBuf {
    let beside = || config.parent().unwrap_or(Path::new("")).to_path_buf();
    let given = given.map(Path::to_path_buf);
    given.or_else(|| std::env::var_os("LABELSIEVE_DATA").map(PathBuf::from)).unwrap_or_else(beside)
}

impl Photos {
    /// Reads the inputs, and fails before any long work if they cannot be used.
    pub(super) fn prepare(&self, monitor: &dyn Monitor) -> Result<BenchmarkInputs> {
        let mut config = Config::read(&self.config)?;
        self.choose_backbones(&mut config, monitor)?;
        let data = self.data_folder();
        let mut photos = PhotoSet::read(&config.photos, &data)?;
        let mut candidates = CandidateSet::all(&config.candidates, &photos, &data, monitor)?;
        Draws::new(&photos, config.clean, &config.protocol, self.seed)?; // fail before the embedding
        let mut embedding = 0.0;
        for backbone in &mut config.backbones {
            if backbone.features.is_none() {
                let start = Instant::now();
                let network =
                    backbone.network.as_deref().context("the backbone has neither features nor a network")?;
                let images = embedding::images_of(&photos, &config.photos);
                let name = &backbone.name;
                let made = embedding::features(network, name, images, self.device, &self.output, monitor)?;
                backbone.features = Some(made);
                embedding += start.elapsed().as_secs_f64();
            }
        }
        let mut tables = Vec::new();
        for path in config.backbones.iter().filter_map(|backbone| backbone.features.as_deref()) {
            tables.push(FeatureTable::open(path, &photos)?);
        }
        let has: Vec<bool> =
            (0..photos.ids.len()).map(|photo| tables.iter().all(|table| table.has(photo))).collect();
        let n_without = photos.leave_out(&has)?;
        if n_without > 0 {
            monitor.warning(&format!("{n_without} photos have no features and are not used"));
        }
        candidates.iter_mut().for_each(|set| set.leave_out(&has));
        for set in &candidates {
            let (all, mean) = set.noise();
            monitor.note(&format!(
                "{}: {} candidates of {} classes, {} % {}noise ({} % by class)",
                set.name,
                set.len(),
                photos.novel.len(),
                percent(all),
                if config.candidates.simulated { "simulated " } else { "" },
                percent(mean)
            ));
        }
        let draws = Draws::new(&photos, config.clean, &config.protocol, self.seed)?;
        Ok(BenchmarkInputs { config, photos, candidates, draws, tables, n_without, embedding })
    }

    /// The folder of the photo files.
    pub(super) fn data_folder(&self) -> PathBuf {
        data_folder(&self.config, self.data.as_deref())
    }

    fn choose_backbones(&self, config: &mut Config, monitor: &dyn Monitor) -> Result<()> {
        if let Some(features) = &self.features {
            let stem = features.file_stem().map_or("features".into(), |stem| stem.to_string_lossy());
            config.backbones = vec![Backbone {
                name: stem.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_"),
                network: self.network.clone(),
                features: Some(features.clone()),
                made_by: None,
                base_classifier: None,
                note: String::new(),
            }];
        }
        for name in &self.backbones {
            config.backbone(name, &self.config)?;
        }
        if !self.backbones.is_empty() {
            config.backbones.retain(|backbone| self.backbones.contains(&backbone.name));
        }
        if config.backbones.is_empty() {
            return Err(Error::input(
                format!("`{}` names no backbones", self.config.display()),
                words!["add a `[[backbone]]` to it, or give ", option("features")],
            ));
        }
        self.leave_out_unmade(config, monitor)?;
        self.check_networks(config, monitor)
    }

    /// Notes the backbones without a network to fine-tune; at least one must have one.
    fn check_networks(&self, config: &Config, monitor: &dyn Monitor) -> Result<()> {
        let (with, without): (Vec<_>, Vec<_>) =
            config.backbones.iter().partition(|backbone| backbone.network.is_some());
        if self.fine_tune == 0 || without.is_empty() {
            return Ok(());
        }
        if with.is_empty() {
            return Err(Error::input(
                format!("backbone `{}` has no network to fine-tune", without[0].name),
                words![
                    "name its `network` in the configuration, or give ",
                    option("network"),
                    " with ",
                    option("features"),
                ],
            ));
        }
        let names: Vec<&str> = without.iter().map(|backbone| backbone.name.as_str()).collect();
        monitor.note(&format!("no network to fine-tune: {}", names.join(", ")));
        Ok(())
    }

    /// Skips backbones whose features another program has yet to make, unless they were requested.
    fn leave_out_unmade(&self, config: &mut Config, monitor: &dyn Monitor) -> Result<()> {
        let unmade = |backbone: &Backbone| {
            let missing = backbone.features.clone().filter(|path| !path.exists())?;
            Some((missing, backbone.made_by.clone()?))
        };
        for backbone in &config.backbones {
            let Some((path, command)) = unmade(backbone) else { continue };
            let name = &backbone.name;
            let hint = format!("`{command}` makes them");
            if !self.backbones.is_empty() {
                return Err(Error::input(
                    format!("backbone `{name}` has no features at `{}`", path.display()),
                    hint,
                ));
            }
            monitor.note(&format!("backbone {name} is skipped: no features at `{}`; {hint}", path.display()));
        }
        let (left_out, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut config.backbones).into_iter().partition(|b| unmade(b).is_some());
        config.backbones = kept;
        match left_out.iter().find_map(unmade) {
            Some((path, command)) if config.backbones.is_empty() => Err(Error::input(
                format!(
                    "no backbone of `{}` has features yet, e.g. `{}`",
                    self.config.display(),
                    path.display()
                ),
                format!("`{command}` makes them"),
            )),
            _ => Ok(()),
        }
    }
}
