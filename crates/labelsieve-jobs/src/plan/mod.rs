//! Classes packed into bins, so that a run can be cut: each bin is scored by a job of its own, on any machine, and
//! [`merge`](crate::merge) puts the parts together.
//!
//! `identity` digests everything that decides the result, `packing` fills the bins by the [costs](crate::cost) of classes, and
//! `plan_file` reads and writes the plan.

mod identity;
mod packing;
mod plan_file;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use labelsieve::Method;
use labelsieve_files::inputs::decisions::Decisions;
use labelsieve_files::inputs::left_out::listed;
use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_files::work::{Context, Monitor, Result, command, option, table, words};
use labelsieve_files::{AtomicFile, counted};
use labelsieve_numerics::Device;
use serde::Serialize;

pub use identity::{Identity, PlannedClass};
pub use packing::{PackedBin, pack};
pub use plan_file::{Bin, PlanFile};

use crate::cost::{ClassSize, CostModel, Machine, Memory, PROGRAM};
use crate::inputs::decisions::of_pools;
use crate::inputs::pools::{PoolFiles, Pools};
use crate::inputs::swapped;
use crate::scoring::rows_held;

/// Bins that are shown to people; the rest is counted.
const MAX_SHOWN: usize = 50;

/// Packs the classes of a run into bins.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The examples.
    pub files: PoolFiles,
    /// Decisions of people about candidates.
    pub decisions: Option<PathBuf>,
    /// How relevance is to be scored.
    pub method: Method,
    /// On what: a CPU unless a GPU is named.
    pub device: Device,
    /// Random seed.
    pub seed: u64,
    /// Number of bins.
    pub bins: NonZeroUsize,
    /// Bytes of memory that a bin should keep within.
    pub memory: Option<u64>,
    /// The file to write, `.json`.
    pub output: PathBuf,
}

/// Summary of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanSummary {
    /// The digest of the run, which all parts carry.
    pub run: String,
    /// Classes of the run.
    pub n_classes: usize,
    /// Candidates of all classes.
    pub n_candidates: usize,
    /// The device that times are for: `cpu` is one core.
    pub device: &'static str,
    /// All bins, one after the other.
    pub seconds: f64,
    /// The bin that takes longest.
    pub longest_bin_seconds: f64,
    /// The class that takes longest, which no number of bins makes faster.
    pub largest_class: LargestClass,
    /// From how many bins on that class bounds the time of the whole.
    pub useful_bins: usize,
    /// Memory that tables take in a bin that is given all rows instead of its own.
    pub table_bytes: u64,
    /// The bins.
    pub bins: Vec<Bin>,
}

/// A class that takes longer than any other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LargestClass {
    /// Its name.
    pub name: String,
    /// Its candidates.
    pub n_candidates: usize,
    /// How long it takes.
    pub seconds: f64,
    /// Memory of a process that scores it alone.
    pub memory_bytes: u64,
}

