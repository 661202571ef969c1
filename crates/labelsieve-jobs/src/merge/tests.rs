use std::path::Path;

use labelsieve_files::work::Silent;
use labelsieve_files::work::parts::{ClassDetail, CleanDetail};
use labelsieve_files::{OptionalColumns, Part, RelevanceRow, RelevanceWriter, Shard};
use labelsieve_matching::{CandidateRow, CandidateWriter};
use serde_json::json;

use super::*;

/// Scored classes of a run: some have no candidate, one has many.
fn classes() -> Vec<(String, Vec<RelevanceRow>)> {
    let n_candidates = [3, 0, 70_000, 1, 20];
    let row = |class: &str, i: usize, is_clean: bool| RelevanceRow {
        id: format!("{class}-{i}"),
        class: class.to_owned(),
        relevance: if is_clean { 1.0 } else { (i % 1000) as f32 / 1000.0 },
        probability: if is_clean { Some(1.0) } else { Some(0.25) },
        is_clean,
        matched_name: (!is_clean).then(|| class.to_uppercase()),
        best_clean: (!is_clean).then(|| format!("{class}-0")),
        best_clean_similarity: (!is_clean).then_some(0.5),
        reciprocal_neighbours: (!is_clean).then_some(i as u32),
    };
    let class = |(c, n): (usize, &usize)| {
        let name = format!("class {c}");
        let rows = (0..=*n).map(|i| row(&name, i, i == 0)).collect();
        (name, rows)
    };
    n_candidates.iter().enumerate().map(class).collect()
}

const SETTINGS: &str = r#"{"command":"score","device":"cpu"}"#;

fn write(path: &Path, classes: &[&(String, Vec<RelevanceRow>)], part: Option<&Part>, settings: &str) {
    let mut metadata = vec![("labelsieve".to_owned(), settings.to_owned())];
    metadata.extend(part.map(Part::metadata));
    let probability = classes.iter().any(|(_, rows)| rows.len() > 1);
    let columns = OptionalColumns { probability, decision: false };
    let mut writer = RelevanceWriter::create_with(path, columns, &metadata).unwrap();
    classes.iter().for_each(|(_, rows)| writer.write(rows).unwrap());
    writer.finish().unwrap();
}

fn choice(position: usize) -> Option<String> {
    (position != 3).then(|| format!("choice {}", position % 2))
}

/// Writes the part of some classes, given by their positions.
fn write_part(path: &Path, run: &str, shard: Shard, positions: &[usize]) {
    let classes = classes();
    let detail = |&position: &usize| {
        let (name, rows) = &classes[position];
        ClassDetail {
            position,
            name: name.clone(),
            n_rows: rows.len(),
            n_candidates: rows.len() - 1,
            sum_relevance: rows[1..].iter().map(|row| f64::from(row.relevance)).sum(),
            choice: choice(position),
        }
    };
    let details = positions.iter().map(detail).collect();
    let detail = CleanDetail { n_classes: classes.len(), classes: details, decisions: None };
    let part = Part {
        command: PartOf::Score,
        run: run.to_owned(),
        index: shard.index,
        of: shard.of,
        detail: json!(detail),
    };
    let classes: Vec<_> = positions.iter().map(|&position| &classes[position]).collect();
    write(path, &classes, Some(&part), SETTINGS);
}

fn merge(parts: &[&Path], output: &Path) -> Result<MergeSummary> {
    let parts = parts.iter().map(|part| part.to_path_buf()).collect();
    Merge { parts, output: output.to_path_buf() }.run(&Silent::default())
}

fn shard(index: usize, of: usize) -> Shard {
    Shard { index, of }
}

#[test]
fn parts_in_any_order_make_the_file_of_a_single_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let all = classes();
    let choices = json!([{ "choice": "choice 0", "n_classes": 3 }, { "choice": "choice 1", "n_classes": 1 }]);
    let mut settings: serde_json::Value = serde_json::from_str(SETTINGS).unwrap();
    settings["choices"] = choices;
    write(&path("whole.parquet"), &all.iter().collect::<Vec<_>>(), None, &settings.to_string());

    std::fs::create_dir(path("parts")).unwrap();
    write_part(&path("parts/b.parquet"), "run", shard(0, 3), &[0, 2]);
    write_part(&path("parts/a.parquet"), "run", shard(1, 3), &[3, 4]);
    write_part(&path("parts/c.parquet"), "run", shard(2, 3), &[1]); // only a clean example
    let merged = merge(&[&path("parts")], &path("merged.parquet")).unwrap();
    assert!(std::fs::read(path("merged.parquet")).unwrap() == std::fs::read(path("whole.parquet")).unwrap());
    let relevance = merged.relevance.unwrap();
    assert_eq!((relevance.n_classes, relevance.n_candidates, merged.n_rows), (5, 70_024, 70_029));
    let names = ["parts/c.parquet", "parts/b.parquet", "parts/a.parquet"].map(path);
    merge(&names.each_ref().map(|name| name.as_path()), &path("again.parquet")).unwrap();
    assert!(std::fs::read(path("again.parquet")).unwrap() == std::fs::read(path("whole.parquet")).unwrap());

    // The whole may be written among its parts, and again.
    for _ in 0..2 {
        merge(&[&path("parts")], &path("parts/relevance.parquet")).unwrap();
    }
}

