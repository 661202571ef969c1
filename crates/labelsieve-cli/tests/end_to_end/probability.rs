//! Probabilities from scoring to the report, what is advised from them, and classes whose relevance says little.

use std::path::Path;

use labelsieve_files::{RelevanceTable, read_relevance};
use serde_json::{Value, json};

use crate::common::{bytes, refuses, run};
use crate::embed::write;
use crate::examples::{Examples, task_folder, write_truth};
use crate::json::check_answer;
use crate::resume::{JOURNAL, kill, slow_folder, stopped_midway};

const AUTO: &str = "score --clean C.npz --pool N.npz --method auto --device cpu";

/// The probabilities of a class's candidates.
fn of_class(table: &RelevanceTable, class: &str) -> Vec<f32> {
    let probability = table.probability.as_ref().expect("a column");
    let rows = (0..table.ids.len()).filter(|&row| !table.is_clean[row] && table.classes.get(row) == class);
    rows.map(|row| probability[row].expect("a probability")).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn probabilities_are_written_and_say_what_to_keep() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    let done = run(folder, &format!("{AUTO} -o R.parquet --json")).ok();
    check_answer(&done, "score");
    let answer = done.json();
    let table = read_relevance(folder.join("R.parquet")).expect("relevance");
    let probability = table.probability.as_ref().expect("a column");
    assert!((0..probability.len()).all(|row| !table.is_clean[row] || probability[row] == Some(1.0)));
    // The rule, told once more: the first of 0.5, 0.55, … that keeps at least 90 % right ones, else 0.5.
    let advice = answer["advice"].as_array().expect("advice");
    assert_eq!(advice.len(), 6);
    for class in advice {
        let all = of_class(&table, class["class"].as_str().expect("a name"));
        let mean = |t: f32| {
            let kept: Vec<f64> = all.iter().filter(|p| **p >= t).map(|&p| f64::from(p)).collect();
            (kept.len(), kept.iter().sum::<f64>() / kept.len() as f64)
        };
        let t = (10..20).map(|i| i as f32 * 0.05).find(|&t| mean(t).1 >= 0.9).unwrap_or(0.5);
        assert!((number(&class["threshold"]) - f64::from(t)).abs() < 1e-6, "{class}");
        assert_eq!(
            (&class["n_candidates"], &class["n_kept"]),
            (&json!(all.len()), &json!(mean(t).0)),
            "{class}"
        );
        assert!(mean(t).0 == 0 || (number(&class["share_right"]) - mean(t).1).abs() < 1e-6, "{class}");
    }
    let n_chosen = |choices: &Value| -> f64 {
        choices.as_array().expect("choices").iter().map(|choice| number(&choice["n_classes"])).sum()
    };
    assert_eq!(n_chosen(&answer["choices"]), 6.0);
    let settings: Value = serde_json::from_str(&table.metadata["labelsieve"]).expect("JSON");
    assert_eq!(settings["choices"], answer["choices"]);

    let said = run(folder, &format!("{AUTO} -o R.csv")).ok().err;
    assert!(said.contains("class  candidates  keep ≥  kept  right %\n"), "{said}");
    let kept: usize = advice.iter().map(|class| number(&class["n_kept"]) as usize).sum();
    let line = format!("keep those with at least the probability given for their class: {kept} of ");
    assert!(said.contains(&line), "{said}");
    let csv = String::from_utf8(bytes(folder, "R.csv")).expect("text");
    assert!(csv.starts_with("id,class,relevance,probability,is_clean,matched_name,"), "{csv:.80}");
    assert_eq!(read_relevance(folder.join("R.csv")).expect("relevance").probability, table.probability);
    assert_eq!(run(folder, &format!("{AUTO} -o -")).ok().out, csv);

    // A method that knows no probability has no column for it, and no advice.
    let plain =
        run(folder, "score --clean C.npz --pool N.npz --device cpu --method similarity -o S.csv --json").ok();
    assert!(plain.json().get("advice").is_none() && plain.json().get("choices").is_none(), "{plain:?}");
    assert!(bytes(folder, "S.csv").starts_with(b"id,class,relevance,is_clean,"));
}

