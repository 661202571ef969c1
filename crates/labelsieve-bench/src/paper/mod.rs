//! `labelsieve-bench paper`: the paper's tables from its released features.
//!
//! `release` reads the released files, with `splits` and `legacy_numpy` for the clean examples of each episode. Class by class, the pool is
//! read and its graph built once, every method, shot and episode is scored on it (`protocol/`), and the prototypes go into the run's
//! journal. A killed run resumes with the next batch of classes; a finished one is printed again at once. `published` holds the paper's
//! figures, printed beside ours.

pub(crate) mod legacy_numpy;
mod published;
mod release;
pub(crate) mod splits;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use labelsieve::Method;
use labelsieve::classifier::Cosine;
use labelsieve::evaluation::{GroupGain, Interval, Trial};
use labelsieve_files::work::table::layout;
use labelsieve_files::work::{Monitor, Result, resume};
use labelsieve_jobs::device;
use labelsieve_jobs::estimate::Workload;
use labelsieve_numerics::Device;
use published::{Classes, SHOTS};
use release::{Backbone, Dataset, Part, Phase, Release};
use serde::Serialize;

use crate::protocol::{
    CellResult, Cells, Grid, Row, Run, Task, TuningResult, cell, choose_cosine, gain_by_pool_size,
    gain_lines, gcn, intervals, prototype_rows, settings_of, shot_header, tune,
};
use crate::{COMMON, output, systems};

/// Reproduce the paper's tables from its released features
#[derive(Args, Serialize)]
pub struct Paper {
    /// Folder with the released .npz features
    #[arg(long, value_name = "DIR")]
    #[serde(serialize_with = "resume::debug")]
    features: PathBuf,

    /// Folder with the released splits and episodes
    #[arg(long, value_name = "DIR")]
    #[serde(serialize_with = "resume::debug")]
    splits: PathBuf,

    /// Dataset of the release
    #[arg(long, value_enum, default_value = "imagenet")]
    dataset: Dataset,

    /// Backbone of the features
    #[arg(long, value_enum, default_value = "resnet10")]
    backbone: Backbone,

    /// Clean examples per class, comma-separated: any of 1, 2, 5, 10, 20
    #[arg(long, value_delimiter = ',', default_values_t = SHOTS, value_parser = parse_shot)]
    shots: Vec<usize>,

    /// Number of episodes, up to 5
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=5))]
    episodes: u8,

    /// Choose λ, β*, batch size and epochs on the validation classes (needs their candidates) [default: the paper's λ]
    #[arg(long)]
    tune: bool,

    /// Skip the cosine classifier
    #[arg(long)]
    no_cosine: bool,

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

    /// File with the finished work; a run with the same settings resumes from it
    #[arg(long, value_name = "FILE", default_value = "labelsieve-bench-paper.run")]
    #[serde(serialize_with = "resume::debug")]
    run: PathBuf,

    /// Only estimate memory and time
    #[arg(long)]
    dry_run: bool,

    /// Print the result as JSON
    #[arg(long, help_heading = COMMON, display_order = 1002)]
    json: bool,
}

/// Options that are not part of the resume key: they add cells without changing any, or do not concern cells.
const NOT_IN_KEY: [&str; 9] =
    ["shots", "episodes", "tune", "no_cosine", "compared", "device", "run", "dry_run", "json"];

fn parse_shot(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|k| SHOTS.contains(k))
        .ok_or_else(|| "expected one of 1, 2, 5, 10, 20".to_owned())
}

#[derive(Serialize)]
struct Report {
    shots: Vec<usize>,
    episodes: usize,
    rows: Vec<ReportRow>,
    /// Top-1 gain of gcn over clean only at the fewest shots, by number of candidates.
    gain_by_pool_size: Vec<GroupGain>,
    tuned: Option<ChosenSettings>,
}

#[derive(Serialize)]
struct ReportRow {
    name: &'static str,
    novel_top_5: Vec<Interval>,
    novel_top_1: Vec<Interval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    all_top_5: Option<Vec<Interval>>,
    /// The paper's top-5 in per cent, for the same shots.
    #[serde(skip_serializing_if = "Option::is_none")]
    paper_novel_top_5: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paper_all_top_5: Option<Vec<f64>>,
}

/// The settings chosen on the validation classes, by shot.
#[derive(Clone, Serialize)]
struct ChosenSettings {
    gcn_lambda: Vec<Trial<f32>>,
    mlp_lambda: Vec<Trial<f32>>,
    beta: Vec<Trial<f32>>,
    cosine: Vec<Trial<Cosine>>,
}

