//! Files that are joined: by id, by class, by network. What does not fit is said, and nothing is lost in silence.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use arrow_array::{ArrayRef, StringArray};
use labelsieve::synthetic::Recipe;
use labelsieve_files::{
    NETWORK_KEY, NetworkFile, Precision, RelevanceRow, RelevanceTable, RelevanceWriter, SavedClassifier,
    read_relevance,
};
use labelsieve_matching::{CandidateRow, CandidateWriter};

use crate::common::{Finished, bytes, listing, refuses, run, shell};
use crate::embed;
use crate::examples::{Examples, clean_of, noisy_of, task_folder, write_parquet};
use crate::resume::{kill, stopped_when};

/// A row of a table: id, class, two numbers.
type Row<'a> = (&'a str, &'a str, [f32; 2]);

fn write_rows(path: &Path, rows: &[Row]) {
    let mut embedding = FixedSizeListBuilder::new(Float32Builder::new(), 2);
    for (_, _, values) in rows {
        embedding.values().append_slice(values);
        embedding.append(true);
    }
    let text = |of: &dyn Fn(&Row) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
    };
    let columns = [
        ("id", text(&|row| row.0.to_owned())),
        ("class", text(&|row| row.1.to_owned())),
        ("embedding", Arc::new(embedding.finish()) as ArrayRef),
    ];
    write_parquet(path.to_path_buf(), columns);
}

fn relevance_row(id: &str, class: &str, relevance: f32, is_clean: bool) -> RelevanceRow {
    RelevanceRow {
        id: id.to_owned(),
        class: class.to_owned(),
        relevance,
        probability: None,
        is_clean,
        matched_name: None,
        best_clean: None,
        best_clean_similarity: None,
        reciprocal_neighbours: None,
    }
}

fn write_relevance(path: &Path, rows: &[RelevanceRow]) {
    let mut writer = RelevanceWriter::create(path, &[]).expect("a folder");
    writer.write(rows).expect("disk space");
    writer.finish().expect("disk space");
}

fn write_candidates(path: &Path, rows: &[(&str, &str)]) {
    let row = |&(id, class): &(&str, &str)| CandidateRow {
        id: id.to_owned(),
        class: class.to_owned(),
        matched_name: class.to_owned(),
        field: "title".to_owned(),
        leak: None,
    };
    let mut writer = CandidateWriter::create(path, &[]).expect("a folder");
    writer.write(&rows.iter().map(row).collect::<Vec<_>>()).expect("disk space");
    writer.finish().expect("disk space");
}

fn relevance(folder: &Path, name: &str) -> RelevanceTable {
    read_relevance(folder.join(name)).expect("what we wrote")
}

fn noisy_ids(table: &RelevanceTable, class: &str) -> Vec<String> {
    let rows = (0..table.ids.len()).filter(|&i| !table.is_clean[i] && table.classes.get(i) == class);
    rows.map(|i| table.ids[i].to_owned()).collect()
}

#[track_caller]
fn says(finished: &Finished, parts: &[&str]) {
    for part in parts {
        assert!(finished.err.contains(part), "no `{part}` in {finished:#?}");
    }
}

// Killed runs and the columns that they read.

/// Tables in which every column has a second version: the same rows with other ids, classes and numbers.
fn two_versions(path: &Path, examples: &Examples, prefix: &str) {
    let embedding = |sign: f32| -> ArrayRef {
        let mut lists = FixedSizeListBuilder::new(Float32Builder::new(), examples.dim as i32);
        for row in examples.features.chunks(examples.dim) {
            let values: Vec<f32> =
                row.iter().enumerate().map(|(i, v)| if i == 0 { sign * v } else { *v }).collect();
            lists.values().append_slice(&values);
            lists.append(true);
        }
        Arc::new(lists.finish())
    };
    let n = examples.len();
    let texts = |of: &dyn Fn(usize) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..n).map(of)))
    };
    write_parquet(
        path.to_path_buf(),
        [
            ("id", texts(&|row| format!("{prefix}{row}"))),
            ("id2", texts(&|row| format!("{prefix}{row}-other"))),
            ("class", texts(&|row| format!("class {:02}", examples.classes[row]))),
            ("class2", texts(&|row| format!("class {:02}", 11 - examples.classes[row]))),
            ("embedding", embedding(1.0)),
            ("embedding2", embedding(-1.0)),
        ],
    );
}

