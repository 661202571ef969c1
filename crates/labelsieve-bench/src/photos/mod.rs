//! `labelsieve-bench photos`: the paper's tables and figures on photos.
//!
//! `config` names the photos, the meaning of their columns and the source of candidates. `prepare` reads the inputs: the photos
//! (`photo_set`), their candidates (`candidates`), the clean photos of each episode (`draws`) and the features of every backbone
//! (`embedding`, `features`); `pictures` decodes images for fine-tuning. For each backbone and set of candidates, `low_shot` or
//! `five_way` measures all rows on the two halves of the novel classes (`half`, `measure`, `fine_tune`), and `tables`, `figures` and
//! `results` write them to the run directory. Features are computed once per backbone, graphs once per class, and every cell goes into a
//! journal as it finishes: a killed run resumes where it stopped.

pub(crate) mod candidates;
pub(crate) mod config;
pub(crate) mod draws;
pub(crate) mod embedding;
pub(crate) mod features;
mod figures;
mod fine_tune;
mod five_way;
mod half;
mod low_shot;
mod measure;
pub(crate) mod photo_set;
mod pictures;
pub(crate) mod prepare;
mod results;
mod tables;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use config::{Backbone, Config};
use half::PhotoContext;
use labelsieve_files::work::outputs::Files;
use labelsieve_files::work::resume::lock::OutputLock;
use labelsieve_files::work::table::{layout, seconds};
use labelsieve_files::work::{Error, Monitor, Result, option, resume, words};
use labelsieve_jobs::device;
use labelsieve_jobs::device::OpenDevice;
use labelsieve_networks::opening::embedder::model_files;
use labelsieve_numerics::Device;
use labelsieve_report::{Figure, ResultTable, RunDirectory, RunInfo};
use pictures::Pictures;
use prepare::BenchmarkInputs;
use serde::Serialize;
use serde_json::json;

use crate::protocol::{Grid, Run};
use crate::{COMMON, output};

/// Reproduce the paper's tables and figures on photos
#[derive(Args, Serialize)]
pub struct Photos {
    /// Configuration (.toml): photos, columns, candidates, backbones
    #[arg(value_name = "CONFIG")]
    #[serde(serialize_with = "resume::debug")]
    config: PathBuf,

    /// Folder with the photo files [default: $LABELSIEVE_DATA, or the folder of the configuration]
    #[arg(long, value_name = "DIR")]
    #[serde(serialize_with = "resume::debug")]
    data: Option<PathBuf>,

    /// Features of all photos, in place of the configuration's backbones
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "resume::debug")]
    features: Option<PathBuf>,

    /// Network that made --features: its classifier is W_B [default: base prototypes]
    #[arg(long, value_name = "FILE", requires = "features")]
    #[serde(serialize_with = "resume::debug")]
    network: Option<PathBuf>,

    /// Use only these backbones
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    backbones: Vec<String>,

    /// Protocol to follow
    #[arg(long, value_enum, default_value = "low-shot")]
    protocol: ProtocolName,

    /// Report all novel classes with the paper's settings, without tuning
    #[arg(long)]
    untuned: bool,

    /// Also fine-tune the network in the first N episodes of each shot (takes days without a GPU)
    #[arg(long, value_name = "N", default_value_t = 0)]
    fine_tune: usize,

    /// Also measure the systems that the paper compares with: diffusion, logistic regression and others
    #[arg(long)]
    compared: bool,

    /// Device: auto, cpu, cuda or cuda:1; auto uses the first working NVIDIA GPU, or the CPU
    #[arg(long, default_value = "auto", help_heading = COMMON, display_order = 1000)]
    #[serde(serialize_with = "resume::debug")]
    device: Device,

    /// Random seed; the same seed gives the same result
    #[arg(long, default_value_t = 0, value_name = "N", help_heading = COMMON, display_order = 1001)]
    seed: u64,

    /// Output folder with finished work, tables and figures, for `labelsieve report`
    #[arg(short, long, value_name = "RUN")]
    #[serde(serialize_with = "resume::debug")]
    output: PathBuf,

    /// Print the result as JSON
    #[arg(long, help_heading = COMMON, display_order = 1002)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
pub enum ProtocolName {
    /// All novel classes at once, k = 1, 2, 5, 10, 20, five episodes
    LowShot,
    /// The mini-ImageNet protocol: five classes at a time, k = 1 and 5, 600 trials
    #[value(name = "5way")]
    FiveWay,
}

/// The option of the 5way protocol on a command line.
const FIVE_WAY: &str = " --protocol 5way";
/// Options that are not part of the resume key: they add cells without changing any, do not concern cells, or name files that are part of
/// the key themselves.
const NOT_IN_KEY: [&str; 12] = [
    "config",
    "data",
    "features",
    "network",
    "backbones",
    "protocol",
    "untuned",
    "fine_tune",
    "compared",
    "device",
    "output",
    "json",
];

/// The results for the run directory.
#[derive(Default)]
struct CollectedResults {
    results: Vec<serde_json::Value>,
    tables: Vec<ResultTable>,
    figures: Vec<Figure>,
    /// Seconds by stage.
    stages: Vec<(String, f64)>,
}

