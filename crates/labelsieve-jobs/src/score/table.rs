//! The table of relevance, one row per example and class, and what its classes come to.

use std::collections::HashMap;

use labelsieve::Decision;
use labelsieve_files::inputs::decisions::DecisionCounts;
use labelsieve_files::inputs::same_network::network_metadata;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::outputs::Target;
use labelsieve_files::work::parts::{ClassDetail, CleanDetail, DecidedDetail};
use labelsieve_files::{OptionalColumns, Part, RelevanceRow, RelevanceWriter};
use serde_json::{Value, json};

use super::advice::ClassAdvice;
use super::{ClassRecall, Doubts, PartDone, ScoreSummary, choices};
use crate::inputs::pools::{ClassRows, Pools};
use crate::scoring::ClassRelevance;

/// What a file says about its rows.
pub(super) struct TableSettings {
    /// The network that made the features.
    pub(super) network: Option<String>,
    /// How they were scored.
    pub(super) settings: Value,
    /// Candidates that people decided about.
    pub(super) counts: Option<DecisionCounts>,
    /// What it is a part of.
    pub(super) part: Option<Part>,
}

/// Writes all classes in scope, and says what was written.
pub(super) fn write(
    (pools, decisions): (&Pools, &[Vec<Option<Decision>>]),
    (scored, doubts): (&HashMap<usize, ClassRelevance>, &Doubts),
    TableSettings { network, mut settings, counts, part }: TableSettings,
    target: Target<'_>,
    monitor: &dyn Monitor,
) -> labelsieve_files::Result<ScoreSummary> {
    const ROWS: usize = 65_536;
    let mut metadata = network_metadata(network);
    let in_order = || pools.scope.classes().iter().map(|c| &scored[c]);
    let choices = choices::count(in_order().filter_map(|scored| scored.choice.as_deref()));
    match &part {
        // What only the whole knows is for `merge` to add.
        Some(part) => {
            let detail = json!(detail((pools, scored), counts.as_ref()));
            metadata.extend([Part { detail, ..part.clone() }.metadata()]);
        }
        None => {
            if let Some(counts) = &counts {
                settings["decisions"] = json!(decided(counts));
            }
            if !choices.is_empty() {
                settings["choices"] = json!(choices);
            }
        }
    }
    metadata.insert("labelsieve".to_owned(), settings.to_string());
    let metadata: Vec<(String, String)> = metadata.into_iter().collect();
    let has_probability =
        |scored: &ClassRelevance| scored.probability.as_ref().is_some_and(|p| !p.is_empty());
    let columns =
        OptionalColumns { probability: in_order().any(has_probability), decision: counts.is_some() };
    let mut writer = match target {
        Target::File(output) => RelevanceWriter::create_with(output, columns, &metadata)?,
        Target::Stdout => RelevanceWriter::to_stream(monitor.stdout(), columns),
    };
    let advice = |(class, scored): (&ClassRows, &ClassRelevance)| {
        ClassAdvice::new(&class.name, scored.probability.as_deref()?)
    };
    let classes = || pools.in_scope().map(|(_, class)| class);
    let advice = columns.probability.then(|| classes().zip(in_order()).filter_map(advice).collect());
    let mut copies = pools.copies();
    let (mut n_candidates, mut sum) = (0usize, 0f64);
    for (c, class) in pools.in_scope() {
        let scored = &scored[&c];
        let decision = |place: usize| decisions.get(c).and_then(|decisions| decisions[place]);
        let clean = class.clean.iter().map(|&row| (clean_row(pools, class, row), None));
        let kept = scored.kept().enumerate();
        let noisy = kept.map(|(i, place)| (noisy_row(pools, class, scored, i, place), decision(place)));
        let mut rows = clean.chain(noisy).peekable();
        while rows.peek().is_some() {
            let (rows, decisions): (Vec<_>, Vec<_>) = rows.by_ref().take(ROWS).unzip();
            writer.write_decided(&rows, &decisions)?;
        }
        n_candidates += scored.relevance.len();
        copies.by_content += scored.copies.len();
        sum += sum_relevance(scored);
    }
    writer.finish()?;
    let names = |classes: &[(String, usize)]| classes.iter().map(|(name, _)| name.clone()).collect();
    let empty = classes().filter(|class| class.pool.is_empty());
    Ok(ScoreSummary {
        n_classes: pools.scope.classes().len(),
        n_candidates,
        mean_relevance: sum / n_candidates.max(1) as f64,
        copies,
        n_left_out: pools.left_out.n_candidates(),
        without_candidates: empty.map(|class| class.name.clone()).collect(),
        flat: names(&doubts.flat),
        small_pools: names(&doubts.small),
        advice,
        choices,
        approximate: pools.in_scope().filter_map(|(c, class)| recall(class, &scored[&c])).collect(),
        decisions: counts,
        class_texts: None,
        part: part.map(|part| PartDone::new(&part, false)),
    })
}

fn recall(class: &ClassRows, scored: &ClassRelevance) -> Option<ClassRecall> {
    Some(ClassRecall { class: class.name.clone(), recall: scored.recall? })
}

/// What a part says beyond its rows.
fn detail(
    (pools, scored): (&Pools, &HashMap<usize, ClassRelevance>),
    counts: Option<&DecisionCounts>,
) -> CleanDetail {
    let class = |(position, class): (usize, &ClassRows)| {
        let scored = &scored[&position];
        ClassDetail {
            position,
            name: class.name.clone(),
            n_rows: class.clean.len() + scored.relevance.len(),
            n_candidates: scored.relevance.len(),
            sum_relevance: sum_relevance(scored),
            choice: scored.choice.clone(),
        }
    };
    CleanDetail {
        n_classes: pools.classes.len(),
        classes: pools.in_scope().map(class).collect(),
        decisions: counts.map(decided),
    }
}

fn decided(counts: &DecisionCounts) -> DecidedDetail {
    let DecisionCounts { n_accept, n_reject, n_unsure, .. } = *counts;
    DecidedDetail { n_accept, n_reject, n_unsure }
}

fn sum_relevance(scored: &ClassRelevance) -> f64 {
    scored.relevance.iter().map(|&relevance| f64::from(relevance)).sum()
}

fn clean_row(pools: &Pools, class: &ClassRows, row: usize) -> RelevanceRow {
    RelevanceRow {
        id: pools.clean.ids.get(row).into_owned(),
        class: class.name.clone(),
        relevance: 1.0,
        probability: Some(1.0),
        is_clean: true,
        matched_name: None,
        best_clean: None,
        best_clean_similarity: None,
        reciprocal_neighbours: None,
    }
}

/// The `i`-th candidate that takes part, which is the one at `place` among all of the class.
fn noisy_row(
    pools: &Pools,
    class: &ClassRows,
    scored: &ClassRelevance,
    i: usize,
    place: usize,
) -> RelevanceRow {
    let (closest, similarity) = scored.closest[i];
    RelevanceRow {
        id: pools.pool.ids.get(class.pool[place]).into_owned(),
        class: class.name.clone(),
        relevance: scored.relevance[i],
        probability: scored.probability.as_ref().map(|probability| probability[i]),
        is_clean: false,
        matched_name: pools.matched_name(class, place).map(str::to_owned),
        best_clean: Some(pools.clean.ids.get(class.clean[closest]).into_owned()),
        best_clean_similarity: Some(similarity),
        reciprocal_neighbours: scored.reciprocal.as_ref().map(|counts| counts[i]),
    }
}
