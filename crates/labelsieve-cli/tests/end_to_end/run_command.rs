//! `labelsieve run`: the common case in one command, and `labelsieve classes` from folders.

use std::path::Path;

use labelsieve_data::read_relevance;

use crate::common::{bytes, listing, refuses, run};
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
    for command in ["embed", "match", "clean", "train", "report"] {
        assert!(done.err.contains(&format!("\n$ labelsieve {command} ")), "{command}: {done:?}");
    }
    let names = listing(&folder.join("out"));
    for name in OUTPUTS.iter().chain(&["steps.journal", "tiny-resnet10.safetensors"]) {
        assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
    }
    let relevance = read_relevance(folder.join("out/relevance.parquet")).expect("relevance");
    let candidates = relevance.is_clean.iter().filter(|clean| !**clean).count();
    assert_eq!((candidates, relevance.is_clean.len()), (18, 24), "captions with a name, and clean photos");
    let page = String::from_utf8(bytes(folder, "out/report.html")).expect("a page");
    assert!(page.contains("a shirt with checks"), "captions are in the report");

    // The steps are commands that can be typed.
    let before = outputs(folder);
    let step = done.err.lines().find(|line| line.starts_with("$ labelsieve clean")).expect("a step");
    let step = step.trim_start_matches("$ labelsieve ").replace("out/relevance", "again");
    run(folder, &step).ok();
    assert_eq!(bytes(folder, "again.parquet"), bytes(folder, "out/relevance.parquet"));

    let again = run(folder, line).ok();
    assert_eq!(again.err.matches("done already").count(), OUTPUTS.len(), "{again:?}");
    assert_eq!(outputs(folder), before);

    // A step whose result is gone is done again, and what it makes is the same.
    std::fs::remove_file(folder.join("out/relevance.parquet")).expect("it was written");
    let again = run(folder, line).ok();
    assert!(again.err.contains("\n$ labelsieve clean "), "{again:?}");
    assert_eq!(outputs(folder)[..4], before[..4]);

    // Other photos make another run.
    write(folder, "photos/200.png", &picture("checks", 200));
    let other = run(folder, line).ok();
    assert_eq!(other.err.matches("done already").count(), 0, "{other:?}");
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
    refuses(folder, without, &["`pool`", "hint: "]);
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
