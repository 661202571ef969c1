//! Scoring within a limit of memory: which classes are in memory together, and which are scored out of core.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use labelsieve::schedule::{LARGE, batches};
use labelsieve_files::work::{Error, Monitor, Result, table};
use labelsieve_files::{ExampleTable, Ids, ScratchFolder, Spill, counted, temporary_folder};
use serde::Serialize;

use crate::estimate::{OutOfCore, Workload};
use crate::inputs::pools::Pools;

/// The program itself, its threads and the buffers of reading and writing files.
const PROGRAM: u64 = 48 << 20;
/// What a candidate takes until the end: its row number, its result, and that again while it is written.
const CANDIDATE: u64 = 72;
/// What a candidate takes out of core in any case: hidden units, a key and a few numbers each of training and graph.
const OUT_OF_CORE: u64 = 128;
/// The least that is needed beside: a few rows of every array.
const LEAST: u64 = 8 << 20;

/// How much memory a run may take, and where what does not fit goes.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryLimit {
    /// Bytes at any time, pages of scratch files included.
    pub bytes: u64,
    /// The folder of scratch files; by default that of the output.
    pub scratch: Option<PathBuf>,
}

impl MemoryLimit {
    /// Where scratch files go for this output, if it is a file.
    pub fn scratch(&self, output: Option<&Path>) -> Result<ScratchFolder> {
        let beside = |output: &Path| match output.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let folder = self.scratch.clone().or_else(|| output.map(beside)).unwrap_or_else(temporary_folder);
        Ok(ScratchFolder::new(&folder, 0)?)
    }

    /// What there is to do within it.
    pub fn within<'a>(
        &self,
        scratch: &'a ScratchFolder,
        work: &'a Workload<'a>,
        pools: &Pools,
    ) -> MemoryPlan<'a> {
        let names = names_bytes(&pools.clean) + names_bytes(&pools.pool);
        MemoryPlan { bytes: self.bytes, scratch, work, names }
    }

    /// How Parquet tables are read: large ones go to a scratch file.
    pub fn spill(&self, scratch: &ScratchFolder) -> Spill {
        Spill { scratch: scratch.clone(), above: self.bytes / 8 }
    }
}

/// Classes that are scored together.
pub struct Batch {
    /// Their positions.
    pub classes: Vec<usize>,
    /// Where the arrays go of a class that is scored out of core.
    pub scratch: Option<Arc<ScratchFolder>>,
}

impl Batch {
    /// Classes in memory, as many at a time as fit in a gibibyte. `sizes`: the rows that each needs.
    pub fn in_memory(sizes: &[usize], dim: usize) -> Vec<Batch> {
        batches(sizes, dim).into_iter().map(|classes| Batch { classes, scratch: None }).collect()
    }
}

/// What is in memory from the beginning to the end, beside tables' numbers: ids and classes of rows.
fn names_bytes(table: &ExampleTable) -> u64 {
    let ids = match &table.ids {
        Ids::Given(ids) => ids.iter().map(|id| 40 + id.len() as u64).sum(),
        Ids::RowNumbers(_) | Ids::WithTexts { .. } => 0,
    };
    ids + 4 * table.len() as u64
}

/// A limit, and what there is to do within it.
pub struct MemoryPlan<'a> {
    bytes: u64,
    scratch: &'a ScratchFolder,
    work: &'a Workload<'a>,
    names: u64,
}

