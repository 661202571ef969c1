//! `labelsieve bench photos`: the paper's tables and figures on photos that anyone can look at.
//!
//! A configuration names the photos, what their columns mean and where candidates come from. Features are made once per
//! backbone, graphs once per class, and every cell goes into a journal as it finishes: a killed run goes on where it
//! stopped.

mod candidates;
mod config;
mod draws;
mod embedding;
mod features;
mod figures;
mod fine_tune;
mod five_way;
mod half;
mod measure;
mod photos;
mod results;
mod tables;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::{Args, ValueEnum};
use labelsieve::evaluation::alternate_halves;
use labelsieve_cuda::Opened;
use labelsieve_data::{Figure, ResultTable, RunDirectory, RunInfo};
use serde_json::json;

use crate::bench::{Grid, Run};
use crate::device::DeviceArguments;
use crate::hint::user_error;
use crate::network::{Wanted, open_network};
use crate::printer::Printer;
use crate::resume;
use crate::table::{layout, percent, seconds};
use candidates::CandidateSet;
use config::{Backbone, Config};
use draws::Draws;
use features::{BackboneFeatures, FeatureTable};
use fine_tune::FineTuning;
use half::{Ground, Half};
use measure::Outcome;
use photos::Photos;
use tables::Heading;

/// The paper's tables and figures on photos
#[derive(Args)]
pub struct BenchPhotos {
    /// Configuration (.toml): photos, columns, candidates, backbones
    #[arg(value_name = "CONFIG")]
    config: PathBuf,

    /// Folder with the photo files [default: LABELSIEVE_DATA, else the folder of the configuration]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Features of all photos, in place of the configuration's backbones
    #[arg(long, value_name = "FILE")]
    features: Option<PathBuf>,

    /// Network that made --features: its classifier is W_B [default: base prototypes]
    #[arg(long, value_name = "FILE", requires = "features")]
    network: Option<PathBuf>,

    /// Only the backbones of these names
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    backbones: Vec<String>,

    #[arg(long, value_enum, default_value = "low-shot")]
    protocol: ProtocolName,

    /// Fine-tune the network on the first N episodes of each shot; slow without a GPU, and needs a network
    #[arg(long, value_name = "N", default_value_t = 0)]
    fine_tune: usize,

    #[command(flatten)]
    device: DeviceArguments,

    /// The same seed gives the same result
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Folder for the run: finished work, tables, figures; `labelsieve report` reads it
    #[arg(short, long, value_name = "RUN")]
    output: PathBuf,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProtocolName {
    /// All novel classes at once, k = 1, 2, 5, 10, 20, five episodes
    LowShot,
    /// The mini-ImageNet protocol: five classes at a time, k = 1 and 5, 600 trials
    #[value(name = "5way")]
    FiveWay,
}

/// The parts of a run that do not depend on the backbone.
struct Prepared {
    config: Config,
    photos: Photos,
    candidates: Vec<CandidateSet>,
    draws: Draws,
    /// One per backbone.
    tables: Vec<FeatureTable>,
    /// Photos that lack features and take no part.
    n_without: usize,
    /// Seconds that embedding took.
    embedding: f64,
}

/// What goes into the run directory at the end.
#[derive(Default)]
struct Collected {
    results: Vec<serde_json::Value>,
    tables: Vec<ResultTable>,
    figures: Vec<Figure>,
    /// Seconds by stage.
    stages: Vec<(String, f64)>,
}

impl BenchPhotos {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let start = Instant::now();
        let prepared = self.prepare(printer)?;
        let directory = self.create_directory(&prepared)?;
        let mut collected = Collected::default();
        collected.add_stage("reading", start.elapsed().as_secs_f64() - prepared.embedding);
        if prepared.embedding > 0.0 {
            collected.add_stage("embedding", prepared.embedding);
        }
        let opened = self.device.open(printer)?;
        for (b, backbone) in prepared.config.backbones.iter().enumerate() {
            let reading = Instant::now();
            let features = prepared.tables[b].read(backbone, &prepared.photos)?;
            collected.add_stage("reading", reading.elapsed().as_secs_f64());
            let mut run = self.open_run(&prepared, backbone, &opened, printer)?;
            for candidates in &prepared.candidates {
                let ground = prepared.ground(candidates, &features);
                match self.protocol {
                    ProtocolName::LowShot => self.low_shot(
                        &prepared,
                        ground,
                        backbone,
                        &mut run,
                        &directory,
                        &mut collected,
                        printer,
                    )?,
                    ProtocolName::FiveWay => {
                        self.five_way(&prepared, ground, backbone, &mut run, &mut collected, printer)?
                    }
                }
            }
            run.clock.stages().into_iter().for_each(|(stage, time)| collected.add_stage(&stage, time));
        }
        directory.write_tables(&collected.tables)?;
        directory.write_figures(&collected.figures)?;
        results::write(&self.output.join("results.json"), &collected.results)?;
        if self.json {
            printer.json(&collected.results)?;
        }
        collected.say_times(start.elapsed().as_secs_f64(), printer);
        printer.note(&format!("the run is in `{}`", self.output.display()));
        Ok(())
    }

