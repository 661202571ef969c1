//! Every reader of one file reads a pipe too: exactly once, and all of it.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use labelsieve_files::{
    ExampleTable, Labels, NpzWriter, RelevanceRow, RelevanceWriter, TableColumns, TruthRow, TruthWriter,
    read_relevance, read_truth, write_npy_f32, write_npy_i64,
};
use labelsieve_matching::text::{read_class_file, read_content_hashes};
use labelsieve_matching::{CandidateRow, CandidateWriter, read_candidates};

/// Reads `path` twice: as a file, and through a pipe without an ending to its name.
fn check<T: std::fmt::Debug>(path: &Path, read: impl Fn(&Path) -> T, seen: impl Fn(&T) -> String) {
    let pipe = path.with_file_name("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let bytes = std::fs::read(path).unwrap();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, bytes)
    });
    let piped = read(&pipe);
    writer.join().unwrap().unwrap();
    assert_eq!(seen(&piped), seen(&read(path)), "{}", path.display());
    std::fs::remove_file(pipe).unwrap();
}

#[test]
fn tables_come_through_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let features: Vec<f32> = (0..60_000).map(|i| i as f32).collect();
    write_npy_f32(std::fs::File::create(at("x.npy")).unwrap(), &[30_000, 2], &features).unwrap();
    let npz = NpzWriter::create(at("x.npz")).unwrap().f32("features", &[30_000, 2], &features).unwrap();
    npz.i64("labels", &[30_000], &vec![7; 30_000]).unwrap().finish().unwrap();
    for name in ["x.npy", "x.npz"] {
        let read = |path: &Path| ExampleTable::open(path, &TableColumns::default()).unwrap();
        check(&at(name), read, |table| {
            let rows: Vec<usize> = (0..table.len()).collect();
            let mut values = vec![0.0; 2 * rows.len()];
            table.features.read_rows(&rows, &mut values).unwrap();
            format!("{:?} {:?} {values:?}", table.ids, table.labels)
        });
    }
}

#[test]
fn results_come_through_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut writer = CandidateWriter::create(at("c.parquet"), &[]).unwrap();
    let [id, class, matched_name, field] = ["1", "owl", "owl", "title"].map(str::to_owned);
    writer.write(&vec![CandidateRow { id, class, matched_name, field, leak: None }; 20]).unwrap();
    writer.finish().unwrap();
    check(&at("c.parquet"), |path| read_candidates(path).unwrap(), |table| format!("{:?}", table.ids));

    let row = RelevanceRow {
        id: "1".into(),
        class: "owl".into(),
        relevance: 0.5,
        probability: None,
        is_clean: false,
        matched_name: None,
        best_clean: None,
        best_clean_similarity: None,
        reciprocal_neighbours: None,
    };
    let mut writer = RelevanceWriter::create(at("r.parquet"), &[]).unwrap();
    writer.write(&vec![row; 20]).unwrap();
    writer.finish().unwrap();
    check(&at("r.parquet"), |path| read_relevance(path).unwrap(), |table| format!("{:?}", table.ids));

    let mut writer = TruthWriter::create(at("t.parquet")).unwrap();
    writer.write(&[TruthRow { id: "a".into(), class: "owl".into(), relevant: true }]).unwrap();
    writer.finish().unwrap();
    check(&at("t.parquet"), |path| read_truth(path).unwrap(), |table| format!("{:?}", table.ids));
}

#[test]
fn labels_and_classes_come_through_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_npy_i64(std::fs::File::create(at("y.npy")).unwrap(), &[2], &[4, 2]).unwrap();
    std::fs::write(at("y.txt"), "owl\ncat\n").unwrap();
    for name in ["y.npy", "y.txt"] {
        check(&at(name), |path| Labels::open(path).unwrap(), |labels| format!("{labels:?}"));
    }
    std::fs::write(at("c.toml"), "[[class]]\nid = \"a\"\nnames = [\"cat\"]\n").unwrap();
    std::fs::write(at("c.csv"), "id,names\na,cat\n").unwrap();
    std::fs::write(at("c.txt"), "n03028079 church, church building\n").unwrap();
    for name in ["c.toml", "c.csv", "c.txt"] {
        check(&at(name), |path| read_class_file(path).unwrap(), |classes| format!("{classes:?}"));
    }
}

#[test]
fn what_is_read_twice_asks_for_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = read_content_hashes(&pipe).unwrap_err().to_string();
    assert!(error.contains("pipe`: input: expected a file"), "{error}");
}
