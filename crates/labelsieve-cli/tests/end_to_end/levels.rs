//! `LABELSIEVE_CPU`: refused before any work where the machine cannot, and no other result where it can.

use std::path::Path;

use crate::common::{Finished, command, listing};
use crate::examples::task_folder;

fn run_at(level: &str, folder: &Path, line: &str) -> Finished {
    Finished::from(command(folder, line).env("LABELSIEVE_CPU", level).output().expect("the binary starts"))
}

/// The levels of this machine, as the refusal of an unknown one lists them.
fn levels(folder: &Path) -> Vec<String> {
    let refused = run_at("unheard-of", folder, "score --clean C.npz --pool N.npz -o R.parquet");
    let (_, rest) = refused.err.split_once("this machine has (").expect("a list of levels");
    let (names, _) = rest.split_once(')').expect("the end of the list");
    names.split(", ").map(str::to_owned).collect()
}

#[test]
fn a_level_that_the_machine_does_not_have_is_refused_before_any_work() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    let before = listing(folder);
    let line = "score --clean C.npz --pool N.npz -o R.parquet";
    let there = levels(folder);
    assert_eq!(there[0], "plain");
    for level in ["avx3", "PLAIN", "avx2", "avx512"] {
        if there.iter().any(|name| name == level) {
            continue;
        }
        let found = format!("found `{level}`");
        run_at(level, folder, line).fails_with(&[
            "LABELSIEVE_CPU: expected a level that this machine has (plain",
            &found,
            "hint: unset LABELSIEVE_CPU",
        ]);
    }
    assert_eq!(listing(folder), before);
    run_at("avx3", folder, "--help").ok(); // help needs no kernels
}

#[test]
fn every_level_writes_the_same_relevance() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    for method in ["gcn", "label-propagation"] {
        let written = |level: &str| {
            let line = format!("score --clean C.npz --pool N.npz --method {method} -o R.parquet");
            run_at(level, folder, &line).ok();
            let bytes = std::fs::read(folder.join("R.parquet")).expect("a relevance file");
            std::fs::remove_file(folder.join("R.parquet")).expect("just written");
            bytes
        };
        let best = written(""); // as if it were not set
        for level in levels(folder) {
            assert!(written(&level) == best, "{method}, {level}");
        }
    }
}
