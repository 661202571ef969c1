//! What makes two runs the same run, so that the second may go on where the first was killed.

use std::path::Path;

use anyhow::Result;
use labelsieve_data::{DataError, Journal, JournalRecord, JournalStart};

use crate::printer::Printer;

/// Everything that decides a result: the settings, and which files with which contents (by size and time of change).
pub fn fingerprint(settings: &serde_json::Value, files: &[&Path]) -> Result<String> {
    let mut lines = vec![format!("labelsieve {}", env!("CARGO_PKG_VERSION")), settings.to_string()];
    for path in files {
        let metadata = std::fs::metadata(path).map_err(DataError::io("open", path))?;
        let changed = metadata.modified().map_err(DataError::io("open", path))?;
        let changed = changed.duration_since(std::time::UNIX_EPOCH).map_or(0, |age| age.as_nanos());
        lines.push(format!("{} {} {changed}", path.display(), metadata.len()));
    }
    Ok(lines.join("\n"))
}

/// Opens the journal of a run and says what it found.
pub fn open(
    path: &Path,
    fingerprint: &str,
    unit: &str,
    printer: &Printer,
) -> Result<(Journal, Vec<JournalRecord>)> {
    let (journal, records) = Journal::open(path, fingerprint)?;
    match journal.start() {
        JournalStart::Resumed if !records.is_empty() => {
            printer.note(&format!(
                "going on after {} {unit} finished earlier (`{}`)",
                records.len(),
                path.display()
            ));
        }
        JournalStart::Replaced => {
            printer.note(&format!(
                "`{}` belongs to a run with other settings or files; starting anew",
                path.display()
            ));
        }
        _ => (),
    }
    Ok((journal, records))
}
