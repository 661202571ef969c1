//! Which of the imported rows are new, and in what order they come.

use std::collections::{HashMap, HashSet};

use labelsieve::Decision;
use labelsieve_files::work::Monitor;
use labelsieve_files::{DecisionRow, DecisionTable, counted};

use crate::is_moment;

/// Candidate and class.
type CandidateKey<'a> = (&'a str, &'a str);

fn about(row: &DecisionRow) -> CandidateKey<'_> {
    (&row.id, &row.class)
}

/// Sorts the rows of all files, since the last one wins. Where a time is missing or cannot be read, nobody knows what came
/// first, and the rows stay in the order of the files.
pub(super) fn sort_by_time(rows: &mut [DecisionRow], monitor: &dyn Monitor) {
    let without: Vec<&DecisionRow> = rows.iter().filter(|row| !is_moment(&row.at)).collect();
    let Some(first) = without.first() else {
        rows.sort_by(|a, b| a.at.cmp(&b.at));
        return;
    };
    if rows.iter().all(|row| row.at.is_empty()) {
        return; // as in most tables: nobody expects another order
    }
    let example = without.iter().find(|row| !row.at.is_empty()).unwrap_or(first);
    let found = if example.at.is_empty() { "none".to_owned() } else { format!("`{}`", example.at) };
    monitor.warning(&format!(
        "{} of {} without a time such as `2026-01-31T10:00:00Z` (`{}` of `{}`: {found}), so the order of the rows counts: \
         the last one about a candidate holds",
        without.len(),
        counted(rows.len(), "decision"),
        example.id,
        example.class,
    ));
}

/// Drops withdrawals for candidates that nobody ever decided about: some tools write `undecided` for all of these.
pub(super) fn drop_idle_withdrawals(rows: &mut Vec<DecisionRow>, before: &DecisionTable) {
    let about = |row: &DecisionRow| (row.id.clone(), row.class.clone());
    let all = before.rows.iter().chain(rows.iter());
    let decided: HashSet<(String, String)> = all.filter(|row| row.decision.is_some()).map(about).collect();
    rows.retain(|row| row.decision.is_some() || decided.contains(&about(row)));
}

/// The rows that the table does not have yet.
///
/// One with a time is the same decision wherever it stands in the table. One without may have been made again since, so
/// only the order tells: what the files say about a candidate begins with the end of what the table has, as far as the two
/// agree, and the rest is new. The same file adds nothing a second time.
pub(super) fn new_rows(rows: &[DecisionRow], before: &DecisionTable) -> Vec<DecisionRow> {
    let dated: HashSet<DecisionKey<'_>> =
        before.rows.iter().filter(|row| !row.at.is_empty()).map(key).collect();
    let old = undated(&before.rows);
    let mut n_known: HashMap<CandidateKey<'_>, usize> = HashMap::new();
    for (about, found) in undated(rows) {
        let old = old.get(&about).map_or(&[][..], Vec::as_slice);
        let n_common = (0..=old.len().min(found.len())).rev().find(|&n| old.ends_with(&found[..n]));
        n_known.insert(about, n_common.unwrap_or(0));
    }
    let mut new = Vec::new();
    for row in rows {
        let is_known = match n_known.get_mut(&about(row)) {
            Some(n) if row.at.is_empty() => std::mem::replace(n, n.saturating_sub(1)) > 0,
            _ => dated.contains(&key(row)),
        };
        if !is_known {
            new.push(row.clone());
        }
    }
    new
}

/// All fields of a row.
type DecisionKey<'a> = (CandidateKey<'a>, Option<Decision>, &'a str, &'a str);

fn key(row: &DecisionRow) -> DecisionKey<'_> {
    (about(row), row.decision, &row.by, &row.at)
}

/// The rows without a time, by candidate.
fn undated(rows: &[DecisionRow]) -> HashMap<CandidateKey<'_>, Vec<&DecisionRow>> {
    let mut found: HashMap<CandidateKey<'_>, Vec<&DecisionRow>> = HashMap::new();
    for row in rows.iter().filter(|row| row.at.is_empty()) {
        found.entry(about(row)).or_default().push(row);
    }
    found
}

/// Says where an answer without a time is in the table already, but somebody has decided otherwise since.
pub(super) fn warn_of_overruled(
    rows: &[DecisionRow],
    (before, new): (&DecisionTable, &[DecisionRow]),
    monitor: &dyn Monitor,
) {
    let holds: HashMap<CandidateKey<'_>, &DecisionRow> =
        before.rows.iter().chain(new).map(|row| (about(row), row)).collect();
    let last: HashMap<CandidateKey<'_>, &DecisionRow> = rows.iter().map(|row| (about(row), row)).collect();
    let is_overruled = |row: &&&DecisionRow| {
        row.at.is_empty() && holds.get(&about(row)).is_some_and(|held| held.decision != row.decision)
    };
    let mut overruled: Vec<&DecisionRow> = last.values().filter(is_overruled).copied().collect();
    overruled.sort_by_key(|row| about(row));
    if let Some(row) = overruled.first() {
        monitor.warning(&format!(
            "{} without a time, such as that on `{}` of `{}`, had been imported before and overruled since; the later \
             decision holds",
            counted(overruled.len(), "decision"),
            row.id,
            row.class
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<DecisionRow> {
        let row = |entry: &str| {
            let (word, at) = entry.split_once('@').unwrap_or((entry, ""));
            let [id, class, by, at] = ["x", "owl", "", at].map(str::to_owned);
            DecisionRow { id, class, decision: word.parse::<Decision>().ok(), by, at }
        };
        text.split_whitespace().map(row).collect()
    }

    #[track_caller]
    fn check(table: &str, files: &str, expected: &str) {
        let before = DecisionTable { path: "d.csv".into(), rows: rows(table) };
        let new = new_rows(&rows(files), &before);
        assert_eq!(new, rows(expected));
        let after = DecisionTable { path: "d.csv".into(), rows: [before.rows, new].concat() };
        assert_eq!(new_rows(&rows(files), &after), [], "the same files once more");
    }

    #[test]
    fn a_decision_that_was_made_again_is_new_and_a_file_that_was_read_before_is_not() {
        check("", "accept", "accept");
        check("accept reject", "accept", "accept");
        check("accept", "reject accept", "reject accept");
        check("accept", "accept reject", "reject");
        check("accept reject", "accept reject accept", "accept");
        check("accept undecided", "accept undecided", "");
        check("accept@1 reject@2", "accept@1", "");
        check("accept@1 reject@2", "accept@1 accept@3", "accept@3");
        check("accept reject@2", "accept", "");
        check("accept@1 reject", "accept", "accept");
    }
}
