//! Recognising the same run, so that it can resume where it was killed: a [`Key`] identifies a run, and its journal is opened
//! with [`open`].

pub mod lock;

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use labelsieve_numerics::level::Level;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::work::{Context, Monitor, Result, SavedWork};
use crate::{DataError, Journal, JournalRecord, JournalStart, ids_table_of, is_stream};

/// The version of random numbers and rounding; increased whenever the same seed gives different results.
pub const NUMBERS: u32 = 3;

/// Everything that determines a result: the arguments of the command, settings that it derived, and the input files with
/// their sizes and modification times.
#[derive(Clone, Debug)]
pub struct Key {
    lines: Vec<String>,
    /// An input that is not a regular file, so that it cannot be recognised as unchanged.
    stream: Option<PathBuf>,
}

impl Key {
    /// All arguments of a command except for those `excluded` by name, because they do not change the records. New options are
    /// part of the key by default; an excluded name that is not an option is an error.
    pub fn new(command: &str, arguments: &impl Serialize, excluded: &[&str]) -> Result<Key> {
        let mut options = serde_json::to_value(arguments)?;
        let named = options.as_object_mut().context("arguments are options with names")?;
        for name in excluded {
            named.remove(*name).with_context(|| format!("`{command}` has no option `{name}` to exclude"))?;
        }
        let version = format!("labelsieve {}, numbers {NUMBERS}", env!("CARGO_PKG_VERSION"));
        Ok(Key { lines: vec![version, command.to_owned(), options.to_string()], stream: None })
    }

    /// The key with facts that the command derived, e.g. default settings.
    pub fn with(mut self, facts: &Value) -> Key {
        self.lines.push(facts.to_string());
        self
    }

    /// The key with the kind of machine, as far as results depend on it: the instructions of the CPU affect rounding.
    pub fn on_device(self, kind: &str) -> Key {
        self.with(&json!({ "device": kind, "instructions": Level::current().to_string() }))
    }

    /// The key with input files, and the contents of those that are folders.
    pub fn with_files(mut self, files: &[&Path]) -> Result<Key> {
        for path in files {
            if is_stream(path) {
                self.stream.get_or_insert_with(|| path.to_path_buf());
                continue;
            }
            self.lines.push(stamp(path)?);
            for beside in files_of(path)? {
                self.lines.push(stamp(&beside)?);
            }
        }
        Ok(self)
    }

    /// The key with the fingerprint of many files, such as images.
    pub fn with_fingerprint(mut self, fingerprint: String) -> Key {
        self.lines.push(fingerprint);
        self
    }

    /// The key as text: the same for the same run. A run with a stream is never the same again, which is reported.
    pub fn text(&self, monitor: &dyn Monitor) -> String {
        let mut lines = self.lines.clone();
        if let Some(path) = &self.stream {
            monitor.note(&format!("`{}` is not a regular file; this run cannot be resumed", path.display()));
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let now = now.map_or(0, |age| age.as_nanos());
            lines.push(format!("process {} at {now}", std::process::id()));
        }
        lines.join("\n")
    }
}

/// For `serialize_with`: the debug form of an argument. Paths need not be UTF-8, and some types have no other form.
pub fn debug<S: Serializer>(value: &impl Debug, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{value:?}"))
}

/// Further files that are read along with this file or folder: the parts of a clip-retrieval folder, the table of ids beside
/// an array.
fn files_of(path: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in ["img_emb", "metadata"].map(|name| path.join(name)).iter().filter(|folder| folder.is_dir())
    {
        for entry in std::fs::read_dir(folder).map_err(DataError::io("read", folder))? {
            files.push(entry.map_err(DataError::io("read", folder))?.path());
        }
    }
    files.sort();
    files.extend(Some(ids_table_of(path)).filter(|table| table.is_file()));
    Ok(files)
}

/// A file with its state.
pub fn stamp(path: &Path) -> Result<String> {
    Ok(format!("{path:?} {}", state(path)?))
}

/// The state of a file: its size and modification time.
pub fn state(path: &Path) -> Result<String> {
    let metadata = std::fs::metadata(path).map_err(DataError::io("open", path))?;
    let changed = metadata.modified().map_err(DataError::io("open", path))?;
    let changed = changed.duration_since(std::time::UNIX_EPOCH).map_or(0, |age| age.as_nanos());
    Ok(format!("{} {changed}", metadata.len()))
}