/// The measurement of one backbone on one set of candidates.
#[derive(Clone, Copy)]
struct Comparison<'a> {
    inputs: &'a BenchmarkInputs,
    context: PhotoContext<'a>,
    backbone: &'a Backbone,
    monitor: &'a dyn Monitor,
}

impl Photos {
    pub(crate) fn run(&self, monitor: &dyn Monitor, out: &mut dyn Write) -> Result<()> {
        let start = Instant::now();
        self.check()?;
        let _lock = OutputLock::inside(&self.output)?; // before anything in there changes
        self.check_folder()?;
        let inputs = self.prepare(monitor)?;
        self.check_files(&inputs)?;
        let directory = self.create_directory(&inputs)?;
        let mut collected = CollectedResults::default();
        collected.add_stage("reading", start.elapsed().as_secs_f64() - inputs.embedding);
        if inputs.embedding > 0.0 {
            collected.add_stage("embedding", inputs.embedding);
        }
        let opened = device::open(self.device, monitor)?;
        let decoding = Instant::now();
        let pictures = (self.fine_tune > 0).then(|| Pictures::decode(&inputs, monitor)).transpose()?;
        if self.fine_tune > 0 {
            collected.add_stage("decoding", decoding.elapsed().as_secs_f64());
        }
        for (b, backbone) in inputs.config.backbones.iter().enumerate() {
            let reading = Instant::now();
            let features = inputs.tables[b].read(backbone, &inputs.photos)?;
            collected.add_stage("reading", reading.elapsed().as_secs_f64());
            let mut run = self.open_run(&inputs, backbone, &opened, monitor)?;
            for candidates in &inputs.candidates {
                let context = inputs.context(candidates, &features);
                let comparison = Comparison { inputs: &inputs, context, backbone, monitor };
                let lines = match self.protocol {
                    ProtocolName::LowShot => {
                        self.low_shot(&comparison, pictures.as_ref(), &mut run, &directory, &mut collected)?
                    }
                    ProtocolName::FiveWay => self.five_way(&comparison, &mut run, &mut collected)?,
                };
                if !self.json {
                    output::lines(out, lines)?;
                }
                // Written after every comparison, so that results can be viewed while the next backbone runs.
                directory.write_tables(&collected.tables)?;
                directory.write_figures(&collected.figures)?;
                results::write(&self.output.join("results.json"), &collected.results)?;
            }
            run.clock.stages().into_iter().for_each(|(stage, time)| collected.add_stage(&stage, time));
        }
        if self.json {
            output::json(out, "photos", &json!({ "results": collected.results }))?;
        }
        collected.report_times(start.elapsed().as_secs_f64(), monitor);
        monitor.note(&format!("run written to `{}`", self.output.display()));
        Ok(())
    }

    /// Rejects conflicting options.
    fn check(&self) -> Result<()> {
        let is_low_shot_only = self.untuned || self.fine_tune > 0 || self.compared;
        if self.protocol == ProtocolName::FiveWay && is_low_shot_only {
            return Err(Error::input(
                words![
                    "the 5way protocol is always tuned, and supports neither fine-tuning nor ",
                    option("compared")
                ],
                words![
                    "drop ",
                    option("untuned"),
                    ", ",
                    option("fine_tune"),
                    " and ",
                    option("compared"),
                    ", or ",
                    option("protocol").set_to("5way"),
                ],
            ));
        }
        Ok(())
    }

    /// Refuses a folder with a run of the other protocol, whose files would be partly overwritten and partly left in place.
    fn check_folder(&self) -> Result<()> {
        let Ok(earlier) = RunDirectory::open(&self.output) else { return Ok(()) };
        let is_five_way = |command: &String| command.contains(FIVE_WAY);
        let protocol = if earlier.info().commands.iter().any(is_five_way) {
            ProtocolName::FiveWay
        } else {
            ProtocolName::LowShot
        };
        let is_benchmark =
            earlier.info().commands.iter().any(|command| command.starts_with(&output::full_name("photos")));
        if !is_benchmark || protocol == self.protocol {
            return Ok(());
        }
        let name = |protocol| match protocol {
            ProtocolName::LowShot => "low-shot",
            ProtocolName::FiveWay => "5way",
        };
        Err(Error::input(
            format!("`{}` contains a run of the {} protocol", self.output.display(), name(protocol)),
            format!("choose another folder with -o for the {} protocol", name(self.protocol)),
        ))
    }

    /// Refuses a run directory in which an output would overwrite an input.
    fn check_files(&self, inputs: &BenchmarkInputs) -> Result<()> {
        const WRITTEN: [&str; 8] = [
            "run.json",
            "tables.json",
            "figures.json",
            "episodes.json",
            "results.json",
            "relevance.parquet",
            "truth.parquet",
            "thumbnails.parquet",
        ];
        let Config { candidates, backbones, .. } = &inputs.config;
        let pool = candidates.pool.as_ref().map(|pool| self.data_folder().join(pool));
        let of_backbones = backbones
            .iter()
            .flat_map(|backbone| [&backbone.features, &backbone.network, &backbone.base_classifier])
            .flatten();
        let files = Files::default().reads([&self.config]).reads(&inputs.photos.files).reads(pool);
        let sets =
            inputs.candidates.iter().map(|set| self.output.join(format!("candidates-{}.parquet", set.name)));
        let files = files.reads(of_backbones).writes(WRITTEN.map(|name| self.output.join(name))).writes(sets);
        files.check()
    }