    /// Reads everything that decides the result, and refuses what cannot work before the work.
    fn prepare(&self, printer: &Printer) -> Result<Prepared> {
        let mut config = Config::read(&self.config)?;
        self.choose_backbones(&mut config)?;
        let data = self.data_folder();
        let mut photos = Photos::read(&config.photos, &data)?;
        let mut candidates = CandidateSet::all(&config.candidates, &photos, &data, printer)?;
        Draws::new(&photos, config.clean, &config.protocol, self.seed)?; // refused before the long work
        let mut embedding = 0.0;
        for backbone in &mut config.backbones {
            if backbone.features.is_none() {
                let start = Instant::now();
                backbone.features =
                    Some(embedding::features(self, backbone, &config.photos, &photos, printer)?);
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
            printer.warning(&format!("{n_without} photos have no features and take no part"));
        }
        candidates.iter_mut().for_each(|set| set.leave_out(&has));
        for set in &candidates {
            let (all, mean) = set.noise();
            printer.note(&format!(
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
        Ok(Prepared { config, photos, candidates, draws, tables, n_without, embedding })
    }

    /// --data, else the environment, else beside the configuration.
    fn data_folder(&self) -> PathBuf {
        let beside = || self.config.parent().unwrap_or(Path::new("")).to_path_buf();
        let given = self.data.clone().or_else(|| std::env::var_os("LABELSIEVE_DATA").map(PathBuf::from));
        given.unwrap_or_else(beside)
    }

    fn choose_backbones(&self, config: &mut Config) -> Result<()> {
        if let Some(features) = &self.features {
            let stem = features.file_stem().map_or("features".into(), |stem| stem.to_string_lossy());
            config.backbones = vec![Backbone {
                name: stem.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_"),
                network: self.network.clone(),
                features: Some(features.clone()),
                base_classifier: None,
                note: String::new(),
            }];
        }
        let names: Vec<&str> = config.backbones.iter().map(|backbone| backbone.name.as_str()).collect();
        if let Some(unknown) = self.backbones.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(user_error(
                format!("`{}` has no backbone `{unknown}`", self.config.display()),
                format!("it has {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") }),
            ));
        }
        if !self.backbones.is_empty() {
            config.backbones.retain(|backbone| self.backbones.contains(&backbone.name));
        }
        match config.backbones.is_empty() {
            false => Ok(()),
            true => Err(user_error(
                format!("`{}` names no backbone", self.config.display()),
                "add a `[[backbone]]` to it, or give --features",
            )),
        }
    }

    /// The run directory, with what other programs need to measure on the same examples.
    fn create_directory(&self, prepared: &Prepared) -> Result<RunDirectory> {
        let Config { title, description, protocol, candidates, backbones, .. } = &prepared.config;
        let mut info = RunInfo::new(title)
            .setting("shots", format!("{:?}", protocol.shots))
            .setting("episodes", protocol.episodes)
            .setting("seed", self.seed)
            .setting("tuning", "novel classes at even positions of the alphabet; the others are reported");
        info.description = description.clone();
        info.simulated_noise = candidates.simulated;
        info.commands = vec![self.command()];
        let noted = backbones.iter().filter(|backbone| !backbone.note.is_empty());
        info.notes = noted.map(|backbone| format!("{}: {}", backbone.name, backbone.note)).collect();
        let directory = RunDirectory::create(&self.output, info)?;
        prepared.draws.write(&prepared.photos, &self.output.join("episodes.json"))?;
        for set in &prepared.candidates {
            set.write(&prepared.photos, &self.output.join(format!("candidates-{}.parquet", set.name)))?;
        }
        Ok(directory)
    }

    fn command(&self) -> String {
        let protocol = match self.protocol {
            ProtocolName::LowShot => "",
            ProtocolName::FiveWay => " --protocol 5way",
        };
        format!("labelsieve bench photos {}{protocol} -o {}", self.config.display(), self.output.display())
    }

    /// The journal of a backbone's work: another one when its features, the data or the configuration have changed.
    fn open_run<'a>(
        &self,
        prepared: &Prepared,
        backbone: &Backbone,
        opened: &'a Opened,
        printer: &Printer,
    ) -> Result<Run<'a>> {
        let Config { photos, candidates, clean, protocol, .. } = &prepared.config;
        let data = self.data_folder();
        let mut files: Vec<PathBuf> = prepared.photos.files.clone();
        files.extend(candidates.pool.as_ref().map(|pool| data.join(pool)));
        let made_by = [&backbone.features, &backbone.network, &backbone.base_classifier];
        files.extend(made_by.into_iter().flatten().cloned());
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        // Further shots, rules or trials add cells; they change none.
        let settings = json!({
            "command": "bench photos", "seed": self.seed, "device": opened.kind(), "photos": photos,
            "clean": clean, "left_out": prepared.n_without,
        });
        let fingerprint = resume::fingerprint(&settings, &files)?;
        let path = self.output.join(format!("cells-{}.journal", backbone.name));
        let (journal, records) = resume::open(&path, &fingerprint, "pieces of work", printer)?;
        let grid = Grid { shots: protocol.shots.clone(), episodes: protocol.episodes, seed: self.seed };
        Ok(Run::new(opened.engine(), journal, records, grid))
    }

    /// Tables and figures of one backbone and one set of candidates.
    #[expect(clippy::too_many_arguments, reason = "the whole of a run, each part with a life of its own")]
    fn low_shot(
        &self,
        prepared: &Prepared,
        ground: Ground,
        backbone: &Backbone,
        run: &mut Run,
        directory: &RunDirectory,
        collected: &mut Collected,
        printer: &Printer,
    ) -> Result<()> {
        let (tune, report) = alternate_halves(prepared.photos.novel.len());
        let tuning = Half::new(ground, tune, "tuning").novel_only();
        let report = Half::new(ground, report, "reported");
        let attention = measure::attention(run, &report, self.seed, printer)?;
        let tune_by = prepared.config.protocol.tune_by;
        let mut outcome = measure::measure(run, &tuning, &report, attention.as_ref(), tune_by, printer)?;
        if self.fine_tune > 0 {
            self.fine_tune(prepared, backbone, &report, &mut outcome, run, printer)?;
        }
        let heading = self.heading(prepared, backbone, ground);
        let shots = &prepared.config.protocol.shots;
        collected.tables.extend(tables::result_tables(&outcome, shots, &heading));
        collected.figures.extend(figures::figures(&outcome, &report, shots, &heading));
        collected.results.push(results::json(&outcome, &backbone.name, ground.candidates, shots));
        if !self.json {
            tables::print(&outcome, shots, &heading, printer)?;
        }
        let is_first = backbone.name == prepared.config.backbones[0].name;
        let is_last = prepared.candidates.last().is_some_and(|last| last.name == ground.candidates.name);
        if is_first && is_last {
            let columns = &prepared.config.photos;
            run.clock.time("galleries", || {
                figures::write_gallery(directory, &outcome, &report, shots[0], columns)
            })?;
        }
        Ok(())
    }

    /// Adds the row of the fine-tuned network.
    fn fine_tune(
        &self,
        prepared: &Prepared,
        backbone: &Backbone,
        report: &Half,
        outcome: &mut Outcome,
        run: &mut Run,
        printer: &Printer,
    ) -> Result<()> {
        let Some(path) = &backbone.network else {
            return Err(user_error(
                format!("backbone `{}` has no network to fine-tune", backbone.name),
                "name its `network` in the configuration, or give --network with --features",
            ));
        };
        let opened = open_network(path, Wanted::Features, None)?;
        let device = self.device.open_networks(printer)?;
        let columns = &prepared.config.photos;
        let tuning =
            run.clock.time("decoding", || FineTuning::new(device.networks(), &opened, report, columns))?;
        let row = tuning.row(run, report, &outcome.gcn_row(), self.fine_tune, printer)?;
        outcome.add_after("gcn, cosine", row);
        Ok(())
    }

    fn heading(&self, prepared: &Prepared, backbone: &Backbone, ground: Ground) -> Heading {
        let simulated = if prepared.config.candidates.simulated { "simulated " } else { "" };
        let noise = percent(ground.candidates.noise().0);
        let base =
            if ground.backbone.base_is_learned { "learned with the backbone" } else { "base prototypes" };
        Heading {
            id: format!("{}-{}", backbone.name.replace('.', "_"), ground.candidates.name),
            title: format!("{}, {} ({noise} % {simulated}noise)", backbone.name, ground.candidates.name),
            caption: format!(
                "Mean and 95 % interval over {} episodes; W_B: {base}; {simulated}noise {noise} %.",
                prepared.config.protocol.episodes
            ),
            command: self.command(),
        }
    }
}

impl Prepared {
    fn ground<'a>(&'a self, candidates: &'a CandidateSet, backbone: &'a BackboneFeatures) -> Ground<'a> {
        Ground { photos: &self.photos, draws: &self.draws, candidates, backbone }
    }
}

impl Collected {
    fn add_stage(&mut self, stage: &str, seconds: f64) {
        match self.stages.iter_mut().find(|(name, _)| name == stage) {
            Some((_, sum)) => *sum += seconds,
            None => self.stages.push((stage.to_owned(), seconds)),
        }
    }

    /// How long it took and where the time went.
    fn say_times(&self, total: f64, printer: &Printer) {
        let rest = total - self.stages.iter().map(|(_, time)| time).sum::<f64>();
        let line = |name: &str, time: f64| vec![name.to_owned(), seconds(time)];
        let mut rows: Vec<Vec<String>> = self.stages.iter().map(|(name, time)| line(name, *time)).collect();
        rows.push(line("the rest", rest.max(0.0)));
        rows.push(line("all", total));
        printer.note("");
        layout(&["stage", "time"], &rows).iter().for_each(|line| printer.note(line));
    }
}
