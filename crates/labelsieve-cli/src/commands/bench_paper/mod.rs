//! `labelsieve bench paper`: the paper's tables from its released features.
//!
//! Class by class: the pool is read and its graph made once, every method, shot and episode is cleaned over it, and
//! the prototypes go into the run's journal. A killed run goes on with the next batch of classes; a finished one is
//! printed again at once.

mod cells;
mod published;
mod release;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use labelsieve::Method;
use labelsieve::classifier::{BATCH_SIZES, Cosine, EPOCHS};
use labelsieve::evaluation::{BETAS, Interval, LAMBDAS, SizeGroup, Trial, best, group_by_pool_size};
use labelsieve::relevance::{Beta, Gcn, LabelPropagation, Linear, Mlp, Similarity};
use serde::Serialize;
use serde_json::json;

use crate::device::DeviceArguments;
use crate::printer::Printer;
use crate::table::{layout, percent};
use crate::{estimate, resume};
use cells::{Cells, Grid, Run, Setting};
use published::{Classes, SHOTS};
use release::{Backbone, Dataset, Phase, Release};

/// The paper's tables from its released features
#[derive(Args)]
pub struct Paper {
    /// Folder with the released .npz features
    #[arg(long, value_name = "DIR")]
    features: PathBuf,

    /// Folder with the released splits and episodes
    #[arg(long, value_name = "DIR")]
    splits: PathBuf,

    #[arg(long, value_enum, default_value = "imagenet")]
    dataset: Dataset,

    #[arg(long, value_enum, default_value = "resnet10")]
    backbone: Backbone,

    /// Numbers of clean examples, of 1, 2, 5, 10, 20
    #[arg(long, value_delimiter = ',', default_values_t = SHOTS, value_parser = parse_shot)]
    shots: Vec<usize>,

    /// Episodes, of 5
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=5))]
    episodes: u8,

    /// Choose λ, β*, batch size and epochs on the validation classes (needs their candidates); else the paper's λ
    #[arg(long)]
    tune: bool,

    /// Leave out the cosine classifier
    #[arg(long)]
    no_cosine: bool,

    #[command(flatten)]
    device: DeviceArguments,

    /// The same seed gives the same result
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// File that keeps finished work; a second run with the same settings goes on from there
    #[arg(long, value_name = "FILE", default_value = "labelsieve-bench-paper.run")]
    run: PathBuf,

    /// Only say how much memory and time it would take
    #[arg(long)]
    dry_run: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn parse_shot(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|k| SHOTS.contains(k))
        .ok_or_else(|| "expected one of 1, 2, 5, 10, 20".to_owned())
}

/// A line of the ablation table: the same name at every k, settings that may differ.
struct Row {
    name: &'static str,
    /// By shot; none for clean examples alone.
    settings: Vec<Option<Method>>,
}

#[derive(Serialize)]
struct Report {
    shots: Vec<usize>,
    episodes: usize,
    rows: Vec<ReportRow>,
    /// Top-1 gain of gcn over clean only at the fewest shots, by number of candidates.
    gain_by_pool_size: Vec<SizeGroup>,
    tuned: Option<Tuned>,
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

/// What was chosen on validation classes, by shot.
#[derive(Clone, Serialize)]
struct Tuned {
    gcn_lambda: Vec<Trial<f32>>,
    mlp_lambda: Vec<Trial<f32>>,
    beta: Vec<Trial<f32>>,
    cosine: Vec<Trial<Cosine>>,
}

impl Paper {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let release = Release::new(&self.features, &self.splits, self.dataset, self.backbone);
        let part = release.open(Phase::Test)?;
        if self.dry_run {
            let cells = self.shots.len() * usize::from(self.episodes);
            printer.note(&format!("each of {cells} cells (shots × episodes) trains once more over the same graphs; the estimate is for one:"));
            return estimate::print(printer, &Method::gcn(), part.dim(), &part.pool_sizes());
        }
        let files: Vec<PathBuf> =
            release.files(Phase::Test).into_iter().chain(release.split_files()).collect();
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        let opened = self.device.open(printer)?;
        let settings = json!({ "command": "bench paper", "seed": self.seed, "device": opened.kind() });
        let fingerprint = resume::fingerprint(&settings, &files)?;
        let (journal, records) = resume::open(&self.run, &fingerprint, "pieces of work", printer)?;
        let grid = Grid { shots: self.shots.clone(), episodes: usize::from(self.episodes), seed: self.seed };
        let mut run = Run::new(opened.engine(), journal, records, grid);