#[track_caller]
fn starts_over_with(option: &str, first: &str, second: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // Pools of equal size, so that nothing but the key tells the runs apart.
    let recipe = Recipe { dim: 64, n_classes: 12, n_clean: 1, largest_pool: 600, ..crate::examples::RECIPE };
    let task = recipe.generate(0);
    two_versions(&folder.join("C.parquet"), &clean_of(&task), "c");
    two_versions(&folder.join("N.parquet"), &noisy_of(&task), "n");
    let line =
        "score --clean C.parquet --pool N.parquet --lambda 0.01 --threads 1 -o R.parquet --embedding-column";
    let line = match option {
        "--embedding-column" => line.to_owned(),
        _ => format!("{line} embedding {option}"),
    };
    run(folder, &format!("{line} {second}").replace("R.parquet", "expected.parquet")).ok();
    let holds_work = |journal: &[u8]| journal.windows(6).any(|bytes| bytes == b"class "); // the name of a finished one
    let files = ("R.parquet.partial", "R.parquet");
    kill(stopped_when(folder, &format!("{line} {first}"), files, &holds_work));
    let again = run(folder, &format!("{line} {second}")).ok();
    assert!(!again.err.contains("resuming"), "{again:?}");
    assert_eq!(bytes(folder, "R.parquet"), bytes(folder, "expected.parquet"));
}

#[test]
fn a_killed_clean_starts_over_with_another_embedding_column() {
    starts_over_with("--embedding-column", "embedding", "embedding2");
}

#[test]
fn a_killed_clean_starts_over_with_another_label_column() {
    starts_over_with("--label-column", "class", "class2");
}

#[test]
fn a_killed_clean_starts_over_with_another_id_column() {
    starts_over_with("--id-column", "id", "id2");
}

#[cfg(unix)]
#[test]
fn a_run_that_reads_a_pipe_says_that_it_cannot_be_resumed() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    clean_of(&task).npy(folder.join("C.npy"));
    let labels: String = clean_of(&task).classes.iter().map(|class| format!("{class}\n")).collect();
    std::fs::write(folder.join("labels.txt"), labels).expect("disk space");
    let line = "mkfifo pipe && (cat labels.txt > pipe &) && \
                $LABELSIEVE score --clean C.npy --clean-labels pipe --pool N.npz --method similarity -o R.parquet";
    let done = shell(folder, line).ok();
    says(&done, &["`pipe` is not a regular file; this run cannot be resumed"]);
    assert_eq!(relevance(folder, "R.parquet").classes.names.len(), 6);
}

// Clean examples among the candidates.

/// Two classes; `c1` and `c2` are clean, and both are in the collection too.
fn overlapping(folder: &Path) {
    let clean: [Row; 3] = [("c1", "cap", [1.0, 0.0]), ("c2", "hat", [0.0, 1.0]), ("c3", "hat", [0.1, 1.0])];
    write_rows(&folder.join("C.parquet"), &clean);
    let noisy: [Row; 6] = [
        ("c1", "cap", [0.9, 0.1]), // the same photo by its id, embedded anew
        ("n1", "cap", [0.8, 0.2]),
        ("n2", "hat", [0.0, 2.0]), // c2 by its numbers
        ("n3", "hat", [0.2, 0.9]),
        ("n4", "hat", [1.0, 0.0]), // the numbers of a clean cap
        ("c3", "cap", [0.3, 0.9]), // a clean hat
    ];
    write_rows(&folder.join("N.parquet"), &noisy);
}

