//! `labelsieve run`: the common case in one command, and `labelsieve classes` from folders.

use std::path::Path;

use labelsieve_files::read_relevance;

use crate::common::{Finished, bytes, listing, refuses, run};
use crate::embed::write;
use crate::networks::{draw, picture};

const OUTPUTS: [&str; 6] = [
    "clean.parquet",
    "pool.parquet",
    "candidates.parquet",
    "relevance.parquet",
    "classifier.safetensors",
    "report.html",
];

/// Clean photos in a folder per class, and a pool with captions that are sometimes wrong.
fn photos() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    draw(path, "clean", &["checks", "fine_rows"], 3, 0);
    let mut captions = "file_name,text\n".to_owned();
    for i in 100..124 {
        let (class, caption) = match i % 4 {
            0 => ("checks", "a shirt with checks"),
            1 => ("rows", "Fine rows of trees"),
            2 => ("plain", "the bill, three checks"),
            _ => ("plain", "nothing of interest"),
        };
        write(path, &format!("photos/{i}.png"), &picture(class, i));
        captions.push_str(&format!("{i}.png,\"{caption}\"\n"));
    }
    write(path, "photos/metadata.csv", captions.as_bytes());
    folder
}

fn outputs(folder: &Path) -> Vec<Vec<u8>> {
    OUTPUTS.iter().map(|name| bytes(folder, &format!("out/{name}"))).collect()
}

#[test]
fn two_folders_become_a_classifier_and_a_report_and_a_second_run_has_nothing_to_do() {
    let folder = photos();
    let folder = folder.path();
    let line = "run --clean clean --pool photos -o out --device cpu";
    let done = run(folder, line).ok();
    for command in ["embed", "match", "score", "train", "report"] {
        assert!(done.err.contains(&format!("\n$ labelsieve {command} ")), "{command}: {done:?}");
    }
    let names = listing(&folder.join("out"));
    for name in OUTPUTS.iter().chain(&["steps.journal"]) {
        assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
    }
    let relevance = read_relevance(folder.join("out/relevance.parquet")).expect("relevance");
    let candidates = relevance.is_clean.iter().filter(|clean| !**clean).count();
    assert_eq!((candidates, relevance.is_clean.len()), (18, 24), "captions with a name, and clean photos");
    let page = String::from_utf8(bytes(folder, "out/report.html")).expect("a page");
    assert!(page.contains("a shirt with checks"), "captions are in the report");

    // The steps are commands that can be typed.
    let before = outputs(folder);
    let step = done.err.lines().find(|line| line.starts_with("$ labelsieve score")).expect("a step");
    let step = step.trim_start_matches("$ labelsieve ").replace("out/relevance", "again");
    run(folder, &step).ok();
    assert_eq!(bytes(folder, "again.parquet"), bytes(folder, "out/relevance.parquet"));

    let again = run(folder, line).ok();
    assert_eq!(again.err.matches("done already").count(), OUTPUTS.len(), "{again:?}");
    assert_eq!(outputs(folder), before);

    // A step whose result is gone is done again, and what it makes is the same.
    std::fs::remove_file(folder.join("out/relevance.parquet")).expect("it was written");
    let again = run(folder, line).ok();
    assert_eq!(again.err.matches("done already").count(), 3, "{again:?}");
    assert_eq!(outputs(folder)[..4], before[..4]);

    // Other photos make another run, and other captions too.
    write(folder, "photos/100.png", &picture("checks", 200));
    let other = run(folder, line).ok();
    assert_eq!(other.err.matches("done already").count(), 0, "{other:?}");
    let captions = String::from_utf8(bytes(folder, "photos/metadata.csv")).expect("a text");
    write(folder, "photos/metadata.csv", captions.replace("the bill, three checks", "the bill").as_bytes());
    let other = run(folder, line).ok();
    assert_eq!(other.err.matches("done already").count(), 0, "{other:?}");
    let relevance = read_relevance(folder.join("out/relevance.parquet")).expect("relevance");
    assert_eq!(relevance.is_clean.iter().filter(|clean| !**clean).count(), 12);
}

#[test]
fn a_run_with_other_decisions_scores_again_and_keeps_its_features() {
    let folder = photos();
    let folder = folder.path();
    let line = "run --clean clean --pool photos -o out --device cpu";
    run(folder, line).ok();
    let with_decisions = format!("{line} --decisions d.csv");
    let n_again = |done: &Finished| OUTPUTS.len() - done.err.matches(": done already, in `").count();
    for (text, relevance, steps) in [
        ("100.png,checks,accept\n", Some(1.0), 3),
        ("100.png,checks,reject\n", Some(0.0), 3),
        ("100.png,checks,accept\n100.png,checks,reject\n", Some(0.0), 0),
    ] {
        write(folder, "d.csv", format!("id,class,decision\n{text}").as_bytes());
        let done = run(folder, &with_decisions).ok();
        assert_eq!(n_again(&done), steps, "{done:?}");
        let table = read_relevance(folder.join("out/relevance.parquet")).expect("relevance");
        let found = table.ids.iter().position(|id| id == "100.png").map(|i| table.relevance[i]);
        assert_eq!(found, relevance, "{text}");
    }
    let done = run(folder, line).ok();
    assert_eq!(n_again(&done), 3, "{done:?}");
    assert_eq!(read_relevance(folder.join("out/relevance.parquet")).expect("relevance").decisions, None);
    refuses(
        folder,
        "run --clean clean --pool photos -o new --decisions missing.csv",
        &["cannot open `missing.csv`"],
    );
}

