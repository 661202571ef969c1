//! What a class costs in time and memory, by its number of candidates and the numbers per row.
//!
//! One model serves `labelsieve plan`, which packs classes into bins, `clean --shard`, which packs them alike on every
//! machine, and the memory of `clean --dry-run`. Only sums, products and quotients: they round alike everywhere, so every
//! machine makes the same plan.

use labelsieve::Method;
use labelsieve::schedule::LARGE;

use crate::error::Result;

/// What works on a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// One core of a CPU.
    Core,
    /// A GPU.
    Gpu,
}

/// A class as far as its cost goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassSize {
    /// Its candidates.
    pub n_noisy: usize,
    /// Rows of other classes that are in memory while it is worked on: their examples, or a direction of each.
    pub n_others: usize,
}

/// What classes cost with one method, on one kind of machine.
#[derive(Clone, Copy, Debug)]
pub struct CostModel<'a> {
    method: &'a Method,
    uses_graph: bool,
    dim: usize,
    machine: Machine,
}

impl<'a> CostModel<'a> {
    /// For rows of `dim` numbers. Settings that the method refuses are an error.
    pub fn new(method: &'a Method, dim: usize, machine: Machine) -> Result<CostModel<'a>> {
        Ok(CostModel { method, uses_graph: method.build()?.uses_graph(), dim, machine })
    }
}

/// Seconds of a class on one core.
///
/// Provisional: see `benches/scale/cost`.
mod core_seconds {
    /// Before and after the candidates.
    pub const PER_CLASS: f64 = 1e-3;
    /// Per candidate, whatever the width: edges, lists, results.
    pub const PER_ROW: f64 = 1e-5;
    /// Per number of a candidate: a hundred iterations of training.
    pub const TRAINING: f64 = 1e-7;
    /// Per pair of candidates and number, where whole rows are multiplied.
    pub const PER_PAIR_NUMBER: f64 = 1e-11;
}

impl CostModel<'_> {
    /// How long a class takes.
    pub fn seconds(&self, class: ClassSize) -> f64 {
        let (n, d) = (class.n_noisy as f64, self.dim as f64);
        match self.machine {
            Machine::Core | Machine::Gpu => {
                core_seconds::PER_CLASS
                    + core_seconds::PER_ROW * n
                    + core_seconds::TRAINING * n * d
                    + core_seconds::PER_PAIR_NUMBER * n * n * d
            }
        }
    }

    /// What work on a class takes besides its rows: Ã V, candidate slots of the search, lists and edges, and what is kept of
    /// other classes.
    fn working_bytes(&self, class: ClassSize) -> u64 {
        let (n, d, n_others) = (class.n_noisy as u64, self.dim as u64, class.n_others as u64);
        let searching = if self.uses_graph { 2 * d + 8 * 125 + 8 * 50 } else { 0 };
        let training = 4 * d + 4 * 20 + if self.uses_graph { 2 * 8 * 50 } else { 0 };
        let others = match self.method.uses_other_classes() {
            true => mixture_bytes(n, n_others),
            false => n_others * d * NUMBER, // models that learn from others work on a copy of them
        };
        others + n * searching.max(training)
    }
}

/// Exponents of the classes that a mixture follows, and posteriors before and after a round.
fn mixture_bytes(n_noisy: u64, n_others: u64) -> u64 {
    match n_others.min(labelsieve::relevance::MOST_CLASSES as u64) {
        0 => 0,
        followed => n_noisy * (3 * followed + 2) * NUMBER,
    }
}

/// Bytes of a number in memory.
const NUMBER: u64 = size_of::<f32>() as u64;
/// Bytes that a candidate's result takes until it is written: relevance, closest clean example, neighbours.
const RESULT: u64 = 24;
/// Features of classes that are in memory together, unless one class has more (`labelsieve::schedule::batches`).
const BATCH: u64 = 1 << 30;

