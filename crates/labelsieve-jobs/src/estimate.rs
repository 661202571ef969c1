//! How long and how much memory, before the work begins.

use std::fmt;
use std::time::Instant;

use labelsieve::graph::NoisyGraph;
use labelsieve::{ClassProblem, Features, Method, NoisyPool};
use labelsieve_files::counted;
use labelsieve_files::work::{Result, table};
use labelsieve_numerics::random::Stream;
use serde::Serialize;

use crate::cost::{ClassSize, CostModel, Machine, Memory};

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
pub struct Workload<'a> {
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

impl Workload<'_> {
    /// Peak memory, without the program itself: the tables, the clean examples, the results, and the batch of classes
    /// that needs most.
    pub fn memory(&self, n_threads: usize) -> Result<u64> {
        let model = CostModel::new(self.method, self.dim, Machine::Core)?;
        let fixed = self.bytes_in_memory + (self.n_clean * self.dim * size_of::<f32>()) as u64;
        let classes = self.pool_sizes.iter().zip(&self.rows_held);
        let sizes = classes.map(|(&n_noisy, held)| ClassSize { n_noisy, n_others: held - n_noisy });
        let all = sizes.fold(Memory::new(fixed, n_threads), |memory, size| memory.with(&model, size));
        Ok(all.bytes())
    }

    /// Bytes that a class takes in memory: its rows, and the work on them.
    pub fn of_class(&self, class: usize) -> [u64; 2] {
        let (n_noisy, held) = (self.pool_sizes[class], self.rows_held[class]);
        let model = CostModel::checked(self.method, self.dim, Machine::Core);
        model.bytes(ClassSize { n_noisy, n_others: held - n_noisy })
    }

    /// The work on some of the classes.
    pub fn of_classes(&self, classes: &[usize]) -> Workload<'_> {
        let of = |all: &[usize]| classes.iter().map(|&class| all[class]).collect();
        Workload { rows_held: of(&self.rows_held), pool_sizes: of(&self.pool_sizes), ..*self }
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

#[cfg(test)]
mod tests {
    use labelsieve::relevance::Similarity;

    use super::*;

    #[test]
    fn tables_in_memory_count() {
        let method = Method::Similarity(Similarity {});
        let work = Workload {
            method: &method,
            dim: 256,
            pool_sizes: vec![1; 3],
            rows_held: vec![1; 3],
            n_clean: 1100,
            bytes_in_memory: 5 << 30,
        };
        let memory = work.memory(2).unwrap();
        assert!((5 << 30..(5 << 30) + (4 << 20)).contains(&memory), "{memory}");
    }
}
