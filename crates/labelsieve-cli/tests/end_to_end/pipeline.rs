//! From the paper's files to an accuracy, with the spellings that scripts rely on.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt32Type};
use arrow_array::{Array, RecordBatch};
use labelsieve_files::{SavedClassifier, read_relevance};

use crate::common::{bytes, listing, run};
use crate::examples::{clean_of, noisy_of, read_parquet, task_folder};

const METHODS: [&str; 8] =
    ["gcn", "mlp", "label-propagation", "similarity", "linear", "beta", "mixture", "auto"];
const SCORE: &str =
    "score --clean C.npz --pool N.npz --method gcn --lambda 0.01 --seed 0 --threads 2 -o R.parquet";
const TRAIN: &str =
    "train --clean C.npz --pool N.npz --relevance R.parquet --classifier prototype -o M.safetensors";
const EVALUATE: &str = "evaluate --model M.safetensors --test T.npz --json";

fn accuracy(folder: &Path) -> (f64, f64) {
    let report = run(folder, EVALUATE).ok().json();
    (report["top_1"].as_f64().expect("a number"), report["top_5"].as_f64().expect("a number"))
}

#[test]
fn the_three_commands_of_the_readme_lead_from_features_to_accuracy() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    let clean = run(folder, SCORE).ok();
    assert_eq!(clean.out, "", "messages do not belong on stdout");
    assert!(clean.err.contains("candidates of 6 classes, mean relevance 0."), "{clean:?}");
    let train = run(folder, TRAIN).ok();
    assert!(
        train.err.contains("classifier of 6 classes with 16 features written to `M.safetensors`"),
        "{train:?}"
    );
    let (top_1, top_5) = accuracy(folder);
    assert!(top_1 > 0.6 && top_5 >= top_1 && top_5 <= 1.0, "{top_1} {top_5}");
    assert_eq!(listing(folder), ["C.npz", "M.safetensors", "N.npz", "R.parquet", "T.npz"]);
}

#[test]
fn every_method_and_classifier_gives_an_accuracy_above_chance() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    for method in METHODS {
        run(folder, &format!("score --clean C.npz --pool N.npz --method {method} -o R.parquet")).ok();
        run(folder, TRAIN).ok();
        assert!(accuracy(folder).0 > 0.4, "{method}");
    }
    run(folder, SCORE).ok();
    run(folder, &TRAIN.replace("prototype", "cosine --epochs 5 --batch-size 64 --seed 3")).ok();
    assert!(accuracy(folder).0 > 0.4, "cosine");
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a dyn Array {
    batch.column_by_name(name).unwrap_or_else(|| panic!("no column {name}")).as_ref()
}

