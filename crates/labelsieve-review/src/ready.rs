//! A class ready to be scored again and again: its features in memory, with their graph.

use std::collections::{HashMap, HashSet};

use labelsieve::graph::{Affinity, NEIGHBOURS, Neighbours, NoisyGraph};
use labelsieve::ordering::{NEAR_DUPLICATES, near_duplicates, what_next};
use labelsieve::{ClassProblem, Decision, Features, Method, NoisyPool};
use labelsieve_files::inputs::copies::identical_rows;
use labelsieve_files::inputs::tables::load;
use labelsieve_files::work::{Error, Monitor, Result, option, words};
use labelsieve_jobs::device::OpenDevice;
use labelsieve_jobs::inputs::pools::{ClassRows, PoolFiles, Pools};
use labelsieve_jobs::scoring::{ClassRelevance, Scoring, without};
use labelsieve_numerics::Watch;

use super::contents::{Class, Contents};

/// The features of all classes, on disk, and the device that scores them.
pub(super) struct Scorer {
    pools: Pools,
    /// For each class of the review, its number in the pools.
    numbers: Vec<usize>,
    /// The clean examples of all classes of the pools.
    clean: Vec<Features>,
    pool_sizes: Vec<usize>,
    device: OpenDevice,
    seed: u64,
}

/// The candidates of a class without copies of its clean examples.
pub(super) struct Candidates {
    pub(super) features: Features,
    /// The row of each in the review, if the relevance file has it.
    pub(super) row_of: Vec<Option<u32>>,
    /// Which were left out, as [`ClassRelevance::copies`].
    copies: Vec<usize>,
}

/// A class in memory. What a person decides changes nothing of it.
pub(super) struct Ready {
    /// The candidates that `score` scores, in its order, with their graph.
    pub(super) pool: NoisyPool,
    /// Reciprocal neighbours of all examples, clean ones first.
    pub(super) affinity: Affinity,
    /// The row of each candidate in the review, if the relevance file has it.
    pub(super) row_of: Vec<Option<u32>>,
    /// The place of each row in the pool; none for copies of clean examples.
    pub(super) place_of: Vec<Option<u32>>,
    /// The first place of each place's near-duplicates.
    groups: Vec<u32>,
    /// Places that are not part of the pool, as [`ClassRelevance::copies`].
    copies: Vec<usize>,
    /// Of each candidate in the graph.
    pub(super) n_neighbours: usize,
}

impl Scorer {
    /// Opens the features and checks that they are those of the relevance file.
    pub(super) fn open(
        files: &PoolFiles,
        contents: &Contents,
        device: OpenDevice,
        monitor: &dyn Monitor,
    ) -> Result<Scorer> {
        let pools = Pools::open(files, monitor)?;
        let by_name: HashMap<&str, usize> =
            pools.classes.iter().enumerate().map(|(number, rows)| (rows.name.as_str(), number)).collect();
        let mut numbers = Vec::with_capacity(contents.classes.len());
        for class in &contents.classes {
            let number = by_name.get(class.name.as_str()).copied().ok_or_else(|| {
                Error::input(
                    format!(
                        "class `{}` has no clean examples in `{}`",
                        class.name,
                        pools.clean.path.display()
                    ),
                    words![
                        "give the ",
                        option("clean"),
                        ", ",
                        option("pool"),
                        " and ",
                        option("candidates"),
                        " that the relevance was scored with"
                    ],
                )
            })?;
            check_candidates(&pools, &pools.classes[number], class, contents)?;
            numbers.push(number);
        }
        let clean: Result<Vec<Features>> =
            pools.classes.iter().map(|class| load(&pools.clean, &class.clean)).collect();
        let pool_sizes = pools.classes.iter().map(|class| class.pool.len()).collect();
        Ok(Scorer { numbers, clean: clean?, pool_sizes, device, seed: contents.settings.seed, pools })
    }

    /// The clean examples of a class of the review.
    pub(super) fn clean(&self, class: usize) -> &Features {
        &self.clean[self.numbers[class]]
    }

    /// The id of one of the clean examples of a class.
    pub(super) fn id_of_clean(&self, class: usize, position: usize) -> String {
        let rows = &self.pools.classes[self.numbers[class]];
        self.pools.clean.ids.get(rows.clean[position]).into_owned()
    }

    /// Reads a class and searches its graph.
    pub(super) fn ready(
        &self,
        class: usize,
        contents: &Contents,
        method: &Method,
        watch: &Watch,
    ) -> Result<Ready> {
        let Candidates { features: noisy, row_of, copies } = self.candidates(class, contents)?;
        let clean = self.clean(class);
        let count = method.neighbours(noisy.len()).unwrap_or(NEIGHBOURS);
        let graph = match &self.device {
            // The one that can be stopped; all devices find the same graph.
            OpenDevice::Cpu { .. } => {
                NoisyGraph::from_neighbours(Neighbours::exact_watched(&noisy, count, watch)?, count)
            }
            device => device.engine().noisy_graph(&noisy, count)?,
        };
        let neighbours = graph.insert(clean, &noisy);
        let mut place_of = vec![None; contents.classes[class].candidates.len()];
        for (place, row) in row_of.iter().enumerate() {
            if let Some(row) = row {
                place_of[*row as usize] = Some(place as u32);
            }
        }
        let affinity = Affinity::reciprocal(&neighbours);
        let groups = near_duplicates(&graph, NEAR_DUPLICATES);
        let pool = NoisyPool::from_parts(noisy, graph)?;
        Ok(Ready { pool, affinity, row_of, place_of, groups, copies, n_neighbours: count })
    }

