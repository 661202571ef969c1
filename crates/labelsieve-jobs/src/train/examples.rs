//! The examples of every class in memory, with the relevance of its candidates.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use labelsieve::{Decision, Features};
use labelsieve_files::inputs::copies::{Copies, comparable_ids, identical_rows};
use labelsieve_files::inputs::decisions::{DecisionCounts, Decisions, in_force};
use labelsieve_files::inputs::same_network::{Origin, common_network};
use labelsieve_files::inputs::tables::{RowsById, labels_of, load, rows_by_class, rows_by_id};
use labelsieve_files::work::near_name::nearest;
use labelsieve_files::work::{Error, Monitor, Result};
use labelsieve_files::{ExampleTable, RelevanceTable, read_relevance};

use crate::inputs::pools::PoolFiles;

/// The examples of one class in memory; those that a person accepted are among the clean ones. Candidates of relevance zero
/// count for nothing; what they would add if all counted alike is kept as a sum.
pub struct ClassExamples {
    pub name: String,
    pub clean: Features,
    pub noisy: Features,
    pub relevance: Vec<f32>,
    pub irrelevant: Vec<f32>,
}

/// What the classes are learned from.
pub struct Examples {
    pub classes: Vec<ClassExamples>,
    /// The network that made the features, if the files say so.
    pub network: Option<String>,
    /// What people decided about the candidates, if the files say so.
    pub decisions: Option<DecisionCounts>,
}

/// Noisy rows of one class and their relevance.
#[derive(Default)]
struct WeightedRows {
    rows: Vec<usize>,
    relevance: Vec<f32>,
    /// Rows of relevance zero.
    irrelevant: Vec<usize>,
    /// Rows that a person accepted.
    accepted: Vec<usize>,
}

/// Rows in memory at a time that are only summed up.
const BLOCK: usize = 8192;

/// Reads all examples; `others` are further files that must be of the same network.
pub fn read(
    files: &PoolFiles,
    (path, decisions): (&Path, Option<&Decisions>),
    others: Vec<Origin>,
    monitor: &dyn Monitor,
) -> Result<Examples> {
    let (clean, noisy) = files.open(monitor)?;
    let relevance = read_relevance(path)?;
    let origins = [(&clean).into(), (&noisy).into(), (&relevance).into()].into_iter().chain(others);
    let origins: Vec<Origin> = origins.collect();
    files.mixed.check(&origins)?;
    let network = common_network(&origins);
    let decided = in_force(decisions, &relevance, monitor)?;
    let decisions = decided.as_ref().map_or(&[][..], |(decisions, _)| decisions);
    let mut noisy_rows = noisy_rows(files, &relevance, decisions, &rows_by_id(&noisy)?)?;
    let clean_rows = rows_by_class(labels_of(&clean, "--clean-labels")?);
    let known: HashSet<&str> = clean_rows.iter().map(|(name, _)| name.as_str()).collect();
    if let Some(unknown) = noisy_rows.keys().filter(|name| !known.contains(*name)).min() {
        return Err(Error::input(
            format!(
                "`{}` has candidates of class `{unknown}`, which has no clean example in `{}`",
                path.display(),
                clean.path.display()
            ),
            match nearest(unknown, clean_rows.iter().map(|(name, _)| name.as_str())) {
                Some(meant) => {
                    format!("did you mean `{meant}`? class names must match in both files")
                }
                None => "train with the same --clean file that the relevance was computed with".to_owned(),
            },
        ));
    }
    let progress = monitor.progress(clean_rows.len() as u64, "classes");
    let (mut classes, mut copies) = (Vec::with_capacity(clean_rows.len()), Copies::default());
    for (name, rows) in &clean_rows {
        let weighted = noisy_rows.remove(name.as_str()).unwrap_or_default();
        classes.push(read_class(name, (&clean, rows), (&noisy, weighted), &mut copies)?);
        progress.inc(1);
    }
    progress.finish();
    copies.say("features", monitor);
    Ok(Examples { classes, network, decisions: decided.map(|(_, counts)| counts) })
}

/// For each class the noisy rows and their relevance, in the order of the relevance file.
fn noisy_rows<'a>(
    files: &PoolFiles,
    relevance: &'a RelevanceTable,
    decisions: &[Option<Decision>],
    by_id: &RowsById,
) -> Result<HashMap<&'a str, WeightedRows>> {
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
                "train with the same --noisy file that the relevance was computed with",
            )
        })?;
        let class = rows.entry(relevance.classes.get(i)).or_default();
        match decisions.get(i).copied().flatten() {
            Some(Decision::Accept) => class.accepted.push(row),
            Some(Decision::Reject) => (), // no example of the class, however many count alike
            _ if relevance.relevance[i] > 0.0 => {
                class.rows.push(row);
                class.relevance.push(relevance.relevance[i]);
            }
            _ => class.irrelevant.push(row),
        }
    }
    Ok(rows)
}

/// The examples of a class, without candidates that are its clean examples: by id where the tables have ids, and by the
/// numbers themselves.
fn read_class(
    name: &str,
    (clean_table, clean_rows): (&ExampleTable, &[usize]),
    (noisy_table, mut candidates): (&ExampleTable, WeightedRows),
    copies: &mut Copies,
) -> Result<ClassExamples> {
    if let Some(ids) = comparable_ids(clean_table, noisy_table, clean_rows) {
        let n_all = |found: &WeightedRows| found.rows.len() + found.irrelevant.len() + found.accepted.len();
        let before = n_all(&candidates);
        let is_copy = |row: &usize| ids.contains(noisy_table.ids.get(*row).as_ref());
        let kept = candidates.rows.iter().zip(&candidates.relevance).filter(|(row, _)| !is_copy(row));
        (candidates.rows, candidates.relevance) = kept.map(|(&row, &relevance)| (row, relevance)).unzip();
        candidates.irrelevant.retain(|row| !is_copy(row));
        candidates.accepted.retain(|row| !is_copy(row));
        copies.by_id += before - n_all(&candidates);
    }
    let (mut clean, mut noisy) = (load(clean_table, clean_rows)?, load(noisy_table, &candidates.rows)?);
    if !candidates.accepted.is_empty() {
        let accepted = load(noisy_table, &candidates.accepted)?;
        let same = identical_rows(&clean, &accepted);
        let kept: Vec<usize> = (0..accepted.len()).filter(|row| same.binary_search(row).is_err()).collect();
        clean = clean.stack(&accepted.select(&kept))?;
        copies.by_content += same.len();
    }
    let mut relevance = candidates.relevance;
    let same = identical_rows(&clean, &noisy);
    if !same.is_empty() {
        let kept: Vec<usize> = (0..noisy.len()).filter(|row| same.binary_search(row).is_err()).collect();
        noisy = noisy.select(&kept);
        relevance = kept.iter().map(|&row| relevance[row]).collect();
        copies.by_content += same.len();
    }
    let mut irrelevant = vec![0f64; clean.dim()];
    for block in candidates.irrelevant.chunks(BLOCK) {
        let rows = load(noisy_table, block)?;
        let same = identical_rows(&clean, &rows);
        for (_, row) in rows.rows().enumerate().filter(|(i, _)| same.binary_search(i).is_err()) {
            irrelevant.iter_mut().zip(row).for_each(|(sum, &v)| *sum += f64::from(v));
        }
        copies.by_content += same.len();
    }
    let irrelevant = irrelevant.iter().map(|&sum| sum as f32).collect();
    Ok(ClassExamples { name: name.to_owned(), clean, noisy, relevance, irrelevant })
}
