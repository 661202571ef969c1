//! Killed benchmarks resume where they stopped, with the result of an uninterrupted run.

use crate::common::{bytes, refuses, run};
use crate::release;
use crate::stopping::{kill, stopped_midway, went_on_after};

const BENCH: &str = "paper --features . --splits . --run bench.run --episodes 3 --json";

#[test]
fn a_killed_benchmark_resumes_and_a_finished_one_is_printed_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    release::write(folder);
    let unbroken = run(folder, &BENCH.replace("bench.run", "unbroken.run")).ok();
    kill(stopped_midway(folder, &format!("{BENCH} --threads 1"), "bench.run"));
    let again = run(folder, BENCH).ok();
    let found = went_on_after(&again, "pieces of work");
    assert_eq!(again.out, unbroken.out);

    let journal = bytes(folder, "bench.run");
    let printed = run(folder, BENCH).ok();
    assert!(went_on_after(&printed, "pieces of work") > found, "{printed:?}");
    assert_eq!(printed.out, unbroken.out);
    assert_eq!(bytes(folder, "bench.run"), journal, "nothing was done again");

    let fewer = run(folder, &format!("{BENCH} --shots 5,20")).ok();
    assert_eq!(bytes(folder, "bench.run"), journal, "a part of the table is there already: {fewer:?}");
}

#[test]
fn other_episodes_start_the_benchmark_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    release::write(folder);
    let line = format!("{BENCH} --shots 1 --no-cosine");
    let first = run(folder, &line).ok();
    release::write_episode(folder, 1, |class, i| release::clean_row(4, class, i));
    let second = run(folder, &line).ok();
    assert!(second.err.contains("starting over"), "the clean examples are others now: {second:?}");
    assert_ne!(first.out, second.out);
}

#[test]
fn two_benchmarks_do_not_share_a_run_file() {
    let folder = tempfile::tempdir().expect("a folder");
    release::write(folder.path());
    let first = stopped_midway(folder.path(), &format!("{BENCH} --threads 1"), "bench.run");
    refuses(folder.path(), BENCH, &["another process is using `bench.run`", "hint: "]);
    kill(first);
}