impl MemoryPlan<'_> {
    /// What there is all the time, whichever classes are worked on.
    fn fixed(&self) -> u64 {
        let clean = (self.work.n_clean * self.work.dim * size_of::<f32>()) as u64;
        let n_candidates: usize = self.work.pool_sizes.iter().sum();
        PROGRAM + self.names + self.work.bytes_in_memory + clean + CANDIDATE * n_candidates as u64
    }

    /// Batches of some classes; says which of these are scored out of core, and refuses those for which the disk has no space.
    pub fn announced(&self, classes: &[usize], pools: &Pools, monitor: &dyn Monitor) -> Result<Vec<Batch>> {
        let names = pools.names();
        let batches = self.batches(classes, rayon::current_num_threads(), &names)?;
        for class in out_of_core(&batches) {
            let (stays, folder) = (stays(pools, class), self.scratch.folder().display());
            self.check_space(class, stays, names[class])?;
            let (limit, needed) = (table::bytes(self.bytes), table::bytes(self.scratch_bytes(class, stays)));
            let candidates = counted(self.work.pool_sizes[class], "candidate");
            monitor.note(&format!(
                "`{}`: {candidates} do not fit in {limit}; working out of core with about {needed} in `{folder}`",
                names[class]
            ));
            if self.scratch.is_in_memory() {
                monitor.warning(&format!(
                    "`{folder}` is itself in memory: choose a folder on a disk with --scratch"
                ));
            }
        }
        Ok(batches)
    }

    /// How many of these classes are scored out of core, and what the largest takes.
    pub fn out_of_core(&self, classes: &[usize], pools: &Pools) -> Result<OutOfCore> {
        let batches = self.batches(classes, rayon::current_num_threads(), &pools.names())?;
        let scratch = out_of_core(&batches).map(|class| self.scratch_bytes(class, stays(pools, class)));
        Ok(OutOfCore { n_classes: out_of_core(&batches).count(), scratch_bytes: scratch.max().unwrap_or(0) })
    }

    /// Some classes in the order in which they are scored: those that do not fit first, one at a time; the others side by side
    /// as far as they fit.
    fn batches(&self, classes: &[usize], n_threads: usize, names: &[&str]) -> Result<Vec<Batch>> {
        let available = self.bytes.saturating_sub(self.fixed());
        let mut order = classes.to_vec();
        order.sort_by_key(|&class| (std::cmp::Reverse(self.work.rows_held[class]), class));
        let (large, rest): (Vec<usize>, Vec<usize>) =
            order.into_iter().partition(|&class| self.work.of_class(class).iter().sum::<u64>() > available);
        let mut batches = Vec::new();
        for class in large {
            let least = OUT_OF_CORE * self.work.pool_sizes[class] as u64 + LEAST;
            if least > available {
                return Err(self.too_little(self.fixed() + least, names[class]));
            }
            // An eighth is left for what the system needs to read and write files.
            let scratch = self.scratch.with_memory((available - available / 8) as usize);
            batches.push(Batch { classes: vec![class], scratch: Some(Arc::new(scratch)) });
        }
        let mut room = BatchBuffer::default();
        for class in rest {
            let [held, working] = self.work.of_class(class);
            let of_large = self.work.pool_sizes[class] >= LARGE;
            let more = room.with(held, working, of_large, n_threads);
            match batches.last_mut().filter(|batch| batch.scratch.is_none() && more.bytes() <= available) {
                Some(batch) => {
                    batch.classes.push(class);
                    room = more;
                }
                None => {
                    batches.push(Batch { classes: vec![class], scratch: None });
                    room = BatchBuffer::default().with(held, working, of_large, n_threads);
                }
            }
        }
        Ok(batches)
    }

    /// Scratch space that a class out of core takes, about: rows sorted for the search, Ã V sorted likewise, then Ã V, two of them
    /// at a time, and neighbours; where rows cannot stay in their file, those too.
    fn scratch_bytes(&self, class: usize, stays: bool) -> u64 {
        let row = (self.work.dim * size_of::<f32>()) as u64;
        self.work.pool_sizes[class] as u64 * ((if stays { 2 } else { 3 }) * row + 800)
    }

    /// Refuses a class for which the disk has no space.
    fn check_space(&self, class: usize, stays: bool, name: &str) -> Result<()> {
        let needed = self.scratch_bytes(class, stays);
        let Some(free) = self.scratch.free_bytes().filter(|&free| free < needed) else { return Ok(()) };
        let (folder, n) = (self.scratch.folder().display(), self.work.pool_sizes[class]);
        let (needed, free) = (table::bytes(needed), table::bytes(free));
        Err(Error::input(
            format!(
                "`{folder}` has {free} left, but the {n} candidates of `{name}` need about {needed} of scratch space"
            ),
            "name a folder with more space with --scratch, or raise --memory",
        ))
    }

    fn too_little(&self, least: u64, name: &str) -> Error {
        Error::input(
            format!(
                "{} of memory are too little for `{name}`, even out of core: it needs {}",
                table::bytes(self.bytes),
                table::bytes(least)
            ),
            format!("raise --memory to {} MiB at least", least.div_ceil(1 << 20)),
        )
    }
}

fn out_of_core(batches: &[Batch]) -> impl Iterator<Item = usize> {
    batches.iter().filter(|batch| batch.scratch.is_some()).flat_map(|batch| batch.classes.iter().copied())
}

/// Whether the rows of a class can be used where they are, if they have unit length.
fn stays(pools: &Pools, class: usize) -> bool {
    pools.pool.features.lend_in_place(&pools.classes[class].pool).is_some()
}

