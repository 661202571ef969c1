//! The examples of a class, with the relevance of its candidates.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use labelsieve::{Decision, Features};
use labelsieve_files::inputs::copies::{Copies, comparable_ids, identical_rows};
use labelsieve_files::inputs::decisions::{DecisionCounts, Decisions, in_force};
use labelsieve_files::inputs::same_network::{Origin, common_network};
use labelsieve_files::inputs::tables::{RowsById, labels_of, load, rows_by_class, rows_by_id};
use labelsieve_files::work::near_name::nearest;
use labelsieve_files::work::{Error, Monitor, Result, option, words};
use labelsieve_files::{ExampleTable, RelevanceTable, read_relevance};

use crate::inputs::pools::PoolFiles;

/// The examples of one class in memory; those that a person accepted are among the clean ones. Candidates of relevance zero
/// count for nothing; what they would add if all counted alike is kept as a sum.
pub struct ClassExamples {
    pub clean: Features,
    pub noisy: Features,
    pub relevance: Vec<f32>,
    /// The probability that each candidate belongs to the class; its relevance where the file has none.
    pub probability: Vec<f32>,
    pub irrelevant: Vec<f32>,
}

/// Reads the examples that the classes are learned from, class by class.
pub struct ExampleReader {
    clean: ExampleTable,
    pool: ExampleTable,
    /// The clean rows of each class.
    classes: Vec<(String, Vec<usize>)>,
    /// The noisy rows of each class that has some.
    noisy: HashMap<String, WeightedRows>,
    copies: Copies,
    /// The network that made the features, if the files say so.
    pub network: Option<String>,
    /// Decisions of people about the candidates, where the files have some.
    pub decisions: Option<DecisionCounts>,
}

/// Noisy rows of one class and their relevance.
#[derive(Default)]
struct WeightedRows {
    rows: Vec<usize>,
    relevance: Vec<f32>,
    probability: Vec<f32>,
    /// Rows of relevance zero.
    irrelevant: Vec<usize>,
    /// Rows that a person accepted.
    accepted: Vec<usize>,
}

/// Rows in memory at a time that are only summed up.
const BLOCK: usize = 8192;

impl ExampleReader {
    /// Opens all files and assigns the rows to their classes; `others` are further files that must be of the same network.
    pub fn open(
        files: &PoolFiles,
        path: &Path,
        decisions: Option<&Decisions>,
        others: Vec<Origin>,
        monitor: &dyn Monitor,
    ) -> Result<ExampleReader> {
        let (clean, pool) = files.open(monitor)?;
        let relevance = read_relevance(path)?;
        let origins = [(&clean).into(), (&pool).into(), (&relevance).into()].into_iter().chain(others);
        let origins: Vec<Origin> = origins.collect();
        files.mixed.check(&origins)?;
        let network = common_network(&origins);
        let decided = in_force(decisions, &relevance, monitor)?;
        let decisions = decided.as_ref().map_or(&[][..], |(decisions, _)| decisions);
        let noisy = noisy_rows(files, &relevance, decisions, &rows_by_id(&pool)?)?;
        let classes = rows_by_class(labels_of(&clean, option("clean_labels"))?);
        let known: HashSet<&str> = classes.iter().map(|(name, _)| name.as_str()).collect();
        if let Some(unknown) = noisy.keys().filter(|name| !known.contains(name.as_str())).min() {
            return Err(Error::input(
                format!(
                    "`{}` has candidates of class `{unknown}`, which has no clean example in `{}`",
                    path.display(),
                    clean.path.display()
                ),
                match nearest(unknown, classes.iter().map(|(name, _)| name.as_str())) {
                    Some(meant) => {
                        words![format!("did you mean `{meant}`? class names must match in both files")]
                    }
                    None => {
                        words!["train with the ", option("clean"), " that the relevance was computed with"]
                    }
                },
            ));
        }
        let decisions = decided.map(|(_, counts)| counts);
        Ok(ExampleReader { clean, pool, classes, noisy, copies: Copies::default(), network, decisions })
    }

    /// The names of the classes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.classes.iter().map(|(name, _)| name.as_str())
    }

    /// Numbers per feature.
    pub fn dim(&self) -> usize {
        self.clean.features.cols()
    }

    /// Examples that count for something, at most.
    pub fn n_rows(&self) -> usize {
        let noisy = self.noisy.values().map(|rows| rows.rows.len() + rows.accepted.len());
        self.classes.iter().map(|(_, rows)| rows.len()).sum::<usize>() + noisy.sum::<usize>()
    }

    /// Reads the examples of a class; once.
    pub fn read(&mut self, class: usize) -> Result<ClassExamples> {
        let (name, rows) = &self.classes[class];
        let weighted = self.noisy.remove(name).unwrap_or_default();
        read_class(&self.clean, rows, &self.pool, weighted, &mut self.copies)
    }

    /// Says which candidates were left out because they are clean examples.
    pub fn say_copies(&self, monitor: &dyn Monitor) {
        self.copies.say("features", monitor);
    }
}

