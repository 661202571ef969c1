//! What makes two runs the same run, so that the second may go on where the first was killed.

use std::path::{Path, PathBuf};

use anyhow::Result;
use labelsieve_data::{DataError, Journal, JournalRecord, JournalStart};

use crate::printer::Printer;
use crate::signals::{self, Kept};

/// Everything that decides a result: the settings, and which files with which contents (by size and time of change).
pub fn fingerprint(settings: &serde_json::Value, files: &[&Path]) -> Result<String> {
    let mut lines = vec![format!("labelsieve {}", env!("CARGO_PKG_VERSION")), settings.to_string()];
    for path in files {
        lines.push(stamp(path)?);
        for below in files_below(path)? {
            lines.push(stamp(&below)?);
        }
    }
    Ok(lines.join("\n"))
}

/// What a clip-retrieval folder is read from; nothing for a file.
fn files_below(path: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in ["img_emb", "metadata"].map(|name| path.join(name)).iter().filter(|folder| folder.is_dir())
    {
        for entry in std::fs::read_dir(folder).map_err(DataError::io("read", folder))? {
            files.push(entry.map_err(DataError::io("read", folder))?.path());
        }
    }
    files.sort();
    Ok(files)
}

/// A file and the state it is in.
pub fn stamp(path: &Path) -> Result<String> {
    let metadata = std::fs::metadata(path).map_err(DataError::io("open", path))?;
    let changed = metadata.modified().map_err(DataError::io("open", path))?;
    let changed = changed.duration_since(std::time::UNIX_EPOCH).map_or(0, |age| age.as_nanos());
    Ok(format!("{} {} {changed}", path.display(), metadata.len()))
}

/// Opens the journal of a run and says what it found.
pub fn open(
    path: &Path,
    fingerprint: &str,
    unit: &str,
    printer: &Printer,
) -> Result<(Journal, Vec<JournalRecord>)> {
    let (journal, records) = Journal::open(path, fingerprint)?;
    signals::keep(Kept::Journal { path: path.to_path_buf(), unit: unit.to_owned(), total: None });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_deep_in_a_folder_makes_another_run() {
        let folder = tempfile::tempdir().unwrap();
        let part = folder.path().join("img_emb/img_emb_0.npy");
        std::fs::create_dir(folder.path().join("img_emb")).unwrap();
        std::fs::write(&part, "one").unwrap();
        let now = || fingerprint(&serde_json::json!({}), &[folder.path()]).unwrap();
        let before = now();
        assert_eq!(before, now());
        std::fs::write(&part, "other").unwrap();
        assert_ne!(before, now());
    }
}