#[test]
fn missing_double_and_foreign_parts_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_part(&path("0.parquet"), "run", shard(0, 2), &[0, 2]);
    write_part(&path("1.parquet"), "run", shard(1, 2), &[1, 3, 4]);
    write_part(&path("one.parquet"), "run", shard(1, 2), &[1, 3, 4]);
    write_part(&path("other.parquet"), "another run", shard(1, 2), &[1, 3, 4]);
    write_part(&path("third.parquet"), "run", shard(2, 3), &[1, 3, 4]);
    write_part(&path("half.parquet"), "run", shard(1, 2), &[1, 3]);
    write_part(&path("twice.parquet"), "run", shard(1, 2), &[1, 2, 3, 4]);
    write(&path("whole.parquet"), &[], None, SETTINGS);
    let check = |names: &[&str], expected: &str| {
        let paths: Vec<_> = names.iter().map(|name| path(name)).collect();
        let paths: Vec<&Path> = paths.iter().map(|path| path.as_path()).collect();
        let error = merge(&paths, &path("merged.parquet")).unwrap_err().to_string();
        let error = error.replace(&format!("{}/", folder.path().display()), "");
        assert_eq!(error, expected);
        assert!(!path("merged.parquet").exists());
    };
    check(&["0.parquet"], "1 part of 2 is missing: 1");
    check(&["0.parquet", "1.parquet", "one.parquet"], "`1.parquet` and `one.parquet` are both part 1 of 2");
    check(
        &["0.parquet", "other.parquet"],
        "`0.parquet` and `other.parquet` are parts of different runs: the inputs or settings differ",
    );
    check(
        &["0.parquet", "third.parquet"],
        "`0.parquet` and `third.parquet` are parts of different runs: one is of 2 parts, the other of 3",
    );
    check(&["0.parquet", "half.parquet"], "class 4 of 5 is in none of the parts");
    check(
        &["0.parquet", "twice.parquet"],
        "`twice.parquet`: classes: expected `class 2` at a place of its own, found one that is taken",
    );
    check(
        &["0.parquet", "whole.parquet"],
        "`whole.parquet`: metadata `labelsieve.part`: expected a part, found a whole file, or one of another program",
    );

    let whole = std::fs::read(path("1.parquet")).unwrap();
    std::fs::write(path("cut.parquet"), &whole[..whole.len() - 100]).unwrap();
    let error = merge(&[&path("0.parquet"), &path("cut.parquet")], &path("merged.parquet")).unwrap_err();
    assert!(error.to_string().contains("cut.parquet"), "{error}");
    let mut broken = whole.clone();
    broken[10..40].fill(0xff); // rows, not the description of them
    std::fs::write(path("broken.parquet"), broken).unwrap();
    let error = merge(&[&path("0.parquet"), &path("broken.parquet")], &path("merged.parquet")).unwrap_err();
    assert!(error.to_string().contains("broken.parquet"), "{error}");
    assert!(!path("merged.parquet").exists());
    assert!(
        merge(&[&path("0.parquet"), &path("1.parquet")], &path("1.parquet")).is_err(),
        "a part cannot be the output"
    );
}

#[test]
fn parts_of_two_kinds_of_devices_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let part = |index, positions: &[usize]| {
        let classes = classes();
        let class = |&position: &usize| ClassDetail {
            position,
            name: classes[position].0.clone(),
            n_rows: classes[position].1.len(),
            n_candidates: 0,
            sum_relevance: 0.0,
            choice: None,
        };
        let detail =
            CleanDetail { n_classes: 2, classes: positions.iter().map(class).collect(), decisions: None };
        Part { command: PartOf::Score, run: "run".to_owned(), index, of: 2, detail: json!(detail) }
    };
    write(&path("0.parquet"), &[&classes()[0]], Some(&part(0, &[0])), SETTINGS);
    let on_gpu = r#"{"command":"score","device":"cuda"}"#;
    write(&path("1.parquet"), &[&classes()[1]], Some(&part(1, &[1])), on_gpu);
    let error = merge(&[folder.path()], &path("merged.parquet")).unwrap_err().to_string();
    assert!(error.ends_with("0.parquet` on `cpu`"), "{error}");
}

#[test]
fn candidates_follow_each_other_as_their_texts_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let metadata = || vec![("labelsieve.rule".to_owned(), "phrase".to_owned())];
    let row = |i: usize| CandidateRow {
        id: format!("{i}"),
        class: format!("class {}", i % 3),
        matched_name: "owl".to_owned(),
        field: "title".to_owned(),
        leak: None,
    };
    let rows: Vec<CandidateRow> = (0..100_000).map(row).collect();
    let mut whole = CandidateWriter::create(path("whole.parquet"), &metadata()).unwrap();
    whole.write(&rows).unwrap();
    whole.finish().unwrap();
    let ends = [0, 40_000, 40_000, 90_001, 100_000]; // the second shard found nothing
    for (index, bounds) in ends.windows(2).enumerate() {
        let detail = json!(MatchDetail { n_rows: 10, n_malformed: 1, ..MatchDetail::default() });
        let part = Part { command: PartOf::Match, run: "run".to_owned(), index, of: 4, detail };
        let metadata: Vec<_> = metadata().into_iter().chain([part.metadata()]).collect();
        let mut writer = CandidateWriter::create(path(&format!("{index}.part.parquet")), &metadata).unwrap();
        rows[bounds[0]..bounds[1]].chunks(999).for_each(|rows| writer.write(rows).unwrap());
        writer.finish().unwrap();
    }
    let parts: Vec<PathBuf> = [2, 0, 1, 3].iter().map(|i| path(&format!("{i}.part.parquet"))).collect();
    let parts: Vec<&Path> = parts.iter().map(|part| part.as_path()).collect();
    let merged = merge(&parts, &path("merged.parquet")).unwrap();
    assert!(std::fs::read(path("merged.parquet")).unwrap() == std::fs::read(path("whole.parquet")).unwrap());
    let matched = merged.matched.unwrap();
    assert_eq!((merged.n_rows, matched.n_rows, matched.n_malformed), (100_000, 40, 4));
}