        let tuned = match self.tune {
            true => Some(self.tune(&release, &mut run, printer)?),
            false => None,
        };
        let rows = self.rows(tuned.as_ref());
        let cells = run.prototypes(&part, &settings_of(&rows), printer)?;
        let mut report = Report {
            shots: self.shots.clone(),
            episodes: usize::from(self.episodes),
            rows: Vec::new(),
            gain_by_pool_size: gain(&cells, &rows, &part.pool_sizes()),
            tuned: tuned.clone(),
        };
        for row in &rows {
            let accuracy = |s: usize| cells.of(s, row.settings[s].as_ref());
            report
                .rows
                .push(self.report_row(row.name, &(0..self.shots.len()).map(accuracy).collect::<Vec<_>>()));
        }
        if !self.no_cosine {
            let gcn = rows.iter().find(|row| row.name == "gcn");
            let accuracy = (0..self.shots.len())
                .map(|s| {
                    let method = gcn.and_then(|row| row.settings[s].as_ref());
                    let cosine = tuned.as_ref().map_or_else(Cosine::default, |tuned| tuned.cosine[s].setting);
                    run.cosine(&part, s, method, &cosine, usize::from(self.episodes), printer)
                })
                .collect::<Result<Vec<_>>>()?;
            report.rows.push(
                self.report_row("gcn, cosine", &accuracy.iter().map(Vec::as_slice).collect::<Vec<_>>()),
            );
        }
        if self.json { printer.json(&report) } else { report.print(printer) }
    }

    /// The ablation table's lines.
    fn rows(&self, tuned: Option<&Tuned>) -> Vec<Row> {
        let each = |f: &dyn Fn(usize) -> Option<Method>| (0..self.shots.len()).map(f).collect::<Vec<_>>();
        let lambda = |s: usize, trials: Option<&Vec<Trial<f32>>>| match trials {
            Some(trials) => trials[s].setting,
            None => published::lambda(self.backbone, position(self.shots[s])),
        };
        let gcn_lambdas = tuned.map(|tuned| &tuned.gcn_lambda);
        let mlp_lambdas = tuned.map(|tuned| &tuned.mlp_lambda);
        let mut rows = vec![
            Row { name: "clean only", settings: each(&|_| None) },
            Row { name: "similarity", settings: each(&|_| Some(Method::Similarity(Similarity {}))) },
            Row { name: "β = 1", settings: each(&|_| Some(Method::Beta(Beta::default()))) },
        ];
        if let Some(tuned) = tuned {
            let settings = each(&|s| Some(Method::Beta(Beta { beta: tuned.beta[s].setting })));
            rows.push(Row { name: "β*", settings });
        }
        rows.extend([
            Row { name: "linear", settings: each(&|_| Some(Method::Linear(Linear::default()))) },
            Row {
                name: "label propagation",
                settings: each(&|_| Some(Method::LabelPropagation(LabelPropagation::default()))),
            },
            Row { name: "mlp", settings: each(&|s| Some(mlp(lambda(s, mlp_lambdas)))) },
            Row { name: "gcn", settings: each(&|s| Some(gcn(lambda(s, gcn_lambdas)))) },
        ]);
        rows
    }

    /// Chooses settings on the validation classes, by top-5 accuracy averaged over episodes.
    fn tune(&self, release: &Release, run: &mut Run, printer: &Printer) -> Result<Tuned> {
        let part = release.open(Phase::Val)?;
        let grid = |method: &dyn Fn(f32) -> Method, values: &[f32]| -> Vec<Setting> {
            let shots = 0..self.shots.len();
            shots
                .flat_map(|s| values.iter().map(move |&v| (s, v)))
                .map(|(s, v)| (s, Some(method(v))))
                .collect()
        };
        let beta = |beta: f32| Method::Beta(Beta { beta });
        let settings = [grid(&gcn, &LAMBDAS), grid(&mlp, &LAMBDAS), grid(&beta, &BETAS)].concat();
        let cells = run.prototypes(&part, &settings, printer)?;
        let choose = |method: &dyn Fn(f32) -> Method, values: &[f32]| -> Result<Vec<Trial<f32>>> {
            let shots = 0..self.shots.len();
            shots
                .map(|s| Ok(best(values, |&v| Ok(cells.mean_top_5(s, Some(&method(v)))))?.swap_remove(0)))
                .collect()
        };
        let gcn_lambda = choose(&gcn, &LAMBDAS)?;
        let mut cosine = Vec::new();
        for (s, chosen) in gcn_lambda.iter().enumerate() {
            let method = gcn(chosen.setting);
            let mut trials: Vec<Trial<Cosine>> = Vec::new();
            for setting in cosine_grid().into_iter().take(if self.no_cosine { 1 } else { usize::MAX }) {
                // One episode tells batch sizes and epochs apart well enough, at a fifth of the price.
                let reached = match self.no_cosine {
                    true => 0.0,
                    false => run.cosine(&part, s, Some(&method), &setting, 1, printer)?[0].novel_top_5,
                };
                trials.push(Trial { setting, score: reached });
            }
            let scores: Vec<f64> = trials.iter().map(|trial| trial.score).collect();
            let order: Vec<usize> = (0..trials.len()).collect();
            let winner = best(&order, |&i| Ok(scores[i]))?[0].setting;
            cosine.push(trials.swap_remove(winner));
        }
        Ok(Tuned { mlp_lambda: choose(&mlp, &LAMBDAS)?, beta: choose(&beta, &BETAS)?, gcn_lambda, cosine })
    }

