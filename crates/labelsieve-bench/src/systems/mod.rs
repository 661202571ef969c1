//! Rows of the systems that the paper compares with: diffusion and logistic regression (`diffusion`), and systems that learn from episodes
//! of base classes (`episodic`), tested by `exam`. The paper quotes their figures from other papers; here they are measured. The systems
//! themselves are in `classifier/`.

mod diffusion;
mod episodic;
mod exam;

use labelsieve::evaluation::Trial;
use labelsieve_files::work::{Monitor, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::protocol::{CellResult, Clock, Run, Score, Task, best_of};

/// A row of the tables.
pub struct SystemRow {
    pub name: &'static str,
    /// The name of the row that it follows.
    pub after: &'static str,
    /// By shot and episode.
    pub cells: Vec<Vec<CellResult>>,
    /// The settings by shot: chosen on the tuning classes if there are any, the defaults otherwise.
    pub settings: Vec<Value>,
}

/// All rows, with settings chosen on the tuning classes if there are any.
pub fn rows(
    run: &mut Run,
    tuning: Option<&dyn Task>,
    report: &dyn Task,
    score: Score,
    monitor: &dyn Monitor,
) -> Result<Vec<SystemRow>> {
    let mut rows = episodic::rows(run, tuning, report, score, monitor)?;
    rows.extend(diffusion::rows(run, tuning, report, score, monitor)?);
    Ok(rows)
}

/// The result of some work: read from the journal, or computed now.
fn kept<T: Serialize + DeserializeOwned>(
    run: &mut Run,
    key: String,
    work: impl FnOnce(&Clock) -> Result<T>,
) -> Result<T> {
    if let Some(found) = run.kept(&key).and_then(|bytes| serde_json::from_slice(bytes).ok()) {
        return Ok(found);
    }
    let made = work(&run.clock)?;
    run.keep(key, serde_json::to_vec(&made)?)?;
    Ok(made)
}

/// Examples per base class for a logistic regression over all classes: plenty compared with the at most twenty of a novel class, and a
/// regression on all of them would take longer than everything else.
const LOGISTIC_EXAMPLES: usize = 100;

/// The setting whose cells score best on average; earlier ones win ties.
fn best<T>(tried: impl IntoIterator<Item = (T, Vec<CellResult>)>, score: Score) -> Result<T> {
    let mean = |cells: &[CellResult]| cells.iter().map(score).sum::<f64>() / cells.len().max(1) as f64;
    let trials = tried.into_iter().map(|(setting, cells)| Trial { setting, score: mean(&cells) });
    Ok(best_of(trials.collect())?.setting)
}
