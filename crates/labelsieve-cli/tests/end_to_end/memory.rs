//! `score --memory`: the same bytes within little memory, and nothing left behind.

use std::path::Path;

use labelsieve::synthetic::Recipe;

use crate::common::{bytes, listing, refuses, run, shell};
use crate::examples::{RECIPE, clean_of, noisy_of};
use crate::resume::{JOURNAL, stopped_midway};

const SCORE: &str = "score --clean C.npz --pool N.npz --threads 2 -o R.parquet";
/// Too little for the largest two classes of [`folder`], enough for the others.
const LIMIT: &str = "--memory 64MiB";

/// Classes of up to some thousand rows.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let recipe = Recipe { dim: 64, n_classes: 4, n_clean: 2, largest_pool: 9000, ..RECIPE };
    let task = recipe.generate(0);
    clean_of(&task).npz(folder.path().join("C.npz"));
    noisy_of(&task).npz(folder.path().join("N.npz"));
    noisy_of(&task).parquet(folder.path().join("N.parquet"), "n");
    clean_of(&task).parquet(folder.path().join("C.parquet"), "c");
    folder
}

fn written(folder: &Path, line: &str) -> (Vec<u8>, String) {
    let said = run(folder, line).ok().err;
    let found = bytes(folder, "R.parquet");
    std::fs::remove_file(folder.join("R.parquet")).expect("just written");
    (found, said)
}

#[test]
fn out_of_core_a_table_has_the_same_bytes() {
    let folder = folder();
    let folder = folder.path();
    for files in ["", "--clean C.parquet --pool N.parquet"] {
        let line = match files {
            "" => SCORE.to_owned(),
            files => SCORE.replace("--clean C.npz --pool N.npz", files),
        };
        for method in ["gcn", "auto"] {
            let line = format!("{line} --method {method}");
            let (expected, said) = written(folder, &line);
            assert!(!said.contains("out of core"), "{said}");
            let before = listing(folder);
            let (found, said) = written(folder, &format!("{line} {LIMIT}"));
            assert!(said.contains("do not fit in 64 MiB; working out of core with about"), "{said}");
            assert!(found == expected, "{line}");
            let (found, said) = written(folder, &format!("{line} --memory 4GiB"));
            assert!(!said.contains("out of core") && found == expected, "{said}");
            assert_eq!(listing(folder), before, "nothing is left");
        }
    }
}

#[test]
fn a_dry_run_says_what_is_done_out_of_core() {
    let folder = folder();
    let line = "score --clean C.npz --pool N.npz --dry-run --method gcn";
    let out = run(folder.path(), &format!("{line} {LIMIT}")).ok().out;
    assert!(out.contains("out of core   "), "{out}");
    let json = run(folder.path(), &format!("{line} {LIMIT} --json")).ok().json();
    assert!(json["memory_bytes"].as_u64() <= Some(64 << 20), "{json}");
    assert!(json["out_of_core"]["n_classes"].as_u64() >= Some(1), "{json}");
    assert!(json["out_of_core"]["scratch_bytes"].as_u64() > Some(1 << 20), "{json}");
    let json = run(folder.path(), &format!("{line} --memory 4GiB --json")).ok().json();
    assert!(json.get("out_of_core").is_none(), "{json}");
}

#[test]
fn sizes_and_folders_that_cannot_work_are_refused() {
    let folder = folder();
    let folder = folder.path();
    let refuses = |more: &str, parts: &[&str]| refuses(folder, &format!("{SCORE} {more}"), parts);
    refuses("--memory 4", &["expected a unit, e.g. `4GiB`, found `4`"]);
    refuses("--memory lots", &["expected a size such as 8GiB, 512MiB or 2GB, found `lots`"]);
    refuses("--memory 0GiB", &["expected a size above zero"]);
    refuses("--memory 1MiB", &["1 MiB of memory are too little for", "it needs", "hint: raise --memory to"]);
    refuses("--memory 64MiB --scratch missing", &["`missing`", "hint:"]);
    refuses("--memory 64MiB --scratch C.npz", &["`C.npz`"]);
    refuses("--scratch .", &["--memory <SIZE>"]);
    refuses("--memory 64MiB --device cuda", &["needs the CPU", "hint: use --device cpu"]);
}

#[test]
fn a_full_disk_ends_the_run_with_what_to_do() {
    let folder = folder();
    let before = listing(folder.path());
    // Files of a mebibyte at most: the inputs are larger, and no scratch file fits.
    let line = format!("ulimit -f 1024; trap '' XFSZ; exec $LABELSIEVE {SCORE} --method gcn {LIMIT}");
    shell(folder.path(), &line).fails_with(&[
        "cannot reserve",
        "of scratch space in `.`",
        "hint:",
        "--scratch",
    ]);
    let after: Vec<String> = listing(folder.path()).into_iter().filter(|name| name != JOURNAL).collect();
    assert_eq!(after, before);
}

#[test]
fn a_killed_run_leaves_no_scratch_and_goes_on_with_any_memory() {
    let folder = folder();
    let folder = folder.path();
    let (expected, _) = written(folder, SCORE);
    let before = listing(folder);
    let mut child = stopped_midway(folder, &format!("{SCORE} {LIMIT}"), JOURNAL);
    child.kill().expect("it runs");
    child.wait().expect("it is gone");
    let left: Vec<String> = listing(folder).into_iter().filter(|name| !before.contains(name)).collect();
    assert_eq!(left, [JOURNAL]);
    let (found, said) = written(folder, SCORE);
    assert!(said.contains("resuming: "), "{said}");
    assert!(found == expected);
}