impl Plan {
    /// Makes the plan and writes it.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<PlanSummary> {
        let target = OutputKind::Plan.target(&self.output)?;
        let decisions = self.decisions.as_deref().map(Decisions::files);
        let files = Files::default().reads(self.files.paths()).reads(decisions.into_iter().flatten());
        files.writes(target.file()).check()?;
        drop(AtomicFile::create(&self.output)?); // an unwritable place should cost no time
        let decisions = self.decisions.as_deref().map(Decisions::open).transpose()?;
        let pools = Pools::open(&self.files, monitor)?;
        pools.warn_of_left_out(monitor);
        if let Some(warning) = swapped::suspicion(&pools) {
            monitor.warning(&warning);
        }
        if let Some(decisions) = &decisions {
            of_pools(decisions, &pools, monitor)?;
        }
        let machine = match self.device {
            Device::Cuda(_) => Machine::Gpu,
            Device::Auto | Device::Cpu => Machine::Core,
        };
        let costs = Costs::of(&pools, &self.method, machine)?;
        let identity = Identity::of(&pools, decisions.as_ref(), &self.method, self.seed)?;
        let plan = costs.plan(&pools, identity, self.bins, self.memory)?;
        plan.save(&self.output)?;
        let planned = costs.planned(&plan, &pools)?;
        self.warn(&planned, &costs, &plan, monitor);
        Ok(planned)
    }

    /// Warnings to read before a cluster works on the plan.
    fn warn(&self, planned: &PlanSummary, costs: &Costs, plan: &PlanFile, monitor: &dyn Monitor) {
        let n_empty = planned.bins.iter().filter(|bin| bin.classes.is_empty()).count();
        if n_empty > 0 {
            let empty = counted(n_empty, "bin");
            let classes = counted(planned.n_classes, "class");
            let verb = if n_empty == 1 { "stays" } else { "stay" };
            monitor.warning(&format!("{empty} of {} {verb} empty: there are {classes}", self.bins));
            monitor.hint(&words!["use ", option("bins").set_to(planned.n_classes), " or fewer"]);
        }
        let Some(limit) = self.memory else { return };
        let shown = table::bytes(limit);
        let too_large: Vec<usize> =
            (0..costs.sizes.len()).filter(|&class| costs.memory_of(class) > limit).collect();
        if !too_large.is_empty() {
            let name = |&class: &usize| {
                let bin = plan.bins.iter().position(|bin| bin.classes.contains(&class)).unwrap_or(0);
                let needs = table::bytes(costs.memory_of(class));
                format!("`{}` (about {needs}, in bin {bin})", plan.classes[class].name)
            };
            monitor.warning(&format!(
                "{} more memory than {shown}: {}",
                if too_large.len() == 1 { "1 class needs" } else { "some classes need" },
                listed(too_large.iter().map(name), too_large.len())
            ));
            monitor.hint(&words![
                "score these bins with ",
                command("score").with(option("memory")),
                ", which works out of core, or on a larger machine",
            ]);
        }
        let over: Vec<&Bin> =
            planned.bins.iter().filter(|bin| bin.memory_bytes > limit && !bin.out_of_core).collect();
        if let Some(most) = over.iter().map(|bin| bin.memory_bytes).max() {
            let bins = counted(over.len(), "bin");
            monitor.warning(&format!("{bins} may need up to {}, more than {shown}", table::bytes(most)));
            monitor.hint(&words!["use more bins, or an .npy file, whose rows stay on disk"]);
        }
        if planned.table_bytes > 0 {
            monitor.note(&format!(
                "a bin that is given all of `{}` instead of its own rows keeps {} of it in memory",
                self.files.pool.path.display(),
                table::bytes(planned.table_bytes)
            ));
        }
    }
}

/// Costs of the classes of a run.
pub struct Costs<'a> {
    model: CostModel<'a>,
    sizes: Vec<ClassSize>,
    /// Memory of a process before its first class.
    empty: Memory,
    machine: Machine,
}