#[test]
fn the_relevance_file_has_one_row_per_example_and_class_with_its_reasons() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    run(folder, SCORE).ok();
    let table = read_relevance(folder.join("R.parquet")).expect("what we wrote");
    let n_clean = clean_of(&task).len();
    let n_noisy = noisy_of(&task).len();
    assert_eq!(table.ids.len(), n_clean + n_noisy);
    assert_eq!(table.is_clean.iter().filter(|clean| **clean).count(), n_clean);
    let of_clean = table.relevance.iter().zip(&table.is_clean).filter(|(_, clean)| **clean);
    assert!(of_clean.into_iter().all(|(&relevance, _)| relevance == 1.0));
    assert!(table.metadata["labelsieve"].contains(r#""method":"gcn""#), "{:?}", table.metadata);

    let [batch] = &read_parquet(folder.join("R.parquet"))[..] else { panic!("one batch expected") };
    let names: Vec<&String> = batch.schema_ref().fields().iter().map(|field| field.name()).collect();
    assert_eq!(
        names,
        [
            "id",
            "class",
            "relevance",
            "is_clean",
            "matched_name",
            "best_clean",
            "best_clean_similarity",
            "reciprocal_neighbours"
        ]
    );
    let best = column(batch, "best_clean").as_string::<i32>();
    let similarity = column(batch, "best_clean_similarity").as_primitive::<Float32Type>();
    let neighbours = column(batch, "reciprocal_neighbours").as_primitive::<UInt32Type>();
    for row in 0..table.ids.len() {
        if table.is_clean[row] {
            assert!(best.is_null(row) && similarity.is_null(row) && neighbours.is_null(row), "row {row}");
            continue;
        }
        // The reasons must be true: the named clean example is of the same class and the closest of its three.
        let class: usize = table.classes.get(row).parse().expect("a class number");
        let (noisy_row, clean_row): (usize, usize) =
            (table.ids[row].parse().expect("a row number"), best.value(row).parse().expect("a row number"));
        let first: usize = task.classes[..class].iter().map(|class| class.noisy.len()).sum();
        let candidate = task.classes[class].noisy.row(noisy_row - first);
        let cosine = |clean: &[f32]| clean.iter().zip(candidate).map(|(a, b)| a * b).sum::<f32>();
        let closest = task.classes[class].clean.rows().map(cosine).fold(f32::MIN, f32::max);
        assert!((similarity.value(row) - closest).abs() < 1e-5, "row {row}");
        assert!((cosine(task.classes[class].clean.row(clean_row - 3 * class)) - closest).abs() < 1e-5);
        assert!(neighbours.value(row) <= 50, "row {row}");
    }
    assert!(neighbours.iter().flatten().any(|count| count > 0));
}

#[test]
fn methods_without_a_graph_leave_the_neighbour_column_empty() {
    let (folder, _) = task_folder();
    run(folder.path(), &SCORE.replace("gcn --lambda 0.01", "similarity")).ok();
    let [batch] = &read_parquet(folder.path().join("R.parquet"))[..] else { panic!("one batch expected") };
    let neighbours = column(batch, "reciprocal_neighbours");
    assert_eq!(neighbours.null_count(), neighbours.len());
    assert!(column(batch, "best_clean").null_count() < neighbours.len());
}

#[test]
fn bytes_do_not_depend_on_threads_or_on_the_run() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    for method in METHODS {
        let mut results = Vec::new();
        for threads in [1, 4, 4] {
            let pools = "--clean C.npz --pool N.npz";
            run(folder, &format!("score {pools} --method {method} --threads {threads} -o R.parquet")).ok();
            let train = format!("train {pools} --relevance R.parquet --threads {threads} -o M.safetensors");
            let mut models = Vec::new();
            for classifier in ["prototype", "cosine --epochs 3 --batch-size 50"] {
                run(folder, &format!("{train} --classifier {classifier}")).ok();
                models.push(bytes(folder, "M.safetensors"));
            }
            let predict =
                format!("predict --model M.safetensors --features T.npz --top 3 --threads {threads}");
            results.push((bytes(folder, "R.parquet"), models, run(folder, &predict).ok().out));
        }
        assert!(results[0] == results[1], "{method}: 1 and 4 threads differ");
        assert!(results[1] == results[2], "{method}: two runs differ");
    }
}

#[test]
fn another_seed_gives_another_result_where_chance_plays_a_part() {
    let (folder, _) = task_folder();
    run(folder.path(), SCORE).ok();
    let first = bytes(folder.path(), "R.parquet");
    run(folder.path(), &SCORE.replace("--seed 0", "--seed 1")).ok();
    assert_ne!(first, bytes(folder.path(), "R.parquet"));
}

#[test]
fn a_saved_classifier_predicts_as_it_was_measured() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    run(folder, SCORE).ok();
    run(folder, &TRAIN.replace("-o", "--backbone resnet10 -o")).ok();
    let (top_1, top_5) = accuracy(folder);
    let printed = run(folder, "predict --model M.safetensors --features T.npz --top 5").ok().out;
    let mut lines = printed.lines();
    assert_eq!(lines.next(), Some("id\trank\tclass\tscore\tprobability\ttypicality"));
    let (mut first, mut among_five, n) = (0, 0, task.test_labels.len());
    for line in lines {
        let cells: Vec<&str> = line.split('\t').collect();
        let [id, rank, class, score, probability, typicality] = cells[..] else { panic!("{line}") };
        let truth = task.test_labels[id.parse::<usize>().expect("a row number")];
        assert!(score.parse::<f32>().expect("a number").abs() <= 10.001, "{line}");
        let is_share = |cell: &str| (0.0..=1.0).contains(&cell.parse::<f64>().expect("a number"));
        assert!(is_share(probability) && is_share(typicality), "{line}");
        among_five += usize::from(class == truth.to_string());
        first += usize::from(class == truth.to_string() && rank == "1");
    }
    assert_eq!((first as f64 / n as f64, among_five as f64 / n as f64), (top_1, top_5));

    run(folder, "predict --model M.safetensors --features T.npz --top 5 -o P.parquet").ok();
    let rows: usize = read_parquet(folder.join("P.parquet")).iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 5 * n);

    let saved = SavedClassifier::load(folder.join("M.safetensors")).expect("what we wrote");
    assert_eq!(saved.classes, ["0", "1", "2", "3", "4", "5"]);
    assert_eq!((saved.dim, saved.n_base, saved.backbone.as_deref()), (16, 0, Some("resnet10")));
}