/// The records of a journal, for messages.
#[derive(Clone, Copy, Debug)]
pub struct RecordUnits<'a> {
    /// The unit of a record, in the plural.
    pub unit: &'a str,
    /// The total number of records, if known.
    pub total: Option<usize>,
}

/// Opens the journal of a run, and reports whether it is resumed.
pub fn open(
    path: &Path,
    key: &Key,
    units: RecordUnits<'_>,
    monitor: &dyn Monitor,
) -> Result<(Journal, Vec<JournalRecord>)> {
    let mut records = Vec::new();
    let journal = open_by_record(path, key, units, monitor, |key, payload| {
        records.push((key.to_owned(), payload.to_vec()));
    })?;
    Ok((journal, records))
}

/// As [`open`], with one record in memory at a time: each is passed to `visit`.
pub fn open_by_record(
    path: &Path,
    key: &Key,
    units: RecordUnits<'_>,
    monitor: &dyn Monitor,
    mut visit: impl FnMut(&str, &[u8]),
) -> Result<Journal> {
    let RecordUnits { unit, total } = units;
    let mut n_records = 0;
    let journal = Journal::open_by_record(path, &key.text(monitor), |key, payload| {
        n_records += 1;
        visit(key, payload);
    })?;
    monitor.keep(SavedWork::Journal { path: path.to_path_buf(), unit: unit.to_owned(), total });
    match journal.start() {
        JournalStart::Resumed if n_records > 0 => {
            let of = total.map_or(String::new(), |total| format!("of {total} "));
            monitor.note(&format!("resuming: {n_records} {of}{unit} done (`{}`)", path.display()));
        }
        JournalStart::Replaced => {
            monitor.note(&format!(
                "`{}` was made with different settings or files; starting over",
                path.display()
            ));
        }
        _ => (),
    }
    Ok(journal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Silent;

    #[derive(Serialize)]
    struct Arguments {
        #[serde(serialize_with = "debug")]
        input: PathBuf,
        rate: f32,
        output: &'static str,
    }

    fn text(arguments: &Arguments, excluded: &[&str], files: &[&Path]) -> Result<String> {
        let key = Key::new("test", arguments, excluded)?.with_files(files)?;
        Ok(key.text(&Silent::default()))
    }

    #[test]
    fn every_argument_counts_unless_it_is_excluded_by_name() {
        let first = Arguments { input: "a".into(), rate: 0.5, output: "x" };
        let key = |arguments: &Arguments| text(arguments, &["output"], &[]).unwrap();
        assert_eq!(key(&first), key(&Arguments { output: "y", input: "a".into(), ..first }));
        assert_ne!(key(&first), key(&Arguments { rate: 0.25, input: "a".into(), ..first }));
        assert_ne!(key(&first), key(&Arguments { input: "b".into(), ..first }));
        let error = text(&first, &["outptu"], &[]).unwrap_err().to_string();
        assert_eq!(error, "internal error: `test` has no option `outptu` to exclude");
    }

    #[test]
    fn a_change_deep_in_a_folder_makes_another_run() {
        let folder = tempfile::tempdir().unwrap();
        let part = folder.path().join("img_emb/img_emb_0.npy");
        std::fs::create_dir(folder.path().join("img_emb")).unwrap();
        std::fs::write(&part, "one").unwrap();
        let arguments = Arguments { input: "a".into(), rate: 0.5, output: "x" };
        let now = || text(&arguments, &[], &[folder.path()]).unwrap();
        let before = now();
        assert_eq!(before, now());
        std::fs::write(&part, "other").unwrap();
        assert_ne!(before, now());
        let before = now();
        std::fs::write(ids_table_of(folder.path()), "id\n").unwrap(); // as beside an array
        assert_ne!(before, now());
        std::fs::remove_file(ids_table_of(folder.path())).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_stream_is_never_the_same() {
        let arguments = Arguments { input: "a".into(), rate: 0.5, output: "x" };
        let now = || text(&arguments, &[], &[Path::new("/dev/null")]).unwrap();
        assert_ne!(now(), now());
    }
}
