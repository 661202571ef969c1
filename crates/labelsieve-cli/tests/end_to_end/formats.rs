//! The same pipeline from every format that users have, and the same numbers from all of them.

use arrow_array::cast::AsArray;
use labelsieve_files::{RelevanceTable, read_relevance};
use labelsieve_matching::{CandidateRow, CandidateWriter};

use crate::common::run;
use crate::examples::{
    RECIPE, class_name, clean_of, noisy_of, read_parquet, task_folder, test_of, write_task,
};

const BASELINE: &str = "score --clean C.npz --pool N.npz -o R.parquet";

fn relevance(folder: &std::path::Path, name: &str) -> RelevanceTable {
    read_relevance(folder.join(name)).expect("what we wrote")
}

#[test]
fn parquet_with_names_gives_named_rows_and_the_same_accuracy() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    for (name, examples, prefix) in
        [("C", clean_of(&task), "verified/"), ("N", noisy_of(&task), "web/"), ("T", test_of(&task), "test/")]
    {
        examples.parquet(folder.join(format!("{name}.parquet")), prefix);
    }
    run(folder, "score --clean C.parquet --pool N.parquet -o R.parquet").ok();
    let table = relevance(folder, "R.parquet");
    assert_eq!(table.classes.names, (0..6).map(class_name).collect::<Vec<_>>());
    assert!(table.ids.iter().zip(&table.is_clean).all(|(id, clean)| id.starts_with("verified/") == *clean));
    run(folder, "train --clean C.parquet --pool N.parquet --relevance R.parquet -o M.safetensors").ok();
    let report = run(folder, "evaluate --model M.safetensors --test T.parquet --json").ok().json();
    assert!(report["top_1"].as_f64().expect("a number") > 0.6, "{report}");
    assert_eq!(report["classes"][1]["class"], "eagle owl");
    let predicted = run(folder, "predict --model M.safetensors --features T.parquet").ok().out;
    assert!(predicted.lines().nth(1).is_some_and(|line| line.starts_with("test/0\t1\t")), "{predicted}");
}

#[test]
fn columns_of_other_names_are_found_when_named() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    let rename = |from: &str, to: &str| {
        let batches = read_parquet(folder.join(from));
        let columns: [_; 3] =
            std::array::from_fn(|c| (["who", "what", "how"][c], batches[0].column(c).clone()));
        crate::examples::write_parquet(folder.join(to), columns);
    };
    for (name, examples) in [("C", clean_of(&task)), ("N", noisy_of(&task))] {
        examples.parquet(folder.join("usual.parquet"), name);
        rename("usual.parquet", &format!("{name}.parquet"));
    }
    let columns = "--id-column who --label-column what --embedding-column how";
    run(folder, &format!("score --clean C.parquet --pool N.parquet {columns} -o R.parquet")).ok();
    assert!(relevance(folder, "R.parquet").ids.iter().any(|id| id == "N0"));
    let missing = "score --clean C.parquet --pool N.parquet --label-column which -o S.parquet";
    run(folder, missing).fails_with(&["`C.parquet`", "which", "found", "who"]);
}

#[test]
fn arrays_with_separate_labels_give_what_the_archive_gives() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    run(folder, BASELINE).ok();
    clean_of(&task).npy(folder.join("C.npy"));
    noisy_of(&task).npy(folder.join("N.npy"));
    test_of(&task).npy(folder.join("T.npy"));
    noisy_of(&task).labels_npy(folder.join("N-labels.npy"));
    let lines = |classes: &[usize]| classes.iter().map(|class| format!("{class}\n")).collect::<String>();
    std::fs::write(folder.join("C.txt"), lines(&clean_of(&task).classes)).expect("disk space");
    std::fs::write(folder.join("T.txt"), lines(&task.test_labels)).expect("disk space");
    let pools = "--clean C.npy --clean-labels C.txt --pool N.npy --pool-labels N-labels.npy";
    run(folder, &format!("score {pools} -o S.parquet")).ok();
    let archive = relevance(folder, "R.parquet");
    let arrays = relevance(folder, "S.parquet");
    assert_eq!((archive.ids, archive.relevance), (arrays.ids, arrays.relevance));
    run(folder, &format!("train {pools} --relevance S.parquet -o M.safetensors")).ok();
    let line = "evaluate --model M.safetensors --test T.npy --test-labels T.txt --json";
    let separate = run(folder, line).ok().out;
    assert_eq!(run(folder, "evaluate --model M.safetensors --test T.npz --json").ok().out, separate);
}

