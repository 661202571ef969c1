//! `plan.json`: the classes of each bin, and the identity of their run.

use std::io::Write;
use std::path::Path;

use labelsieve_files::work::{Error, Result, Words, command, words};
use labelsieve_files::{AtomicFile, DataError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::identity::{Identity, PlannedClass};
use crate::inputs::pools::Pools;

/// Counts the forms that plans ever had.
const FORMAT: u64 = 1;
/// Plans are only valid for the version that made them.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The remedy for any plan that cannot be used.
fn hint() -> Words {
    words!["make the plan again with ", command("plan")]
}

/// A plan as it stands in its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanFile {
    /// The version of this program that made it.
    pub labelsieve: String,
    /// The form of the file.
    pub format: u64,
    /// The digest of the run, which all parts carry.
    pub run: String,
    /// The settings that decide the result of every class.
    #[serde(flatten)]
    pub identity: Identity,
    /// The memory that bins should keep within.
    pub memory_bytes: Option<u64>,
    /// The classes of the run in order.
    pub classes: Vec<PlannedClass>,
    /// Which of them are scored together.
    pub bins: Vec<Bin>,
}

/// Classes that are scored together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Their positions, ascending.
    pub classes: Vec<usize>,
    /// Estimated time: on one core, or on a GPU.
    pub seconds: f64,
    /// Estimated memory of a process that is given the rows of the bin; at most the limit of the plan where it has to work
    /// out of core.
    pub memory_bytes: u64,
    /// Candidates of all its classes.
    pub n_candidates: usize,
    /// Whether a class is larger than the limit by itself, so that scoring it needs a limit of memory.
    pub out_of_core: bool,
}

impl PlanFile {
    /// A plan for a run.
    pub fn new(
        identity: Identity,
        classes: Vec<PlannedClass>,
        bins: Vec<Bin>,
        memory_bytes: Option<u64>,
    ) -> PlanFile {
        let run = identity.run(VERSION, &classes);
        PlanFile {
            labelsieve: VERSION.to_owned(),
            format: FORMAT,
            run,
            identity,
            memory_bytes,
            classes,
            bins,
        }
    }

    /// Reads a plan and checks that it is complete: bins may be edited by hand as long as they hold every class once.
    pub fn load(path: &Path) -> Result<PlanFile> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(DataError::io("read", path))?;
        let not_a_plan = |error: serde_json::Error| {
            Error::input(format!("`{shown}` is not a complete plan: {error}"), hint())
        };
        let value: Value = serde_json::from_str(&text).map_err(not_a_plan)?;
        if let Some(made_by) = value["labelsieve"].as_str().filter(|&version| version != VERSION) {
            return Err(Error::input(
                format!("`{shown}` was made by labelsieve {made_by}, but this is labelsieve {VERSION}"),
                "make the plan and all parts with one version",
            ));
        }
        if let Some(format) = value["format"].as_u64().filter(|&format| format != FORMAT) {
            let message = format!("`{shown}`: format: expected {FORMAT}, found {format}");
            return Err(Error::input(message, hint()));
        }
        let plan: PlanFile = serde_json::from_value(value).map_err(not_a_plan)?;
        if plan.identity.run(VERSION, &plan.classes) != plan.run {
            return Err(Error::input(
                format!("`{shown}` was changed: its settings and classes do not match its run"),
                hint().and("; only bins may be edited by hand"),
            ));
        }
        plan.check_bins(path)?;
        Ok(plan)
    }

    /// Every class must be in exactly one bin.
    fn check_bins(&self, path: &Path) -> Result<()> {
        let mut bin_of: Vec<Option<usize>> = vec![None; self.classes.len()];
        let refused = |what: String| Err(Error::input(format!("`{}`: {what}", path.display()), hint()));
        for (index, bin) in self.bins.iter().enumerate() {
            for &class in &bin.classes {
                let Some(slot) = bin_of.get_mut(class) else {
                    let n = self.classes.len();
                    return refused(format!("bin {index}: expected classes below {n}, found {class}"));
                };
                if let Some(other) = slot.replace(index) {
                    let name = &self.classes[class].name;
                    return refused(format!("class `{name}` is in two bins: {other} and {index}"));
                }
            }
        }
        match bin_of.iter().position(Option::is_none) {
            Some(class) => refused(format!("class `{}` is in no bin", self.classes[class].name)),
            None => Ok(()),
        }
    }

    /// Writes the file atomically.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut file = AtomicFile::create(path)?;
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        file.write_all(text.as_bytes()).map_err(DataError::io("write", path))?;
        Ok(file.commit()?)
    }

    /// The bin of this number.
    pub fn bin(&self, path: &Path, index: usize) -> Result<&Bin> {
        self.bins.get(index).ok_or_else(|| {
            let n = self.bins.len();
            Error::input(
                format!("`{}` has {n} bins: bin {index} is out of range", path.display()),
                format!("bins are numbered from 0 to {}", n.saturating_sub(1)),
            )
        })
    }

    /// Rejects a run with other arguments, naming the differences.
    pub fn check_identity(&self, path: &Path, here: &Identity) -> Result<()> {
        let differences = self.identity.differences(here);
        if differences.is_empty() {
            Ok(())
        } else {
            Err(Error::input(
                format!("`{}` is a plan for another run: {}", path.display(), differences.join("; ")),
                "give the files and settings that the plan was made with, or make another plan",
            ))
        }
    }

    /// Rejects candidates of a bin's classes that differ from those of the plan. Tables may lack the others.
    pub fn check_classes(&self, path: &Path, pools: &Pools, bin: &Bin) -> Result<()> {
        for &position in &bin.classes {
            let planned = &self.classes[position];
            let here = PlannedClass::of(pools, &pools.classes[position])?;
            if *planned == here {
                continue;
            }
            let difference = match (planned.n_candidates, here.n_candidates) {
                (planned, here) if planned != here => format!("{planned} in the plan, {here} here"),
                _ => "other ids, another order, or other features".to_owned(),
            };
            return Err(Error::input(
                format!(
                    "the candidates of `{}` are not those of `{}`: {difference}",
                    planned.name,
                    path.display()
                ),
                "give the files that the plan was made with, or all rows of the bin in the same order; \
                 if the files changed, make the plan and all parts again",
            ));
        }
        Ok(())
    }
}
