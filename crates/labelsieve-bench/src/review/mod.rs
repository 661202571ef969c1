//! `labelsieve-bench review`: the gain from a person's decisions, by the order in which candidates are reviewed.
//!
//! A simulated reviewer knows the truth and decides about a few candidates of every class, in each order of
//! `labelsieve::ordering`. After each round the classes are scored again.

mod reviewer;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use labelsieve::Method;
use labelsieve::ordering::LookOrder;
use labelsieve_files::work::resume::lock::OutputLock;
use labelsieve_files::work::table::{layout, percent};
use labelsieve_files::work::{Context, Monitor, Result};
use labelsieve_jobs::device;
use labelsieve_numerics::Device;
use labelsieve_numerics::random::Stream;
use serde::Serialize;
use serde_json::json;

use self::reviewer::{PairCounts, ReviewScore, Session};
use crate::photos::prepare::data_folder;
use crate::sets::{KnownSet, icons, photos};
use crate::{COMMON, output};

/// Compare the orders in which a simulated reviewer decides about candidates
#[derive(Args)]
pub struct Review {
    /// Configuration of a photo set (.toml), as for `labelsieve-bench photos` [default: the built-in icons]
    #[arg(value_name = "CONFIG")]
    config: Option<PathBuf>,

    /// Folder with the photo files [default: $LABELSIEVE_DATA, or the folder of the configuration]
    #[arg(long, value_name = "DIR", requires = "config")]
    data: Option<PathBuf>,

    /// Features of all photos, in place of the configuration's first backbone
    #[arg(long, value_name = "FILE", requires = "config")]
    features: Option<PathBuf>,

    /// Clean examples per class
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [1, 2, 5], value_parser = parse_count)]
    shots: Vec<usize>,

    /// Numbers of decisions per class at which to measure
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [0, 1, 2, 5, 10, 20])]
    decisions: Vec<usize>,

    /// Review orders to compare [default: all]
    #[arg(long, value_enum, value_name = "ORDER", value_delimiter = ',')]
    orders: Vec<LookOrder>,

    /// Relevance method: gcn, mlp, label-propagation, similarity, linear or beta
    #[arg(long, value_name = "METHOD", default_value = "gcn", value_parser = parse_method)]
    method: Method,

    /// Draws of clean examples; figures are means over them
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = parse_count)]
    draws: usize,

    /// Device: auto, cpu, cuda or cuda:1; auto uses the first working NVIDIA GPU, or the CPU
    #[arg(long, default_value = "auto", help_heading = COMMON, display_order = 1000)]
    device: Device,

    /// Random seed; the same seed gives the same result
    #[arg(long, default_value_t = 0, value_name = "N", help_heading = COMMON, display_order = 1001)]
    seed: u64,

    /// Folder for the features; later runs reuse them
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Print the result as JSON
    #[arg(long, help_heading = COMMON, display_order = 1002)]
    json: bool,
}

fn parse_count(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|k| (1..=1000).contains(k));
    number.ok_or_else(|| "expected an integer from 1 to 1000".to_owned())
}

fn parse_method(name: &str) -> Result<Method, String> {
    serde_json::from_value(json!({ "method": name })).map_err(|_| "expected the name of a method".to_owned())
}

/// A cell of the table.
#[derive(Serialize)]
struct Row {
    shots: usize,
    order: LookOrder,
    decisions: usize,
    /// Accuracy of prototypes, mean over the draws and standard deviation.
    top_1: f64,
    top_1_deviation: f64,
    /// Area under the ROC curve over the undecided candidates, mean over classes and draws and standard deviation over draws.
    auc: f64,
    auc_deviation: f64,
}

/// Pairs of candidates above a similarity, and the share whose ground truth is the same.
#[derive(Serialize)]
struct Pairs {
    similarity: f64,
    n_pairs: usize,
    same_truth: Option<f64>,
}

const SIMILARITIES: [f64; 7] = [0.8, 0.85, 0.9, 0.93, 0.95, 0.98, 0.99];