#[test]
fn readers_of_relevance_take_probabilities_and_compare_them_with_the_truth() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    write_truth(&task, folder.join("truth.parquet"));
    run(folder, &format!("{AUTO} -o R.parquet")).ok();
    run(folder, "train --clean C.npz --pool N.npz --relevance R.parquet -o M.safetensors").ok();
    let done = run(folder, "evaluate --relevance R.parquet --truth truth.parquet --json").ok();
    check_answer(&done, "evaluate");
    let calibration = &done.json()["relevance"]["calibration"];
    let bins = calibration["bins"].as_array().expect("bins");
    let n: f64 = bins.iter().map(|bin| number(&bin["n"])).sum();
    assert_eq!(n as usize, task.classes.iter().map(|class| class.truth.len()).sum::<usize>());
    let distance = |bin: &Value| number(&bin["n"]) * (number(&bin["mean"]) - number(&bin["share"])).abs();
    let expected: f64 = bins.iter().map(distance).sum::<f64>() / n;
    assert!((number(&calibration["expected_error"]) - expected).abs() < 1e-9);
    let table = run(folder, "evaluate --relevance R.parquet --truth truth.parquet").ok().out;
    assert!(table.contains("probability  candidates  mean  relevant\n"), "{table}");
    assert!(table.ends_with(&format!("expected calibration error {expected:.3}\n")), "{table}");

    run(folder, "report R.parquet --truth truth.parquet -o with.html").ok();
    let page = String::from_utf8(bytes(folder, "with.html")).expect("text");
    for part in ["Keep those with a probability of ", "id=\"figure-reliability\"", "keep ≥", "chosen for "]
    {
        assert!(page.contains(part), "no {part}");
    }
    run(folder, "report R.parquet -o without.html").ok();
    let page = String::from_utf8(bytes(folder, "without.html")).expect("text");
    assert!(
        page.contains("Keep those with a probability of ") && !page.contains("id=\"figure-reliability\"")
    );

    run(folder, "score --clean C.npz --pool N.npz --device cpu --method gcn -o G.parquet").ok();
    let plain = run(folder, "evaluate --relevance G.parquet --truth truth.parquet --json").ok().json();
    assert!(plain["relevance"].get("calibration").is_none(), "{plain}");
    run(folder, "report G.parquet --truth truth.parquet -o gcn.html").ok();
    let page = String::from_utf8(bytes(folder, "gcn.html")).expect("text");
    assert!(
        !page.contains("class=\"advice\"")
            && !page.contains("keep ≥")
            && !page.contains("id=\"figure-reliability\"")
    );
}

#[test]
fn what_a_person_decided_has_probability_one_or_zero() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    write(folder, "d.csv", b"id,class,decision\n0,0,accept\n1,0,reject\n2,0,unsure\n");
    run(folder, &format!("{AUTO} --decisions d.csv -o R.csv")).ok();
    let table = read_relevance(folder.join("R.csv")).expect("relevance");
    let first = (0..table.ids.len()).find(|&row| !table.is_clean[row] && table.classes.get(row) == "0");
    let first = first.expect("candidates");
    let probability = table.probability.expect("a column");
    assert_eq!(probability[first..first + 2], [Some(1.0), Some(0.0)]);
}

#[test]
fn a_killed_run_keeps_probabilities_and_choices() {
    let folder = slow_folder();
    let folder = folder.path();
    let line = "score --clean C.npz --pool N.npz --method auto --device cpu --threads 1 -o R.parquet";
    kill(stopped_midway(folder, line, JOURNAL));
    let again = run(folder, line).ok();
    assert!(again.err.contains("resuming: "), "{again:?}");
    let resumed = bytes(folder, "R.parquet");
    run(folder, &line.replace("R.parquet", "whole.parquet")).ok();
    assert_eq!(resumed, bytes(folder, "whole.parquet"));
}

