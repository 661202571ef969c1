//! Signs that `--clean` and `--noisy` were given the wrong way round.

use labelsieve_files::ExampleTable;
use labelsieve_files::inputs::tables::rows_by_id;
use labelsieve_files::work::{Error, Result};
use labelsieve_matching::CandidateTable;

use super::pools::Pools;

const SWAPPED: &str = "are --clean and --noisy swapped?";

/// Refuses tables that only fit together the other way round: classes known of the noisy examples alone, or candidates
/// that are among the clean examples alone.
pub fn check(clean: &ExampleTable, noisy: &ExampleTable, candidates: Option<&CandidateTable>) -> Result<()> {
    if clean.labels.is_none() && noisy.labels.is_some() {
        return Err(Error::input(
            format!(
                "the --clean file `{}` contains no classes, but the --noisy file `{}` does",
                clean.path.display(),
                noisy.path.display()
            ),
            format!("{SWAPPED} Clean examples need classes (--clean-labels, --label-column)"),
        ));
    }
    let Some(table) = candidates.filter(|table| !table.ids.is_empty()) else { return Ok(()) };
    let count = |examples: &ExampleTable| -> Result<usize> {
        let by_id = rows_by_id(examples)?;
        Ok(table.ids.iter().filter(|id| by_id.get(id).is_some()).count())
    };
    if count(noisy)? > 0 {
        return Ok(());
    }
    match count(clean)? {
        0 => Ok(()),
        n => Err(Error::input(
            format!(
                "{n} of the {} candidates in `{}` are in the --clean file `{}`, but none in the --noisy file `{}`",
                table.ids.len(),
                table.path.display(),
                clean.path.display(),
                noisy.path.display()
            ),
            SWAPPED,
        )),
    }
}

/// What to warn of: verified examples are usually few, and candidates many.
pub fn suspicion(pools: &Pools) -> Option<String> {
    let n_noisy: usize = pools.classes.iter().map(|class| class.pool.len()).sum();
    let is_odd = pools.classes.iter().all(|class| class.clean.len() > class.pool.len());
    (n_noisy > 0 && is_odd).then(|| {
        let n_clean: usize = pools.classes.iter().map(|class| class.clean.len()).sum();
        format!(
            "every class has more clean examples than candidates ({n_clean} and {n_noisy} in total): {SWAPPED}"
        )
    })
}
