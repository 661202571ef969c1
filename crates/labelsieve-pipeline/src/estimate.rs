//! How long and how much memory, before the work begins.

use std::fmt;
use std::time::Instant;

use labelsieve::graph::NoisyGraph;
use labelsieve::random::Stream;
use labelsieve::schedule::{LARGE, batches};
use labelsieve::{ClassProblem, Features, Method, NoisyPool};
use labelsieve_data::counted;
use serde::Serialize;

use crate::error::Result;
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
    /// Times `method` on generated rows; `n_others`: with how many other classes a candidate is compared, if it is.
    pub fn measure(method: &Method, dim: usize, n_others: usize) -> Result<Speed> {
        let stream = Stream::new(1);
        let data = (0..SAMPLE * dim).map(|i| stream.normal(i as u64)).collect();
        let noisy = Features::new(data, dim)?;
        let clean = noisy.select(&[0]);
        let others = noisy.select(&[1, 2, 3]);
        let other_classes = noisy.select(&(0..n_others).map(|class| class % SAMPLE).collect::<Vec<_>>());
        let model = method.build()?;
        let mut search = 0.0;
        let pool = match method.neighbours(SAMPLE) {
            Some(count) => {
                let start = Instant::now();
                let graph = NoisyGraph::new(&noisy, count);
                search = start.elapsed().as_secs_f64();
                NoisyPool::from_parts(noisy, graph)?
            }
            None => NoisyPool::new(noisy),
        };
        let problem = ClassProblem::new(&clean, &pool)?.with_others(&others)?;
        let problem = problem.with_other_classes(&other_classes)?;
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

/// How much work it is, and what it takes on this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Classes to score.
    pub n_classes: usize,
    /// Candidates of all classes.
    pub n_candidates: usize,
    /// Candidates of the largest class.
    pub largest_class: usize,
    /// Numbers per row.
    pub dim: usize,
    /// Peak memory, without the program itself.
    pub memory_bytes: u64,
    /// Wall time with all threads.
    pub seconds: f64,
    /// Threads that would work.
    pub n_threads: usize,
    /// What does not fit in a limit of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_core: Option<OutOfCore>,
}

/// Classes that are scored out of core.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutOfCore {
    /// How many.
    pub n_classes: usize,
    /// Scratch space that the largest takes, about.
    pub scratch_bytes: u64,
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Estimate { n_classes, n_candidates, largest_class, dim, n_threads, .. } = self;
        let (memory, time) = (table::bytes(self.memory_bytes), table::seconds(self.seconds));
        writeln!(f, "classes       {n_classes}")?;
        writeln!(f, "candidates    {n_candidates} (largest class {largest_class}), {dim} columns")?;
        writeln!(f, "memory        about {memory}")?;
        if let Some(OutOfCore { n_classes, scratch_bytes }) = &self.out_of_core {
            let classes = counted(*n_classes, "class");
            writeln!(
                f,
                "out of core   {classes}, with about {} of scratch space",
                table::bytes(*scratch_bytes)
            )?;
        }
        write!(
            f,
            "time          about {time} on {n_threads} threads (from a timing on {SAMPLE} generated rows)"
        )
    }
}

/// What is to be done, and what is in memory meanwhile.
pub struct Work<'a> {
    /// How relevance is scored.
    pub method: &'a Method,
    /// Numbers per row.
    pub dim: usize,
    /// Candidates by class.
    pub pool_sizes: Vec<usize>,
    /// Rows that are in memory while a class is worked on: its candidates, and examples or directions of other classes if need
    /// be.
    pub rows_held: Vec<usize>,
    /// Clean examples of all classes, which stay in memory.
    pub n_clean: usize,
    /// What the tables themselves hold in memory, from the first row to the last.
    pub bytes_in_memory: u64,
}

/// Bytes that a candidate's result takes until it is written: relevance, closest clean example, neighbours.
const RESULT: u64 = 24;

