//! `labelsieve-bench sanity`: every method on generated pools with ground truth.

use std::collections::BTreeMap;
use std::io::Write;

use clap::Args;
use labelsieve::engine::{Cpu, Engine};
use labelsieve::evaluation::{Interval, roc_auc};
use labelsieve::relevance::{Gcn, LabelPropagation, Linear, Mlp, Similarity};
use labelsieve::synthetic::{Noise, Recipe};
use labelsieve::{Method, NoisyPool};
use labelsieve_files::work::{Monitor, Result, table};
use labelsieve_jobs::scoring::ClassContext;
use labelsieve_numerics::random::Stream;
use serde::Serialize;
use serde_json::json;

use crate::{COMMON, output};

/// Run every method on generated pools with ground truth
#[derive(Args)]
pub struct Sanity {
    /// Clean examples per class
    #[arg(long, value_delimiter = ',', default_values_t = [1, 5], value_parser = parse_shots)]
    shots: Vec<usize>,

    /// λ of gcn and mlp [default: the paper's choice for the number of clean examples]
    #[arg(long, value_name = "λ")]
    lambda: Option<f32>,

    /// Random seed of the generated sets
    #[arg(long, default_value_t = 0, value_name = "N", help_heading = COMMON, display_order = 1001)]
    seed: u64,

    /// Print the result as JSON
    #[arg(long, help_heading = COMMON, display_order = 1002)]
    json: bool,
}

fn parse_shots(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|k| (1..=1000).contains(k));
    number.ok_or_else(|| "expected an integer from 1 to 1000".to_owned())
}

#[derive(Serialize)]
struct Row {
    noise: &'static str,
    noise_ratio: f32,
    shots: usize,
    /// Mean ROC-AUC over classes, by method.
    auc: BTreeMap<&'static str, Interval>,
}

const KINDS: [(&str, Noise); 2] = [("clusters", Noise::Clusters(3)), ("everywhere", Noise::Everywhere)];
const RATIOS: [f32; 4] = [0.2, 0.5, 0.8, 0.9];

impl Sanity {
    pub(crate) fn run(&self, monitor: &dyn Monitor, out: &mut dyn Write) -> Result<()> {
        let methods = [
            Method::Gcn(Gcn { lambda: self.lambda, ..Gcn::default() }),
            Method::Mlp(Mlp { lambda: self.lambda, ..Mlp::default() }),
            Method::LabelPropagation(LabelPropagation::default()),
            Method::Similarity(Similarity {}),
            Method::Linear(Linear::default()),
        ];
        let progress = monitor.progress((KINDS.len() * RATIOS.len() * self.shots.len()) as u64, "sets");
        let mut rows = Vec::new();
        for (noise_name, noise) in KINDS {
            for noise_ratio in RATIOS {
                for &shots in &self.shots {
                    let recipe = Recipe { noise, noise_ratio, n_clean: shots, ..Recipe::default() };
                    let auc = self.measure(&recipe, &methods)?;
                    rows.push(Row { noise: noise_name, noise_ratio, shots, auc });
                    progress.inc(1);
                }
            }
        }
        progress.finish();
        if self.json {
            return output::json(out, "sanity", &json!({ "rows": rows }));
        }
        monitor.note("ROC-AUC of relevance over 20 generated classes, mean ± 95 % interval");
        output::lines(out, lines(&rows, &methods))
    }

    fn measure(&self, recipe: &Recipe, methods: &[Method]) -> Result<BTreeMap<&'static str, Interval>> {
        let task = recipe.generate(self.seed);
        let mut clean = Vec::new();
        let mut pools = Vec::new();
        let mut truths = Vec::new();
        for class in task.classes {
            clean.push(class.clean);
            pools.push(NoisyPool::with_graph(class.noisy));
            truths.push(class.truth);
        }
        let stream = Stream::new(self.seed);
        methods
            .iter()
            .map(|method| {
                let draw = |c: usize| {
                    ClassContext::new(method, &clean, c, stream.branch(c as u64), stream.bits(c as u64))
                };
                let drawn: Vec<ClassContext> = (0..clean.len()).map(draw).collect();
                let jobs = drawn
                    .iter()
                    .enumerate()
                    .map(|(c, drawn)| drawn.job(&clean[c], &pools[c]))
                    .collect::<labelsieve::Result<Vec<_>>>()?;
                let relevance = Cpu.relevance(method, &jobs, &|_, _| ())?;
                let scores = relevance.iter().zip(&truths).filter_map(|(r, truth)| roc_auc(r.noisy(), truth));
                Ok((method.name(), Interval::of(&scores.collect::<Vec<_>>())))
            })
            .collect()
    }
}

fn lines(rows: &[Row], methods: &[Method]) -> Vec<String> {
    let names: Vec<&str> = methods.iter().map(Method::name).collect();
    let header: Vec<&str> = ["noise", "share", "clean"].into_iter().chain(names.iter().copied()).collect();
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let fixed =
                [row.noise.to_owned(), format!("{:.0} %", 100.0 * row.noise_ratio), row.shots.to_string()];
            let half = |auc: &Interval| auc.half_width.map_or(String::new(), |half| format!(" ± {half:.3}"));
            let auc = names.iter().map(|name| &row.auc[name]);
            let auc = auc.map(|auc| format!("{:.3}{}", auc.mean, half(auc)));
            fixed.into_iter().chain(auc).collect()
        })
        .collect();
    table::layout(&header, &cells)
}
