//! Runs that are stopped in their tracks.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{Finished, command};

/// Where the record that starts at `at` ends, if its lengths are there.
fn record_end(journal: &[u8], at: usize) -> Option<usize> {
    let length = |at: usize| {
        journal.get(at..at + 4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes")) as usize)
    };
    Some(at + 12 + length(at)? + length(at + 4)?)
}

/// Whether finished work is there: a whole record behind the opening line and the record of the fingerprint.
pub fn holds_work(journal: &[u8]) -> bool {
    const OPENING: usize = "labelsieve journal 1\n".len();
    let first = record_end(journal, OPENING).and_then(|head| record_end(journal, head));
    first.is_some_and(|end| journal.len() >= end)
}

/// Starts a run that writes `R.parquet` and stops it in its tracks once its journal holds finished work.
pub fn stopped_midway(folder: &Path, line: &str, journal: &str) -> Child {
    stopped_when(folder, line, (journal, "R.parquet"), &holds_work)
}

/// Starts a run and stops it in its tracks once the file of its finished work is as it should be. A run that is too
/// quick for us on a busy machine gets another try.
pub fn stopped_when(
    folder: &Path,
    line: &str,
    (partial, output): (&str, &str),
    is_midway: &dyn Fn(&[u8]) -> bool,
) -> Child {
    for _ in 0..20 {
        let child = command(folder, line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("it starts");
        while child.try_wait().expect("a state").is_none() {
            if is_midway(&std::fs::read(folder.join(partial)).unwrap_or_default()) {
                signal(&child, "-STOP");
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        if child.try_wait().expect("a state").is_none() && !folder.join(output).exists() {
            return child;
        }
        kill(child);
        for name in [partial, output] {
            let _ = std::fs::remove_file(folder.join(name));
        }
    }
    panic!("always finished before it could be stopped");
}

pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill starts");
    assert!(sent.success());
}

pub fn kill(mut child: Child) {
    child.kill().expect("a signal that nothing withstands");
    child.wait().expect("it ends");
}

/// How many pieces of work a run said it found.
pub fn went_on_after(finished: &Finished, unit: &str) -> usize {
    let line = finished.err.lines().find(|line| line.starts_with("resuming: "));
    let line = line.unwrap_or_else(|| panic!("{finished:?}"));
    assert!(line.contains(&format!(" {unit} done (")), "{line}");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}

/// As another process would hold it.
pub fn held(folder: &Path, name: &str) -> File {
    let lock = File::create(folder.join(name)).expect("a file");
    lock.try_lock().expect("the lock is free");
    lock
}
