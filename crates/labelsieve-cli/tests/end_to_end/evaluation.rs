//! `evaluate` in all its ways, and classifiers that extend another.

use labelsieve_files::SavedClassifier;

use crate::common::{refuses, run};
use crate::examples::{clean_of, noisy_of, task_folder, test_of, write_truth};

#[test]
fn new_classes_join_base_classes_without_touching_them() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    for (name, first, last) in [("base", 0, 3), ("new", 4, 5)] {
        let part = |class: usize| (first..=last).contains(&class);
        clean_of(&task).only(part).npz(folder.join(format!("C-{name}.npz")));
        noisy_of(&task).only(part).npz(folder.join(format!("N-{name}.npz")));
        let pools = format!("--clean C-{name}.npz --pool N-{name}.npz");
        run(folder, &format!("score {pools} -o R-{name}.parquet")).ok();
    }
    let pools =
        |name: &str| format!("train --clean C-{name}.npz --pool N-{name}.npz --relevance R-{name}.parquet");
    run(
        folder,
        &format!("{} --classifier prototype --scale 7 --backbone resnet10 -o B.safetensors", pools("base")),
    )
    .ok();
    for classifier in ["prototype", "cosine --epochs 3"] {
        let line =
            format!("{} --base B.safetensors --classifier {classifier} -o A.safetensors", pools("new"));
        run(folder, &line).ok();
        let load = |name| SavedClassifier::load(folder.join(name)).expect("what we wrote");
        let base = load("B.safetensors");
        let all = load("A.safetensors");
        assert_eq!(all.classes, ["0", "1", "2", "3", "4", "5"]);
        assert_eq!((all.n_base, all.scale, all.backbone.as_deref()), (4, 7.0, Some("resnet10")));
        let same = base.weight.iter().zip(&all.weight).all(|(b, a)| (b - a).abs() < 1e-6);
        assert!(same, "W_A = [W_B, W]");
    }
    let report = run(folder, "evaluate --model A.safetensors --test T.npz --json").ok().json();
    let share = |value: &serde_json::Value| value.as_f64().expect("a number");
    assert!(share(&report["top_1"]) > 0.4, "{report}");
    assert!(share(&report["novel"]["top_1"]) > 0.6, "two classes by themselves: {report}");
    let table = run(folder, "evaluate --model A.safetensors --test T.npz").ok().out;
    assert!(table.contains("new classes alone"), "{table}");
    let twice = format!("{} --base B.safetensors -o X.safetensors", pools("base"));
    refuses(folder, &twice, &["class `0` is both a base class in `B.safetensors` and a new class", "hint: "]);
}

#[test]
fn known_truth_tells_how_well_relevance_separates() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    write_truth(&task, folder.join("truth.parquet"));
    run(folder, "score --clean C.npz --pool N.npz -o R.parquet").ok();
    let line = "evaluate --relevance R.parquet --truth truth.parquet";
    let report = run(folder, &format!("{line} --json")).ok().json();
    let all = &report["relevance"]["all"];
    let number = |name: &str| all[name].as_f64().unwrap_or_else(|| panic!("no {name} in {report}"));
    let noise = task.classes.iter().flat_map(|class| &class.truth).filter(|relevant| !**relevant).count();
    assert_eq!(number("n_irrelevant") as usize, noise);
    assert!(number("auc") > 0.8 && number("mean_relevant") > number("mean_irrelevant"), "{report}");
    assert!(number("average_precision") > 1.0 - number("noise_ratio"), "{report}");
    assert_eq!(report["relevance"]["classes"].as_object().map(|classes| classes.len()), Some(6));
    assert_eq!(report["relevance"]["n_unknown"], 0);
    assert!(report.get("top_1").is_none(), "nothing that was not asked for: {report}");
    assert!(run(folder, line).ok().out.contains("AUC"));
    refuses(
        folder,
        "evaluate --relevance R.parquet",
        &["--relevance needs ground truth", "hint: ", "--truth"],
    );
}

#[test]
fn a_baseline_shows_what_was_gained_by_number_of_candidates() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    for method in ["beta", "gcn"] {
        let pools = "--clean C.npz --pool N.npz";
        run(folder, &format!("score {pools} --method {method} -o {method}.parquet")).ok();
        run(folder, &format!("train {pools} --relevance {method}.parquet -o {method}.safetensors")).ok();
    }
    let line = "evaluate --model gcn.safetensors --test T.npz --baseline beta.safetensors \
                --relevance gcn.parquet";
    let report = run(folder, &format!("{line} --json")).ok().json();
    let alone = run(folder, "evaluate --model beta.safetensors --test T.npz --json").ok().json();
    assert_eq!(report["baseline"]["top_1"], alone["top_1"]);
    let groups = report["gain_by_pool_size"].as_array().expect("groups");
    let sizes: Vec<(u64, u64)> = groups
        .iter()
        .map(|group| {
            (group["from"].as_u64().expect("a number"), group["n_classes"].as_u64().expect("a number"))
        })
        .collect();
    assert_eq!(sizes, [(10, 5), (100, 1)], "pools of 120, 76, 48, 30, 19 and 12");
    let gain: f64 = groups
        .iter()
        .map(|group| {
            group["mean_gain"].as_f64().expect("a number") * group["n_classes"].as_f64().expect("a number")
        })
        .sum::<f64>()
        / 6.0;
    let difference = report["mean_class_top_1"].as_f64().expect("a number")
        - alone["mean_class_top_1"].as_f64().expect("a number");
    assert!((gain - difference).abs() < 1e-9, "{gain} {difference}");
    assert!(run(folder, line).ok().out.contains("top-1 gain"));
}

#[test]
fn a_test_class_that_the_classifier_does_not_know_is_named() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    clean_of(&task).only(|class| class < 5).npz(folder.join("C.npz"));
    run(folder, "score --clean C.npz --pool N.npz --method beta -o R.parquet").ok();
    run(folder, "train --clean C.npz --pool N.npz --relevance R.parquet -o M.safetensors").ok();
    let line = "evaluate --model M.safetensors --test T.npz --json";
    let message = ["`T.npz`, row 60: class `5` is not among the 5 classes of the classifier", "hint: "];
    refuses(folder, line, &message);
    test_of(&task).only(|class| class < 5).npz(folder.join("T.npz"));
    run(folder, line).ok();
}