#[test]
fn clean_takes_clean_examples_out_of_the_pool_of_their_class_by_id_and_by_features() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    overlapping(folder);
    let done = run(folder, "score --clean C.parquet --pool N.parquet --method similarity -o R.parquet").ok();
    says(&done, &["2 candidates are also clean examples of their class", "1 by id, 1 by identical features"]);
    let table = relevance(folder, "R.parquet");
    assert_eq!(noisy_ids(&table, "cap"), ["n1", "c3"], "a clean hat may be a candidate of another class");
    assert_eq!(noisy_ids(&table, "hat"), ["n3", "n4"]);
}

#[test]
fn row_numbers_of_two_files_are_no_ids() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    let done = run(folder, "score --clean C.npz --pool N.npz --method similarity -o R.parquet").ok();
    assert!(!done.err.contains("also clean examples"), "{done:?}");
    let (clean, mut noisy) = (clean_of(&task), noisy_of(&task));
    let n = noisy.len();
    noisy.features.extend(&clean.features);
    noisy.classes.extend(&clean.classes);
    noisy.npz(folder.join("N.npz"));
    let done = run(folder, "score --clean C.npz --pool N.npz --method similarity -o S.parquet").ok();
    says(
        &done,
        &["18 candidates are also clean examples of their class", "0 by id, 18 by identical features"],
    );
    let before = relevance(folder, "R.parquet");
    let after = relevance(folder, "S.parquet");
    assert_eq!(after.is_clean.iter().filter(|clean| !**clean).count(), n);
    assert_eq!((before.ids, before.relevance), (after.ids, after.relevance));
}

#[test]
fn the_check_of_train_does_not_see_the_example_that_it_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write_rows(&folder.join("C.parquet"), &[("c1", "cap", [1.0, 0.0]), ("c2", "hat", [0.0, 1.0])]);
    let noisy: [Row; 2] = [("c1", "", [1.0, 0.1]), ("n2", "", [0.0, 1.0])];
    write_rows(&folder.join("N.parquet"), &noisy);
    let rows = [
        relevance_row("c1", "cap", 1.0, true),
        relevance_row("c2", "hat", 1.0, true),
        relevance_row("c1", "cap", 1.0, false),
        relevance_row("n2", "hat", 0.9, false),
    ];
    write_relevance(&folder.join("R.parquet"), &rows);
    let line = "train --clean C.parquet --pool N.parquet --relevance R.parquet -o M.safetensors";
    let done = run(folder, line).ok();
    says(&done, &["2 candidates are also clean examples of their class", "1 by id, 1 by identical features"]);
    // Without its only example, a class has nothing to be recognised by.
    says(&done, &["by relevance 0.0 %, all candidates alike 0.0 %"]);
    let saved = SavedClassifier::load(folder.join("M.safetensors")).expect("what we wrote");
    assert_eq!(saved.weight, [1.0, 0.0, 0.0, 1.0], "the clean examples alone");
}

#[test]
fn all_candidates_alike_counts_those_of_relevance_zero() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let clean: [Row; 3] =
        [("c1", "east", [1.0, 0.0]), ("c2", "north", [0.0, 1.0]), ("c3", "north", [0.1, 1.0])];
    write_rows(&folder.join("C.parquet"), &clean);
    let south = [0.0, -1.0];
    let noisy: [Row; 4] = [("n1", "", [1.0, 0.05]), ("n2", "", south), ("n3", "", south), ("n4", "", south)];
    write_rows(&folder.join("N.parquet"), &noisy);
    let mut rows = vec![relevance_row("n1", "east", 0.5, false)];
    rows.extend(["n2", "n3", "n4"].map(|id| relevance_row(id, "north", 0.0, false)));
    write_relevance(&folder.join("R.parquet"), &rows);
    let line = "train --clean C.parquet --pool N.parquet --relevance R.parquet -o M.safetensors";
    let done = run(folder, line).ok();
    // By relevance all three are recognised. Alike, `north` without one of its examples points south, so of the three
    // clean examples only that of `east` is.
    says(&done, &["by relevance 100.0 %, all candidates alike 33.3 %"]);
    assert!(!done.err.contains("warning"), "{done:?}");
}

