//! `labelsieve-bench paper` on a small copy of the release's layout.

use std::path::Path;

use labelsieve::synthetic::SyntheticTask;
use labelsieve_bench::LegacyNumpyRandom;
use serde_json::Value;

use crate::common::{bytes, listing, refuses, run};
use crate::release::{self, NOVEL_TEST, TRAIN, clean_row};

const BENCH: &str = "paper --features . --splits . --run run";

fn release_folder() -> (tempfile::TempDir, SyntheticTask) {
    let folder = tempfile::tempdir().expect("a folder");
    let task = release::write(folder.path());
    (folder, task)
}

fn names(report: &Value) -> Vec<&str> {
    let rows = report["rows"].as_array().expect("rows");
    rows.iter().map(|row| row["name"].as_str().expect("a name")).collect()
}

fn cell(report: &Value, name: &str, column: &str, shot: usize) -> f64 {
    let row = names(report).iter().position(|row| *row == name).expect("a row");
    report["rows"][row][column][shot]["mean"].as_f64().expect("a mean")
}

#[test]
fn the_tables_have_all_rows_and_shots_beside_the_papers_figures() {
    let (folder, _) = release_folder();
    let table = run(folder.path(), &format!("{BENCH} --episodes 2 --shots 1,2,5,10,20")).ok().out;
    let header = table.lines().find(|line| line.starts_with("method")).expect("a header");
    assert_eq!(
        header.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>(),
        ["method", "k = 1", "k = 2", "k = 5", "k = 10", "k = 20"]
    );
    for (name, paper) in [
        ("clean only", "(45.3)"),
        ("similarity", "(49.8)"),
        ("β = 1", "(56.1)"),
        ("linear", "(59.8)"),
        ("label propagation", "(62.6)"),
        ("mlp", "(63.6)"),
        ("gcn  ", "(67.8)"),
        ("gcn, cosine", "(73.2)"),
    ] {
        let row =
            table.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {table}"));
        assert!(row.contains(paper) && row.matches('±').count() == 5, "{row}");
    }
    assert!(table.contains("Top-5 on all classes") && table.contains("(57.0)"), "{table}");
    assert!(table.contains("gain of gcn over clean only at k = 1"), "{table}");
    assert!(!table.contains("β*"), "β* is chosen on validation classes: {table}");
}

#[test]
fn clean_examples_are_the_rows_that_the_episodes_list() {
    let (folder, task) = release_folder();
    let line = format!("{BENCH} --shots 1 --no-cosine --json");
    let report = run(folder.path(), &line).ok().json();
    let expected =
        (1..=5).map(|episode| one_shot_top_1(&task, |class| clean_row(episode, class, 0) - class * TRAIN));
    let expected = expected.sum::<f64>() / 5.0;
    assert!((cell(&report, "clean only", "novel_top_1", 0) - expected).abs() < 1e-9, "{report}");
}

#[test]
fn clean_examples_of_places_are_drawn_as_numpy_drew_them() {
    let (folder, task) = release_folder();
    let line = format!("{BENCH} --dataset places365 --shots 1 --episodes 1 --no-cosine");
    let report = run(folder.path(), &format!("{line} --json")).ok().json();
    let mut random = LegacyNumpyRandom::new(1);
    let drawn: Vec<usize> = NOVEL_TEST.map(|_| random.choice_without_replacement(TRAIN, 1)[0]).collect();
    let expected = one_shot_top_1(&task, |class| drawn[class - NOVEL_TEST.start]);
    assert!((cell(&report, "clean only", "novel_top_1", 0) - expected).abs() < 1e-9, "{report}");
    assert!(report["rows"][0].get("all_top_5").is_none(), "Places365 has no base classes: {report}");
    let table = run(folder.path(), &line).ok().out;
    assert!(table.contains("(28.7)") && !table.contains("all classes"), "{table}");
}

/// Top-1 when the prototype of each novel class is its labelled photo number `photo(class)`.
fn one_shot_top_1(task: &SyntheticTask, photo: impl Fn(usize) -> usize) -> f64 {
    let prototypes: Vec<&[f32]> =
        NOVEL_TEST.map(|class| task.classes[class].clean.row(photo(class))).collect();
    let tests = (0..task.test.len()).filter(|&row| NOVEL_TEST.contains(&task.test_labels[row]));
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let right = |&row: &usize| {
        let scores: Vec<f32> = prototypes.iter().map(|p| dot(p, task.test.row(row))).collect();
        let own = scores[task.test_labels[row] - NOVEL_TEST.start];
        scores.iter().filter(|&&score| score > own).count() == 0
    };
    let n = tests.clone().count();
    let n_right = tests.filter(right).count();
    n_right as f64 / n as f64
}

#[test]
fn the_json_report_is_complete() {
    let (folder, _) = release_folder();
    let report = run(folder.path(), &format!("{BENCH} --shots 1,5 --episodes 2 --json")).ok().json();
    assert_eq!(report["shots"], serde_json::json!([1, 5]));
    assert_eq!(report["episodes"], 2);
    assert_eq!(
        names(&report),
        ["clean only", "similarity", "β = 1", "linear", "label propagation", "mlp", "gcn", "gcn, cosine"]
    );
    for row in report["rows"].as_array().expect("rows") {
        for column in ["novel_top_5", "novel_top_1", "all_top_5"] {
            let cells = row[column].as_array().expect("a cell per shot");
            assert_eq!(cells.len(), 2, "{row}");
            assert!(
                cells.iter().all(|cell| (0.0..=1.0).contains(&cell["mean"].as_f64().expect("a mean"))),
                "{row}"
            );
        }
    }
    assert_eq!(report["rows"][0]["paper_novel_top_5"], serde_json::json!([45.3, 69.3]));
    assert!(cell(&report, "gcn", "novel_top_1", 0) > 0.4, "far above chance: {report}");
    let groups = report["gain_by_pool_size"].as_array().expect("groups");
    assert_eq!(groups.iter().filter_map(|group| group["n_classes"].as_u64()).sum::<u64>(), 6);
    assert_eq!(report["tuned"], Value::Null);
}

