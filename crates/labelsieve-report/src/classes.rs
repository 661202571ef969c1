//! The classes of a relevance file: their candidates in order of relevance, and which of them are shown.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use labelsieve::evaluation::{Advice, Doubts};
use labelsieve::{Decision, Method};
use labelsieve_files::{
    DataError, DecisionCounts, DecisionTable, RelevanceReasons, RelevanceTable, Result, TruthTable,
    is_text_id, read_relevance_reasons,
};

use crate::decisions::CandidateDecisions;
use crate::statistics::{auc, mean};
use crate::{ClassRelevance, settings};

/// A class, with rows of the relevance table.
pub(crate) struct Class {
    /// As files spell it.
    pub(crate) key: String,
    /// As readers see it.
    pub(crate) name: String,
    /// Rows of its clean examples.
    pub(crate) clean: Vec<usize>,
    /// Rows of its candidates, most relevant first.
    pub(crate) ranked: Vec<usize>,
}

/// The contents of a relevance file, joined with truth and decisions, class by class.
pub(crate) struct Classes {
    pub(crate) table: RelevanceTable,
    /// Per row of the table, whether it belongs to its class, where that is known.
    pub(crate) truth: Vec<Option<bool>>,
    pub(crate) decided: CandidateDecisions,
    pub(crate) classes: Vec<Class>,
    /// How the relevance was scored, where the file says so.
    method: Option<Method>,
}

/// Numbers about a class.
pub(crate) struct ClassNumbers {
    pub(crate) n_clean: usize,
    /// Those that are the text of the class name.
    pub(crate) n_texts: usize,
    pub(crate) n_candidates: usize,
    pub(crate) mean: Option<f64>,
    /// The sum of all relevance: the weight of the candidates in training.
    pub(crate) weight: f64,
    /// Irrelevant share of the candidates whose truth is known.
    pub(crate) noise: Option<f64>,
    pub(crate) auc: Option<f64>,
    pub(crate) decided: DecisionCounts,
    /// Which candidates to keep, where the file has probabilities.
    pub(crate) advice: Option<Advice>,
    pub(crate) doubts: Doubts,
}

/// The relevance or the probability of a candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RatedCandidate {
    pub(crate) value: f32,
    /// Whether it belongs to its class, where that is known.
    pub(crate) truth: Option<bool>,
}

/// Values of the candidates whose truth is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ValuesByTruth {
    pub(crate) relevant: Vec<f32>,
    pub(crate) irrelevant: Vec<f32>,
}

impl ValuesByTruth {
    pub(crate) fn of(candidates: impl IntoIterator<Item = RatedCandidate>) -> ValuesByTruth {
        let mut values = ValuesByTruth::default();
        for RatedCandidate { value, truth } in candidates {
            match truth {
                Some(true) => values.relevant.push(value),
                Some(false) => values.irrelevant.push(value),
                None => (),
            }
        }
        values
    }

    pub(crate) fn n_known(&self) -> usize {
        self.relevant.len() + self.irrelevant.len()
    }

    /// The irrelevant share.
    pub(crate) fn noise(&self) -> Option<f64> {
        (self.n_known() > 0).then(|| self.irrelevant.len() as f64 / self.n_known() as f64)
    }

    /// The area under the ROC curve; none unless there are values on both sides.
    pub(crate) fn auc(&self) -> Option<f64> {
        auc(&self.relevant, &self.irrelevant)
    }
}

/// A part of a ranked list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) ranks: Range<usize>,
}

impl Classes {
    /// Joins the files by example and class.
    pub(crate) fn new(
        table: RelevanceTable,
        truth: Option<TruthTable>,
        decisions: Option<DecisionTable>,
    ) -> Result<Classes> {
        let decided = match &decisions {
            Some(decisions) => CandidateDecisions::of_file(&table, decisions)?,
            None => CandidateDecisions::of_column(&table),
        };
        let truth = match truth {
            Some(truth) => join(&table, &truth)?,
            None => vec![None; table.ids.len()],
        };
        let empty = |name: &String| Class {
            key: name.clone(),
            name: name.clone(),
            clean: Vec::new(),
            ranked: Vec::new(),
        };
        let mut classes: Vec<Class> = table.classes.names.iter().map(empty).collect();
        for (row, &code) in table.classes.codes.iter().enumerate() {
            let class = &mut classes[code as usize];
            if table.is_clean[row] { class.clean.push(row) } else { class.ranked.push(row) }
        }
        for class in &mut classes {
            // Stable, so that equal ones stay in the order of the file.
            class.ranked.sort_by(|&a, &b| table.relevance[b].total_cmp(&table.relevance[a]));
        }
        let method = settings::method(&table);
        Ok(Classes { table, truth, decided, classes, method })
    }