// Features of two networks.

/// Features of the same pictures by two networks, and of the first network as 16-bit weights.
fn three_networks() -> tempfile::TempDir {
    let folder = embed::folder_of(8);
    let place = folder.path();
    embed::write_model(&place.join("other.safetensors"), 1);
    let network = NetworkFile::load(place.join("M.safetensors")).expect("what we wrote");
    network.save(place.join("half.safetensors"), Precision::F16).expect("disk space");
    for (model, name) in [("M", "F"), ("other", "G"), ("half", "H")] {
        for ending in ["parquet", "npz", "npy"] {
            let line =
                format!("embed --model {model}.safetensors --device cpu --images photos -o {name}.{ending}");
            run(place, &line).ok();
        }
    }
    folder
}

/// The message about two files of different networks.
const MIXED: [&str; 5] =
    ["was made with network convnet128 ", "but `", "with convnet128 ", "hint: ", "--allow-mixed"];

#[test]
fn features_of_two_networks_are_refused_by_every_command_that_joins_them() {
    let folder = three_networks();
    let folder = folder.path();
    let refused = |line: &str, files: [&str; 2]| {
        let done = run(folder, line).fails_with(&MIXED);
        says(&done, &[&format!("`{}` was made with network", files[0]), &format!("but `{}` with", files[1])]);
    };
    for (clean, noisy) in
        [("F.parquet", "G.parquet"), ("F.npz", "G.npz"), ("F.npy", "G.npy"), ("F.npy", "G.npz")]
    {
        let line = format!("score --clean {clean} --pool {noisy} --method similarity -o R.parquet");
        refused(&line, [noisy, clean]);
        run(folder, &format!("{line} --allow-mixed")).ok();
    }
    // Copies of the clean examples leave the pools; that does not matter here.
    run(folder, "score --clean F.parquet --pool H.parquet --method similarity -o R.parquet").ok();
    let network = relevance(folder, "R.parquet").metadata[NETWORK_KEY].clone();
    assert!(network.starts_with("convnet128 ") && network.len() == "convnet128 ".len() + 16, "{network}");

    let train = "--relevance R.parquet -o W.safetensors";
    refused(&format!("train --clean G.parquet --pool G.npz {train}"), ["R.parquet", "G.parquet"]);
    run(folder, &format!("train --clean F.parquet --pool H.parquet {train}")).ok();
    let saved = SavedClassifier::load(folder.join("W.safetensors")).expect("what we wrote");
    assert_eq!(saved.network.as_ref(), Some(&network));
    refused("evaluate --model W.safetensors --test G.parquet", ["G.parquet", "W.safetensors"]);
    run(folder, "evaluate --model W.safetensors --test F.npy").ok();
    refused("predict --model W.safetensors --features G.npz", ["G.npz", "W.safetensors"]);
    run(folder, "predict --model W.safetensors --features F.npz").ok();
    run(folder, "predict --model W.safetensors --features G.npz --allow-mixed").ok();

    std::fs::write(folder.join("classes.csv"), "id,names\ncat,cat\n").expect("disk space");
    std::fs::write(folder.join("texts.csv"), "id,title\ncat/000.png,a cat\n").expect("disk space");
    let guard =
        "match --classes classes.csv --text texts.csv --features F.parquet -o M.parquet --guard-features";
    refused(&format!("{guard} G.parquet"), ["G.parquet", "F.parquet"]);
    run(folder, &format!("{guard} H.parquet")).ok();
}

