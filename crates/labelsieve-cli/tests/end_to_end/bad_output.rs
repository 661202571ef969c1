//! Places that cannot be written to, disks that fill up, and journals that are none.

use std::path::Path;

use crate::common::{Finished, bytes, listing, refuses, run, shell};
use crate::examples::{task_folder, write_task};

const SCORE: &str = "score --clean C.npz --pool N.npz -o R.parquet";
const TRAIN: &str = "train --clean C.npz --pool N.npz --relevance R.parquet -o M.safetensors";
const PREDICT: &str = "predict --model M.safetensors --features T.npz -o P.parquet";

fn with_results() -> tempfile::TempDir {
    let (folder, _) = task_folder();
    run(folder.path(), SCORE).ok();
    run(folder.path(), TRAIN).ok();
    folder
}

#[test]
fn places_that_are_no_place_for_a_file_are_refused_before_the_work() {
    let folder = with_results();
    let folder = folder.path();
    std::fs::write(folder.join("file.txt"), "old").expect("disk space");
    for (line, output) in [(SCORE, "R.parquet"), (TRAIN, "M.safetensors"), (PREDICT, "P.parquet")] {
        let ending = output.rsplit('.').next().expect("an ending");
        let _ = std::fs::create_dir(folder.join(format!("dir.{ending}")));
        shell(folder, &format!("rm -f pipe.{ending}; mkfifo pipe.{ending}")).ok();
        let refuses_to = |place: &str, message: &str| {
            let line = line.replace(&format!("-o {output}"), &format!("-o {place}.{ending}"));
            refuses(folder, &line, &[&format!("`{place}.{ending}`: {message}")]);
        };
        refuses_to("file.txt/out", "Not a directory");
        refuses_to("none/out", "No such file or directory");
        refuses_to("dir", "output: expected a file name, found a folder");
        refuses_to("pipe", "output: expected a file name, found a device or pipe");
    }
    refuses(folder, "demo --dir file.txt", &["cannot write `file.txt`"]);
    assert_eq!(bytes(folder, "file.txt"), b"old");
}

#[test]
fn an_output_that_would_replace_an_input_is_refused() {
    let folder = with_results();
    let folder = folder.path();
    std::os::unix::fs::symlink("N.npz", folder.join("link.parquet")).expect("disk space");
    std::os::unix::fs::symlink("R.parquet", folder.join("link.safetensors")).expect("disk space");
    for (line, output, input) in [
        (SCORE, "R.parquet", "link.parquet"),
        (SCORE, "R.parquet", "./link.parquet"),
        (TRAIN, "M.safetensors", "link.safetensors"),
    ] {
        let line = line.replace(&format!("-o {output}"), &format!("-o {input}"));
        let message = format!("the output `{input}` would replace the input `");
        refuses(folder, &line, &[&message, "hint: choose another name"]);
    }
    run(folder, TRAIN).ok(); // replacing an earlier result is fine
}

/// Runs a command whose files cannot grow beyond `blocks` of 512 or 1024 bytes, depending on the shell.
fn with_small_files(folder: &Path, blocks: usize, line: &str) -> Finished {
    shell(folder, &format!("ulimit -f {blocks}; trap '' XFSZ; exec $LABELSIEVE {line}"))
}

#[test]
fn a_write_that_fails_leaves_the_old_result_and_no_rest() {
    let folder = with_results();
    let folder = folder.path();
    run(folder, PREDICT).ok();
    let old = |name| bytes(folder, name);
    let before = (listing(folder), old("R.parquet"), old("M.safetensors"), old("P.parquet"));
    for (line, output) in [(SCORE, "R.parquet"), (TRAIN, "M.safetensors"), (PREDICT, "P.parquet")] {
        with_small_files(folder, 0, line).fails_with(&["cannot write `", output, "File too large"]);
        assert_eq!(
            (listing(folder), old("R.parquet"), old("M.safetensors"), old("P.parquet")),
            before,
            "{line}"
        );
    }
}

#[test]
fn when_only_the_result_does_not_fit_the_finished_work_is_kept() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    run(folder, SCORE).ok();
    let whole = bytes(folder, "R.parquet");
    std::fs::remove_file(folder.join("R.parquet")).expect("it exists");
    // 20 bytes per candidate in the journal and a sentence per class, so long names make the result the larger of the two.
    let noisy = crate::examples::noisy_of(&task);
    noisy.parquet(folder.join("N.parquet"), &"long/".repeat(100));
    let long = "score --clean C.parquet --pool N.parquet -o R.parquet";
    crate::examples::clean_of(&task).parquet(folder.join("C.parquet"), "c");
    run(folder, long).ok();
    let expected = bytes(folder, "R.parquet");
    std::fs::remove_file(folder.join("R.parquet")).expect("it exists");
    let journal = 20 * noisy.len() + 4000;
    let blocks = journal.div_ceil(512);
    let finished = with_small_files(folder, blocks, long);
    if finished.code == Some(0) {
        eprintln!("skipped: the result is smaller than the journal here ({} bytes)", whole.len());
        return;
    }
    finished.fails_with(&["cannot write `R.parquet`", "hint: "]);
    assert!(!folder.join("R.parquet").exists());
    let again = run(folder, long).ok();
    assert!(again.err.contains("resuming: 6 of 6 classes done"), "{again:?}");
    assert_eq!(bytes(folder, "R.parquet"), expected);
    assert!(!folder.join("R.parquet.partial").exists());
}

#[test]
fn a_full_disk_is_reported_and_nothing_half_written_is_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write_task(folder);
    std::fs::create_dir(folder.join("disk")).expect("disk space");
    if shell(folder, "mount -t tmpfs -o size=4k labelsieve-test disk").code != Some(0) {
        eprintln!("skipped: may not mount a small disk here");
        return;
    }
    let finished = run(folder, &SCORE.replace("R.parquet", "disk/R.parquet"));
    let left = listing(&folder.join("disk"));
    shell(folder, "umount disk").ok();
    finished.fails_with(&["cannot write `disk/R.parquet", "No space left", "hint: "]);
    assert!(left.is_empty() || left == ["R.parquet.partial"], "only finished work may stay: {left:?}");
}

#[test]
fn a_file_in_the_place_of_the_journal_is_not_overwritten() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    std::fs::write(folder.join("R.parquet.partial"), "my notes").expect("disk space");
    let message = ["`R.parquet.partial` is not a journal of an earlier run", "hint: "];
    refuses(folder, SCORE, &message);
    assert_eq!(bytes(folder, "R.parquet.partial"), b"my notes");
}

#[test]
fn a_damaged_journal_is_done_again_from_the_damage_on() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    run(folder, SCORE).ok();
    let whole = bytes(folder, "R.parquet");
    for rest in [
        &b""[..],
        b"labelsieve journal 1\n",
        b"labelsieve jour",
        b"labelsieve journal 1\n\xff\xff\xff\xff\xff\xff",
    ] {
        std::fs::write(folder.join("R.parquet.partial"), rest).expect("disk space");
        run(folder, SCORE).ok();
        assert_eq!(bytes(folder, "R.parquet"), whole);
        assert!(!folder.join("R.parquet.partial").exists());
    }
}
