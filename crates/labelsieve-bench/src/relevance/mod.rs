//! `labelsieve-bench relevance`: every method on sets with different kinds of noise, on the same draws.
//!
//! `source` reads the sets (`sets/`), `methods` lists the contenders. For each set, `trial` draws clean examples, `score` and `cell`
//! measure a method in a draw, `classifiers` what is learned from its scores, and `cells` keeps the results in a journal, from which a killed run resumes. `summary` averages over the
//! draws and compares methods on the same draws with paired intervals; `tables`, `figures` and `overall` show the results. Classes are
//! split into halves, so that settings are never chosen on the reported classes.

mod cell;
mod cells;
mod classifiers;
mod figures;
mod methods;
mod overall;
mod score;
mod source;
mod summary;
mod tables;
mod trial;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use labelsieve::evaluation::alternate_halves;
use labelsieve_files::work::resume::lock::OutputLock;
use labelsieve_files::work::table::percent;
use labelsieve_files::work::{Monitor, Result, json_answer};
use labelsieve_files::{AtomicFile, DataError};
use labelsieve_jobs::device;
use labelsieve_jobs::device::OpenDevice;
use labelsieve_numerics::Device;
use serde::Serialize;
use serde_json::json;

use self::cells::Cells;
use self::classifiers::ClassifierName;
use self::methods::Contender;
use self::source::NamedFile;
use self::summary::Row;
use crate::sets::KnownSet;
use crate::{COMMON, output};

/// Compare the relevance methods on sets with ground truth
#[derive(Args, Serialize)]
pub struct Relevance {
    /// Configurations of photo sets (.toml), as for `labelsieve-bench photos`, beside the icons and the generated sets
    #[arg(value_name = "CONFIG")]
    #[serde(skip)]
    configs: Vec<PathBuf>,

    /// Folder with the photo files [default: $LABELSIEVE_DATA, or the folder of the configuration]
    #[arg(long, value_name = "DIR", requires = "configs")]
    #[serde(skip)]
    data: Option<PathBuf>,

    /// Backbone of the configurations [default: the first of each]; built-in embeds the icons too
    #[arg(long, value_name = "NAME")]
    backbone: Option<String>,

    /// Precomputed features of a set by its backbone, e.g. tiny=features.parquet or icons=features.parquet
    #[arg(long, value_name = "CONFIG=FILE")]
    #[serde(skip)]
    features: Vec<NamedFile>,

    /// Sets to measure, e.g. icons,fashion-phrase,generated [default: all]
    #[arg(long, value_name = "SET", value_delimiter = ',')]
    #[serde(skip)]
    sets: Vec<String>,

    /// Classes to measure: those at odd positions, those at even ones, on which settings may be chosen, or all
    #[arg(long, value_enum, default_value = "report")]
    #[serde(skip)]
    half: Half,

    /// Methods to compare, with settings after colons, e.g. gcn,gcn:lambda=0.5 [default: all]
    #[arg(long, value_name = "METHOD", value_delimiter = ',', value_parser = Contender::parse)]
    #[serde(skip)]
    methods: Vec<Contender>,

    /// Classifiers to learn from the scores of every method, beside prototypes
    #[arg(long, value_enum, value_name = "CLASSIFIER", value_delimiter = ',')]
    #[serde(skip)]
    classifiers: Vec<ClassifierName>,

    /// Methods to measure again, ignoring results of earlier runs
    #[arg(long, value_name = "METHOD", value_delimiter = ',', value_parser = Contender::parse)]
    #[serde(skip)]
    again: Vec<Contender>,

    /// Clean examples per class; numbers larger than a set allows are skipped
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [1, 2, 5, 10, 20], value_parser = parse_count)]
    #[serde(skip)]
    shots: Vec<usize>,

    /// Draws of clean examples; figures are means over them
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = parse_count)]
    #[serde(skip)]
    draws: usize,

    /// Device: auto, cpu, cuda or cuda:1; auto uses the first working NVIDIA GPU, or the CPU
    #[arg(long, default_value = "auto", help_heading = COMMON, display_order = 1000)]
    #[serde(skip)]
    device: Device,

    /// Random seed; the same seed gives the same result
    #[arg(long, default_value_t = 0, value_name = "N", help_heading = COMMON, display_order = 1001)]
    seed: u64,

    /// Folder for features, finished work, figures and the result as JSON
    #[arg(short, long, value_name = "DIR")]
    #[serde(skip)]
    output: PathBuf,

    /// Print the result as JSON
    #[arg(long, help_heading = COMMON, display_order = 1002)]
    #[serde(skip)]
    json: bool,
}

/// The half of a set's classes to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Half {
    Report,
    Tune,
    All,
}

fn parse_count(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|k| (1..=1000).contains(k));
    number.ok_or_else(|| "expected an integer from 1 to 1000".to_owned())
}

/// The results on a set.
#[derive(Serialize)]
struct SetResult {
    set: String,
    n_classes: usize,
    n_base_classes: usize,
    n_candidates: usize,
    /// Irrelevant share of the candidates.
    noise_ratio: f64,
    rows: Vec<Row>,
    /// Files; as text, since paths need not be UTF-8.
    figures: Vec<String>,
}

