//! The table of relevance, one row per example and class, and what its classes come to.

use std::collections::HashMap;

use labelsieve::Decision;
use labelsieve_data::{OptionalColumns, RelevanceRow, RelevanceWriter};
use serde_json::{Value, json};

use super::advice::ClassAdvice;
use super::choices;
use super::{Cleaned, Doubts};
use crate::inputs::decisions::DecisionCounts;
use crate::inputs::pools::{ClassRows, Pools};
use crate::inputs::same_network::{common_network, network_metadata};
use crate::monitor::Monitor;
use crate::outputs::Target;
use crate::scoring::Scored;

/// Writes all classes, and says what was written.
pub(super) fn write(
    (pools, decisions): (&Pools, &[Vec<Option<Decision>>]),
    (scored, doubts): (&HashMap<usize, Scored>, &Doubts),
    (mut settings, counts): (Value, Option<DecisionCounts>),
    target: Target<'_>,
    monitor: &dyn Monitor,
) -> labelsieve_data::Result<Cleaned> {
    const ROWS: usize = 65_536;
    let mut metadata = network_metadata(common_network(&[(&pools.clean).into(), (&pools.noisy).into()]));
    if let Some(DecisionCounts { n_accept, n_reject, n_unsure, .. }) = counts {
        settings["decisions"] = json!({ "n_accept": n_accept, "n_reject": n_reject, "n_unsure": n_unsure });
    }
    let in_order = || (0..pools.classes.len()).map(|c| &scored[&c]);
    let choices = choices::count(in_order().filter_map(|scored| scored.choice.as_deref()));
    if !choices.is_empty() {
        settings["choices"] = json!(choices);
    }
    metadata.insert("labelsieve".to_owned(), settings.to_string());
    let metadata: Vec<(String, String)> = metadata.into_iter().collect();
    let has_probability = |scored: &Scored| scored.probability.as_ref().is_some_and(|p| !p.is_empty());
    let columns =
        OptionalColumns { probability: in_order().any(has_probability), decision: counts.is_some() };
    let mut writer = match target {
        Target::File(output) => RelevanceWriter::create_with(output, columns, &metadata)?,
        Target::Stdout => RelevanceWriter::to_stream(monitor.stdout(), columns),
    };
    let advice = |(class, scored): (&ClassRows, &Scored)| {
        ClassAdvice::new(&class.name, scored.probability.as_deref()?)
    };
    let advice =
        columns.probability.then(|| pools.classes.iter().zip(in_order()).filter_map(advice).collect());
    let mut copies = pools.copies;
    let (mut n_candidates, mut sum) = (0usize, 0f64);
    for (c, class) in pools.classes.iter().enumerate() {
        let scored = &scored[&c];
        let decided = |place: usize| decisions.get(c).and_then(|decisions| decisions[place]);
        let clean = class.clean.iter().map(|&row| (clean_row(pools, class, row), None));
        let kept = scored.kept().enumerate();
        let noisy = kept.map(|(i, place)| (noisy_row(pools, class, scored, i, place), decided(place)));
        let mut rows = clean.chain(noisy).peekable();
        while rows.peek().is_some() {
            let (rows, decisions): (Vec<_>, Vec<_>) = rows.by_ref().take(ROWS).unzip();
            writer.write_decided(&rows, &decisions)?;
        }
        n_candidates += scored.relevance.len();
        copies.by_content += scored.copies.len();
        sum += scored.relevance.iter().map(|&r| f64::from(r)).sum::<f64>();
    }
    writer.finish()?;
    let names = |classes: &[(String, usize)]| classes.iter().map(|(name, _)| name.clone()).collect();
    let empty = pools.classes.iter().filter(|class| class.noisy.is_empty());
    Ok(Cleaned {
        n_classes: pools.classes.len(),
        n_candidates,
        mean_relevance: sum / n_candidates.max(1) as f64,
        copies,
        n_left_out: pools.left_out.n_candidates(),
        without_candidates: empty.map(|class| class.name.clone()).collect(),
        flat: names(&doubts.flat),
        small_pools: names(&doubts.small),
        advice,
        choices,
        decisions: counts,
        class_texts: None,
    })
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
fn noisy_row(pools: &Pools, class: &ClassRows, scored: &Scored, i: usize, place: usize) -> RelevanceRow {
    let (closest, similarity) = scored.closest[i];
    RelevanceRow {
        id: pools.noisy.ids.get(class.noisy[place]).into_owned(),
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
