//! Which examples of a collection are copies of clean or test examples.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use labelsieve::Features;
use labelsieve::matching::{LeakGuard, LeakKind};
use labelsieve_data::text::read_content_hashes;
use labelsieve_data::{ExampleTable, LeakedExample, TableColumns};

use crate::printer::Printer;

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
    pub drop_leaks: bool,
}

fn cosine(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("expected a number from 0 to 1".to_string()),
    }
}

/// Looks at this many rows at a time, so that a large collection needs no more memory than a small one.
const BLOCK_ROWS: usize = 1 << 16;

/// By id, the copies among the examples of `--features`; none without a guard.
pub fn find_leaks(args: &LeakArgs, printer: &Printer) -> Result<HashMap<String, LeakedExample>> {
    let mut leaks = HashMap::new();
    let Some(path) = &args.features else { return Ok(leaks) };
    let candidates = open(path)?;
    let candidate_hashes = read_content_hashes(path)?;
    for guard_path in &args.guard_features {
        let guard = open(guard_path)?;
        let guard_features = features(&guard, 0..guard.len())?;
        let guard_hashes = read_content_hashes(guard_path)?;
        let leak_guard = LeakGuard::new(&guard_features, &guard_hashes, args.near_duplicate);
        for first in (0..candidates.len()).step_by(BLOCK_ROWS) {
            let rows = first..(first + BLOCK_ROWS).min(candidates.len());
            let hashes = candidate_hashes.get(rows.clone()).unwrap_or_default();
            let found = leak_guard.leaks(&features(&candidates, rows)?, hashes).with_context(|| {
                format!("cannot compare `{}` with `{}`", path.display(), guard_path.display())
            })?;
            for (position, leak) in found.into_iter().enumerate() {
                let Some(leak) = leak else { continue };
                let similarity = match leak.kind {
                    LeakKind::Identical => 1.0,
                    LeakKind::NearDuplicate { similarity } => similarity,
                };
                let leaked = LeakedExample { id: guard.ids.get(leak.guard_row).to_string(), similarity };
                leaks.entry(candidates.ids.get(first + position).to_string()).or_insert(leaked);
            }
        }
    }
    printer.note(&format!("{} of {} examples are copies of guarded ones", leaks.len(), candidates.len()));
    Ok(leaks)
}

fn open(path: &Path) -> Result<ExampleTable> {
    Ok(ExampleTable::open(path, &TableColumns::default())?)
}

fn features(table: &ExampleTable, rows: std::ops::Range<usize>) -> Result<Features> {
    let rows: Vec<usize> = rows.collect();
    let mut values = vec![0.0; rows.len() * table.features.cols()];
    table.features.read_rows(&rows, &mut values)?;
    Features::new(values, table.features.cols()).with_context(|| format!("`{}`", table.path.display()))
}
