//! The choice of a classifier, discriminants in files, probabilities and examples of no class.

use std::collections::HashMap;
use std::path::Path;

use labelsieve::Features;
use labelsieve::synthetic::{Recipe, SyntheticTask};
use labelsieve_files::SavedClassifier;

use crate::common::{refuses, run};
use crate::examples::{clean_of, noisy_of, task_folder, test_of};

const TRAIN: &str = "train --clean C.npz --pool N.npz --relevance R.parquet";

fn scored() -> (tempfile::TempDir, SyntheticTask) {
    let (folder, task) = task_folder();
    run(folder.path(), "score --clean C.npz --pool N.npz -o R.parquet").ok();
    (folder, task)
}

fn top_1(folder: &Path, model: &str) -> f64 {
    let report = run(folder, &format!("evaluate --model {model} --test T.npz --json")).ok().json();
    report["top_1"].as_f64().expect("a number")
}

#[test]
fn the_usual_classifier_is_chosen_by_left_out_examples_and_is_as_good_as_the_best() {
    let (folder, _) = scored();
    let folder = folder.path();
    let trained = run(folder, &format!("{TRAIN} -o M.safetensors --json")).ok().json();
    assert_eq!(trained["choice"]["chosen"], trained["classifier"]);
    let compared = trained["choice"]["results"].as_array().expect("a list");
    let names: Vec<&str> = compared.iter().filter_map(|result| result["classifier"].as_str()).collect();
    assert_eq!(names, ["discriminant", "prototype", "cosine"]);
    let said = run(folder, &format!("{TRAIN} -o M.safetensors")).ok().err;
    assert!(said.contains("classifier: discriminant"), "{said}");
    run(folder, &format!("{TRAIN} --classifier prototype -o P.safetensors")).ok();
    assert!(top_1(folder, "M.safetensors") >= top_1(folder, "P.safetensors") - 0.02);
    let settings = SavedClassifier::load(folder.join("M.safetensors")).expect("what we wrote").settings;
    assert_eq!(settings["chosen_by"], "auto", "{settings}");
}

#[test]
fn a_discriminant_is_the_same_at_any_number_of_threads_and_with_any_seed() {
    let (folder, _) = scored();
    let folder = folder.path();
    let line = format!("{TRAIN} --classifier discriminant");
    run(folder, &format!("{line} --threads 1 -o A.safetensors")).ok();
    run(folder, &format!("{line} --threads 3 --seed 9 -o B.safetensors")).ok();
    let bytes = |name: &str| std::fs::read(folder.join(name)).expect("what we wrote");
    assert_eq!(bytes("A.safetensors"), bytes("B.safetensors"));
    let saved = SavedClassifier::load(folder.join("A.safetensors")).expect("what we wrote");
    let found = saved.discriminant.expect("a discriminant");
    assert!(found.shrinkage > 0.0 && found.n_pooled == 6);
    run(folder, &format!("{line} --shrinkage 0.25 -o C.safetensors")).ok();
    let fixed = SavedClassifier::load(folder.join("C.safetensors")).expect("what we wrote");
    assert_eq!(fixed.discriminant.map(|found| found.shrinkage), Some(0.25));
    refuses(
        folder,
        &format!("{line} --shrinkage 0 -o D.safetensors"),
        &["--shrinkage", "above 0 and at most 1"],
    );
    let prototype = format!("{TRAIN} --classifier prototype --shrinkage 0.1 -o D.safetensors");
    refuses(folder, &prototype, &["--shrinkage", "--classifier discriminant or auto"]);
}

#[test]
fn a_discriminant_extends_base_classes_of_either_kind() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    for (name, first, last) in [("base", 0, 3), ("new", 4, 5)] {
        let part = |class: usize| (first..=last).contains(&class);
        clean_of(&task).only(part).npz(folder.join(format!("C-{name}.npz")));
        noisy_of(&task).only(part).npz(folder.join(format!("N-{name}.npz")));
        let pools = format!("--clean C-{name}.npz --pool N-{name}.npz");
        run(folder, &format!("score {pools} -o R-{name}.parquet")).ok();
    }
    let train =
        |name: &str| format!("train --clean C-{name}.npz --pool N-{name}.npz --relevance R-{name}.parquet");
    for (kind, n_pooled) in [("prototype", 2), ("discriminant", 6)] {
        run(folder, &format!("{} --classifier {kind} -o B.safetensors", train("base"))).ok();
        let line =
            format!("{} --base B.safetensors --classifier discriminant -o A.safetensors", train("new"));
        run(folder, &line).ok();
        let all = SavedClassifier::load(folder.join("A.safetensors")).expect("what we wrote");
        assert_eq!((all.classes.len(), all.n_base), (6, 4));
        assert_eq!(all.discriminant.as_ref().map(|found| found.n_pooled), Some(n_pooled), "{kind}");
        let report = run(folder, "evaluate --model A.safetensors --test T.npz --json").ok().json();
        let share = |value: &serde_json::Value| value.as_f64().expect("a number");
        assert!(share(&report["top_1"]) > 0.4, "{kind}: {report}");
        assert!(share(&report["novel"]["top_1"]) > 0.6, "{kind}: {report}");
        // The means of a discriminant are directions of base classes, too.
        let twice = format!("{} --base A.safetensors -o X.safetensors", train("new"));
        refuses(folder, &twice, &["class `4` is both a base class in `A.safetensors` and a new class"]);
        let score = "score --clean C-new.npz --pool N-new.npz --base B.safetensors -o S.parquet";
        run(folder, score).ok();
    }
}