#[test]
fn a_class_without_candidates_keeps_its_clean_examples() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    noisy_of(&task).only(|class| class != 2).npz(folder.join("N.npz"));
    let clean = run(folder, SCORE).ok();
    assert!(clean.err.contains("1 class has no candidates"), "{clean:?}");
    run(folder, TRAIN).ok();
    let saved = SavedClassifier::load(folder.join("M.safetensors")).expect("what we wrote");
    let mut mean = [0f32; 16];
    task.classes[2].clean.rows().for_each(|row| mean.iter_mut().zip(row).for_each(|(m, v)| *m += v));
    let length = mean.iter().map(|m| m * m).sum::<f32>().sqrt();
    let row = &saved.weight[2 * 16..3 * 16];
    assert!(row.iter().zip(mean).all(|(w, m)| (w - m / length).abs() < 1e-5), "eq. (4): {row:?}");
}

#[test]
fn candidates_of_classes_without_clean_examples_are_left_out_with_a_warning() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    clean_of(&task).only(|class| class < 4).npz(folder.join("C.npz"));
    let n_orphans: usize = task.classes[4..].iter().map(|class| class.noisy.len()).sum();
    let clean = run(folder, &format!("-q {SCORE}")).ok();
    assert!(clean.err.starts_with(&format!("warning: skipping {n_orphans} candidates")), "{clean:?}");
    let table = read_relevance(folder.join("R.parquet")).expect("what we wrote");
    assert_eq!(table.classes.names, ["0", "1", "2", "3"]);
}

#[test]
fn base_classes_take_candidates_away_and_those_at_hand_are_left_out() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    let mut base = noisy_of(&task);
    base.classes.iter_mut().for_each(|class| *class += 4); // 4 and 5 are classes at hand, 6 to 9 are not
    base.npz(folder.join("B.npz"));
    let clean = |options: &str| {
        let done = run(folder, &format!("score --clean C.npz --pool N.npz {options} -o R.parquet")).ok();
        (done.err, read_relevance(folder.join("R.parquet")).expect("what we wrote"))
    };
    for method in ["mixture", "auto"] {
        let (_, without) = clean(&format!("--method {method}"));
        let (notes, with) = clean(&format!("--method {method} --base B.npz"));
        assert!(notes.contains("leaving out 2 base classes with clean examples here: `4`, `5`"), "{notes}");
        assert!(
            with.metadata["labelsieve"].contains(r#""base":{"file":"B.npz","n_classes":4}"#),
            "{:?}",
            with.metadata
        );
        let sum = |relevance: &[f32]| relevance.iter().sum::<f32>();
        assert!(sum(&with.relevance) < sum(&without.relevance) - 5.0, "{method}");
    }
    // Another file of the same name is another run.
    let (_, before) = clean("--method mixture --base B.npz");
    noisy_of(&task).only(|class| class < 2).npz(folder.join("B.npz"));
    assert_ne!(clean("--method mixture --base B.npz").1.relevance, before.relevance);
    run(folder, TRAIN).ok();
    let (notes, _) = clean("--method mixture --base M.safetensors");
    assert!(notes.contains("leaving out 6 base classes"), "{notes}");
    for (base, message) in [("C.npz.missing", "C.npz.missing"), ("R.parquet", "R.parquet")] {
        let refused = run(
            folder,
            &format!("score --clean C.npz --pool N.npz --method auto --base {base} -o S.parquet"),
        );
        assert!(refused.err.contains(message), "{refused:?}");
    }
}
