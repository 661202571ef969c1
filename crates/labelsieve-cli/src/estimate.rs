//! How long and how much memory, before the work begins.

use std::time::Instant;

use anyhow::Result;
use labelsieve::graph::NoisyGraph;
use labelsieve::random::Stream;
use labelsieve::{ClassProblem, Features, Method, NoisyPool};

use crate::printer::Printer;
use crate::table;

/// Seconds of a class of z noisy rows: search grows with z², training with z. Measured on a small problem of the same
/// width on this machine, in a fraction of a second.
pub struct Speed {
    search_per_pair: f64,
    other_per_row: f64,
    n_threads: f64,
}

const SAMPLE: usize = 1500;

impl Speed {
    /// Times `method` on generated rows.
    pub fn measure(method: &Method, dim: usize) -> Result<Speed> {
        let stream = Stream::new(1);
        let data = (0..SAMPLE * dim).map(|i| stream.normal(i as u64)).collect();
        let noisy = Features::new(data, dim)?;
        let clean = noisy.select(&[0]);
        let others = noisy.select(&[1, 2, 3]);
        let model = method.build()?;
        let mut search = 0.0;
        let pool = if model.uses_graph() {
            let start = Instant::now();
            std::hint::black_box(NoisyGraph::new(&noisy, labelsieve::graph::NEIGHBOURS));
            search = start.elapsed().as_secs_f64();
            NoisyPool::with_graph(noisy)
        } else {
            NoisyPool::new(noisy)
        };
        let problem = ClassProblem::new(&clean, &pool)?.with_others(&others)?;
        let start = Instant::now();
        model.relevance(&problem, 0)?;
        let other = start.elapsed().as_secs_f64();
        Ok(Speed {
            search_per_pair: search / (SAMPLE * SAMPLE) as f64,
            other_per_row: other / SAMPLE as f64,
            n_threads: rayon::current_num_threads() as f64,
        })
    }

    /// The whole job, with all threads.
    pub fn seconds(&self, pool_sizes: &[usize]) -> f64 {
        pool_sizes
            .iter()
            .map(|&z| self.search_per_pair * (z as f64).powi(2) + self.other_per_row * z as f64)
            .sum()
    }
}

/// Peak memory of a class with z noisy rows: features, Ã V, candidate slots of the search, lists and edges.
pub fn memory(z: usize, dim: usize, uses_graph: bool) -> u64 {
    let features = 4 * dim as u64;
    let searching = if uses_graph { 2 * dim as u64 + 8 * 125 + 8 * 50 } else { 0 };
    let training = features + 4 * 20 + if uses_graph { 2 * 8 * 50 } else { 0 };
    z as u64 * (features + searching.max(training))
}

/// Prints what a run over these pools would take.
pub fn print(printer: &Printer, method: &Method, dim: usize, pool_sizes: &[usize]) -> Result<()> {
    let speed = Speed::measure(method, dim)?;
    let uses_graph = method.build()?.uses_graph();
    let total: usize = pool_sizes.iter().sum();
    let largest = pool_sizes.iter().copied().max().unwrap_or(0);
    let mut order: Vec<usize> = pool_sizes.to_vec();
    order.sort_unstable_by(|a, b| b.cmp(a));
    // Large classes run alone; of the small ones, as many as there are threads.
    let together: u64 = order
        .iter()
        .filter(|&&z| z < labelsieve::schedule::LARGE)
        .take(speed.n_threads as usize)
        .map(|&z| memory(z, dim, uses_graph))
        .sum();
    let peak = together.max(memory(largest, dim, uses_graph));
    printer.data(&format!("classes       {}", pool_sizes.len()))?;
    printer.data(&format!("candidates    {total} (largest class {largest}), {dim} columns"))?;
    printer.data(&format!("memory        about {}", table::bytes(peak)))?;
    printer.data(&format!(
        "time          about {} on {} threads (measured on {SAMPLE} generated rows just now)",
        table::seconds(speed.seconds(pool_sizes)),
        speed.n_threads
    ))
}