/// The rows of a table of predictions by id.
fn predictions(text: &str) -> HashMap<String, Vec<String>> {
    let rows = text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    rows.map(|row| (row[0].clone(), row)).collect()
}

#[test]
fn probabilities_are_calibrated_and_examples_of_no_class_are_rejected() {
    // Many clean examples, so that there are enough to leave out.
    let recipe =
        Recipe { dim: 24, n_classes: 4, n_clean: 12, largest_pool: 60, n_test: 40, ..Recipe::default() };
    let task = recipe.generate(3);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    clean_of(&task).npz(folder.join("C.npz"));
    noisy_of(&task).npz(folder.join("N.npz"));
    test_of(&task).npz(folder.join("T.npz"));
    run(folder, "score --clean C.npz --pool N.npz -o R.parquet").ok();
    run(folder, &format!("{TRAIN} --classifier discriminant -o M.safetensors")).ok();
    let found = run(folder, "predict --model M.safetensors --features T.npz -o -").ok().out;
    assert!(found.starts_with("id,rank,class,score,probability,typicality\n"), "{found}");
    let rows = predictions(&found);
    let number = |row: &Vec<String>, at: usize| row[at].parse::<f64>().expect("a number");
    assert!(rows.values().all(|row| (0.25..=1.0).contains(&number(row, 4)))); // the best of four classes
    let mean: f64 = rows.values().map(|row| number(row, 4)).sum::<f64>() / rows.len() as f64;
    let reached = top_1(folder, "M.safetensors");
    assert!((mean - reached).abs() < 0.15, "{mean} {reached}");

    // Random directions belong to no class.
    let other = Recipe { n_classes: 1, n_clean: 1, largest_pool: 0, n_test: 100, ..recipe }.generate(77);
    let strangers = SyntheticTask { test: Features::new(noise(100, 24), 24).expect("finite"), ..other };
    test_of(&strangers).npz(folder.join("S.npz"));
    let rejected = |file: &str| {
        let line = format!("predict --model M.safetensors --features {file} --reject 0.1 -o p.csv --json");
        let answer = run(folder, &line).ok().json();
        let table = std::fs::read_to_string(folder.join("p.csv")).expect("what we wrote");
        let n_empty = predictions(&table).values().filter(|row| row[2].is_empty()).count();
        assert_eq!(answer["n_rejected"].as_u64(), Some(n_empty as u64), "{answer}");
        n_empty as f64 / answer["n_examples"].as_f64().expect("a number")
    };
    let of_classes = rejected("T.npz");
    let of_none = rejected("S.npz");
    assert!(of_classes < 0.25 && of_none > of_classes + 0.2, "{of_classes} {of_none}");
    refuses(
        folder,
        "predict --model M.safetensors --features T.npz --reject 0.001 -o q.csv",
        &["--reject 0.001 needs at least 999 left-out clean examples", "has 48"],
    );
    refuses(
        folder,
        "predict --model M.safetensors --features T.npz --reject 1",
        &["between 0 and 1, found 1"],
    );
    assert!(!folder.join("q.csv").exists());
}

fn noise(n: usize, dim: usize) -> Vec<f32> {
    let stream = labelsieve_numerics::random::Stream::new(5);
    (0..n * dim).map(|i| stream.normal(i as u64)).collect()
}

#[test]
fn a_class_of_one_clean_example_and_nothing_else_is_learned() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let task = Recipe { dim: 8, n_classes: 3, n_clean: 1, largest_pool: 0, n_test: 5, ..Recipe::default() }
        .generate(1);
    clean_of(&task).npz(folder.join("C.npz"));
    noisy_of(&task).npz(folder.join("N.npz"));
    test_of(&task).npz(folder.join("T.npz"));
    std::fs::write(folder.join("R.csv"), "id,class,relevance,is_clean\n").expect("a file");
    let said = run(folder, "train --clean C.npz --pool N.npz --relevance R.csv -o M.safetensors").ok().err;
    assert!(said.contains("0 left-out clean examples are too few"), "{said}");
    let found = run(folder, "predict --model M.safetensors --features T.npz -o -").ok().out;
    assert!(!found.contains("NaN") && found.lines().count() == 16, "{found}");
    refuses(
        folder,
        "predict --model M.safetensors --features T.npz --reject 0.05",
        &["needs at least 19", "has 0", "train it again"],
    );
}

#[test]
fn with_many_examples_classes_are_read_one_after_the_other() {
    let recipe =
        Recipe { dim: 8, n_classes: 12, n_clean: 3, largest_pool: 4000, n_test: 10, ..Recipe::default() };
    let task = recipe.generate(2);
    assert!(noisy_of(&task).len() > 5_000, "{}", noisy_of(&task).len());
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    clean_of(&task).npz(folder.join("C.npz"));
    noisy_of(&task).npz(folder.join("N.npz"));
    test_of(&task).npz(folder.join("T.npz"));
    run(folder, "score --clean C.npz --pool N.npz --method similarity -o R.parquet").ok();
    let trained = run(folder, &format!("{TRAIN} -o M.safetensors --json")).ok().json();
    let compared = trained["choice"]["results"].as_array().expect("a list");
    let names: Vec<&str> = compared.iter().filter_map(|result| result["classifier"].as_str()).collect();
    assert_eq!(names, ["discriminant", "prototype"], "a cosine classifier would need all examples at once");
    // The check on left-out examples is that of a training that has all of them in memory.
    let line = format!("{TRAIN} --classifier prototype -o P.safetensors --json");
    let prototype = run(folder, &line).ok().json();
    assert_eq!(trained["left_out"], prototype["left_out"]);
    assert!(top_1(folder, "M.safetensors") >= top_1(folder, "P.safetensors") - 0.02);
}
