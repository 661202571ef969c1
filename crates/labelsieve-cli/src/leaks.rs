//! Which examples of a collection are copies of clean or test examples.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use labelsieve::matching::{Leak, LeakGuard, LeakKind};
use labelsieve_data::text::read_content_hashes;
use labelsieve_data::{ExampleTable, LeakedExample, TableColumns};

use crate::inputs::load;
use crate::printer::Printer;
use crate::same_network::MixedArguments;

/// The options that switch the guard on.
#[derive(clap::Args)]
pub struct LeakArgs {
    /// Features of the clean and test examples, which must not be among the candidates
    #[arg(long, value_name = "FILE", requires = "features")]
    guard_features: Vec<PathBuf>,

    /// Features of the candidates, by the same network
    #[arg(long, value_name = "FILE", requires = "guard_features")]
    features: Option<PathBuf>,

    /// Cosine from which two examples count as the same photo
    #[arg(long, value_name = "COSINE", default_value_t = 0.95, value_parser = cosine)]
    near_duplicate: f32,

    /// Leave copies out instead of flagging them
    #[arg(long, requires = "guard_features")]
    drop_leaks: bool,

    #[command(flatten)]
    mixed: MixedArguments,
}

fn cosine(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("expected a number from 0 to 1".to_string()),
    }
}

/// Looks at this many rows at a time, so that a large collection needs no more memory than a small one.
const BLOCK_ROWS: usize = 1 << 16;

/// What becomes of a candidate that is a copy of a guarded example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeakFate {
    Flag,
    Drop,
}

/// The examples of `--features` by id, with the guarded example that each is a copy of, if it is one.
pub type CheckedExamples = HashMap<String, Option<LeakedExample>>;

impl LeakArgs {
    /// Whether copies are looked for.
    pub fn is_on(&self) -> bool {
        !self.guard_features.is_empty()
    }

    /// The files that are compared.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.features.iter().chain(&self.guard_features).map(PathBuf::as_path)
    }

    pub fn fate(&self) -> LeakFate {
        if self.drop_leaks { LeakFate::Drop } else { LeakFate::Flag }
    }

    /// Compares the features with the guarded ones; `None` without a guard.
    pub fn check(&self, printer: &Printer) -> Result<Option<CheckedExamples>> {
        let Some(path) = &self.features else { return Ok(None) };
        let candidates = open(path)?;
        let hashes = read_content_hashes(path)?;
        let mut checked: CheckedExamples =
            (0..candidates.len()).map(|row| (candidates.ids.get(row).to_string(), None)).collect();
        for guard_path in &self.guard_features {
            let guard = open(guard_path)?;
            self.mixed.check(&[(&candidates).into(), (&guard).into()])?;
            let guard_features = load(&guard, &(0..guard.len()).collect::<Vec<_>>())?;
            let guard_hashes = read_content_hashes(guard_path)?;
            let leak_guard = LeakGuard::new(&guard_features, &guard_hashes, self.near_duplicate);
            for first in (0..candidates.len()).step_by(BLOCK_ROWS) {
                let rows: Vec<usize> = (first..candidates.len()).take(BLOCK_ROWS).collect();
                let hashes = hashes.get(first..first + rows.len()).unwrap_or_default();
                let leaks = leak_guard.leaks(&load(&candidates, &rows)?, hashes).with_context(|| {
                    format!("cannot compare `{}` with `{}`", path.display(), guard_path.display())
                })?;
                for (row, leak) in rows.into_iter().zip(leaks) {
                    if let Some(leak) = leak {
                        checked.insert(candidates.ids.get(row).to_string(), Some(leaked(&guard, leak)));
                    }
                }
            }
        }
        let n_copies = checked.values().flatten().count();
        printer.note(&format!("{n_copies} of {} examples are copies of guarded ones", candidates.len()));
        Ok(Some(checked))
    }

    /// Says what the guard found among the candidates, and what it could not look at.
    pub fn report(&self, n_leaks: u64, n_unchecked: u64, printer: &Printer) {
        if n_leaks > 0 {
            let fate = match self.fate() {
                LeakFate::Flag => "flagged in column `leak_of`",
                LeakFate::Drop => "dropped",
            };
            printer.warning(&format!("{n_leaks} candidates are copies of guarded examples: {fate}"));
        }
        if let Some(path) = self.features.as_ref().filter(|_| n_unchecked > 0) {
            let path = path.display();
            printer.warning(&format!(
                "{n_unchecked} candidates have no features in `{path}` and were not compared"
            ));
        }
    }
}

fn leaked(guard: &ExampleTable, leak: Leak) -> LeakedExample {
    let similarity = match leak.kind {
        LeakKind::Identical => 1.0,
        LeakKind::NearDuplicate { similarity } => similarity,
    };
    LeakedExample { id: guard.ids.get(leak.guard_row).to_string(), similarity }
}

fn open(path: &Path) -> Result<ExampleTable> {
    Ok(ExampleTable::open(path, &TableColumns::default())?)
}
