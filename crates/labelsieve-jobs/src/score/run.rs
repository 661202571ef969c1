//! Scores the classes of a job and records each in a journal as it is finished.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

use labelsieve::engine::Engine;
use labelsieve::{Decision, Features, Method};
use labelsieve_files::inputs::tables::{load, load_in};
use labelsieve_files::work::outputs::beside;
use labelsieve_files::work::{Monitor, Result, resume};
use labelsieve_files::{Journal, ScratchFolder, counted};

use super::Score;
use super::doubts::Doubts;
use crate::estimate::Workload;
use crate::inputs::pools::Pools;
use crate::memory::{Batch, MemoryLimit};
use crate::scoring::{ClassRelevance, Scoring, rows_held};

/// A job with its open inputs.
pub(super) struct ScoringRun<'a> {
    pub(super) job: &'a Score,
    pub(super) pools: &'a Pools,
    /// Decisions about the candidates of each class; empty where none were given.
    pub(super) decisions: &'a [Vec<Option<Decision>>],
    pub(super) engine: &'a dyn Engine,
    /// The limit of memory and where its scratch files go.
    pub(super) memory: Option<(&'a MemoryLimit, &'a ScratchFolder)>,
    pub(super) monitor: &'a dyn Monitor,
}

/// The classes that are scored so far.
#[derive(Default)]
pub(super) struct ClassResults {
    /// Where each is recorded; none for results on stdout.
    pub(super) journal: Option<Journal>,
    /// By position.
    pub(super) scored: HashMap<usize, ClassRelevance>,
}

impl ClassResults {
    /// The journal of this job with the classes of an earlier run. Records that do not fit their class are scored again.
    pub(super) fn resume(
        output: &Path,
        key: &resume::Key,
        pools: &Pools,
        monitor: &dyn Monitor,
    ) -> Result<ClassResults> {
        let units = resume::RecordUnits { unit: "classes", total: Some(pools.scope.classes().len()) };
        let (journal, records) = resume::open(&beside(output, ".partial"), key, units, monitor)?;
        let by_name: HashMap<&str, usize> =
            pools.classes.iter().enumerate().map(|(c, class)| (class.name.as_str(), c)).collect();
        let decoded = records.into_iter().filter_map(|(name, payload)| {
            let class = *by_name.get(name.as_str())?;
            let rows = &pools.classes[class];
            Some((class, ClassRelevance::decode(&payload, rows.clean.len(), rows.pool.len())?))
        });
        Ok(ClassResults { scored: decoded.collect(), journal: Some(journal) })
    }
}

/// The work on all classes.
pub(super) fn workload<'a>(pools: &Pools, method: &'a Method) -> Workload<'a> {
    let n_clean: Vec<usize> = pools.classes.iter().map(|class| class.clean.len()).collect();
    let pool_sizes = pool_sizes(pools);
    Workload {
        method,
        dim: pools.clean.features.cols(),
        rows_held: rows_held(method, &n_clean, &pool_sizes, pools.n_base()),
        pool_sizes,
        n_clean: pools.clean.len(),
        bytes_in_memory: pools.clean.features.bytes_in_memory() + pools.pool.features.bytes_in_memory(),
    }
}

fn pool_sizes(pools: &Pools) -> Vec<usize> {
    pools.classes.iter().map(|class| class.pool.len()).collect()
}