#[test]
fn another_pca_or_image_size_makes_another_network_and_files_from_elsewhere_go_with_all() {
    let folder = three_networks();
    let folder = folder.path();
    let embed = "embed --model M.safetensors --device cpu --images photos";
    run(folder, &format!("{embed} --fit-pca 4 --pca-output P.safetensors -o P.parquet")).ok();
    run(folder, &format!("{embed} --pca P.safetensors -o Q.npz")).ok();
    run(folder, "score --clean P.parquet --pool Q.npz --method similarity -o R.parquet").ok();
    run(folder, &format!("{embed} --image-size 20 -o S.npz")).ok();
    let line = "score --clean F.parquet --pool S.npz --method similarity -o R.parquet";
    run(folder, line).fails_with(&MIXED);
    let rows: Vec<f32> = (0..8 * 128).map(|i| i as f32).collect();
    Examples::new(128, &rows, &[0; 8]).npz(folder.join("elsewhere.npz"));
    let line = "score --clean elsewhere.npz --pool elsewhere.npz --method beta -o R.parquet";
    run(folder, line).ok();
    assert_eq!(relevance(folder, "R.parquet").metadata.get(NETWORK_KEY), None);
}

// Ids and classes beside `.npz` and `.npy`.

#[test]
fn the_ids_that_embed_writes_beside_arrays_are_read_wherever_the_arrays_are() {
    let folder = embed::folder_of(6);
    let folder = folder.path();
    embed::write(folder, "photos/owl/odd, \"name\".png", &embed::png(9));
    for ending in ["npz", "npy"] {
        let line = format!("embed --model M.safetensors --device cpu --images photos -o F.{ending}");
        run(folder, &line).ok();
        let names = format!("F.{ending}.ids.csv");
        assert!(listing(folder).contains(&names));
        let line = format!("score --clean F.{ending} --pool F.{ending} --method similarity -o R.parquet");
        let done = run(folder, &format!("-v {line}")).ok();
        says(&done, &[&format!("ids and classes of `F.{ending}` come from `{names}`")]);
        let table = relevance(folder, "R.parquet");
        assert_eq!(table.classes.names, ["cat", "owl"]);
        assert!(table.ids.iter().any(|id| id == "owl/odd, \"name\".png"), "{:?}", table.ids);
        let train =
            format!("train --clean F.{ending} --pool F.{ending} --relevance R.parquet -o W.safetensors");
        run(folder, &train).ok();
        run(folder, &format!("evaluate --model W.safetensors --test F.{ending}")).ok();
        let predicted = run(folder, &format!("predict --model W.safetensors --features F.{ending}")).ok().out;
        assert!(predicted.contains("\ncat/000.png\t1\t"), "{predicted}");

        std::fs::write(folder.join("own.txt"), "a\nb\nc\na\nb\nc\na\n").expect("disk space");
        run(folder, &format!("{line} --clean-labels own.txt --pool-labels own.txt")).ok();
        assert_eq!(relevance(folder, "R.parquet").classes.names, ["a", "b", "c"], "labels given apart win");

        std::fs::write(folder.join(&names), "id,class\nx,cat\n").expect("disk space");
        refuses(
            folder,
            &line,
            &[&format!("`{names}`: rows: expected 7, one per row of `F.{ending}`, found 1")],
        );
    }
}

// Classes that are spelled differently.