#[test]
fn the_systems_that_the_paper_compares_with_stand_beside_their_published_figures() {
    let (folder, _) = release_folder();
    let line = format!("{BENCH} --shots 1,5 --episodes 2 --no-cosine --compared --json");
    let done = run(folder.path(), &line).ok();
    assert!(done.err.contains("too few base classes to learn from episodes"), "{done:?}");
    let report = done.json();
    for name in ["clean only, logistic", "diffusion", "diffusion, logistic", "diffusion by text"] {
        assert!(cell(&report, name, "novel_top_1", 1) > 0.3, "{name}: {report}");
    }
    let again = run(folder.path(), &line).ok().json();
    assert_eq!(again, report, "results from the journal differ from measured ones");
    let tuned = format!("{BENCH} --shots 1 --episodes 1 --no-cosine --compared --tune --json");
    assert!(names(&run(folder.path(), &tuned).ok().json()).contains(&"diffusion by text, logistic"));
}

#[test]
fn tuning_chooses_on_the_validation_classes() {
    let (folder, _) = release_folder();
    let line = format!("{BENCH} --shots 1 --episodes 1 --tune --no-cosine --json");
    let report = run(folder.path(), &line).ok().json();
    assert!(names(&report).contains(&"β*"), "{report}");
    for setting in ["gcn_lambda", "mlp_lambda", "beta"] {
        let chosen = &report["tuned"][setting][0];
        assert!(chosen["setting"].as_f64().is_some_and(|value| value > 0.0), "{setting}: {report}");
        assert!(chosen["score"].as_f64().is_some_and(|score| score > 0.0), "{setting}: {report}");
    }
    let journal = bytes(folder.path(), "run");
    std::fs::remove_file(folder.path().join("yfcc_imagenet_resnet10_val.npz")).expect("it exists");
    refuses(folder.path(), &line, &["yfcc_imagenet_resnet10_val.npz", "No such file", "hint: "]);
    assert_eq!(bytes(folder.path(), "run"), journal, "finished work is not lost with the file");
    run(folder.path(), &line.replace("--tune ", "")).ok();
}

#[test]
fn bytes_do_not_depend_on_threads() {
    let (folder, _) = release_folder();
    let print = |threads: usize| {
        let line = format!("{BENCH}-{threads} --shots 1 --episodes 2 --json --threads {threads}");
        run(folder.path(), &line).ok().out
    };
    assert_eq!(print(1), print(4));
}

fn refuses_release(folder: &Path, parts: &[&str]) {
    refuses(folder, &format!("{BENCH} --shots 1 --episodes 1 --no-cosine"), parts);
}

#[test]
fn splits_that_do_not_belong_to_the_features_are_refused() {
    let (folder, _) = release_folder();
    let folder = folder.path();
    release::write_episode(folder, 1, |class, i| clean_row(1, (class + 1) % 16, i));
    refuses_release(
        folder,
        &["imagenet_train_resnet10.npz` to class 10, but its label differs", "hint: splits and features"],
    );
    release::write_episode(folder, 1, |class, i| clean_row(1, class, i) + 100_000);
    refuses_release(folder, &["to class 10, but its label differs", "hint: "]);
    release::write_episode(folder, 1, |class, i| clean_row(1, class, i));
    let json = std::fs::read_to_string(folder.join("imagenet_lowshot_category_splits.json")).expect("a file");
    let other = json.replace("[10,", "[100,");
    assert_ne!(json, other);
    std::fs::write(folder.join("imagenet_lowshot_category_splits.json"), other).expect("disk space");
    refuses_release(
        folder,
        &["class 100 has 0 labelled photos in", "imagenet_train_resnet10.npz`", "hint: "],
    );
}

#[test]
fn missing_files_of_the_release_are_named() {
    let (folder, _) = release_folder();
    let folder = folder.path();
    for name in [
        "imagenet_train_resnet10.npz",
        "imagenet_val_resnet10.npz",
        "yfcc_imagenet_resnet10_test.npz",
        "imagenet_lowshot_category_splits.json",
        "mapped_splits_3.npy",
    ] {
        std::fs::rename(folder.join(name), folder.join("away")).expect("it exists");
        refuses_release(folder, &[&format!("`./{name}`"), "No such file", "hint: "]);
        std::fs::rename(folder.join("away"), folder.join(name)).expect("it exists");
    }
    refuses(folder, &format!("{BENCH} --backbone resnet50pca"), &["imagenet_train_resnet50pca.npz"]);
}

#[test]
fn a_dry_run_of_the_benchmark_writes_nothing() {
    let (folder, _) = release_folder();
    let before = listing(folder.path());
    let estimate = run(folder.path(), &format!("{BENCH} --dry-run")).ok().out;
    assert!(estimate.contains("classes       6") && estimate.contains("memory        about"), "{estimate}");
    assert_eq!(listing(folder.path()), before);
}
