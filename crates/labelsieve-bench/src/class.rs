//! `labelsieve-bench class`: the time of each stage for one class.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use labelsieve::engine::{Cpu, Engine, Job};
use labelsieve::graph::{Affinity, NEIGHBOURS, Propagation};
use labelsieve::{ClassProblem, Features, Method, NoisyPool};
use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_files::work::{Context, Result, table};
use labelsieve_files::{AtomicFile, DataError, Matrix, Npz, write_npy_f32};
use serde::Serialize;

use crate::{COMMON, output};

/// Time one class: search, graph, training
#[derive(Args)]
pub struct Class {
    /// .npz with the arrays `clean` (k×d) and `noisy` (z×d); for --grid also `clean20`
    file: PathBuf,

    /// Number of runs; the fastest is reported
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    repeats: u32,

    /// Time all 5 shots × 5 episodes of the class as well
    #[arg(long)]
    grid: bool,

    /// Save the relevance of the noisy rows, averaged over the runs, as .npy
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Random seed of the first run; later runs use the next ones
    #[arg(long, default_value_t = 0, value_name = "N", help_heading = COMMON, display_order = 1001)]
    seed: u64,

    /// Print the result as JSON
    #[arg(long, help_heading = COMMON, display_order = 1002)]
    json: bool,
}

#[derive(Clone, Copy, Serialize)]
struct Seconds {
    search: f64,
    graph: f64,
    train: f64,
    total: f64,
}

#[derive(Serialize)]
struct Report {
    rows: usize,
    columns: usize,
    threads: usize,
    seconds: Seconds,
    /// Multiply-adds of the symmetric search, counted twice, over its time.
    search_gflops: f64,
    /// The two thin products of 100 iterations over the training time.
    train_gflops: f64,
    /// Bytes of the two passes over Ã V of 100 iterations over the training time.
    train_gigabytes_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    grid_seconds: Option<f64>,
    peak_mib: Option<f64>,
    relevance_mean: f64,
}

const SHOTS: [usize; 5] = [1, 2, 5, 10, 20];
const EPISODES: usize = 5;

impl Class {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        if let Some(path) = &self.out {
            OutputKind::Array.target(path)?;
        }
        Files::default().reads([&self.file]).writes(&self.out).check()?;
        let mut npz = Npz::open(&self.file)?;
        let clean = read(&mut npz, "clean")?;
        let z = Matrix::from_array(npz.array("noisy")?)?.rows();
        let d = clean.dim();
        let n = clean.len() + z;

        let mut best: Option<Seconds> = None;
        let mut mean = vec![0f32; z];
        for run in 0..self.repeats {
            let noisy = read(&mut npz, "noisy")?; // read again rather than cloned: a second copy would count in the peak memory
            let (seconds, relevance) = time_once(&clean, noisy, self.seed.wrapping_add(u64::from(run)))?;
            mean.iter_mut().zip(&relevance).for_each(|(m, r)| *m += r / self.repeats as f32);
            if best.is_none_or(|best| seconds.total < best.total) {
                best = Some(seconds);
            }
        }
        let seconds = best.context("no run")?;
        let grid_seconds = if self.grid {
            Some(time_grid(&read(&mut npz, "clean20")?, read(&mut npz, "noisy")?, self.seed)?)
        } else {
            None
        };
        if let Some(path) = &self.out {
            let mut file = AtomicFile::create(path)?;
            write_npy_f32(&mut file, &[mean.len()], &mean).map_err(DataError::io("write", path))?;
            file.commit()?;
        }
        let passes = 100.0 * 2.0 * (n * d) as f64;
        let report = Report {
            rows: n,
            columns: d,
            threads: rayon::current_num_threads(),
            seconds,
            search_gflops: (z as f64).powi(2) * d as f64 / seconds.search / 1e9,
            train_gflops: passes * 2.0 * 16.0 / seconds.train / 1e9,
            train_gigabytes_per_second: passes * 4.0 / seconds.train / 1e9,
            grid_seconds,
            peak_mib: peak_mib(),
            relevance_mean: mean.iter().map(|&r| f64::from(r)).sum::<f64>() / mean.len().max(1) as f64,
        };
        if self.json { output::json(out, "class", &report) } else { output::lines(out, report.lines()) }
    }
}

/// One class from features to relevance. The graph phase is timed separately first, so that the rest is training.
fn time_once(clean: &Features, noisy: Features, seed: u64) -> Result<(Seconds, Vec<f32>)> {
    let start = Instant::now();
    let pool = NoisyPool::with_graph(noisy);
    let noisy = pool.features();
    let search = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let neighbours = pool.graph(NEIGHBOURS).insert(clean, noisy);
    let propagation = Propagation::new(Affinity::reciprocal(&neighbours));
    drop(neighbours);
    drop(propagation.propagate(clean, noisy));
    drop(propagation);
    let graph = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let relevance = Method::gcn().build()?.relevance(&ClassProblem::new(clean, &pool)?, seed)?;
    let rest = start.elapsed().as_secs_f64();
    let seconds = Seconds { search, graph, train: (rest - graph).max(0.0), total: search + rest };
    Ok((seconds, relevance.noisy().to_vec()))
}

/// All shots and episodes of a class over one noisy graph, passed to the engine together, as `labelsieve-bench paper` does.
fn time_grid(clean_20: &Features, noisy: Features, seed: u64) -> Result<f64> {
    let cells = SHOTS.iter().flat_map(|&k| (0..EPISODES).map(move |episode| (k, episode)));
    let clean: Vec<Features> = cells
        .map(|(k, episode)| (0..k).map(|i| (4 * episode + i) % clean_20.len()).collect::<Vec<_>>())
        .map(|rows| clean_20.select(&rows))
        .collect();
    let start = Instant::now();
    let pool = NoisyPool::with_graph(noisy);
    let job = |clean| Ok(Job { problem: ClassProblem::new(clean, &pool)?, seed });
    let jobs = clean.iter().map(job).collect::<Result<Vec<_>>>()?;
    Cpu.relevance(&Method::gcn(), &jobs, &|_, _| ())?;
    Ok(start.elapsed().as_secs_f64())
}

fn read(npz: &mut Npz, name: &str) -> Result<Features> {
    let matrix = Matrix::from_array(npz.array(name)?)?;
    let rows: Vec<usize> = (0..matrix.rows()).collect();
    let mut data = vec![0f32; rows.len() * matrix.cols()];
    matrix.read_rows(&rows, &mut data)?;
    Ok(Features::new(data, matrix.cols())?)
}

/// The peak resident memory of this process; known on Linux only.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kib| kib / 1024.0)
}

impl Report {
    fn lines(&self) -> Vec<String> {
        let times = &self.seconds;
        let share =
            |name: &str, seconds: f64, speed: String| vec![name.to_owned(), table::seconds(seconds), speed];
        let mut rows = vec![
            share("search", times.search, format!("{:.0} GFLOP/s", self.search_gflops)),
            share("graph", times.graph, String::new()),
            share(
                "training",
                times.train,
                format!("{:.0} GFLOP/s, {:.0} GB/s", self.train_gflops, self.train_gigabytes_per_second),
            ),
            share("total", times.total, String::new()),
        ];
        rows.extend(self.grid_seconds.map(|grid| share("5 shots × 5 episodes", grid, String::new())));
        let title = format!("{} × {}, {} threads", self.rows, self.columns, self.threads);
        table::layout(&[&title, "time", "speed"], &rows)
    }
}