#[test]
fn classes_that_lose_candidates_are_named_with_counts_and_the_name_that_was_meant() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let clean: [Row; 3] =
        [("c1", "caps", [1.0, 0.0]), ("c2", "hats", [0.0, 1.0]), ("c3", "t-shirt", [0.7, 0.7])];
    write_rows(&folder.join("C.parquet"), &clean);
    let noisy: [Row; 6] = [
        ("n1", "caps", [0.9, 0.1]),
        ("n2", "Caps", [0.8, 0.1]),
        ("n3", "Caps", [0.8, 0.3]),
        ("n4", "hat", [0.1, 0.9]),
        ("n5", "spoon", [0.2, 0.9]),
        ("n6", "spoon", [0.3, 0.9]),
    ];
    write_rows(&folder.join("N.parquet"), &noisy);
    let line = "score --clean C.parquet --pool N.parquet --method similarity -o R.parquet";
    let causes = "skipping 5 candidates whose class has no clean example in `C.parquet`: \
                  `Caps` (2; did you mean `caps`?), `spoon` (2), `hat` (1; did you mean `hats`?)";
    let done = run(folder, &format!("-q {line}")).ok();
    assert_eq!(done.err.trim_end(), format!("warning: {causes}"), "one warning, in quiet runs too");
    says(&run(folder, &format!("{line} --dry-run")).ok(), &[causes]);
    let done = run(folder, line).ok();
    says(&done, &["2 classes have no candidates, only clean examples: `hats`, `t-shirt`"]);

    // Through a candidate file there is a second cause, which is kept apart.
    let candidates = [("n1", "caps"), ("n2", "T shirt"), ("gone/1", "hats"), ("gone/2", "hats")];
    write_candidates(&folder.join("M.parquet"), &candidates);
    let done = run(folder, &format!("-q {line} --candidates M.parquet")).ok();
    let lines: Vec<&str> = done.err.lines().collect();
    let expected = [
        "warning: skipping 1 candidate whose class has no clean example in `C.parquet`: \
         `T shirt` (1; did you mean `t-shirt`?)",
        "warning: skipping 2 candidates without features in `N.parquet` (e.g. `gone/1`): of `hats` (2)",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_run_without_any_candidate_left_fails_and_names_the_file_that_says_who_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write_rows(&folder.join("C.parquet"), &[("c1", "caps", [1.0, 0.0]), ("c2", "hats", [0.0, 1.0])]);
    write_rows(&folder.join("N.parquet"), &[("n1", "caps", [0.9, 0.1]), ("n2", "hats", [0.1, 0.9])]);
    let line =
        "score --clean C.parquet --pool N.parquet --method similarity --candidates M.parquet -o R.parquet";
    let check = |candidates: &[(&str, &str)], parts: &[&str]| {
        write_candidates(&folder.join("M.parquet"), candidates);
        refuses(folder, line, parts);
    };
    check(
        &[("n1", "Caps"), ("n2", "boots")],
        &[
            "`C.parquet` and `M.parquet` have no class in common: one has `caps`, the other `Caps`",
            "hint: ",
            "is `Caps` meant to be `caps`?",
        ],
    );
    check(
        &[("n1", "boots")],
        &["`C.parquet` and `M.parquet` have no class in common: one has `caps`, the other `boots`", "hint: "],
    );
    check(&[("x", "caps")], &["no candidate in `M.parquet` has features in `N.parquet`: e.g. `x`"]);
    check(
        &[("x", "caps"), ("n1", "boots")],
        &["no candidate in `M.parquet` is left: 1 of classes without", "1 without features"],
    );
    check(&[], &["`M.parquet` contains no candidates", "hint: "]);
}

#[test]
fn train_suggests_the_class_that_a_relevance_file_may_mean() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write_rows(&folder.join("C.parquet"), &[("c1", "caps", [1.0, 0.0]), ("c2", "hats", [0.0, 1.0])]);
    write_rows(&folder.join("N.parquet"), &[("n1", "", [0.9, 0.1])]);
    write_relevance(&folder.join("R.parquet"), &[relevance_row("n1", "Caps", 0.5, false)]);
    let line = "train --clean C.parquet --pool N.parquet --relevance R.parquet -o M.safetensors";
    refuses(folder, line, &["candidates of class `Caps`", "hint: did you mean `caps`?"]);
}

// Ids.

