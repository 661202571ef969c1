//! Time and memory of a class, by its number of candidates and the numbers per row.
//!
//! One model serves the plan, which packs classes into bins, shards, which pack them alike on every
//! machine, and the memory of a dry run. Only sums, products and quotients: they round alike everywhere, so every
//! machine makes the same plan.

use labelsieve::Method;
use labelsieve::schedule::LARGE;
use labelsieve_files::work::Result;

/// The hardware that works on a class.
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

/// Costs of classes with one method, on one kind of machine.
#[derive(Clone, Copy, Debug)]
pub struct CostModel<'a> {
    method: &'a Method,
    uses_graph: bool,
    dim: usize,
    machine: Machine,
}

impl<'a> CostModel<'a> {
    /// For rows of `dim` numbers. Settings that the method rejects are an error.
    pub fn new(method: &'a Method, dim: usize, machine: Machine) -> Result<CostModel<'a>> {
        method.build()?;
        Ok(CostModel::checked(method, dim, machine))
    }

    /// The same for settings that were checked before.
    pub fn checked(method: &'a Method, dim: usize, machine: Machine) -> CostModel<'a> {
        CostModel { method, uses_graph: method.neighbours(LARGE).is_some(), dim, machine }
    }
}

/// Seconds of a class of n candidates of d numbers, among o rows of other classes, on one core: what each term is
/// multiplied by.
///
/// Measured and fitted by `benches/scale/cost`, which reads the constants below and prints them beside its own fit, on a core of
/// a Xeon (Sapphire Rapids, AVX-512) of a busy machine: classes of 100 to 100,000 candidates (10,000 where there is no search)
/// and 64 to 1280 columns, 10 and 1,000 other classes. Measured again, classes above 10 ms were off by 1.08 (`gcn`) and 1.10
/// (`auto`) in the median. The quiet machine of docs/performance.md takes about three quarters of it for large classes. Rows have
/// the spectrum of photos; the search of flat ones takes 1.5 to 2.4 times as long. `per_class` is not fitted: it is what keeps
/// classes without candidates from being free.
#[derive(Clone, Copy, Debug)]
struct Rates {
    /// 1: before and after the candidates.
    per_class: f64,
    /// n: lists, edges, results.
    per_row: f64,
    /// n d: the iterations of a training, products with clean examples.
    per_number: f64,
    /// n min(n, 8192) d: search that multiplies whole rows.
    per_pair_number: f64,
    /// n (n - 8192), where positive: search by leading directions, whose number does not follow d.
    per_pair: f64,
    /// o d: examples or directions of other classes are copied.
    per_other: f64,
    /// n o d: candidates are compared with them.
    per_other_pair: f64,
}

/// The graph convolutional network: search and training.
const GCN: Rates = Rates {
    per_class: 2.0e-4,
    per_row: 2.4e-5,
    per_number: 1.4e-7,
    per_pair_number: 1.5e-11,
    per_pair: 1.0e-9,
    per_other: 0.0,
    per_other_pair: 0.0,
};
/// The network and the mixture together.
const AUTO: Rates = Rates {
    per_class: 2.0e-4,
    per_row: 3.1e-5,
    per_number: 1.3e-7,
    per_pair_number: 1.3e-11,
    per_pair: 1.0e-9,
    per_other: 3.7e-8,
    per_other_pair: 8.3e-11,
};
/// Search, and comparison with other classes.
const MIXTURE: Rates = Rates {
    per_class: 2.0e-4,
    per_row: 1.8e-5,
    per_number: 1.8e-8,
    per_pair_number: 7.9e-12,
    per_pair: 1.3e-9,
    per_other: 4.0e-8,
    per_other_pair: 6.3e-11,
};
/// Search, and some products with the graph.
const LABEL_PROPAGATION: Rates = Rates {
    per_class: 2.0e-4,
    per_row: 1.3e-5,
    per_number: 1.7e-8,
    per_pair_number: 9.3e-12,
    per_pair: 1.2e-9,
    per_other: 0.0,
    per_other_pair: 0.0,
};
/// Training alone.
const MLP: Rates = Rates {
    per_class: 2.0e-4,
    per_row: 7.4e-6,
    per_number: 1.3e-7,
    per_pair_number: 0.0,
    per_pair: 0.0,
    per_other: 0.0,
    per_other_pair: 0.0,
};
/// Products with clean examples.
const SIMILARITY: Rates = Rates {
    per_class: 2.0e-4,
    per_row: 9.5e-7,
    per_number: 4.7e-9,
    per_pair_number: 0.0,
    per_pair: 0.0,
    per_other: 0.0,
    per_other_pair: 0.0,
};
/// A regression against at most 1,000 examples of other classes.
const LINEAR: Rates = Rates {
    per_class: 2.0e-4,
    per_row: 1.0e-6,
    per_number: 4.4e-9,
    per_pair_number: 0.0,
    per_pair: 0.0,
    per_other: 5.9e-8,
    per_other_pair: 0.0,
};
/// One number for all candidates: reading and writing.
const BETA: Rates = Rates {
    per_class: 2.0e-4,
    per_row: 1.0e-6,
    per_number: 1.0e-9,
    per_pair_number: 0.0,
    per_pair: 0.0,
    per_other: 0.0,
    per_other_pair: 0.0,
};

impl Rates {
    fn of(method: &Method) -> Rates {
        match method {
            Method::Gcn(_) => GCN,
            Method::Auto(_) => AUTO,
            Method::Mixture(_) => MIXTURE,
            Method::LabelPropagation(_) => LABEL_PROPAGATION,
            Method::Mlp(_) => MLP,
            Method::Similarity(_) => SIMILARITY,
            Method::Linear(_) => LINEAR,
            Method::Beta(_) => BETA,
        }
    }

    fn seconds(&self, n: f64, d: f64, o: f64) -> f64 {
        const REDUCED: f64 = LARGE as f64; // from here on, rows are compared by their leading directions first
        self.per_class
            + self.per_row * n
            + self.per_number * n * d
            + self.per_pair_number * n * n.min(REDUCED) * d
            + self.per_pair * n * (n - REDUCED).max(0.0)
            + self.per_other * o * d
            + self.per_other_pair * n * o * d
    }
}

/// Seconds of a class of n candidates of d numbers on a GPU.
///
/// Not measured by `benches/scale/cost` but taken from docs/performance.md (one H200, `paper_split`, rows like photos, 512
/// numbers): searches of 30,000 to 620,142 rows, upload included, took 4.3e-7 n + 7e-13 n² within 15 %; insertion, X and training
/// 0.70 s for 3.74 million rows; small classes share launches, for which half a millisecond each is counted. `auto` takes 1.35
/// times as long as `gcn` (docs/sizes-and-times.md), and the other methods as they do there over all classes.
fn gpu_seconds(method: &Method, n: f64, d: f64) -> f64 {
    const PER_CLASS: f64 = 5.0e-4;
    const PER_NUMBER: f64 = (4.3e-7 + 1.9e-7) / 512.0;
    const PER_PAIR: f64 = 7.0e-13;
    let to_gcn = match method {
        Method::Gcn(_) | Method::LabelPropagation(_) | Method::Mixture(_) => 1.0,
        Method::Auto(_) => 1.35,
        Method::Mlp(_) => 0.4,
        Method::Similarity(_) | Method::Linear(_) | Method::Beta(_) => 0.2,
    };
    to_gcn * (PER_CLASS + PER_NUMBER * n * d + PER_PAIR * n * n)
}

impl CostModel<'_> {
    /// How long a class takes.
    pub fn seconds(&self, class: ClassSize) -> f64 {
        let n = class.n_noisy as f64;
        let d = self.dim as f64;
        let o = class.n_others as f64;
        match self.machine {
            Machine::Core => Rates::of(self.method).seconds(n, d, o),
            Machine::Gpu => gpu_seconds(self.method, n, d),
        }
    }

    /// Memory of a class: its rows with those of other classes, and the work on them.
    pub fn bytes(&self, class: ClassSize) -> [u64; 2] {
        let held = (class.n_noisy + class.n_others) as u64 * self.dim as u64 * NUMBER;
        let working = match self.machine {
            Machine::Core => self.working_bytes(class),
            Machine::Gpu => 0, // on the GPU
        };
        [held, working]
    }

    /// Memory of the work on a class besides its rows: in turn, candidate slots and lists of the search; X = Ã V and edges of a
    /// training; exponents of the classes that a mixture follows, with posteriors before and after a round. Rows of other
    /// classes are copied.
    fn working_bytes(&self, class: ClassSize) -> u64 {
        let n = class.n_noisy as u64;
        let d = self.dim as u64;
        let n_others = class.n_others as u64;
        let edges = if self.uses_graph { 2 * 8 * 50 } else { 0 };
        let searching = if self.uses_graph { 2 * d + 8 * 125 + 8 * 50 } else { 0 };
        let training = match self.method {
            Method::Gcn(_) | Method::Auto(_) | Method::Mlp(_) => 4 * d + 4 * 20 + edges,
            _ => edges,
        };
        let followed = if self.method.uses_other_classes() {
            n_others.min(labelsieve::relevance::MAX_CLASSES as u64)
        } else {
            0
        };
        let mixing = (3 * followed + 2) * NUMBER;
        n * searching.max(training).max(mixing) + n_others * d * NUMBER
    }
}

/// Bytes of a number in memory.
const NUMBER: u64 = size_of::<f32>() as u64;
/// Bytes that a candidate's result takes until it is written: relevance, closest clean example, neighbours.
const RESULT: u64 = 24;
/// Peak memory of a `score` with next to nothing to do (`benches/scale/cost`).
pub const PROGRAM: u64 = 24 << 20;
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
        let [held, working] = model.bytes(class);
        let (alone, together) =
            if class.n_noisy >= LARGE { (working, 0) } else { (0, working * self.n_threads) };
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
    fn a_mixture_holds_a_row_of_every_other_class_twice() {
        let method = Method::Mixture(Mixture::default());
        let found = |n_others| bytes(&method, 64, &[ClassSize { n_noisy: 10_000, n_others }], 2);
        assert_eq!(found(500) - found(0), 2 * 500 * 64 * 4);
    }

    /// Resident memory less that of an empty run, in MiB, as `benches/scale/cost` saw it.
    #[test]
    fn memory_is_what_was_measured_to_a_fifth() {
        let gcn = Method::gcn();
        let mlp = Method::Mlp(labelsieve::relevance::Mlp::default());
        let propagation = Method::LabelPropagation(labelsieve::relevance::LabelPropagation::default());
        for (method, n_noisy, dim, measured) in [
            (&gcn, 30_000, 64, 49.0),
            (&gcn, 100_000, 64, 174.0),
            (&gcn, 100_000, 256, 285.0),
            (&gcn, 10_000, 512, 52.0),
            (&gcn, 100_000, 512, 480.0),
            (&gcn, 30_000, 1280, 336.0),
            (&mlp, 10_000, 1280, 96.0),
            (&propagation, 30_000, 256, 84.0),
            (&propagation, 30_000, 512, 111.0),
        ] {
            let found =
                bytes(method, dim, &[ClassSize { n_noisy, n_others: 0 }], 1) as f64 / f64::from(1 << 20);
            let ratio = found / measured;
            assert!((0.8..1.25).contains(&ratio), "{} {n_noisy} × {dim}: {found:.0} MiB", method.name());
        }
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