impl Paper {
    pub(crate) fn run(&self, monitor: &dyn Monitor, out: &mut dyn Write) -> Result<()> {
        let release = Release::new(&self.features, &self.splits, self.dataset, self.backbone);
        let part = release.open(Phase::Test)?;
        if self.dry_run {
            return self.print_estimate(&part, monitor, out);
        }
        let files: Vec<PathBuf> =
            release.files(Phase::Test).into_iter().chain(release.split_files()).collect();
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        let opened = device::open(self.device, monitor)?;
        let key = resume::Key::new(&output::full_name("paper"), self, &NOT_IN_KEY)?
            .on_device(opened.kind())
            .with_files(&files)?;
        let (journal, records) = resume::open(
            &self.run,
            &key,
            resume::RecordUnits { unit: "pieces of work", total: None },
            monitor,
        )?;
        let grid = Grid { shots: self.shots.clone(), episodes: usize::from(self.episodes), seed: self.seed };
        let mut run = Run::new(opened.engine(), journal, records, grid);

        let tuned = if self.tune { Some(self.tune(&release, &mut run, monitor)?) } else { None };
        let lambda = |s: usize| published::lambda(self.backbone, position(self.shots[s]));
        let rows = prototype_rows(self.shots.len(), tuned.as_ref().map(|(relevance, _)| relevance), &lambda);
        let cells = run.prototypes(&part, &settings_of(&rows), monitor)?;
        let mut report = Report {
            shots: self.shots.clone(),
            episodes: usize::from(self.episodes),
            rows: Vec::new(),
            gain_by_pool_size: gain(&cells, &rows, &part.pool_sizes()),
            tuned: tuned.as_ref().map(|(_, chosen)| chosen.clone()),
        };
        for row in &rows {
            let accuracy = |s: usize| cells.of(s, &row.sources[s]);
            report
                .rows
                .push(self.report_row(row.name, &(0..self.shots.len()).map(accuracy).collect::<Vec<_>>()));
        }
        if !self.no_cosine {
            let mut accuracy = Vec::new();
            for (s, source) in named(&rows, "gcn").iter().flat_map(|row| row.sources.iter().enumerate()) {
                let cosine =
                    tuned.as_ref().map_or_else(Cosine::default, |(_, tuned)| tuned.cosine[s].setting);
                accuracy.push(run.cosine(&part, s, source, &cosine, usize::from(self.episodes), monitor)?);
            }
            report.rows.push(
                self.report_row("gcn, cosine", &accuracy.iter().map(Vec::as_slice).collect::<Vec<_>>()),
            );
        }
        if self.compared {
            self.add_systems(&release, &part, &mut run, &mut report, monitor)?;
        }
        if self.json { output::json(out, "paper", &report) } else { output::lines(out, report.lines()) }
    }

    /// The memory and time of one cell.
    fn print_estimate(&self, part: &Part, monitor: &dyn Monitor, out: &mut dyn Write) -> Result<()> {
        let cells = self.shots.len() * usize::from(self.episodes);
        monitor.note(&format!(
            "the estimate is for one cell; each of the {cells} cells (shots × episodes) trains again on the same graphs"
        ));
        let method = Method::gcn();
        let pool_sizes = part.pool_sizes();
        let work = Workload {
            method: &method,
            dim: part.dim(),
            rows_held: pool_sizes.clone(),
            n_clean: self.shots.iter().sum::<usize>() * usize::from(self.episodes) * pool_sizes.len(),
            pool_sizes,
            bytes_in_memory: part.bytes_in_memory(),
        };
        let estimate = work.estimate()?;
        if self.json {
            return output::json(out, "paper", &estimate);
        }
        output::lines(out, [estimate.to_string()])
    }

    /// Chooses settings on the validation classes, by top-5 accuracy averaged over episodes.
    fn tune(
        &self,
        release: &Release,
        run: &mut Run,
        monitor: &dyn Monitor,
    ) -> Result<(TuningResult, ChosenSettings)> {
        let part = release.open(Phase::Val)?;
        let top_5 = |reached: &CellResult| reached.novel_top_5;
        let relevance = tune(run, &part, top_5, monitor)?;
        let first = |trials: &[Vec<Trial<f32>>]| trials.iter().map(|trials| trials[0]).collect::<Vec<_>>();
        let mut chosen = ChosenSettings {
            gcn_lambda: first(&relevance.gcn_lambda),
            mlp_lambda: first(&relevance.mlp_lambda),
            beta: first(&relevance.beta),
            cosine: Vec::new(),
        };
        for s in 0..self.shots.len() {
            let start = Cosine::default();
            let source = gcn(chosen.gcn_lambda[s].setting).into();
            chosen.cosine.push(if self.no_cosine {
                Trial { setting: start, score: 0.0 }
            } else {
                choose_cosine(run, &part, s, &source, start, top_5, monitor)?
            });
        }
        Ok((relevance, chosen))
    }