#[test]
fn ids_that_are_empty_or_there_twice_are_refused_before_any_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let good: [Row; 2] = [("a", "cap", [1.0, 0.0]), ("b", "hat", [0.0, 1.0])];
    write_rows(&folder.join("C.parquet"), &good);
    write_rows(&folder.join("N.parquet"), &[("n1", "cap", [0.9, 0.1])]);
    let check = |clean: &[Row], noisy: &[Row], parts: &[&str]| {
        write_rows(&folder.join("C2.parquet"), clean);
        write_rows(&folder.join("N2.parquet"), noisy);
        for command in ["score --method similarity -o R.parquet", "score --method similarity --dry-run"] {
            refuses(folder, &format!("{command} --clean C2.parquet --pool N2.parquet"), parts);
        }
    };
    let twice: [Row; 3] = [("n1", "cap", [0.9, 0.1]), ("n2", "cap", [0.8, 0.1]), ("n1", "hat", [0.1, 0.9])];
    check(
        &good,
        &twice,
        &["`N2.parquet`: row 2: expected a unique id, found `n1`, also the id of row 0", "hint: "],
    );
    let empty: [Row; 2] = [("n1", "cap", [0.9, 0.1]), ("", "cap", [0.8, 0.1])];
    check(&good, &empty, &["`N2.parquet`: row 1: expected a unique id, found an empty one", "hint: "]);
    let noisy: [Row; 1] = [("n1", "cap", [0.9, 0.1])];
    let twice: [Row; 2] = [("a", "cap", [0.9, 0.1]), ("a", "cap", [0.8, 0.1])];
    check(&twice, &noisy, &["`C2.parquet`: row 1: expected a unique id, found `a`, also the id of row 0"]);
    // A photo may be a clean example of two classes.
    let two: [Row; 2] = [("a", "cap", [0.9, 0.1]), ("a", "hat", [0.8, 0.1])];
    write_rows(&folder.join("C2.parquet"), &two);
    run(folder, "score --method similarity --clean C2.parquet --pool N.parquet -o R.parquet").ok();
    run(folder, "train --clean C2.parquet --pool N.parquet --relevance R.parquet -o M.safetensors").ok();
}

#[test]
fn embed_refuses_two_images_of_one_id() {
    let folder = embed::folder_of(2);
    let folder = folder.path();
    embed::write(folder, "more/cat/000.png", &embed::png(7));
    let line = "embed --model M.safetensors --device cpu --images photos more -o F.parquet";
    refuses(folder, line, &["two images have the same id `cat/000.png`", "hint: ", "in one folder"]);
}

// Memory.

/// The estimate of `--dry-run` in bytes.
fn estimated(folder: &Path, line: &str) -> f64 {
    let done = run(folder, &format!("{line} --dry-run")).ok();
    let text = done.out.lines().find_map(|line| line.strip_prefix("memory        about ")).expect("a line");
    let (number, unit) = text.split_once(' ').expect("a number and a unit");
    let scale = match unit {
        "B" | "bytes" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        unit => panic!("{unit}"),
    };
    scale * number.parse::<f64>().expect("a number")
}

#[test]
fn the_estimate_counts_tables_in_memory_and_examples_of_other_classes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let dim = 16;
    let n = 300;
    let rows = |n: usize, seed: usize| -> Vec<f32> {
        (0..n * dim).map(|i| ((i * 7919 + seed) % 1013) as f32 - 506.0).collect()
    };
    let classes: Vec<usize> = (0..n).collect();
    let clean = Examples::new(dim, &rows(n, 1), &classes);
    clean.npz(folder.join("C.npz"));
    Examples::new(dim, &rows(n, 2), &classes).npz(folder.join("N.npz"));
    let line = "score --clean C.npz --pool N.npz --method";
    let [similarity, linear] =
        ["similarity", "linear"].map(|method| estimated(folder, &format!("{line} {method}")));
    let others = (n * (n - 1) * dim * 4) as f64; // every class sees one example of each other class
    assert!(linear > others && linear < 1.5 * others, "{linear} of {others}");
    assert!(similarity < 0.1 * others, "{similarity}");

    // One class of six takes part, but a Parquet file is in memory as a whole.
    let large = Examples::new(dim, &rows(30_000, 3), &(0..30_000).map(|row| row % 6).collect::<Vec<_>>());
    large.npz(folder.join("L.npz"));
    large.parquet(folder.join("L.parquet"), "n");
    clean.only(|class| class == 0).npz(folder.join("C.npz"));
    clean.only(|class| class == 0).parquet(folder.join("C.parquet"), "c");
    let on_disk = estimated(folder, "score --clean C.npz --pool L.npz --method similarity");
    let in_memory = estimated(folder, "score --clean C.parquet --pool L.parquet --method similarity");
    let matrix = (30_000 * dim * 4) as f64;
    assert!(on_disk < matrix && in_memory > matrix, "{on_disk} {in_memory} {matrix}");
}
