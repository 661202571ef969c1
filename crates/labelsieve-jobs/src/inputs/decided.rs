//! Decisions joined with the candidates of each class.

use std::collections::HashMap;

use labelsieve::Decision;
use labelsieve_files::inputs::decisions::{Decisions, KnownExamples};
use labelsieve_files::work::near_name::nearest;
use labelsieve_files::work::{Monitor, Result};
use labelsieve_files::{DecisionCounts, DecisionJoin};

use super::pools::Pools;

/// Per class one entry for each candidate.
pub fn of_pools(
    decisions: &Decisions,
    pools: &Pools,
    monitor: &dyn Monitor,
) -> Result<(Vec<Vec<Option<Decision>>>, DecisionCounts)> {
    let mut join = DecisionJoin::new(decisions.table());
    let decided: Vec<Vec<Option<Decision>>> = pools
        .classes
        .iter()
        .map(|class| {
            let ids = class.pool.iter().map(|&row| pools.pool.ids.get(row));
            ids.map(|id| join.decision(&id, &class.name)).collect()
        })
        .collect();
    let classes: HashMap<&str, usize> =
        pools.classes.iter().enumerate().map(|(c, class)| (class.name.as_str(), c)).collect();
    let known = KnownExamples {
        classes: pools.classes.iter().map(|class| class.name.as_str()).collect(),
        is_clean: &|id, class| {
            let rows = classes.get(class).map_or(&[][..], |&c| &pools.classes[c].clean);
            rows.iter().any(|&row| pools.clean.ids.get(row) == id)
        },
        near_id: &|id, class| {
            let rows = classes.get(class).map_or(&[][..], |&c| &pools.classes[c].pool);
            let ids: Vec<_> = rows.iter().map(|&row| pools.pool.ids.get(row)).collect();
            nearest(id, ids.iter().map(AsRef::as_ref)).map(str::to_owned)
        },
        is_ours: &|class| match classes.get(class) {
            Some(&c) => pools.scope.contains(c),
            None => pools.scope.tells_of_strays(),
        },
    };
    let n_unmatched = decisions.warn_of_unmatched(&join, &known, monitor)?;
    let counts = DecisionCounts::of(decided.iter().flatten().copied());
    Ok((decided, DecisionCounts { n_unmatched, ..counts }))
}