    /// Renames classes to their readable names, with the original in brackets, and sorts by them.
    pub(crate) fn rename(&mut self, names: &BTreeMap<String, String>) {
        for class in &mut self.classes {
            if let Some(name) = names.get(&class.name).filter(|name| **name != class.name) {
                class.name = format!("{name} ({})", class.name);
            }
        }
        if !names.is_empty() {
            self.classes.sort_by_cached_key(|class| class.name.to_lowercase());
        }
    }

    /// The relevance of a class's candidates with what is known of them, most relevant first.
    pub(crate) fn candidates(&self, class: &Class) -> Vec<RatedCandidate> {
        let rated =
            |&row: &usize| RatedCandidate { value: self.table.relevance[row], truth: self.truth[row] };
        class.ranked.iter().map(rated).collect()
    }

    /// The probabilities of a class's candidates, where the file has them, with what is known of each.
    pub(crate) fn probabilities(&self, class: &Class) -> Vec<RatedCandidate> {
        let Some(probability) = &self.table.probability else { return Vec::new() };
        let rated = |&row: &usize| Some(RatedCandidate { value: probability[row]?, truth: self.truth[row] });
        class.ranked.iter().filter_map(rated).collect()
    }

    /// The probabilities of candidates whose truth is known. Candidates that were scored with a decision about them are left out:
    /// their probability is the decision.
    pub(crate) fn known_probabilities(&self) -> (Vec<f32>, Vec<bool>) {
        let settled = |row: usize| {
            let decision = self.table.decisions.as_ref().and_then(|decisions| decisions[row]);
            decision.and_then(Decision::relevance).is_some()
        };
        let Some(probability) = &self.table.probability else { return Default::default() };
        let rows = self.classes.iter().flat_map(|class| class.ranked.iter().copied());
        rows.filter(|&row| !settled(row)).filter_map(|row| probability[row].zip(self.truth[row])).unzip()
    }

    fn doubts(&self, class: &Class) -> Doubts {
        let is_open = |row: &&usize| self.decided.get(**row).and_then(Decision::relevance).is_none();
        let open = class.ranked.iter().filter(is_open).map(|&row| self.table.relevance[row]);
        let open: Vec<f32> = open.collect();
        Doubts::new(self.method.as_ref(), &open, class.clean.len(), class.ranked.len())
    }

    pub(crate) fn numbers(&self, class: &Class) -> ClassNumbers {
        let candidates = self.candidates(class);
        let known = ValuesByTruth::of(candidates.iter().copied());
        let values = || candidates.iter().map(|candidate| candidate.value);
        let probability: Vec<f32> =
            self.probabilities(class).into_iter().map(|candidate| candidate.value).collect();
        ClassNumbers {
            n_clean: class.clean.len(),
            n_texts: class.clean.iter().filter(|&&row| is_text_id(&self.table.ids[row])).count(),
            n_candidates: candidates.len(),
            mean: mean(values()),
            weight: values().map(f64::from).sum(),
            noise: known.noise(),
            auc: known.auc(),
            decided: self.decided.count(class.ranked.iter().copied()),
            advice: Advice::new(&probability),
            doubts: self.doubts(class),
        }
    }

    /// The relevance of each class, with its truth where that is known of all candidates.
    pub(crate) fn relevance(&self) -> Vec<ClassRelevance> {
        self.classes
            .iter()
            .map(|class| {
                let candidates = self.candidates(class);
                let truth: Option<Vec<bool>> = candidates.iter().map(|candidate| candidate.truth).collect();
                ClassRelevance {
                    class: class.name.clone(),
                    relevance: candidates.iter().map(|candidate| candidate.value).collect(),
                    relevant: truth.unwrap_or_default(),
                }
            })
            .collect()
    }

    /// The relevance of all candidates known to be relevant, and of those known not to be.
    pub(crate) fn by_truth(&self) -> ValuesByTruth {
        ValuesByTruth::of(self.classes.iter().flat_map(|class| self.candidates(class)))
    }

    /// The reasons of all rows.
    pub(crate) fn reasons(&self, path: &Path) -> Result<Vec<RelevanceReasons>> {
        let rows: Vec<usize> = (0..self.table.ids.len()).collect();
        read_relevance_reasons(path, &rows)
    }
}

impl Class {
    /// Rows of the candidates that are shown with pictures.
    pub(crate) fn shown(&self, per_class: usize) -> impl Iterator<Item = usize> + '_ {
        let ranks = sections(self.ranked.len(), per_class).into_iter().flat_map(|section| section.ranks);
        ranks.map(|rank| self.ranked[rank])
    }
}

/// As in the paper's figure: the top of the ranking, some of the middle, and the bottom; `n_shown` candidates in all.
pub(crate) fn sections(n_candidates: usize, n_shown: usize) -> Vec<Section> {
    if n_candidates <= n_shown {
        return match n_candidates {
            0 => Vec::new(),
            n => vec![Section { name: "All candidates", ranks: 0..n }],
        };
    }
    let n_first = n_shown.div_ceil(2);
    let n_last = n_shown / 4;
    let n_middle = n_shown - n_first - n_last;
    let between = n_first..n_candidates - n_last;
    let start = between.start + (between.len() - n_middle) / 2;
    [
        Section { name: "Most relevant", ranks: 0..n_first },
        Section { name: "Middle", ranks: start..start + n_middle },
        Section { name: "Least relevant", ranks: between.end..n_candidates },
    ]
    .into_iter()
    .filter(|section| !section.ranks.is_empty())
    .collect()
}

