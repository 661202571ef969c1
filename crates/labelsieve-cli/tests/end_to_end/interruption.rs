//! Ctrl-C, SIGTERM and kills: what is kept, what goes, and what is said.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{bytes, command, listing, run, shell};
use crate::examples::{Examples, task_folder};
use crate::resume::{JOURNAL, SCORE, kill, signal, slow_folder, stopped_midway};

const TRAIN: &str = "train --clean C.npz --pool N.npz --relevance R.parquet -o M.safetensors";

/// Lets a stopped process go on with a signal waiting for it; returns which one ended it, and what it said.
fn end_with(mut child: Child, name: &str) -> (Option<i32>, String) {
    signal(&child, name);
    signal(&child, "-CONT");
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().expect("a pipe"), &mut said).expect("text");
    (child.wait().expect("it ends").signal(), said)
}

/// Whether this process began with SIGINT ignored, as the background jobs of a shell do; those it starts do so too.
fn ignores_interrupts() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 2 != 0)
}

#[test]
fn a_signal_ends_the_work_and_says_what_is_kept_and_how_to_go_on() {
    let folder = slow_folder();
    let folder = folder.path();
    for (name, number) in [("-TERM", 15), ("-INT", 2)] {
        if name == "-INT" && ignores_interrupts() {
            eprintln!("skipped: SIGINT is ignored here");
            continue;
        }
        let (ended_by, said) = end_with(stopped_midway(folder, SCORE, JOURNAL), name);
        assert_eq!(ended_by, Some(number), "{said}");
        let end = format!(" of 12 classes are kept in `{JOURNAL}`: run the same command again to resume\n");
        assert!(said.contains("interrupted; ") && said.ends_with(&end), "{said}");
        assert_eq!(listing(folder), ["C.npz", "N.npz", JOURNAL]);
        let again = run(folder, SCORE).ok();
        assert!(again.err.contains("resuming"), "{again:?}");
        std::fs::remove_file(folder.join("R.parquet")).expect("it exists");
    }
}

#[test]
fn shells_see_the_usual_exit_codes() {
    let folder = slow_folder();
    let line = format!(
        "timeout -s TERM --preserve-status 0.2 $LABELSIEVE {}",
        SCORE.replace("--lambda", "--seed 7 --lambda")
    );
    let code = shell(folder.path(), &format!("{line}; echo $?")).out;
    assert!(["143\n", "0\n"].contains(&code.as_str()), "{code}"); // 0 where all was done in time
}

/// The temporary files in a folder.
fn temporary(folder: &Path) -> Vec<String> {
    listing(folder).into_iter().filter(|name| name.starts_with(".labelsieve-")).collect()
}

/// Starts a run and stops it while it holds its temporary file.
fn stopped_while_writing(folder: &Path, line: &str, output: &str) -> Child {
    let before = temporary(folder);
    let new = || temporary(folder).into_iter().find(|name| !before.contains(name));
    for _ in 0..20 {
        let mut child =
            command(folder, line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        while child.try_wait().expect("a state").is_none() {
            if new().is_some() {
                signal(&child, "-STOP");
                wait_until_stopped(&mut child);
                match new() {
                    // A process may be stopped between the creation of its file and the lock: then anybody may sweep it.
                    Some(name) if is_locked(&folder.join(&name)) => return child,
                    _ => signal(&child, "-CONT"),
                }
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        kill(child);
        let _ = std::fs::remove_file(folder.join(output));
    }
    panic!("always finished before it could be stopped");
}

/// A busy machine may take its time to stop a process.
fn wait_until_stopped(child: &mut Child) {
    while child.try_wait().expect("a state").is_none() {
        let state = Command::new("ps").args(["-o", "state=", "-p", &child.id().to_string()]).output();
        if state.expect("ps starts").stdout.starts_with(b"T") {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a process that is stopped holds this file; one that runs might be kept from locking it.
fn is_locked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_err())
}

/// A classifier and examples enough to be busy with.
fn folder_to_predict() -> tempfile::TempDir {
    let (folder, task) = task_folder();
    run(folder.path(), "score --clean C.npz --pool N.npz --method similarity -o R.parquet").ok();
    run(folder.path(), TRAIN).ok();
    let dim = task.test.dim();
    let rows = 100_000;
    let features: Vec<f32> = (0..rows * dim).map(|i| 1.0 + (i % 97) as f32).collect();
    Examples::new(dim, &features, &vec![0; rows]).npz(folder.path().join("many.npz"));
    folder
}

const PREDICT: &str = "predict --model M.safetensors --features many.npz --threads 1 --top 6 -o P.parquet";

#[test]
fn a_signal_takes_temporary_files_along_and_leaves_the_old_result() {
    let folder = folder_to_predict();
    let folder = folder.path();
    let before = listing(folder);
    let (ended_by, said) = end_with(stopped_while_writing(folder, PREDICT, "P.parquet"), "-TERM");
    assert_eq!(ended_by, Some(15), "{said}");
    assert!(said.ends_with("interrupted; run the same command again to start over\n"), "{said}");
    assert_eq!(listing(folder), before);
}

#[test]
fn what_a_kill_leaves_is_swept_by_the_next_run_but_not_what_another_run_writes() {
    let folder = folder_to_predict();
    let folder = folder.path();
    kill(stopped_while_writing(folder, PREDICT, "P.parquet"));
    assert_eq!(temporary(folder).len(), 1);
    let living = stopped_while_writing(folder, PREDICT, "P.parquet");
    let kept = temporary(folder);
    assert_eq!(kept.len(), 1, "the second run swept what the first one left: {kept:?}");
    run(folder, &PREDICT.replace("many.npz", "T.npz").replace("P.parquet", "Q.parquet")).ok();
    assert_eq!(temporary(folder), kept, "the stopped run still writes it");
    signal(&living, "-CONT");
    assert!(living.wait_with_output().expect("it ends").status.success());
    assert!(temporary(folder).is_empty());
    assert!(!bytes(folder, "P.parquet").is_empty());
}
