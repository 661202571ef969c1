//! Relevance against ground truth.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use labelsieve::Decision;
use labelsieve::evaluation::{Calibration, RelevanceAnalysis};
use labelsieve_files::inputs::decisions::Decisions;
use labelsieve_files::work::{Error, Monitor, Result, command, option, words};
use labelsieve_files::{RelevanceTable, counted, read_truth};

use super::output::RelevanceReport;

/// The truth that relevance is compared with.
#[derive(Clone, Debug)]
pub enum Truth {
    /// A file that says of each candidate whether it is relevant.
    File(PathBuf),
    /// Decisions of people: accepted candidates are relevant, rejected ones are not.
    Decisions(PathBuf),
}

impl Truth {
    fn path(&self) -> &Path {
        match self {
            Truth::File(path) | Truth::Decisions(path) => path,
        }
    }

    /// For each row of the relevance file whether it is relevant, where that is known.
    fn of(&self, relevance: &RelevanceTable, monitor: &dyn Monitor) -> Result<Vec<Option<bool>>> {
        match self {
            Truth::File(path) => {
                let truth = read_truth(path)?;
                let known: HashMap<(&str, &str), bool> = (0..truth.ids.len())
                    .map(|i| ((&truth.ids[i], truth.classes.get(i)), truth.relevant[i]))
                    .collect();
                let rows = relevance.ids.iter().enumerate();
                Ok(rows.map(|(i, id)| known.get(&(id, relevance.classes.get(i))).copied()).collect())
            }
            Truth::Decisions(path) => {
                let decisions = Decisions::open(path)?;
                if decisions.is_empty() {
                    return Err(Error::input(
                        format!("`{}` holds no decisions", path.display()),
                        words![
                            "make some with ",
                            command("review"),
                            ", or import them with ",
                            command("decisions import")
                        ],
                    ));
                }
                let (decided, _) = decisions.of_relevance(relevance, monitor)?;
                let is_relevant = |decision: Decision| decision.relevance().map(|fixed| fixed > 0.5);
                Ok(decided.into_iter().map(|decision| decision.and_then(is_relevant)).collect())
            }
        }
    }
}

/// Compares the relevance of candidates with the truth.
pub(super) fn analyse(
    relevance: &RelevanceTable,
    truth: &Truth,
    monitor: &dyn Monitor,
) -> Result<RelevanceReport> {
    let known = truth.of(relevance, monitor)?;
    // A decision made before the scoring sets the relevance, so comparing with it says nothing about the model.
    let is_settled = |i: usize| {
        let decision = relevance.decisions.as_ref().and_then(|decisions| decisions[i]);
        decision.and_then(Decision::relevance).is_some()
    };
    let mut classes: BTreeMap<&str, (Vec<f32>, Vec<bool>)> = BTreeMap::new();
    let mut all = (Vec::new(), Vec::new());
    let mut n_unknown = 0;
    let mut n_settled = 0;
    let mut calibration = Calibration::default();
    for i in (0..relevance.ids.len()).filter(|&i| !relevance.is_clean[i]) {
        let Some(relevant) = known[i] else {
            n_unknown += 1;
            continue;
        };
        if is_settled(i) {
            n_settled += 1;
            continue;
        }
        let of_class = classes.entry(relevance.classes.get(i)).or_default();
        for (scores, flags) in [of_class, &mut all] {
            scores.push(relevance.relevance[i]);
            flags.push(relevant);
        }
        if let Some(probability) = relevance.probability.as_ref().and_then(|probability| probability[i]) {
            calibration.add(&[probability], &[relevant]);
        }
    }
    let shown = relevance.path.display();
    let against = truth.path().display();
    if n_settled > 0 {
        let candidates = counted(n_settled, "candidate");
        monitor.warning(&format!("skipping {candidates} whose relevance in `{shown}` was set by a decision"));
    }
    if all.0.is_empty() && n_settled > 0 {
        return Err(Error::input(
            format!("`{shown}` was made with decisions about all candidates in `{against}`"),
            words![
                "compare relevance that was scored without ",
                option("decisions"),
                ", or use decisions about other candidates"
            ],
        ));
    }
    if all.0.is_empty() {
        return Err(Error::input(
            format!("`{shown}` and `{against}` have no candidate in common"),
            "`id` and `class` must match in both files",
        ));
    }
    let n_settled =
        (relevance.decisions.is_some() || matches!(truth, Truth::Decisions(_))).then_some(n_settled);
    let classes =
        classes.into_iter().map(|(name, (r, t))| (name.to_owned(), RelevanceAnalysis::new(&r, &t))).collect();
    let calibration = calibration.reliability();
    let all = RelevanceAnalysis::new(&all.0, &all.1);
    Ok(RelevanceReport { all, classes, calibration, n_unknown, n_settled })
}