#[test]
fn a_pool_with_a_folder_per_class_needs_no_captions() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    draw(folder, "clean", &["checks", "rows"], 3, 0);
    draw(folder, "pool", &["checks", "rows"], 6, 100);
    let done = run(folder, "run --clean clean --pool pool -o out --device cpu --json").ok();
    assert!(!done.err.contains("labelsieve match"), "{done:?}");
    let result = done.json();
    assert_eq!(result["command"], "run");
    assert_eq!(result["outputs"].as_array().expect("a list").len(), 5);
    let without = "run --clean clean --pool pool --classes c.toml -o other --device cpu";
    refuses(folder, without, &["`pool`", "expected metadata.csv"]);
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let folder = photos();
    let folder = folder.path();
    write(folder, "mine/thesis.txt", b"ten years of work");
    let line = "run --clean clean --pool photos -o mine";
    refuses(folder, line, &["`mine` is not empty and was not made by `labelsieve run`", "hint: "]);
    assert_eq!(listing(&folder.join("mine")), ["thesis.txt"]);
    refuses(
        folder,
        "run --clean claen --pool photos -o out",
        &["cannot open `claen`", "did you mean `clean`?"],
    );
    assert!(!folder.join("out").exists(), "nothing was done, so nothing is left");
}

#[test]
fn a_run_that_failed_early_can_be_corrected_and_a_folder_that_was_moved_is_still_a_run() {
    let folder = photos();
    let folder = folder.path();
    write(folder, "bad/checks/1.png", b"junk");
    write(folder, "bad/rows/1.png", b"junk");
    run(folder, "run --clean bad --pool photos -o out --device cpu")
        .fails_with(&["no readable images (2 tried)"]);
    let line = "run --clean clean --pool photos -o out --device cpu";
    run(folder, line).ok();
    std::fs::rename(folder.join("out"), folder.join("moved")).expect("a move");
    let moved = run(folder, &line.replace("-o out", "-o ./moved")).ok();
    assert!(moved.err.starts_with("resuming: 6 of 6 steps done"), "{moved:?}");
    assert_eq!(moved.err.matches("done already").count(), OUTPUTS.len(), "{moved:?}");
    let other = run(folder, &line.replace("-o out", "-o moved --seed 1")).ok();
    assert!(other.err.contains("was made with different settings or files; starting over"), "{other:?}");
    refuses(folder, "report moved -o r.html", &["run.json is missing", "hint: ", "moved/relevance.parquet"]);
}

#[test]
fn folders_that_get_in_each_others_way_are_refused() {
    let folder = photos();
    let folder = folder.path();
    let inside = ["the output `clean/out` is inside the input `clean`", "hint: "];
    refuses(folder, "run --clean clean --pool photos -o clean/out", &inside);
    assert!(!folder.join("clean/out").exists());
    draw(folder, "pool", &["checks"], 2, 50);
    write(folder, "pool/checks/000.png", &picture("plain", 1));
    let twice = ["`checks/000.png` is the name of two different photos, in `clean` and in `pool`", "hint: "];
    refuses(folder, "run --clean clean --pool pool -o out", &twice);
    let stream = ["`-` can be read only once, but captions are read several times", "hint: "];
    refuses(folder, "run --clean clean --pool photos --text - -o out", &stream);
    std::fs::rename(folder.join("clean"), folder.join("-c")).expect("a move");
    run(folder, "run --clean=-c --pool photos -o out --device cpu").ok();
}

#[test]
fn candidates_that_are_all_clean_examples_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    draw(folder, "clean", &["checks", "rows"], 3, 0);
    let done = run(folder, "run --clean clean --pool clean -o out --device cpu").ok();
    let warning =
        "warning: all candidates in `out/pool.parquet` are clean examples of their class: none was scored";
    assert!(done.err.contains(warning), "{done:?}");
}

#[test]
fn a_class_file_comes_from_a_folder_per_class() {
    let folder = photos();
    let folder = folder.path();
    run(folder, "classes clean -o C.toml").ok();
    let text = String::from_utf8(bytes(folder, "C.toml")).expect("a text");
    assert!(text.contains("id = \"fine_rows\"") && text.contains("names = [\"fine rows\"]"), "{text}");
    let by_file = "match --classes C.toml --text photos --rule plural -o by_file.csv";
    let by_folder = "match --classes clean --text photos --rule plural -o by_folder.csv";
    run(folder, by_file).ok();
    run(folder, by_folder).ok();
    assert_eq!(bytes(folder, "by_file.csv"), bytes(folder, "by_folder.csv"));
    refuses(folder, "classes photos -o D.toml", &["`photos`: folders: expected one per class, found none"]);
}