/// For each class the noisy rows and their relevance, in the order of the relevance file.
fn noisy_rows(
    files: &PoolFiles,
    relevance: &RelevanceTable,
    decisions: &[Option<Decision>],
    by_id: &RowsById,
) -> Result<HashMap<String, WeightedRows>> {
    let mut rows: HashMap<&str, WeightedRows> = HashMap::new();
    for i in (0..relevance.ids.len()).filter(|&i| !relevance.is_clean[i]) {
        let id = &relevance.ids[i];
        let row = by_id.get(id).ok_or_else(|| {
            Error::input(
                format!(
                    "`{}`, row {i}: the example `{id}` is not in `{}`",
                    relevance.path.display(),
                    files.pool.path.display()
                ),
                words!["train with the ", option("pool"), " that the relevance was computed with"],
            )
        })?;
        let class = rows.entry(relevance.classes.get(i)).or_default();
        match decisions.get(i).copied().flatten() {
            Some(Decision::Accept) => class.accepted.push(row),
            Some(Decision::Reject) => (), // no example of the class, however many count alike
            _ if relevance.relevance[i] > 0.0 => {
                class.rows.push(row);
                class.relevance.push(relevance.relevance[i]);
                let probability = relevance.probability.as_ref().and_then(|probability| probability[i]);
                class.probability.push(probability.unwrap_or(relevance.relevance[i]));
            }
            _ => class.irrelevant.push(row),
        }
    }
    Ok(rows.into_iter().map(|(name, rows)| (name.to_owned(), rows)).collect())
}

/// The examples of a class, without candidates that are its clean examples: by id where the tables have ids, and by the
/// numbers themselves.
fn read_class(
    clean_table: &ExampleTable,
    clean_rows: &[usize],
    pool: &ExampleTable,
    mut candidates: WeightedRows,
    copies: &mut Copies,
) -> Result<ClassExamples> {
    if let Some(ids) = comparable_ids(clean_table, pool, clean_rows) {
        let n_all = |found: &WeightedRows| found.rows.len() + found.irrelevant.len() + found.accepted.len();
        let before = n_all(&candidates);
        let is_copy = |row: &usize| ids.contains(pool.ids.get(*row).as_ref());
        let kept: Vec<usize> =
            (0..candidates.rows.len()).filter(|&i| !is_copy(&candidates.rows[i])).collect();
        candidates.rows = chosen(&candidates.rows, &kept);
        candidates.relevance = chosen(&candidates.relevance, &kept);
        candidates.probability = chosen(&candidates.probability, &kept);
        candidates.irrelevant.retain(|row| !is_copy(row));
        candidates.accepted.retain(|row| !is_copy(row));
        copies.by_id += before - n_all(&candidates);
    }
    let mut clean = load(clean_table, clean_rows)?;
    let mut noisy = load(pool, &candidates.rows)?;
    if !candidates.accepted.is_empty() {
        let accepted = load(pool, &candidates.accepted)?;
        let same = identical_rows(&clean, &accepted);
        let kept: Vec<usize> = (0..accepted.len()).filter(|row| same.binary_search(row).is_err()).collect();
        clean = clean.stack(&accepted.select(&kept))?;
        copies.by_content += same.len();
    }
    let mut relevance = candidates.relevance;
    let mut probability = candidates.probability;
    let same = identical_rows(&clean, &noisy);
    if !same.is_empty() {
        let kept: Vec<usize> = (0..noisy.len()).filter(|row| same.binary_search(row).is_err()).collect();
        noisy = noisy.select(&kept);
        relevance = chosen(&relevance, &kept);
        probability = chosen(&probability, &kept);
        copies.by_content += same.len();
    }
    let mut irrelevant = vec![0f64; clean.dim()];
    for block in candidates.irrelevant.chunks(BLOCK) {
        let rows = load(pool, block)?;
        let same = identical_rows(&clean, &rows);
        for (_, row) in rows.rows().enumerate().filter(|(i, _)| same.binary_search(i).is_err()) {
            irrelevant.iter_mut().zip(row).for_each(|(sum, &v)| *sum += f64::from(v));
        }
        copies.by_content += same.len();
    }
    let irrelevant = irrelevant.iter().map(|&sum| sum as f32).collect();
    Ok(ClassExamples { clean, noisy, relevance, probability, irrelevant })
}

fn chosen<T: Copy>(values: &[T], positions: &[usize]) -> Vec<T> {
    positions.iter().map(|&at| values[at]).collect()
}