    fn report_row(&self, name: &'static str, by_shot: &[&[cells::Reached]]) -> ReportRow {
        let interval = |value: &dyn Fn(&cells::Reached) -> f64| -> Vec<Interval> {
            by_shot.iter().map(|cells| Interval::of(&cells.iter().map(value).collect::<Vec<_>>())).collect()
        };
        let paper = |classes: Classes| {
            let row = published::row(self.dataset, self.backbone, classes, name)?;
            Some(self.shots.iter().map(|&k| row[position(k)]).collect())
        };
        let has_all = by_shot.iter().flat_map(|cells| cells.iter()).all(|cell| cell.all_top_5.is_some());
        ReportRow {
            name,
            novel_top_5: interval(&|cell| cell.novel_top_5),
            novel_top_1: interval(&|cell| cell.novel_top_1),
            all_top_5: has_all.then(|| interval(&|cell| cell.all_top_5.unwrap_or(0.0))),
            paper_novel_top_5: paper(Classes::Novel),
            paper_all_top_5: paper(Classes::All),
        }
    }
}

fn gcn(lambda: f32) -> Method {
    Method::Gcn(Gcn { lambda: Some(lambda), ..Gcn::default() })
}

fn mlp(lambda: f32) -> Method {
    Method::Mlp(Mlp { lambda: Some(lambda), ..Mlp::default() })
}

fn position(k: usize) -> usize {
    SHOTS.iter().position(|&shot| shot == k).expect("shots are checked when parsed")
}

fn cosine_grid() -> Vec<Cosine> {
    let sizes = BATCH_SIZES.into_iter();
    sizes
        .flat_map(|batch_size| EPOCHS.map(|epochs| Cosine { batch_size, epochs, ..Cosine::default() }))
        .collect()
}

/// Every setting of every row, by shot.
fn settings_of(rows: &[Row]) -> Vec<Setting> {
    rows.iter().flat_map(|row| row.settings.iter().cloned().enumerate()).collect()
}

/// What cleaning with gcn brings over clean examples alone at the fewest shots, by pool size.
fn gain(cells: &Cells, rows: &[Row], sizes: &[usize]) -> Vec<SizeGroup> {
    let class_top_1 = |name: &str| {
        let row = rows.iter().find(|row| row.name == name)?;
        Some(cells.class_top_1(0, row.settings[0].as_ref()))
    };
    let (Some(with), Some(without)) = (class_top_1("gcn"), class_top_1("clean only")) else {
        return Vec::new();
    };
    let gains: Vec<f64> = with.iter().zip(&without).map(|(with, without)| with - without).collect();
    group_by_pool_size(sizes, &gains)
}

impl Report {
    fn print(&self, printer: &Printer) -> Result<()> {
        let all: Vec<&ReportRow> = self.rows.iter().filter(|row| row.all_top_5.is_some()).collect();
        printer.data("Top-5 on novel classes, % (the paper's figure in brackets)")?;
        let novel =
            |row: &ReportRow| self.cells(row.name, &row.novel_top_5, row.paper_novel_top_5.as_deref());
        self.table(self.rows.iter().map(novel).collect(), printer)?;
        if !all.is_empty() {
            printer
                .data("\nTop-5 on all classes, base prototypes as W_B, % (the paper's figure in brackets)")?;
            let cells = |row: &&ReportRow| {
                self.cells(row.name, row.all_top_5.as_deref().unwrap_or(&[]), row.paper_all_top_5.as_deref())
            };
            self.table(all.iter().map(cells).collect(), printer)?;
        }
        printer.data(&format!(
            "\nTop-1 gain of gcn over clean only at k = {}, by number of candidates",
            self.shots[0]
        ))?;
        let rows: Vec<Vec<String>> = self
            .gain_by_pool_size
            .iter()
            .map(|g| vec![g.range(), g.n_classes.to_string(), format!("{:+.1}", 100.0 * g.mean_gain)])
            .collect();
        layout(&["candidates", "classes", "gain"], &rows).iter().try_for_each(|line| printer.data(line))
    }

    fn cells(&self, name: &str, ours: &[Interval], paper: Option<&[f64]>) -> Vec<String> {
        let cell = |(s, ours): (usize, &Interval)| {
            let paper = paper.map_or(String::new(), |paper| format!(" ({:.1})", paper[s]));
            format!("{} ± {}{paper}", percent(ours.mean), percent(ours.half_width))
        };
        std::iter::once(name.to_owned()).chain(ours.iter().enumerate().map(cell)).collect()
    }

    fn table(&self, rows: Vec<Vec<String>>, printer: &Printer) -> Result<()> {
        let shots: Vec<String> = self.shots.iter().map(|k| format!("k = {k}")).collect();
        let header: Vec<&str> = std::iter::once("method").chain(shots.iter().map(String::as_str)).collect();
        layout(&header, &rows).iter().try_for_each(|line| printer.data(line))
    }
}
