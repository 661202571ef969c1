//! A part of a run: the classes of one bin, scored as the single run scores them, in a file that says what it is a part of.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use labelsieve::Method;
use labelsieve_files::inputs::copies::Copies;
use labelsieve_files::inputs::decisions::{DecisionCounts, Decisions};
use labelsieve_files::inputs::same_network::common_network;
use labelsieve_files::work::parts::{self, CleanDetail, PartDone, find_complete};
use labelsieve_files::work::{Context, Monitor, Result, resume};
use labelsieve_files::{Part, PartOf, Shard};
use serde::Serialize;
use serde_json::Value;

use super::{Score, ScoreSummary, choices};
use crate::cost::Machine;
use crate::inputs::pools::{Extent, PoolFiles, Pools};
use crate::inputs::scope::Scope;
use crate::inputs::swapped;
use crate::plan::{Costs, Identity, PlanFile};

/// Which classes of a run are scored.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// All of them.
    #[default]
    All,
    /// Those of a bin of a plan. The tables may hold the candidates of the bin alone, in their order.
    Bin {
        /// The plan.
        #[serde(serialize_with = "resume::debug")]
        plan: PathBuf,
        /// Which bin, from 0.
        bin: usize,
    },
    /// Those of a shard: of so many bins, packed from the whole tables as any machine would.
    Shard(Shard),
}

/// Settings that all parts of a run must share.
#[derive(Clone, Copy)]
pub(super) struct RunIdentity<'a> {
    pub(super) decisions: Option<&'a Decisions>,
    pub(super) method: &'a Method,
    pub(super) seed: u64,
}

/// The examples of the classes to score, and the part of a run that they are.
pub(super) struct ShareInputs {
    pub(super) pools: Pools,
    /// The network that made the features of the whole run.
    pub(super) network: Option<String>,
    /// Without its detail, which is known when it is scored.
    pub(super) part: Option<Part>,
}

impl Share {
    /// Whether the result is a part.
    pub fn is_part(&self) -> bool {
        *self != Share::All
    }

    /// The file of the plan.
    pub fn plan(&self) -> Option<&Path> {
        match self {
            Share::Bin { plan, .. } => Some(plan),
            Share::All | Share::Shard(_) => None,
        }
    }

    /// Opens the examples, and leaves out the candidates of other parts.
    pub(super) fn open(
        &self,
        files: &PoolFiles,
        run: RunIdentity,
        monitor: &dyn Monitor,
    ) -> Result<ShareInputs> {
        let inputs = match self {
            Share::All => {
                let pools = open_whole(files, monitor)?;
                let network = common_network(&[(&pools.clean).into(), (&pools.pool).into()]);
                ShareInputs { pools, network, part: None }
            }
            Share::Shard(shard) => {
                let pools = open_whole(files, monitor)?;
                let identity = Identity::of(&pools, run.decisions, run.method, run.seed)?;
                let n_bins = NonZeroUsize::new(shard.of).context("a shard is one of at least one")?;
                // On every machine the same plan, whatever device works on it.
                let costs = Costs::of(&pools, run.method, Machine::Core)?;
                let plan = costs.plan(&pools, identity, n_bins, None)?;
                ShareInputs::new(pools, &plan, shard.index)
            }
            Share::Bin { plan: path, bin } => {
                let plan = PlanFile::load(path)?;
                plan.bin(path, *bin)?;
                let pools = Pools::open_extent(files, Extent::Part, monitor)?;
                plan.check_identity(path, &Identity::of(&pools, run.decisions, run.method, run.seed)?)?;
                plan.check_classes(path, &pools, plan.bin(path, *bin)?)?;
                ShareInputs::new(pools, &plan, *bin)
            }
        };
        inputs.pools.warn_of_left_out(monitor);
        Ok(inputs)
    }
}

/// Tables that hold all of a run.
fn open_whole(files: &PoolFiles, monitor: &dyn Monitor) -> Result<Pools> {
    let pools = Pools::open(files, monitor)?;
    if let Some(warning) = swapped::suspicion(&pools) {
        monitor.warning(&warning);
    }
    Ok(pools)
}

impl ShareInputs {
    fn new(mut pools: Pools, plan: &PlanFile, index: usize) -> ShareInputs {
        pools.restrict_to(Scope::part(index, plan.bins[index].classes.clone()));
        let run = plan.run.clone();
        let of = plan.bins.len();
        let detail = Value::Null;
        let part = Part { command: PartOf::Score, run, index, of, detail };
        ShareInputs { pools, network: plan.identity.network.clone(), part: Some(part) }
    }
}

impl Score {
    /// The summary of the part, if the output holds it already.
    pub(super) fn complete_part(&self, inputs: &ShareInputs, output: &Path) -> Result<Option<ScoreSummary>> {
        let Some(part) = &inputs.part else { return Ok(None) };
        let Some(found) = find_complete(part, output)? else { return Ok(None) };
        let detail: CleanDetail = serde_json::from_value(found.detail.clone())?;
        let positions: Vec<usize> = detail.classes.iter().map(|class| class.position).collect();
        if positions != inputs.pools.scope.classes() {
            return Err(parts::in_the_way(output, "holds the classes of another plan"));
        }
        Ok(Some(ScoreSummary::of_part(&found, &detail)))
    }
}

impl ScoreSummary {
    /// The summary of a part that was written earlier.
    fn of_part(part: &Part, detail: &CleanDetail) -> ScoreSummary {
        let n_candidates: usize = detail.classes.iter().map(|class| class.n_candidates).sum();
        let sum: f64 = detail.classes.iter().map(|class| class.sum_relevance).sum();
        let empty = detail.classes.iter().filter(|class| class.n_candidates == 0);
        ScoreSummary {
            n_classes: detail.classes.len(),
            n_candidates,
            mean_relevance: sum / n_candidates.max(1) as f64,
            copies: Copies::default(),
            n_left_out: 0,
            without_candidates: empty.map(|class| class.name.clone()).collect(),
            flat: Vec::new(),
            small_pools: Vec::new(),
            advice: None,
            choices: choices::count(detail.classes.iter().filter_map(|class| class.choice.as_deref())),
            approximate: Vec::new(),
            decisions: detail.decisions.map(|counts| DecisionCounts {
                n_accept: counts.n_accept,
                n_reject: counts.n_reject,
                n_unsure: counts.n_unsure,
                n_unmatched: 0,
            }),
            class_texts: None,
            part: Some(PartDone::new(part, true)),
        }
    }
}
