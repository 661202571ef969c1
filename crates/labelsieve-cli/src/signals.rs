//! SIGINT (Ctrl-C) and SIGTERM: the work ends at once, temporary files go, and a line says what is kept.
//!
//! Finished work is in journals and checkpoints already when a signal comes, so there is nothing to finish: a thread waits for
//! the first signal, tidies up and lets it end the process as it would have without us. Shells see exit code 130 or 143.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use labelsieve_files::Journal;
use labelsieve_files::work::SavedWork;

/// The files kept of several commands, and of the one under way.
struct AllKept {
    steps: Option<SavedWork>,
    now: Option<SavedWork>,
}

/// The action of the first signal, in place of ending the process.
static FIRST: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

static KEPT: Mutex<AllKept> = Mutex::new(AllKept { steps: None, now: None });

/// Notes what to say when a signal comes from now on.
pub fn keep(kept: SavedWork) {
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    match (&all.now, kept) {
        (Some(SavedWork::StartsOver), _) => (),
        (_, SavedWork::StartsOver) => *all = AllKept { steps: None, now: Some(SavedWork::StartsOver) },
        (_, steps @ SavedWork::Steps { .. }) => *all = AllKept { steps: Some(steps), now: None },
        (_, kept) => all.now = Some(kept),
    }
}

/// Lets the next signal call `work`, for a command that has to end by itself. Another signal ends it at once.
pub fn on_first(work: impl FnOnce() + Send + 'static) {
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(work));
}

/// The files that are kept, and how to resume.
fn message() -> String {
    let all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    match [&all.now, &all.steps].into_iter().flatten().find_map(what_is_kept) {
        Some(kept) => format!("interrupted; {kept}: run the same command again to resume"),
        None => "interrupted; run the same command again to start over".to_owned(),
    }
}

/// A phrase about the finished work; none if nothing is finished.
fn what_is_kept(kept: &SavedWork) -> Option<String> {
    let (done, total, unit, path) = match kept {
        SavedWork::Journal { path, unit, total } => (finished(path), *total, unit.as_str(), path),
        SavedWork::Epochs { path, done, total } => (*done, Some(*total), "epochs", path),
        SavedWork::Steps { path, total } => (finished(path), Some(*total), "steps", path),
        SavedWork::StartsOver => return None,
    };
    let of = total.map_or(String::new(), |total| format!("of {total} "));
    (done > 0).then(|| format!("{done} {of}{unit} are kept in `{}`", path.display()))
}

/// The number of records in a journal; a journal without any is deleted.
fn finished(path: &Path) -> usize {
    let n = Journal::count_records(path);
    if n == Some(0) {
        let _ = std::fs::remove_file(path);
    }
    n.unwrap_or(0)
}

/// Starts to wait for signals.
#[cfg(unix)]
pub fn install() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    // A shell's background jobs begin with SIGINT ignored, and should keep ignoring it.
    let heeded: Vec<i32> = [SIGINT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal)).collect();
    let Ok(mut signals) = Signals::new(heeded) else { return };
    let wait = move || {
        for signal in signals.forever() {
            match FIRST.lock().unwrap_or_else(PoisonError::into_inner).take() {
                Some(work) => work(),
                None => end(signal),
            }
        }
    };
    // Without the thread, a signal would be swallowed: rather no handler, but that cannot be undone here.
    if std::thread::Builder::new().name("signals".to_owned()).spawn(wait).is_err() {
        signal_hook::low_level::exit(1);
    }
}

#[cfg(not(unix))]
pub fn install() {}

#[cfg(unix)]
fn end(signal: i32) {
    let _no_new_files = labelsieve_files::abandon_unfinished_files();
    crate::printer::interrupted(&message());
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    signal_hook::low_level::exit(128 + signal);
}

#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action, the call only writes the present one to `action`, which is read only if it did.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_counts_what_a_journal_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("R.parquet.partial");
        let (journal, _) = Journal::open(&path, "run").unwrap();
        keep(SavedWork::Journal { path: path.clone(), unit: "classes".to_owned(), total: Some(40) });
        journal.append("owl", &[1, 2]).unwrap();
        journal.append("cat", &[3]).unwrap();
        let expected = format!(
            "interrupted; 2 of 40 classes are kept in `{}`: run the same command again to resume",
            path.display()
        );
        assert_eq!(message(), expected);
        keep(SavedWork::Epochs { path: "M.checkpoint".into(), done: 3, total: 9 });
        assert!(message().starts_with("interrupted; 3 of 9 epochs are kept in `M.checkpoint`: "));

        // A step that has kept nothing yet leaves the steps before it.
        keep(SavedWork::Steps { path: path.clone(), total: 6 });
        keep(SavedWork::Epochs { path: "M.checkpoint".into(), done: 0, total: 9 });
        assert!(message().starts_with("interrupted; 2 of 6 steps are kept in `"), "{}", message());
        keep(SavedWork::Epochs { path: "M.checkpoint".into(), done: 1, total: 9 });
        assert!(message().starts_with("interrupted; 1 of 9 epochs are kept in `M.checkpoint`: "));
        keep(SavedWork::StartsOver);
        keep(SavedWork::Epochs { path: "M.checkpoint".into(), done: 3, total: 9 });
        assert_eq!(message(), "interrupted; run the same command again to start over");
    }
}