/// Peak memory of a process, without the program itself, as classes are added to its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// From the first class to the last: tables, clean examples.
    fixed: u64,
    /// Results of candidates, and their rows in tables that are in memory.
    kept: u64,
    /// Features of all classes, and of the largest.
    held: u64,
    largest_held: u64,
    /// Work on the largest class, which has all threads, and on small ones side by side.
    alone: u64,
    together: u64,
    n_threads: u64,
    table_bytes_per_row: u64,
}

impl Memory {
    /// Before the first class: `fixed` bytes are there all the time.
    pub fn new(fixed: u64, n_threads: usize) -> Memory {
        Memory {
            fixed,
            kept: 0,
            held: 0,
            largest_held: 0,
            alone: 0,
            together: 0,
            n_threads: n_threads as u64,
            table_bytes_per_row: 0,
        }
    }

    /// Where the table of candidates is in memory and holds the rows of the added classes alone.
    pub fn with_table(self, bytes_per_row: u64) -> Memory {
        Memory { table_bytes_per_row: bytes_per_row, ..self }
    }

    /// With one more class.
    #[must_use]
    pub fn with(self, model: &CostModel, class: ClassSize) -> Memory {
        let rows = (class.n_noisy + class.n_others) as u64;
        let held = rows * model.dim as u64 * NUMBER;
        let working = match model.machine {
            Machine::Core => model.working_bytes(class),
            Machine::Gpu => 0, // on the GPU
        };
        let (alone, together) = match class.n_noisy >= LARGE {
            true => (working, 0),
            false => (0, working * self.n_threads),
        };
        Memory {
            kept: self.kept + class.n_noisy as u64 * (RESULT + self.table_bytes_per_row),
            held: self.held + held,
            largest_held: self.largest_held.max(held),
            alone: self.alone.max(alone),
            together: self.together.max(together),
            ..self
        }
    }

    /// The most at any time.
    pub fn bytes(&self) -> u64 {
        let batch = self.held.min(self.largest_held.max(BATCH));
        self.fixed + self.kept + batch + self.alone.max(self.together)
    }
}

#[cfg(test)]
mod tests {
    use labelsieve::relevance::{Linear, Mixture, Similarity};

    use super::*;

    fn bytes(method: &Method, dim: usize, sizes: &[ClassSize], n_threads: usize) -> u64 {
        let model = CostModel::new(method, dim, Machine::Core).unwrap();
        sizes.iter().fold(Memory::new(0, n_threads), |memory, &size| memory.with(&model, size)).bytes()
    }

    #[test]
    fn examples_of_other_classes_count_and_batches_are_of_a_gibibyte() {
        let method = Method::Similarity(Similarity {});
        let alone = [ClassSize { n_noisy: 1, n_others: 0 }; 1100];
        assert!(bytes(&method, 256, &alone, 2) < 4 << 20);
        // A class needs 1001 KiB, so all need 1.05 GiB: two batches.
        let method = Method::Linear(Linear::default());
        let with_others = [ClassSize { n_noisy: 1, n_others: 1000 }; 1100];
        let found = bytes(&method, 256, &with_others, 2);
        assert!((1 << 30..(1 << 30) + (16 << 20)).contains(&found), "{found}");
    }

    #[test]
    fn a_mixture_needs_memory_for_the_classes_that_it_follows() {
        let method = Method::Mixture(Mixture::default());
        let found = |n_others| bytes(&method, 64, &[ClassSize { n_noisy: 10_000, n_others }], 2);
        assert_eq!(found(500) - found(0), 10_000 * (64 + 65 + 65) * 4 + 500 * 64 * 4);
    }

    #[test]
    fn a_larger_class_never_costs_less() {
        for method in [Method::gcn(), Method::Auto(labelsieve::relevance::Auto::default())] {
            for machine in [Machine::Core, Machine::Gpu] {
                let model = CostModel::new(&method, 512, machine).unwrap();
                let seconds = |n_noisy| model.seconds(ClassSize { n_noisy, n_others: 10 });
                let sizes = [0, 1, 50, 1000, 8191, 8192, 8193, 50_000, 1_000_000, 5_000_000];
                assert!(sizes.windows(2).all(|pair| seconds(pair[0]) <= seconds(pair[1])), "{method:?}");
            }
        }
    }
}