impl<'a> Costs<'a> {
    /// The costs of all classes of these pools.
    pub fn of(pools: &Pools, method: &'a Method, machine: Machine) -> Result<Costs<'a>> {
        let dim = pools.clean.features.cols();
        let model = CostModel::new(method, dim, machine)?;
        let (n_clean, pool_sizes): (Vec<usize>, Vec<usize>) =
            pools.classes.iter().map(|class| (class.clean.len(), class.pool.len())).unzip();
        let held = rows_held(method, &n_clean, &pool_sizes, pools.n_base());
        let sizes = held.iter().zip(&pool_sizes);
        let sizes = sizes.map(|(held, &n_noisy)| ClassSize { n_noisy, n_others: held - n_noisy }).collect();
        let clean = (pools.clean.len() * dim * size_of::<f32>()) as u64;
        let fixed = PROGRAM + pools.clean.features.bytes_in_memory() + clean;
        let per_row = pools.pool.features.bytes_in_memory() / pools.pool.len().max(1) as u64;
        Ok(Costs { model, sizes, empty: Memory::new(fixed, 1).with_table(per_row), machine })
    }

    /// The plan of a run.
    pub fn plan(
        &self,
        pools: &Pools,
        identity: Identity,
        n_bins: NonZeroUsize,
        limit: Option<u64>,
    ) -> Result<PlanFile> {
        let classes = pools.classes.iter().map(|class| PlannedClass::of(pools, class));
        let classes = classes.collect::<Result<Vec<_>>>()?;
        let bin = |bin: PackedBin| {
            let memory = bin.memory.bytes();
            Bin {
                seconds: bin.seconds,
                memory_bytes: if bin.out_of_core { memory.min(limit.unwrap_or(memory)) } else { memory },
                n_candidates: bin.classes.iter().map(|&class| self.sizes[class].n_noisy).sum(),
                out_of_core: bin.out_of_core,
                classes: bin.classes,
            }
        };
        let bins = pack(&self.sizes, &self.model, n_bins.get(), limit, self.empty);
        Ok(PlanFile::new(identity, classes, bins.into_iter().map(bin).collect(), limit))
    }

    fn seconds_of(&self, class: usize) -> f64 {
        self.model.seconds(self.sizes[class])
    }

    /// Memory of a process that scores one class alone.
    fn memory_of(&self, class: usize) -> u64 {
        self.empty.with(&self.model, self.sizes[class]).bytes()
    }

    fn planned(&self, plan: &PlanFile, pools: &Pools) -> Result<PlanSummary> {
        let classes = 0..self.sizes.len();
        let largest = classes.max_by(|&a, &b| self.seconds_of(a).total_cmp(&self.seconds_of(b)));
        let largest = largest.context("a run has classes")?;
        let seconds: f64 = plan.bins.iter().map(|bin| bin.seconds).sum();
        let largest_class = LargestClass {
            name: plan.classes[largest].name.clone(),
            n_candidates: plan.classes[largest].n_candidates,
            seconds: self.seconds_of(largest),
            memory_bytes: self.memory_of(largest),
        };
        Ok(PlanSummary {
            run: plan.run.clone(),
            n_classes: plan.classes.len(),
            n_candidates: plan.classes.iter().map(|class| class.n_candidates).sum(),
            device: match self.machine {
                Machine::Core => "cpu",
                Machine::Gpu => "cuda",
            },
            seconds,
            longest_bin_seconds: plan.bins.iter().map(|bin| bin.seconds).fold(0.0, f64::max),
            useful_bins: (seconds / largest_class.seconds).ceil() as usize,
            largest_class,
            table_bytes: pools.pool.features.bytes_in_memory(),
            bins: plan.bins.clone(),
        })
    }
}

impl PlanSummary {
    /// For people: a table of the bins, then what bounds the time of the whole.
    pub fn lines(&self) -> Vec<String> {
        let row = |(index, bin): (usize, &Bin)| {
            let memory = table::bytes(bin.memory_bytes);
            vec![
                index.to_string(),
                bin.classes.len().to_string(),
                bin.n_candidates.to_string(),
                table::seconds(bin.seconds),
                if bin.out_of_core { format!("{memory}, out of core") } else { memory },
            ]
        };
        let rows: Vec<Vec<String>> = self.bins.iter().enumerate().take(MAX_SHOWN).map(row).collect();
        let mut lines = table::layout(&["bin", "classes", "candidates", "time", "memory"], &rows);
        if self.bins.len() > MAX_SHOWN {
            let n_more = self.bins.len() - MAX_SHOWN;
            lines.push(format!("and {} more", counted(n_more, "bin")));
        }
        let place = if self.device == "cpu" { "one core each" } else { "a GPU each" };
        lines.push(format!(
            "{} of {}: {} of work, {} with {} at a time ({place})",
            counted(self.n_candidates, "candidate"),
            counted(self.n_classes, "class"),
            table::seconds(self.seconds),
            table::seconds(self.longest_bin_seconds),
            counted(self.bins.len(), "bin"),
        ));
        let LargestClass { name, n_candidates, seconds, memory_bytes } = &self.largest_class;
        let bounds = if self.bins.len() >= self.useful_bins {
            "it bounds the time of the whole".to_owned()
        } else {
            format!("from {} on, it bounds the time of the whole", counted(self.useful_bins, "bin"))
        };
        lines.push(format!(
            "largest class: `{name}`, {}, {}, {}; {bounds}",
            counted(*n_candidates, "candidate"),
            table::seconds(*seconds),
            table::bytes(*memory_bytes)
        ));
        lines
    }
}