/// Memory of a batch as classes are added to it, largest first.
#[derive(Clone, Copy, Default)]
struct BatchBuffer {
    held: u64,
    /// Work on the largest class that has all threads, and on small ones side by side.
    alone: u64,
    together: u64,
    n_small: usize,
}

impl BatchBuffer {
    fn with(self, held: u64, working: u64, has_all_threads: bool, n_threads: usize) -> BatchBuffer {
        let room = BatchBuffer { held: self.held + held, ..self };
        match has_all_threads {
            true => BatchBuffer { alone: self.alone.max(working), ..room },
            false if self.n_small < n_threads => {
                BatchBuffer { together: self.together + working, n_small: self.n_small + 1, ..room }
            }
            false => room,
        }
    }

    fn bytes(&self) -> u64 {
        self.held + self.alone.max(self.together)
    }
}

#[cfg(test)]
mod tests {
    use labelsieve::Method;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn work(method: &Method, pool_sizes: Vec<usize>) -> Workload<'_> {
        let rows_held = pool_sizes.clone();
        Workload { method, dim: 256, pool_sizes, rows_held, n_clean: 0, bytes_in_memory: 0 }
    }

    #[test]
    fn classes_that_do_not_fit_go_first_and_alone_and_the_others_side_by_side() {
        let (folder, method) = (tempfile::tempdir().unwrap(), Method::gcn());
        let scratch = ScratchFolder::new(folder.path(), 0).unwrap();
        // A class of 10,000 takes about 10 MiB of rows and 19 of work, one of 100,000 ten times that.
        let work = work(&method, vec![10_000, 100_000, 10_000, 50, 300_000, 10_000]);
        let batches = |bytes: u64| {
            let within = MemoryPlan { bytes, scratch: &scratch, work: &work, names: 0 };
            let names = ["a", "b", "c", "d", "e", "f"];
            within.batches(&[0, 1, 2, 3, 4, 5], 2, &names).map(|batches| {
                let kind = |batch: &Batch| (batch.classes.clone(), batch.scratch.is_some());
                batches.iter().map(kind).collect::<Vec<_>>()
            })
        };
        let all = (vec![4, 1, 0, 2, 5, 3], false);
        assert_eq!(batches(8 << 30).unwrap(), [all]);
        let out_of_core = |class: usize| (vec![class], true);
        let rest = (vec![0, 2, 5, 3], false);
        assert_eq!(batches(160 * MIB).unwrap(), [out_of_core(4), out_of_core(1), rest]);
        let apart = [out_of_core(4), out_of_core(1), (vec![0, 2], false), (vec![5, 3], false)];
        assert_eq!(batches(PROGRAM + 30 * MIB + 45 * MIB).unwrap(), apart);
        let error = batches(60 * MIB).unwrap_err();
        let Error::Input { message, hint } = &error else { panic!("{error}") };
        assert_eq!(
            message.to_string(),
            "60 MiB of memory are too little for `e`, even out of core: it needs 122 MiB"
        );
        assert_eq!(hint.to_string(), "raise --memory to 123 MiB at least"); // 122.1, rounded up
        assert!(batches(122 * MIB).is_err() && batches(123 * MIB).is_ok());
    }

    #[test]
    fn a_disk_that_is_too_small_is_known_before_the_work() {
        let (folder, method) = (tempfile::tempdir().unwrap(), Method::gcn());
        let scratch = ScratchFolder::new(folder.path(), 0).unwrap();
        let work = work(&method, vec![1 << 45, 1000]);
        let within = MemoryPlan { bytes: 1 << 60, scratch: &scratch, work: &work, names: 0 };
        within.check_space(1, false, "small").unwrap();
        if scratch.free_bytes().is_some() {
            let message = within.check_space(0, true, "large").unwrap_err().to_string();
            let needed = "but the 35184372088832 candidates of `large` need about";
            assert!(message.contains(needed) && message.ends_with("of scratch space"), "{message}");
        }
    }

    #[test]
    fn scratch_files_go_beside_the_output_unless_somebody_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let limit =
            |scratch: Option<&Path>| MemoryLimit { bytes: 1, scratch: scratch.map(Path::to_path_buf) };
        let output = folder.path().join("r.parquet");
        assert_eq!(limit(None).scratch(Some(&output)).unwrap().folder(), folder.path());
        assert_eq!(limit(None).scratch(Some(Path::new("r.parquet"))).unwrap().folder(), Path::new("."));
        assert_eq!(limit(Some(folder.path())).scratch(None).unwrap().folder(), folder.path());
        assert!(limit(Some(&output)).scratch(None).is_err(), "not a folder");
    }
}