    /// Adds the rows of the compared systems, each after the row it belongs to, with settings chosen on the validation classes if λ is.
    fn add_systems(
        &self,
        release: &Release,
        part: &Part,
        run: &mut Run,
        report: &mut Report,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let tuning = self.tune.then(|| release.open(Phase::Val)).transpose()?;
        let tuning = tuning.as_ref().map(|part| part as &dyn Task);
        for row in systems::rows(run, tuning, part, |reached| reached.novel_top_5, monitor)? {
            let cells: Vec<&[CellResult]> = row.cells.iter().map(Vec::as_slice).collect();
            let place = report.rows.iter().position(|other| other.name == row.after);
            let place = place.map_or(report.rows.len(), |at| at + 1);
            report.rows.insert(place, self.report_row(row.name, &cells));
        }
        Ok(())
    }

    fn report_row(&self, name: &'static str, by_shot: &[&[CellResult]]) -> ReportRow {
        let interval = |value: fn(&CellResult) -> f64| intervals(by_shot.iter().copied(), value);
        let paper = |classes: Classes| {
            let row = published::row(self.dataset, self.backbone, classes, name)?;
            Some(self.shots.iter().map(|&k| row[position(k)]).collect())
        };
        let has_all = by_shot.iter().flat_map(|cells| cells.iter()).all(|cell| cell.all_top_5.is_some());
        ReportRow {
            name,
            novel_top_5: interval(|cell| cell.novel_top_5),
            novel_top_1: interval(|cell| cell.novel_top_1),
            all_top_5: has_all.then(|| interval(|cell| cell.all_top_5.unwrap_or(0.0))),
            paper_novel_top_5: paper(Classes::Novel),
            paper_all_top_5: paper(Classes::All),
        }
    }
}

fn position(k: usize) -> usize {
    SHOTS.iter().position(|&shot| shot == k).expect("shots are validated when parsed")
}

fn named<'a>(rows: &'a [Row], name: &str) -> Option<&'a Row> {
    rows.iter().find(|row| row.name == name)
}

/// The gain of gcn over clean examples alone at the fewest shots, by pool size.
fn gain(cells: &Cells, rows: &[Row], sizes: &[usize]) -> Vec<GroupGain> {
    let (Some(with), Some(without)) = (named(rows, "gcn"), named(rows, "clean only")) else {
        return Vec::new();
    };
    gain_by_pool_size(cells.of(0, &with.sources[0]), cells.of(0, &without.sources[0]), sizes)
}

impl Report {
    fn lines(&self) -> Vec<String> {
        let all: Vec<&ReportRow> = self.rows.iter().filter(|row| row.all_top_5.is_some()).collect();
        let novel =
            |row: &ReportRow| self.cells(row.name, &row.novel_top_5, row.paper_novel_top_5.as_deref());
        let mut lines = vec!["Top-5 on novel classes, % (the paper's figure in brackets)".to_owned()];
        lines.extend(self.table(self.rows.iter().map(novel).collect()));
        if !all.is_empty() {
            let title = "Top-5 on all classes, base prototypes as W_B, % (the paper's figure in brackets)";
            let cells = |row: &&ReportRow| {
                self.cells(row.name, row.all_top_5.as_deref().unwrap_or(&[]), row.paper_all_top_5.as_deref())
            };
            lines.extend([String::new(), title.to_owned()]);
            lines.extend(self.table(all.iter().map(cells).collect()));
        }
        let k = self.shots[0];
        let title = format!("Top-1 gain of gcn over clean only at k = {k}, by number of candidates");
        lines.extend([String::new(), title]);
        lines.extend(gain_lines(&self.gain_by_pool_size));
        lines
    }

    fn cells(&self, name: &str, ours: &[Interval], paper: Option<&[f64]>) -> Vec<String> {
        let with_paper = |(s, ours): (usize, &Interval)| {
            let paper = paper.map_or(String::new(), |paper| format!(" ({:.1})", paper[s]));
            format!("{}{paper}", cell(ours))
        };
        std::iter::once(name.to_owned()).chain(ours.iter().enumerate().map(with_paper)).collect()
    }

    fn table(&self, rows: Vec<Vec<String>>) -> Vec<String> {
        let header = shot_header(&self.shots);
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        layout(&header, &rows)
    }
}