fn candidate(row: usize, class: usize, matched_name: &str) -> CandidateRow {
    CandidateRow {
        id: format!("web/{row}.jpg"),
        class: class.to_string(),
        matched_name: matched_name.to_owned(),
        field: "title".to_owned(),
        leak: None,
    }
}

#[test]
fn a_clip_retrieval_folder_is_joined_to_classes_by_a_candidate_file() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    let noisy = noisy_of(&task);
    noisy.clip_retrieval(&folder.join("web"), "web/");
    let mut rows: Vec<CandidateRow> =
        (0..noisy.len()).map(|row| candidate(row, noisy.classes[row], "owl")).collect();
    let last = noisy.len() - 1;
    rows.push(candidate(last, 0, "barn owl")); // a candidate of two classes
    rows.push(candidate(0, 0, "tyto alba")); // found by two names: still one candidate of its class
    rows.push(candidate(1_000_000, 0, "owl")); // not in the folder
    let mut writer = CandidateWriter::create(folder.join("M.parquet"), &[]).expect("a folder");
    writer.write(&rows).expect("disk space");
    writer.finish().expect("disk space");

    let clean = run(folder, "score --clean C.npz --pool web --candidates M.parquet -o R.parquet").ok();
    assert!(clean.err.contains("warning: skipping 1 candidate "), "{clean:?}");
    let table = relevance(folder, "R.parquet");
    let of = |id: &str| -> Vec<usize> { (0..table.ids.len()).filter(|&i| &table.ids[i] == id).collect() };
    let classes_of = |id: &str| of(id).iter().map(|&i| table.classes.get(i)).collect::<Vec<_>>();
    assert_eq!(classes_of(&format!("web/{last}.jpg")), ["0", "5"]);
    assert_eq!(classes_of("web/0.jpg"), ["0"]);
    assert_eq!(table.is_clean.iter().filter(|clean| !**clean).count(), noisy.len() + 1);
    let [batch] = &read_parquet(folder.join("R.parquet"))[..] else { panic!("one batch expected") };
    let matched = batch.column_by_name("matched_name").expect("a column").as_string::<i32>();
    assert_eq!(matched.value(of(&format!("web/{last}.jpg"))[0]), "barn owl");
    assert_eq!(matched.value(of("web/0.jpg")[0]), "owl");

    run(folder, "train --clean C.npz --pool web --relevance R.parquet -o M.safetensors").ok();
    let report = run(folder, "evaluate --model M.safetensors --test T.npz --json").ok().json();
    assert!(report["top_1"].as_f64().expect("a number") > 0.6, "{report}");
    run(folder, "score --clean C.npz --pool web -o S.parquet").fails_with(&[
        "`web` contains no classes",
        "hint: ",
        "--candidates",
    ]);
}

#[test]
fn candidates_that_are_nowhere_among_the_features_are_refused() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    let mut writer = CandidateWriter::create(folder.join("M.parquet"), &[]).expect("a folder");
    writer.write(&[candidate(0, 0, "owl")]).expect("disk space");
    writer.finish().expect("disk space");
    let line = "score --clean C.npz --pool N.npz --candidates M.parquet -o R.parquet";
    let message = ["no candidate in `M.parquet` has features in `N.npz`: e.g. `web/0.jpg`", "hint: "];
    crate::common::refuses(folder, line, &message);
}

#[test]
fn a_class_is_scored_alike_whatever_classes_are_beside_it() {
    let (folder, task) = task_folder();
    let alone = tempfile::tempdir().expect("a folder");
    write_task(alone.path());
    clean_of(&task).only(|class| class == 3).npz(alone.path().join("C.npz"));
    let line = format!("{BASELINE} --method gcn"); // which looks at one class alone
    run(folder.path(), &line).ok();
    run(alone.path(), &line).ok();
    let scores = |table: RelevanceTable| -> Vec<f32> {
        let rows = (0..table.ids.len()).filter(|&i| table.classes.get(i) == "3");
        rows.map(|i| table.relevance[i]).collect()
    };
    let together = scores(relevance(folder.path(), "R.parquet"));
    assert!(together.len() > RECIPE.n_clean);
    assert_eq!(together, scores(relevance(alone.path(), "R.parquet")));
}