fn join(table: &RelevanceTable, truth: &TruthTable) -> Result<Vec<Option<bool>>> {
    let known: HashMap<(&str, &str), bool> = (0..truth.ids.len())
        .map(|row| ((&truth.ids[row], truth.classes.get(row)), truth.relevant[row]))
        .collect();
    let joined: Vec<Option<bool>> = (0..table.ids.len())
        .map(|row| known.get(&(&table.ids[row], table.classes.get(row))).copied())
        .collect();
    let n_known = (0..joined.len()).filter(|&row| !table.is_clean[row] && joined[row].is_some()).count();
    if n_known == 0 && table.is_clean.contains(&false) {
        let expected = format!("candidates of `{}`, with the same `id` and `class`", table.path.display());
        return Err(DataError::malformed(&truth.path, "rows", expected, "none"));
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> RelevanceTable {
        RelevanceTable {
            path: "r.parquet".into(),
            ids: ["a", "b", "c", "d", "a"].iter().collect(),
            classes: ["owl", "owl", "owl", "owl", "cat"].iter().collect(),
            relevance: vec![0.25, 1.0, 0.75, 0.5, 0.125],
            probability: None,
            is_clean: vec![false, true, false, false, false],
            decisions: None,
            metadata: Default::default(),
        }
    }

    fn truth(rows: &[(&str, &str, bool)]) -> TruthTable {
        TruthTable {
            path: "t.parquet".into(),
            ids: rows.iter().map(|row| row.0).collect(),
            classes: rows.iter().map(|row| row.1).collect(),
            relevant: rows.iter().map(|row| row.2).collect(),
        }
    }

    #[test]
    fn candidates_are_ranked_and_joined_with_the_truth_of_their_own_class() {
        let truth = truth(&[("a", "owl", false), ("c", "owl", true), ("a", "cat", true)]);
        let classes = Classes::new(table(), Some(truth), None).unwrap();
        let [cat, owl] = &classes.classes[..] else { panic!("two classes") };
        assert_eq!((owl.name.as_str(), &owl.clean[..], &owl.ranked[..]), ("owl", &[1][..], &[2, 3, 0][..]));
        let rated = |value, truth| RatedCandidate { value, truth };
        assert_eq!(
            classes.candidates(owl),
            [rated(0.75, Some(true)), rated(0.5, None), rated(0.25, Some(false))]
        );
        assert_eq!(classes.candidates(cat), [rated(0.125, Some(true))]);
        let numbers = classes.numbers(owl);
        assert_eq!((numbers.n_clean, numbers.n_candidates, numbers.weight), (1, 3, 1.5));
        assert_eq!((numbers.mean, numbers.noise, numbers.auc), (Some(0.5), Some(0.5), Some(1.0)));
        let values = ValuesByTruth { relevant: vec![0.125, 0.75], irrelevant: vec![0.25] };
        assert_eq!(classes.by_truth(), values);
        assert_eq!(classes.relevance()[1].relevant, [] as [bool; 0], "one of them is not known");
    }

    #[test]
    fn classes_may_have_names_for_people() {
        let mut classes = Classes::new(table(), None, None).unwrap();
        classes.rename(&BTreeMap::from([("owl".to_owned(), "Barn owl".to_owned())]));
        let names: Vec<&str> = classes.classes.iter().map(|class| class.name.as_str()).collect();
        assert_eq!(names, ["Barn owl (owl)", "cat"]);
        assert_eq!(classes.numbers(&classes.classes[0]).n_candidates, 3, "rows follow their class");
    }

    #[test]
    fn a_truth_of_other_candidates_is_refused() {
        let Err(error) = Classes::new(table(), Some(truth(&[("x", "owl", true)])), None) else {
            panic!("joined")
        };
        let message = "`t.parquet`: rows: expected candidates of `r.parquet`, with the same `id` and `class`, \
                       found none";
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn long_rankings_are_shown_at_both_ends_and_in_the_middle() {
        let ranks =
            |n, most| sections(n, most).into_iter().map(|s| (s.ranks.start, s.ranks.end)).collect::<Vec<_>>();
        assert_eq!(ranks(8, 8), [(0, 8)]);
        assert_eq!(ranks(100, 8), [(0, 4), (50, 52), (98, 100)]);
        assert_eq!(ranks(9, 8), [(0, 4), (4, 6), (7, 9)]);
        assert_eq!(ranks(5, 1), [(0, 1)]);
        assert!(ranks(0, 8).is_empty() && ranks(5, 0).is_empty());
    }
}