#[test]
fn probabilities_that_are_none_are_refused_by_every_reader() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    write(folder, "truth.csv", b"id,class,relevant\na,0,true\n");
    for (cell, found) in [("1.5", "1.5"), ("-0.1", "-0.1"), ("nan", "NaN"), ("inf", "inf")] {
        let text = format!("id,class,relevance,probability,is_clean\nc,0,1,1,true\na,0,0.5,{cell},false\n");
        write(folder, "bad.csv", text.as_bytes());
        let message =
            "`bad.csv`: column `probability`, row 1: expected a number in [0, 1], or nothing, found ";
        let message = format!("{message}{found}");
        for line in [
            "train --clean C.npz --pool N.npz --relevance bad.csv -o M.safetensors",
            "evaluate --relevance bad.csv --truth truth.csv",
            "report bad.csv -o bad.html",
        ] {
            refuses(folder, line, &[&message]);
        }
    }
    write(folder, "bad.csv", b"id,class,relevance,probability\na,0,0.5,likely\n");
    let message = "`bad.csv`: line 2, column `probability`: expected a number, found `likely`";
    refuses(folder, "report bad.csv -o bad.html", &[message]);
}

/// Classes 0 and 1 have 60 candidates each, all alike in the first; class 2 has six.
fn doubtful(folder: &Path) {
    let mut noisy = (Vec::new(), Vec::new());
    for (class, n) in [(0usize, 60), (1, 60), (2, 6)] {
        for i in 0..n {
            let angle = if class == 0 { 0.3 } else { i as f32 / n as f32 };
            noisy.0.extend([angle.cos(), angle.sin()]);
            noisy.1.push(class);
        }
    }
    Examples::new(2, &noisy.0, &noisy.1).npz(folder.join("N.npz"));
    let clean: Vec<f32> = (0..3).flat_map(|i| [1.0, -0.1 - i as f32 / 100.0]).collect();
    Examples::new(2, &clean, &[0, 1, 2]).npz(folder.join("C.npz"));
}

#[test]
fn classes_whose_relevance_says_little_are_named_with_what_helps() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    doubtful(folder);
    let line = "score --clean C.npz --pool N.npz --device cpu";
    let done = run(folder, &format!("{line} --method label-propagation -o R.parquet --json")).ok();
    check_answer(&done, "score");
    let answer = done.json();
    assert!(answer["flat"].as_array().expect("names").contains(&json!("0")), "{answer}");
    assert_eq!(answer["small_pools"], json!(["2"]));
    let flat = "warning: relevance hardly tells the candidates of ";
    let small = "1 class has too few candidates for a graph with 50 neighbours each: `2` (6)";
    let hint = "hint: find more candidates with more or broader names per class, try --method auto, try a smaller --neighbours, ";
    for part in [flat, "`0` (60)", small, hint] {
        assert!(done.err.contains(part), "no {part}: {}", done.err);
    }
    run(folder, "report R.parquet -o R.html").ok();
    let page = String::from_utf8(bytes(folder, "R.html")).expect("text");
    assert!(page.contains("<span class=\"tag\">flat</span>"), "no badge");
    assert_eq!(page.matches("<span class=\"tag\">small pool</span>").count(), 1);

    // Fewer neighbours are a remedy; without a graph no pool is too small; a constant is expected.
    let fewer =
        run(folder, &format!("{line} --method label-propagation --neighbours 4 -o R.csv --json")).ok();
    assert_eq!(fewer.json()["small_pools"], json!([]));
    let similarity = run(folder, &format!("{line} --method similarity -o R.csv --json")).ok();
    assert_eq!((&similarity.json()["flat"], &similarity.json()["small_pools"]), (&json!(["0"]), &json!([])));
    assert!(!similarity.err.contains("--neighbours"), "{similarity:?}");
    let constant = run(folder, &format!("{line} --method beta -o R.csv --json")).ok();
    assert_eq!(
        (&constant.json()["flat"], constant.err.contains("warning")),
        (&json!([]), false),
        "{constant:?}"
    );
}
