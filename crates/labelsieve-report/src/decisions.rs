//! Decisions of people about the candidates of a relevance file.

use labelsieve::Decision;
use labelsieve_files::{DataError, DecisionCounts, DecisionJoin, DecisionTable, RelevanceTable, Result};

/// Decisions, one entry per row of the relevance table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CandidateDecisions {
    by_row: Vec<Option<Decision>>,
    /// Decisions about examples that are not candidates of the relevance file, as id and class.
    pub(crate) foreign: Vec<(String, String)>,
}

impl CandidateDecisions {
    /// The decisions that the relevance file carries.
    pub(crate) fn of_column(table: &RelevanceTable) -> CandidateDecisions {
        let by_row = table.decisions.clone().unwrap_or_else(|| vec![None; table.ids.len()]);
        CandidateDecisions { by_row, foreign: Vec::new() }
    }

    /// The decisions of a file, by example and class. Clean examples are not candidates.
    pub(crate) fn of_file(table: &RelevanceTable, decisions: &DecisionTable) -> Result<CandidateDecisions> {
        let mut join = DecisionJoin::new(decisions);
        let by_row = join.of_relevance(table);
        if !join.is_empty() && !join.has_matches() {
            let expected =
                format!("candidates of `{}`, with the same `id` and `class`", table.path.display());
            return Err(DataError::malformed(&decisions.path, "rows", expected, "none"));
        }
        let foreign = join.unmatched().into_iter().map(|(id, class)| (id.to_owned(), class.to_owned()));
        Ok(CandidateDecisions { by_row, foreign: foreign.collect() })
    }

    pub(crate) fn get(&self, row: usize) -> Option<Decision> {
        self.by_row[row]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_row.iter().all(Option::is_none)
    }

    pub(crate) fn count(&self, rows: impl IntoIterator<Item = usize>) -> DecisionCounts {
        DecisionCounts::of(rows.into_iter().map(|row| self.by_row[row]))
    }

    /// The counts over all rows.
    pub(crate) fn count_all(&self) -> DecisionCounts {
        self.count(0..self.by_row.len())
    }
}

#[cfg(test)]
mod tests {
    use labelsieve_files::DecisionRow;

    use super::*;

    fn table() -> RelevanceTable {
        RelevanceTable {
            path: "r.parquet".into(),
            ids: ["a", "b", "a"].iter().collect(),
            classes: ["owl", "owl", "cat"].iter().collect(),
            relevance: vec![0.25, 1.0, 0.75],
            probability: None,
            is_clean: vec![false, true, false],
            decisions: None,
            metadata: Default::default(),
        }
    }

    fn file(rows: &[(&str, &str, Decision)]) -> DecisionTable {
        let row = |&(id, class, decision): &(&str, &str, Decision)| DecisionRow {
            id: id.to_owned(),
            class: class.to_owned(),
            decision: Some(decision),
            by: String::new(),
            at: String::new(),
        };
        DecisionTable { path: "d.csv".into(), rows: rows.iter().map(row).collect() }
    }

    #[test]
    fn decisions_concern_candidates_of_their_own_class() {
        let rows = [
            ("a", "owl", Decision::Reject),
            ("b", "owl", Decision::Accept), // clean
            ("z", "owl", Decision::Accept),
        ];
        let decisions = CandidateDecisions::of_file(&table(), &file(&rows)).unwrap();
        assert_eq!([0, 1, 2].map(|row| decisions.get(row)), [Some(Decision::Reject), None, None]);
        assert_eq!(
            decisions.foreign,
            [("b", "owl"), ("z", "owl")].map(|(id, class)| (id.to_owned(), class.to_owned()))
        );
        assert_eq!(decisions.count_all(), DecisionCounts { n_reject: 1, ..DecisionCounts::default() });
    }

    #[test]
    fn without_a_file_the_column_counts() {
        let table = RelevanceTable { decisions: Some(vec![None, None, Some(Decision::Unsure)]), ..table() };
        assert_eq!(
            CandidateDecisions::of_column(&table).count_all().named(),
            [("accepted", 0), ("rejected", 0), ("unsure", 1)]
        );
        let file = file(&[("a", "owl", Decision::Accept)]);
        assert_eq!(
            CandidateDecisions::of_file(&table, &file).unwrap().get(2),
            None,
            "the file alone, if there is one"
        );
    }

    #[test]
    fn decisions_about_other_candidates_are_refused() {
        let error =
            CandidateDecisions::of_file(&table(), &file(&[("z", "owl", Decision::Accept)])).unwrap_err();
        let message =
            "`d.csv`: rows: expected candidates of `r.parquet`, with the same `id` and `class`, found none";
        assert_eq!(error.to_string(), message);
        assert!(CandidateDecisions::of_file(&table(), &file(&[])).unwrap().is_empty(), "none were made yet");
    }
}