    /// Creates the run directory, with the files that other programs need to measure on the same examples.
    fn create_directory(&self, inputs: &BenchmarkInputs) -> Result<RunDirectory> {
        let Config { title, description, protocol, candidates, backbones, .. } = &inputs.config;
        let mut info = RunInfo::new(title)
            .setting("shots", format!("{:?}", protocol.shots))
            .setting("episodes", protocol.episodes)
            .setting("seed", self.seed)
            .setting(
                "tuning",
                if self.untuned {
                    "none: the paper's settings, and all novel classes are reported"
                } else {
                    "novel classes at even positions in alphabetical order; the others are reported"
                },
            );
        info.description = description.clone();
        info.simulated_noise = candidates.simulated;
        info.commands = vec![self.command()];
        let noted = backbones.iter().filter(|backbone| !backbone.note.is_empty());
        info.notes = noted.map(|backbone| format!("{}: {}", backbone.name, backbone.note)).collect();
        let directory = RunDirectory::create(&self.output, info)?;
        inputs.draws.write(&inputs.photos, self.untuned, &self.output.join("episodes.json"))?;
        for set in &inputs.candidates {
            set.write(&inputs.photos, &self.output.join(format!("candidates-{}.parquet", set.name)))?;
        }
        Ok(directory)
    }

    fn command(&self) -> String {
        let protocol = match self.protocol {
            ProtocolName::LowShot => "",
            ProtocolName::FiveWay => FIVE_WAY,
        };
        let flag = |given: bool, text: &'static str| if given { text } else { "" };
        let flags = [flag(self.untuned, " --untuned"), flag(self.compared, " --compared")].concat();
        let option = |name: &str, value: String| match value.as_str() {
            "" | "0" => String::new(),
            value => format!(" --{name} {value}"),
        };
        let file = |path: &Option<PathBuf>| path.as_ref().map_or(String::new(), |p| p.display().to_string());
        let options = [
            option("features", file(&self.features)),
            option("network", file(&self.network)),
            option("backbones", self.backbones.join(",")),
            option("fine-tune", self.fine_tune.to_string()),
            option("seed", self.seed.to_string()),
        ];
        format!(
            "labelsieve-bench photos {}{}{protocol}{flags} -o {}",
            self.config.display(),
            options.concat(),
            self.output.display()
        )
    }

    /// Opens the journal of a backbone; a change of its features, the data or the configuration starts a new one.
    fn open_run<'a>(
        &self,
        inputs: &BenchmarkInputs,
        backbone: &Backbone,
        opened: &'a OpenDevice,
        monitor: &dyn Monitor,
    ) -> Result<Run<'a>> {
        let Config { photos, candidates, clean, protocol, .. } = &inputs.config;
        let data = self.data_folder();
        let mut files: Vec<PathBuf> = inputs.photos.files.clone();
        files.extend(candidates.pool.as_ref().map(|pool| data.join(pool)));
        files.extend([&backbone.features, &backbone.base_classifier].into_iter().flatten().cloned());
        if let Some(network) = &backbone.network {
            files.extend(model_files(network)?);
        }
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        // Further shots, rules or trials add cells without changing any.
        let set = json!({ "photos": photos, "clean": clean, "left_out": inputs.n_without });
        let key = resume::Key::new(&output::full_name("photos"), self, &NOT_IN_KEY)?
            .with(&set)
            .on_device(opened.kind());
        let key = key.with_files(&files)?;
        let path = self.output.join(format!("cells-{}.journal", backbone.name));
        let (journal, records) =
            resume::open(&path, &key, resume::RecordUnits { unit: "pieces of work", total: None }, monitor)?;
        let grid = Grid { shots: protocol.shots.clone(), episodes: protocol.episodes, seed: self.seed };
        Ok(Run::new(opened.engine(), journal, records, grid))
    }
}

impl CollectedResults {
    fn add_stage(&mut self, stage: &str, seconds: f64) {
        match self.stages.iter_mut().find(|(name, _)| name == stage) {
            Some((_, sum)) => *sum += seconds,
            None => self.stages.push((stage.to_owned(), seconds)),
        }
    }

    /// Reports the time of each stage.
    fn report_times(&self, total: f64, monitor: &dyn Monitor) {
        let rest = total - self.stages.iter().map(|(_, time)| time).sum::<f64>();
        let line = |name: &str, time: f64| vec![name.to_owned(), seconds(time)];
        let mut rows: Vec<Vec<String>> = self.stages.iter().map(|(name, time)| line(name, *time)).collect();
        rows.push(line("other", rest.max(0.0)));
        rows.push(line("total", total));
        monitor.note("");
        layout(&["stage", "time"], &rows).iter().for_each(|line| monitor.note(line));
    }
}
