//! Comparing the examples of a collection with clean and test examples.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use labelsieve_files::inputs::same_network::MixedNetworks;
use labelsieve_files::inputs::tables::load;
use labelsieve_files::work::{Context, Monitor, Result};
use labelsieve_files::{ExampleTable, TableColumns, counted};

use crate::text::read_content_hashes;
use crate::{Leak, LeakGuard, LeakKind, LeakedExample};

/// The examples that must not be among the candidates, and how copies of them are recognised.
#[derive(Clone, Debug)]
pub struct LeakCheck {
    /// Features of the clean and test examples.
    pub guard_features: Vec<PathBuf>,
    /// Features of the candidates, from the same network.
    pub features: PathBuf,
    /// Minimum cosine similarity of two copies of the same photo.
    pub near_duplicate: f32,
    /// The treatment of copies.
    pub fate: LeakFate,
    /// Whether the files may be from different networks.
    pub mixed: MixedNetworks,
}

/// Rows per comparison, so that a large collection needs no more memory than a small one.
const BLOCK_ROWS: usize = 1 << 16;

/// The treatment of a candidate that is a copy of a guarded example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeakFate {
    /// It is marked.
    Flag,
    /// It is left out.
    Drop,
}

/// The examples of [`LeakCheck::features`] by id, each with the guarded example that it is a copy of, if any.
pub(super) type CheckedExamples = HashMap<String, Option<LeakedExample>>;

/// The results of the comparison, and the treatment of copies.
#[derive(Clone, Copy)]
pub struct LeakFilter<'a> {
    /// The compared examples; `None` without a leak check.
    pub(super) checked: Option<&'a CheckedExamples>,
    pub(super) fate: LeakFate,
}

impl LeakCheck {
    /// The files that are compared.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        [&self.features].into_iter().chain(&self.guard_features).map(PathBuf::as_path)
    }

    /// Compares the features with the guarded ones.
    pub(super) fn check(&self, monitor: &dyn Monitor) -> Result<CheckedExamples> {
        let path = &self.features;
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
        monitor.note(&format!("{n_copies} of {} examples are copies of guarded examples", candidates.len()));
        Ok(checked)
    }

    /// Reports copies among the candidates, and candidates that could not be compared.
    pub(super) fn report(&self, n_leaks: u64, n_unchecked: u64, monitor: &dyn Monitor) {
        if n_leaks > 0 {
            let fate = match self.fate {
                LeakFate::Flag => "flagged in column `leak_of`",
                LeakFate::Drop => "dropped",
            };
            let copies = match n_leaks {
                1 => "1 candidate is a copy of a guarded example".to_owned(),
                n => format!("{n} candidates are copies of guarded examples"),
            };
            monitor.warning(&format!("{copies}: {fate}"));
        }
        if n_unchecked > 0 {
            let path = self.features.display();
            let candidates = counted(n_unchecked as usize, "candidate");
            monitor.warning(&format!("{candidates} without features in `{path}`, not compared"));
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
