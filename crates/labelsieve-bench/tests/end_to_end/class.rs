//! `labelsieve-bench class` and `labelsieve-bench sanity`: their output, not their speed.

use labelsieve_files::NpzWriter;

use crate::common::{refuses, run};
use crate::examples::task_folder;

#[test]
fn one_class_is_timed_and_its_relevance_saved() {
    let (folder, task) = task_folder();
    let class = &task.classes[0];
    let writer = NpzWriter::create(folder.path().join("class.npz")).expect("a folder");
    let writer = writer.f32("clean", &[3, 16], class.clean.block(0..3)).expect("disk space");
    let n = class.noisy.len();
    writer.f32("noisy", &[n, 16], class.noisy.block(0..n)).expect("disk space").finish().expect("disk space");
    let line = "class class.npz --repeats 1 --out relevance.npy";
    let report = run(folder.path(), &format!("{line} --json")).ok().json();
    assert_eq!((report["rows"].as_u64(), report["columns"].as_u64()), (Some(n as u64 + 3), Some(16)));
    let seconds = &report["seconds"];
    let part = |name: &str| seconds[name].as_f64().expect("seconds");
    assert!(part("total") >= part("search") && part("search") > 0.0, "{report}");
    let saved = labelsieve_files::Matrix::open(folder.path().join("relevance.npy"));
    assert!(saved.unwrap_err().to_string().contains(&format!("[{n}]")), "one axis of {n} numbers");
    assert!(run(folder.path(), line).ok().out.contains("training"));
    let message = ["`class.npz`: archive: expected an array `clean20`, found the arrays clean, noisy"];
    refuses(folder.path(), &format!("{line} --grid"), &message);
}

#[test]
fn the_sanity_table_has_every_method_and_kind_of_noise() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = run(folder.path(), "sanity --shots 1 --json").ok().json();
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 8, "two kinds of noise in four shares");
    for row in rows {
        let auc = row["auc"].as_object().expect("a figure per method");
        assert_eq!(auc.len(), 5, "{row}");
        assert!(auc.values().all(|auc| auc["mean"].as_f64().is_some_and(|mean| mean > 0.5)), "{row}");
    }
}