impl ScoringRun<'_> {
    /// Scores the classes without a result.
    pub(super) fn score(&self, results: &mut ClassResults) -> Result<()> {
        let pools = self.pools;
        let ClassResults { journal, scored } = results;
        let journal = journal.as_ref();
        let in_scope = pools.scope.classes().iter().copied();
        let open: Vec<usize> = in_scope.filter(|class| !scored.contains_key(class)).collect();
        let n_rows: usize = open.iter().map(|&class| pools.classes[class].pool.len()).sum();
        let progress = self.monitor.progress(n_rows as u64, "candidates");
        progress.set_message(self.job.method.name());
        let names = pools.names();
        let clean = self.clean(&names)?;
        let pool_sizes = pool_sizes(pools);
        let scoring = Scoring {
            method: &self.job.method,
            engine: self.engine,
            seed: self.job.seed,
            names: &names,
            clean: &clean,
            base: pools.base.as_ref().map(|base| &base.directions),
            pool_sizes: &pool_sizes,
            decisions: self.decisions,
            recall: self.job.recall,
        };
        let load = |class: usize, scratch: Option<&ScratchFolder>| self.load_pool(class, scratch);
        let finished: Mutex<&mut HashMap<usize, ClassRelevance>> = Mutex::new(scored);
        let batches = self.batches(&scoring, &open)?;
        scoring.run_batches(&batches, &load, self.monitor.watch(), &|class, result| {
            if let Some(journal) = journal {
                journal.append(names[class], &result.encode())?;
            }
            let z = result.relevance.len();
            let mean = result.relevance.iter().sum::<f32>() / z.max(1) as f32;
            let candidates = counted(z, "candidate");
            self.monitor.detail(&format!("{}: {candidates}, mean relevance {mean:.2}", names[class]));
            progress.inc(pool_sizes[class] as u64);
            finished.lock().unwrap_or_else(|poison| poison.into_inner()).insert(class, result);
            Ok(())
        })
    }

    /// The clean examples of all classes.
    fn clean(&self, names: &[&str]) -> Result<Vec<Features>> {
        let classes = self.pools.classes.iter();
        let clean: Vec<Features> =
            classes.map(|class| load(&self.pools.clean, &class.clean)).collect::<Result<_>>()?;
        for (name, clean) in names.iter().zip(&clean).filter(|(_, clean)| clean.n_zero() > 0) {
            let n_zero = clean.n_zero();
            let n = clean.len();
            self.monitor.warning(&format!(
                "{n_zero} of {n} clean examples of `{name}` have all-zero feature vectors"
            ));
        }
        Ok(clean)
    }

    /// The candidates of a class, in scratch files where it is scored out of core.
    fn load_pool(&self, class: usize, scratch: Option<&ScratchFolder>) -> Result<Features> {
        let rows = &self.pools.classes[class].pool;
        let noisy = match scratch {
            Some(scratch) => load_in(&self.pools.pool, rows, scratch)?,
            None => load(&self.pools.pool, rows)?,
        };
        if noisy.n_zero() > 0 {
            self.monitor.warning(&format!(
                "{} of {} candidates of `{}` have all-zero feature vectors",
                noisy.n_zero(),
                noisy.len(),
                self.pools.classes[class].name
            ));
        }
        Ok(noisy)
    }

    fn batches(&self, scoring: &Scoring, open: &[usize]) -> Result<Vec<Batch>> {
        let Some((limit, scratch)) = self.memory else { return Ok(scoring.batches(open)) };
        let work = workload(self.pools, &self.job.method);
        limit.within(scratch, &work, self.pools).announced(open, self.pools, self.monitor)
    }

    /// Classes whose relevance says little. Candidates whose relevance was set by a decision do not count.
    pub(super) fn doubts(&self, scored: &HashMap<usize, ClassRelevance>) -> Doubts {
        let mut doubts = Doubts::default();
        for (c, class) in self.pools.in_scope() {
            let scored = &scored[&c];
            let is_open = |place: usize| match self.decisions.get(c) {
                Some(decisions) => decisions[place].and_then(Decision::relevance).is_none(),
                None => true,
            };
            let open = scored.kept().zip(&scored.relevance).filter(|(place, _)| is_open(*place));
            let open: Vec<f32> = open.map(|(_, &relevance)| relevance).collect();
            let n_candidates = scored.relevance.len();
            let found = labelsieve::evaluation::Doubts::new(
                Some(&self.job.method),
                &open,
                class.clean.len(),
                n_candidates,
            );
            doubts.add(&class.name, n_candidates, &found);
        }
        doubts
    }

    /// Warns where every candidate is a clean example of its class, so that none was scored.
    pub(super) fn warn_if_all_are_clean(&self, scored: &HashMap<usize, ClassRelevance>) {
        let by_content: usize = scored.values().map(|scored| scored.copies.len()).sum();
        let n_copies = self.pools.copies().by_id + by_content;
        let is_empty = scored.values().all(|scored| scored.relevance.is_empty());
        if self.pools.scope.is_whole() && n_copies > 0 && is_empty {
            let pool = self.pools.pool.path.display();
            self.monitor.warning(&format!(
                "all candidates in `{pool}` are clean examples of their class: none was scored"
            ));
        }
    }
}
