//! Decisions that were made before a review begins.

use std::collections::{HashMap, HashSet};

use labelsieve::Decision;
use labelsieve_files::inputs::left_out::listed;
use labelsieve_files::work::{Monitor, command, option, words};
use labelsieve_files::{DecisionJoin, DecisionRow, DecisionTable, counted};

use super::Review;
use super::contents::{Class, Contents};
use super::decisions::{Action, Change, DecisionState};

/// What a file of decisions tells, as if everything had just been done: rows of one class and one moment are one action.
/// A row that does not say when it was made is an action of its own, or else one undo would withdraw a whole spreadsheet.
/// Rows about other candidates stay in the file and mean nothing here.
pub(super) fn replay(contents: &Contents, table: &DecisionTable) -> DecisionState {
    let mut decided = DecisionState::new(contents.classes.iter().map(|class| class.candidates.len()));
    let by_name: HashMap<&str, usize> =
        contents.classes.iter().enumerate().map(|(number, class)| (class.name.as_str(), number)).collect();
    let is_one_action =
        |a: &DecisionRow, b: &DecisionRow| !a.at.is_empty() && a.at == b.at && a.class == b.class;
    for rows in table.rows.chunk_by(is_one_action) {
        let Some(&class) = by_name.get(rows[0].class.as_str()) else { continue };
        let of = &contents.classes[class];
        let place = |row: &DecisionRow| {
            let row_of = of.rows.get(&contents.example(&row.id)?)?;
            Some((*row_of as usize, row.decision))
        };
        let placed: Vec<(usize, Option<Decision>)> = rows.iter().filter_map(place).collect();
        for once in each_row_once(&placed) {
            let before = |row: usize| decided.of(class)[row];
            let change = |&(row, after): &(usize, _)| Change { row, before: before(row), after };
            let changes = once.iter().map(change).collect();
            decided.apply(Action { class, changes }, &rows[0].by, &rows[0].at);
        }
    }
    decided
}

/// Parts in which no row comes twice: what a second decision replaces is known only once the first one counts.
fn each_row_once<T>(changes: &[(usize, T)]) -> Vec<&[(usize, T)]> {
    let (mut parts, mut start, mut seen) = (Vec::new(), 0, HashSet::new());
    for (at, (row, _)) in changes.iter().enumerate() {
        if !seen.insert(*row) {
            parts.push(&changes[start..at]);
            (start, seen) = (at, HashSet::from([*row]));
        }
    }
    parts.push(&changes[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// The decisions that the relevance file was made with, as rows of a new file. It tells neither who made them nor when.
pub(super) fn of_relevance(contents: &Contents) -> Vec<DecisionRow> {
    let of_class = |class: &Class| {
        let rows = class.candidates.iter().zip(&class.decisions).filter(|(_, decision)| decision.is_some());
        let row = |(&example, &decision): (&u32, &Option<Decision>)| DecisionRow {
            id: contents.id(example).to_owned(),
            class: class.name.clone(),
            decision,
            by: String::new(),
            at: String::new(),
        };
        rows.map(row).collect::<Vec<_>>()
    };
    contents.classes.iter().flat_map(of_class).collect()
}

/// Names decisions that are about no candidate of this review.
pub(super) fn warn_of_unmatched(contents: &Contents, table: &DecisionTable, monitor: &dyn Monitor) {
    let mut join = DecisionJoin::new(table);
    for class in &contents.classes {
        for &example in &class.candidates {
            join.decision(contents.id(example), &class.name);
        }
    }
    let lost = join.unmatched();
    if lost.is_empty() {
        return;
    }
    let names = lost.iter().map(|(id, class)| format!("`{id}` of `{class}`"));
    monitor.warning(&format!(
        "{} in `{}` about no candidate of this review: {}",
        counted(lost.len(), "decision"),
        table.path.display(),
        listed(names, lost.len())
    ));
    monitor.hint(&words![
        "they stay in the file and change nothing here; `id` and `class` must be those of the relevance file",
    ]);
}

/// Without features, nothing replaces the relevance that a decision fixed in the file and that was withdrawn since.
pub(super) fn warn_of_withdrawn(
    review: &Review,
    contents: &Contents,
    decided: &DecisionState,
    monitor: &dyn Monitor,
) {
    let fixed = |decision: Option<Decision>| decision.and_then(Decision::relevance);
    let of_class = |(number, class): (usize, &Class)| {
        let pairs = class.decisions.iter().zip(decided.of(number));
        pairs.filter(|(then, now)| fixed(**then).is_some() && fixed(**now).is_none()).count()
    };
    let n_withdrawn: usize = contents.classes.iter().enumerate().map(of_class).sum();
    if n_withdrawn > 0 {
        monitor.warning(&format!(
            "`{}` was made with decisions about {} that do not hold in `{}`: their relevance is still 0 or 1",
            review.relevance.display(),
            counted(n_withdrawn, "candidate"),
            review.output.display()
        ));
        monitor.hint(&words![
            "pass ",
            option("clean"),
            " and ",
            option("pool"),
            ", as to ",
            command("score"),
            ", so that they are scored again",
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_comes_again_begins_a_new_part() {
        let rows = |parts: Vec<&[(usize, ())]>| -> Vec<Vec<usize>> {
            parts.iter().map(|part| part.iter().map(|(row, ())| *row).collect()).collect()
        };
        let split =
            |all: &[usize]| rows(each_row_once(&all.iter().map(|&row| (row, ())).collect::<Vec<_>>()));
        assert_eq!(split(&[1, 2, 3]), [vec![1, 2, 3]]);
        assert_eq!(split(&[1, 1, 2, 1, 1]), [vec![1], vec![1, 2], vec![1], vec![1]]);
        assert!(split(&[]).is_empty());
    }
}