impl Work<'_> {
    /// Peak memory, without the program itself: the tables, the clean examples, the results, and the batch of classes
    /// that needs most.
    pub fn memory(&self, n_threads: usize) -> Result<u64> {
        self.method.build()?;
        let row = (self.dim * size_of::<f32>()) as u64;
        let n_candidates: usize = self.pool_sizes.iter().sum();
        let of_batch = |batch: &Vec<usize>| {
            let held: u64 = batch.iter().map(|&class| self.of_class(class)[0]).sum();
            let working = |class: &usize| self.of_class(*class)[1];
            // Large classes run alone; of the small ones, as many as there are threads. Batches are in order of size.
            let (large, small): (Vec<&usize>, Vec<&usize>) =
                batch.iter().partition(|class| self.pool_sizes[**class] >= LARGE);
            let alone = large.into_iter().map(working).max().unwrap_or(0);
            let together: u64 = small.into_iter().take(n_threads).map(working).sum();
            held + alone.max(together)
        };
        let batch = batches(&self.rows_held, self.dim).iter().map(of_batch).max().unwrap_or(0);
        Ok(self.bytes_in_memory + self.n_clean as u64 * row + n_candidates as u64 * RESULT + batch)
    }

    /// Bytes that a class takes in memory: its rows, and the work on them.
    pub fn of_class(&self, class: usize) -> [u64; 2] {
        let row = (self.dim * size_of::<f32>()) as u64;
        let n_noisy = self.pool_sizes[class];
        let n_others = (self.rows_held[class] - n_noisy) as u64;
        let others = match self.method.uses_other_classes() {
            true => mixture_memory(n_noisy as u64, n_others),
            false => n_others * row, // models that learn from others work on a copy of them
        };
        let uses_graph = self.method.neighbours(n_noisy).is_some();
        [self.rows_held[class] as u64 * row, others + working_memory(n_noisy, self.dim, uses_graph)]
    }

    /// What it would take on this machine.
    pub fn estimate(&self) -> Result<Estimate> {
        let others = self.rows_held.iter().zip(&self.pool_sizes).map(|(held, noisy)| held - noisy);
        let speed = Speed::measure(self.method, self.dim, others.max().unwrap_or(0))?;
        let n_threads = speed.n_threads as usize;
        Ok(Estimate {
            n_classes: self.pool_sizes.len(),
            n_candidates: self.pool_sizes.iter().sum(),
            largest_class: self.pool_sizes.iter().copied().max().unwrap_or(0),
            dim: self.dim,
            memory_bytes: self.memory(n_threads)?,
            seconds: speed.seconds(&self.pool_sizes),
            n_threads,
            out_of_core: None,
        })
    }
}

/// What work on a class of z noisy rows takes besides them: Ã V, candidate slots of the search, lists and edges.
fn working_memory(z: usize, dim: usize, uses_graph: bool) -> u64 {
    let searching = if uses_graph { 2 * dim as u64 + 8 * 125 + 8 * 50 } else { 0 };
    let training = 4 * dim as u64 + 4 * 20 + if uses_graph { 2 * 8 * 50 } else { 0 };
    z as u64 * searching.max(training)
}

/// Exponents of the classes that a mixture follows, and posteriors before and after a round.
fn mixture_memory(n_noisy: u64, n_others: u64) -> u64 {
    let followed = n_others.min(labelsieve::relevance::MOST_CLASSES as u64);
    match followed {
        0 => 0,
        _ => n_noisy * (3 * followed + 2) * size_of::<f32>() as u64,
    }
}

#[cfg(test)]
mod tests {
    use labelsieve::relevance::{Linear, Similarity};

    use super::*;

    #[test]
    fn examples_of_other_classes_and_tables_in_memory_count() {
        let method = Method::Similarity(Similarity {});
        let small = Work {
            method: &method,
            dim: 256, // a kibibyte per row
            pool_sizes: vec![1; 1100],
            rows_held: vec![1; 1100],
            n_clean: 1100,
            bytes_in_memory: 0,
        };
        assert!(small.memory(2).unwrap() < 4 << 20);
        let table = Work { bytes_in_memory: 5 << 30, pool_sizes: vec![1; 3], rows_held: vec![1; 3], ..small };
        assert!(table.memory(2).unwrap() >= 5 << 30);

        let method = Method::Linear(Linear::default());
        let (pool_sizes, rows_held) = (vec![1; 1100], vec![1001; 1100]);
        let linear = Work { method: &method, pool_sizes, rows_held, bytes_in_memory: 0, ..table };
        let memory = linear.memory(2).unwrap();
        // A class needs 1001 KiB, so all need 1.05 GiB: two batches.
        assert!((1 << 30..(1 << 30) + (16 << 20)).contains(&memory), "{memory}");
        let budget = batches(&linear.rows_held, 256).iter().all(|batch| batch.len() <= 1024 * 1024 / 1001);
        assert!(budget, "no batch above a gibibyte");
    }

    #[test]
    fn a_mixture_needs_memory_for_the_classes_that_it_follows() {
        let method = Method::Mixture(labelsieve::relevance::Mixture::default());
        let alone = Work {
            method: &method,
            dim: 64,
            pool_sizes: vec![10_000],
            rows_held: vec![10_000],
            n_clean: 1,
            bytes_in_memory: 0,
        };
        let compared = Work { rows_held: vec![10_500], pool_sizes: vec![10_000], ..alone };
        let alone = Work { rows_held: vec![10_000], pool_sizes: vec![10_000], ..compared };
        let more = compared.memory(2).unwrap() - alone.memory(2).unwrap();
        assert_eq!(more, 10_000 * (64 + 65 + 65) * 4 + 500 * 64 * 4);
    }
}