impl Review {
    pub(crate) fn run(&self, monitor: &dyn Monitor, out: &mut dyn Write) -> Result<()> {
        let _lock = OutputLock::inside(&self.output)?;
        let set = self.read(monitor)?;
        let opened = device::open(self.device, monitor)?;
        let orders = if self.orders.is_empty() { LookOrder::ALL.to_vec() } else { self.orders.clone() };
        let mut steps = self.decisions.clone();
        steps.sort_unstable();
        steps.dedup();
        let max_shots = self.shots.iter().copied().max().unwrap_or(1);
        let n_cells = self.draws * self.shots.len() * orders.len() * steps.len();
        let progress = monitor.progress(n_cells as u64, "reviews");
        // By shots, order, step and draw.
        let mut reached = vec![vec![vec![Vec::new(); steps.len()]; orders.len()]; self.shots.len()];
        let mut pairs = SIMILARITIES.map(|_| PairCounts::default());
        for draw in 0..self.draws {
            let stream = Stream::new(self.seed).branch(draw as u64);
            let session = Session::new(opened.engine(), &self.method, &set, max_shots, stream)?;
            for (similarity, sum) in SIMILARITIES.into_iter().zip(&mut pairs) {
                let counts = session.pairs(similarity as f32);
                sum.pairs += counts.pairs;
                sum.same_truth += counts.same_truth;
            }
            for (shots, reached) in self.shots.iter().zip(&mut reached) {
                let found = session.review(*shots, &orders, &steps, &progress)?;
                for (found, reached) in found.into_iter().zip(reached) {
                    found.into_iter().zip(reached).for_each(|(found, reached)| reached.push(found));
                }
            }
        }
        progress.finish();
        let mut rows = Vec::new();
        for (shots, reached) in self.shots.iter().zip(&reached) {
            for (order, reached) in orders.iter().zip(reached) {
                let row = |(step, draws): (&usize, &Vec<ReviewScore>)| Row::new(*shots, *order, *step, draws);
                rows.extend(steps.iter().zip(reached).map(row));
            }
        }
        let pairs: Vec<Pairs> = SIMILARITIES
            .into_iter()
            .zip(&pairs)
            .map(|(similarity, counts)| Pairs::new(similarity, counts))
            .collect();
        if self.json {
            let found = json!({
                "set": set.name, "method": self.method.name(), "draws": self.draws, "seed": self.seed,
                "rows": rows, "pairs": pairs,
            });
            return output::json(out, "review", &found);
        }
        monitor
            .note("top-1 % ± standard deviation over draws / AUC over the undecided, by decisions per class");
        output::lines(out, table(&rows, &steps))?;
        output::lines(out, [""])?;
        output::lines(out, pair_table(&pairs))
    }

    fn read(&self, monitor: &dyn Monitor) -> Result<KnownSet> {
        match &self.config {
            None => icons::read(&self.output, icons::Network::Own, None, self.device, monitor),
            Some(config) => {
                let data = data_folder(config, self.data.as_deref());
                let features = self.features.as_deref();
                let folder = &self.output;
                let source = photos::Source {
                    config,
                    data: &data,
                    backbone: None,
                    features,
                    folder,
                    device: self.device,
                };
                let sets = photos::read(&source, monitor)?;
                let broadest = sets.into_iter().next_back();
                broadest.context("the configuration has no candidates")
            }
        }
    }
}

impl Pairs {
    fn new(similarity: f64, counts: &PairCounts) -> Pairs {
        let same_truth = (counts.pairs > 0).then(|| counts.same_truth as f64 / counts.pairs as f64);
        Pairs { similarity, n_pairs: counts.pairs, same_truth }
    }
}

impl Row {
    fn new(shots: usize, order: LookOrder, decisions: usize, draws: &[ReviewScore]) -> Row {
        let top_1: Vec<f64> = draws.iter().map(|reached| reached.top_1).collect();
        let auc: Vec<f64> = draws.iter().map(|reached| reached.auc).collect();
        let (top_1, top_1_deviation) = spread(&top_1);
        let (auc, auc_deviation) = spread(&auc);
        Row { shots, order, decisions, top_1, top_1_deviation, auc, auc_deviation }
    }
}

/// Mean and standard deviation; the latter is 0 for a single value.
fn spread(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}

fn table(rows: &[Row], steps: &[usize]) -> Vec<String> {
    let header: Vec<String> =
        ["clean", "order"].map(str::to_owned).into_iter().chain(steps.iter().map(usize::to_string)).collect();
    let cell = |row: &Row| {
        let deviation = 100.0 * row.top_1_deviation;
        format!("{} ± {deviation:.1} / {:.3}", percent(row.top_1), row.auc)
    };
    let lines: Vec<Vec<String>> = rows
        .chunks(steps.len())
        .map(|of_order| {
            let fixed = [of_order[0].shots.to_string(), of_order[0].order.to_string()];
            fixed.into_iter().chain(of_order.iter().map(cell)).collect()
        })
        .collect();
    layout(&header.iter().map(String::as_str).collect::<Vec<_>>(), &lines)
}

fn pair_table(pairs: &[Pairs]) -> Vec<String> {
    let line = |pair: &Pairs| {
        let same = pair.same_truth.map_or("-".to_owned(), percent);
        vec![format!("{:.2}", pair.similarity), pair.n_pairs.to_string(), same]
    };
    layout(&["similar from", "pairs", "same truth %"], &pairs.iter().map(line).collect::<Vec<_>>())
}