    /// Scores a class exactly as the job `Score` does; `decisions` by row of the review.
    pub(super) fn score(
        &self,
        class: usize,
        ready: &Ready,
        method: &Method,
        decisions: &[Option<Decision>],
        watch: &Watch,
    ) -> Result<ClassRelevance> {
        let names: Vec<&str> = self.pools.classes.iter().map(|class| class.name.as_str()).collect();
        let scoring = Scoring {
            method,
            engine: self.device.engine(),
            seed: self.seed,
            names: &names,
            clean: &self.clean,
            base: self.pools.base.as_ref().map(|base| &base.directions),
            pool_sizes: &self.pool_sizes,
            decisions: &[],
            recall: None,
        };
        let decisions = ready.decisions(decisions);
        scoring.score_ready(self.numbers[class], &ready.pool, &decisions, ready.copies.clone(), watch)
    }

    /// Rows that a person should look at first, at most `count`; decisions and relevance by row.
    pub(super) fn what_next(
        &self,
        class: usize,
        ready: &Ready,
        decisions: &[Option<Decision>],
        relevance: &[f32],
        count: usize,
    ) -> Result<Vec<u32>> {
        let decisions = ready.decisions(decisions);
        let problem = ClassProblem::new(self.clean(class), &ready.pool)?.with_decisions(&decisions)?;
        let relevance: Vec<f32> =
            ready.row_of.iter().map(|row| row.map_or(0.0, |row| relevance[row as usize])).collect();
        let places = what_next(&problem, &ready.groups, &relevance, count)?;
        Ok(places.into_iter().filter_map(|place| ready.row_of[place as usize]).collect())
    }

    /// Reads the candidates of a class that `score` scores, in its order. Positions count these.
    pub(super) fn candidates(&self, class: usize, contents: &Contents) -> Result<Candidates> {
        let rows = &self.pools.classes[self.numbers[class]];
        let of = &contents.classes[class];
        let features = load(&self.pools.pool, &rows.pool)?;
        let copies = identical_rows(self.clean(class), &features);
        let places = rows.pool.iter().enumerate();
        let row_of = places
            .filter(|(place, _)| copies.binary_search(place).is_err())
            .map(|(_, &row)| of.row_of_id(contents, &self.pools.pool.ids.get(row)))
            .collect();
        Ok(Candidates { features: without(features, &copies), row_of, copies })
    }
}

impl Ready {
    /// Bytes in memory.
    pub(super) fn bytes(&self) -> u64 {
        let features = self.pool.features();
        let graph = 8 * self.row_of.len() * self.n_neighbours;
        let rows = 16 * self.row_of.len();
        (4 * features.len() * features.dim() + graph + 8 * self.affinity.n_entries() + rows) as u64
    }

    /// The first row of each row's near-duplicates.
    pub(super) fn groups(&self) -> Vec<u32> {
        let mut first_row: HashMap<u32, u32> = HashMap::new();
        let group = |row: u32| self.place_of[row as usize].map(|place| self.groups[place as usize]);
        let rows = 0..self.place_of.len() as u32;
        rows.map(|row| group(row).map_or(row, |group| *first_row.entry(group).or_insert(row))).collect()
    }

    /// The decisions by place in the pool.
    pub(super) fn decisions(&self, by_row: &[Option<Decision>]) -> Vec<Option<Decision>> {
        self.row_of.iter().map(|row| row.and_then(|row| by_row[row as usize])).collect()
    }

    /// Values by row from values by place; rows that are not in the pool keep what they have.
    pub(super) fn by_row<T: Copy>(&self, by_place: &[T], mut by_row: Vec<T>) -> Vec<T> {
        for (row, &value) in self.row_of.iter().zip(by_place) {
            if let Some(row) = row {
                by_row[*row as usize] = value;
            }
        }
        by_row
    }
}

impl Class {
    fn row_of_id(&self, contents: &Contents, id: &str) -> Option<u32> {
        self.rows.get(&contents.example(id)?).copied()
    }
}

/// Every candidate that can be decided must be one that is scored.
fn check_candidates(pools: &Pools, rows: &ClassRows, class: &Class, contents: &Contents) -> Result<()> {
    let found: HashSet<u32> =
        rows.pool.iter().filter_map(|&row| contents.example(&pools.pool.ids.get(row))).collect();
    match class.candidates.iter().find(|example| !found.contains(example)) {
        None => Ok(()),
        Some(&missing) => Err(Error::input(
            format!(
                "candidate `{}` of `{}` has no features in `{}`",
                contents.id(missing),
                class.name,
                pools.pool.path.display()
            ),
            words![
                "give the ",
                option("clean"),
                ", ",
                option("pool"),
                " and ",
                option("candidates"),
                " that the relevance was scored with"
            ],
        )),
    }
}

#[cfg(test)]
#[path = "ready_tests.rs"]
mod tests;