impl Relevance {
    pub(crate) fn run(&self, monitor: &dyn Monitor, out: &mut dyn Write) -> Result<()> {
        self.check_names()?;
        let _lock = OutputLock::inside(&self.output)?;
        let sets = self.read_sets(monitor)?;
        let opened = device::open(self.device, monitor)?;
        let contenders = Contender::list(&self.methods);
        let mut results = Vec::new();
        for set in sets {
            let result = self.measure(&self.half.of(set), &contenders, &opened, monitor)?;
            if !self.json {
                output::lines(out, result.lines())?;
            }
            results.push(result);
        }
        let overall = overall::rows(
            results.iter().map(|result: &SetResult| (result.set.as_str(), result.rows.as_slice())),
        );
        let found = json!({
            "half": self.half, "draws": self.draws, "seed": self.seed, "sets": results, "overall": overall,
        });
        write_text(
            &self.output.join("results.json"),
            &json_answer(&output::full_name("relevance"), &found)?,
        )?;
        if self.json {
            return output::json(out, "relevance", &found);
        }
        output::lines(out, overall::table(&overall))?;
        monitor.note(LEGEND);
        Ok(())
    }

    fn measure(
        &self,
        set: &KnownSet,
        contenders: &[Contender],
        opened: &OpenDevice,
        monitor: &dyn Monitor,
    ) -> Result<SetResult> {
        let shots = self.shots_of(set, monitor);
        let mut cells = Cells::open(self, set, opened, monitor)?;
        cells.measure(self, set, contenders, &shots, opened, monitor)?;
        let mut rows = Vec::new();
        for &k in &shots {
            let draws = |contender: &Contender| {
                (0..self.draws)
                    .map(|draw| cells.get(&self.key(k, draw, contender)))
                    .collect::<Result<Vec<_>>>()
            };
            let of_shots = contenders.iter().map(draws).collect::<Result<Vec<_>>>()?;
            rows.extend(summary::rows(k, contenders, &of_shots, set.classes.len()));
        }
        let figures = figures::write(&set.name, &rows, &self.output.join("figures"))?;
        let relevant = || set.classes.iter().flat_map(|class| &class.relevant);
        let n_candidates = relevant().count();
        Ok(SetResult {
            set: set.name.clone(),
            n_classes: set.classes.len(),
            n_base_classes: set.base.len(),
            n_candidates,
            noise_ratio: relevant().filter(|relevant| !**relevant).count() as f64
                / n_candidates.max(1) as f64,
            rows,
            figures: figures.iter().map(|path| path.display().to_string()).collect(),
        })
    }

    /// The numbers of clean examples to measure that every class has, ascending.
    fn shots_of(&self, set: &KnownSet, monitor: &dyn Monitor) -> Vec<usize> {
        let max_shots = set.classes.iter().map(|class| class.labelled.len()).min().unwrap_or(0);
        let mut shots = self.shots.clone();
        shots.sort_unstable();
        shots.dedup();
        let (shots, left_out): (Vec<usize>, Vec<usize>) = shots.into_iter().partition(|&k| k <= max_shots);
        for k in left_out {
            monitor.note(&format!(
                "{}: k = {k} skipped: a class has only {max_shots} examples to draw from",
                set.name
            ));
        }
        shots
    }

    /// The key of a cell in the journal.
    fn key(&self, k: usize, draw: usize, contender: &Contender) -> String {
        let classifiers = match self.classifiers.as_slice() {
            [] => String::new(),
            names => format!(" {names:?}"),
        };
        format!("{:?} k={k} draw={draw} {}{classifiers}", self.half, contender.source.key())
    }
}

const LEGEND: &str = "↓: the 95 % interval of the difference to the best of clean-only, beta and similarity on the same draws is below 0\n\
    of the way: from clean-only to the oracle, in top-5; differences in top-1 points, on the same draws";

impl Half {
    /// The set with only the classes of this half.
    fn of(self, mut set: KnownSet) -> KnownSet {
        let (tune, report) = alternate_halves(set.classes.len());
        let chosen = match self {
            Half::Report => report,
            Half::Tune => tune,
            Half::All => return set,
        };
        set.classes = chosen.into_iter().map(|c| set.classes[c].clone()).collect();
        set
    }
}

impl SetResult {
    fn lines(&self) -> Vec<String> {
        let SetResult { set, n_classes, n_base_classes, n_candidates, noise_ratio, .. } = self;
        let base = match n_base_classes {
            0 => String::new(),
            n => format!(", {n} base classes"),
        };
        let mut lines = vec![
            format!(
                "{set}: {n_classes} classes{base}, {n_candidates} candidates, {} % wrong",
                percent(*noise_ratio)
            ),
            String::new(),
        ];
        lines.extend(tables::results(&self.rows));
        lines.push(String::new());
        lines.extend(tables::comparison(&self.rows));
        lines.push(String::new());
        if self.rows.iter().any(|row| !row.classifiers.is_empty()) {
            lines.extend(tables::classifiers(&self.rows));
            lines.push(String::new());
        }
        lines
    }
}

fn write_text(path: &Path, text: &str) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    writeln!(file, "{text}").map_err(DataError::io("write", path))?;
    Ok(file.commit()?)
}
