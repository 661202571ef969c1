//! Relevance out of parts: classes take turns as the single run has them, whichever part each is in.

use labelsieve_files::work::outputs::{Target, on_stdout};
use labelsieve_files::work::parts::{ClassDetail, CleanDetail, DecidedDetail};
use labelsieve_files::work::{Error, Monitor, Result};
use labelsieve_files::{DataError, PartFile};
use serde_json::{Value, json};

use super::set::PartSet;
use super::{MergedRelevance, create};
use crate::score::choices;

/// The probability of a clean example. A part lacks the column only where it has nobody else: no other part would have it if
/// the method knew none.
const OF_CLEAN: f32 = 1.0;

/// Writes all classes in their order.
pub(super) fn merge(set: &PartSet, target: Target<'_>, monitor: &dyn Monitor) -> Result<MergedRelevance> {
    let details: Vec<CleanDetail> = set.parts.iter().map(|part| set.detail(part)).collect::<Result<_>>()?;
    let order = in_order(set, &details)?;
    let metadata = metadata(set, &details, &order)?;
    let mut rows = set.rows()?;
    let mut table = create(target, &rows, &metadata, monitor)?;
    let progress = monitor.progress(order.len() as u64, "classes");
    let (mut n_candidates, mut sum) = (0, 0.0);
    for &(part, class) in &order {
        monitor.watch().check()?;
        on_stdout(target, table.append(&mut rows[part], class.n_rows, OF_CLEAN))?;
        n_candidates += class.n_candidates;
        sum += class.sum_relevance;
        progress.inc(1);
    }
    on_stdout(target, table.finish())?;
    let mean_relevance = sum / n_candidates.max(1) as f64;
    Ok(MergedRelevance { n_classes: order.len(), n_candidates, mean_relevance })
}

/// The classes of the run in their order, each with the part that it is in.
fn in_order<'a>(set: &PartSet, details: &'a [CleanDetail]) -> Result<Vec<(usize, &'a ClassDetail)>> {
    let mut order = vec![None; details.first().map_or(0, |detail| detail.n_classes)];
    for (index, (part, detail)) in set.parts.iter().zip(details).enumerate() {
        check_rows(part, detail)?;
        for class in &detail.classes {
            let slot = order.get_mut(class.position).filter(|_| detail.n_classes == details[0].n_classes);
            match slot {
                Some(slot @ None) => *slot = Some((index, class)),
                _ => {
                    let expected = format!("`{}` at a place of its own", class.name);
                    return Err(
                        DataError::malformed(&part.path, "classes", expected, "one that is taken").into()
                    );
                }
            }
        }
    }
    match order.iter().position(Option::is_none) {
        None => Ok(order.into_iter().flatten().collect()),
        Some(position) => Err(Error::input(
            format!("class {position} of {} is in none of the parts", order.len()),
            "make the parts again",
        )),
    }
}

/// The classes of a part must account for its rows, and follow each other in the order of the run.
fn check_rows(part: &PartFile, detail: &CleanDetail) -> Result<()> {
    let n_rows: usize = detail.classes.iter().map(|class| class.n_rows).sum();
    if n_rows != part.n_rows {
        let (expected, found) = (format!("{n_rows}, as its classes say"), part.n_rows.to_string());
        return Err(DataError::malformed(&part.path, "number of rows", expected, found).into());
    }
    match detail.classes.is_sorted_by(|a, b| a.position < b.position) {
        true => Ok(()),
        false => Err(DataError::malformed(&part.path, "classes", "ascending positions", "others").into()),
    }
}

/// The metadata of the single run: what all parts say, and what only the whole knows.
fn metadata(
    set: &PartSet,
    details: &[CleanDetail],
    order: &[(usize, &ClassDetail)],
) -> Result<Vec<(String, String)>> {
    let mut metadata = set.parts[0].metadata.clone();
    let text = metadata.get("labelsieve").cloned().unwrap_or_default();
    let mut settings: Value = serde_json::from_str(&text).map_err(|error| {
        DataError::malformed(&set.parts[0].path, "metadata `labelsieve`", "settings", error.to_string())
    })?;
    let devices = set.parts.iter().map(device);
    if let Some((part, found)) =
        set.parts.iter().zip(devices).find(|(_, found)| *found != device(&set.parts[0]))
    {
        return Err(Error::input(
            format!(
                "`{}` was scored on `{found}`, `{}` on `{}`",
                part.path.display(),
                set.parts[0].path.display(),
                device(&set.parts[0])
            ),
            "score all parts on one kind of device: --device cpu or --device cuda",
        ));
    }
    if details.iter().any(|detail| detail.decisions.is_some()) {
        let mut all = DecidedDetail::default();
        for DecidedDetail { n_accept, n_reject, n_unsure } in
            details.iter().filter_map(|detail| detail.decisions)
        {
            all.n_accept += n_accept;
            all.n_reject += n_reject;
            all.n_unsure += n_unsure;
        }
        settings["decisions"] = json!(all);
    }
    let choices = choices::count(order.iter().filter_map(|(_, class)| class.choice.as_deref()));
    if !choices.is_empty() {
        settings["choices"] = json!(choices);
    }
    metadata.insert("labelsieve".to_owned(), settings.to_string());
    Ok(metadata.into_iter().collect())
}

/// The kind of device that a part was scored on: relevance agrees to rounding, not to the bit, between two kinds.
fn device(part: &PartFile) -> String {
    let settings = part.metadata.get("labelsieve").and_then(|text| serde_json::from_str::<Value>(text).ok());
    settings.and_then(|settings| Some(settings["device"].as_str()?.to_owned())).unwrap_or_default()
}
