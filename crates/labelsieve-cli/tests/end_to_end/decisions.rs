//! Decisions: from their files to relevance, classifiers and evaluations.

use std::path::Path;

use labelsieve::Decision;
use labelsieve_files::{DecisionLog, RelevanceTable, read_decisions, read_relevance};
use serde_json::json;

use crate::common::{bytes, refuses, run};
use crate::embed::write;
use crate::examples::{class_name, clean_of, noisy_of, task_folder};
use crate::json::check_answer;
use crate::resume::{JOURNAL, kill, slow_folder, stopped_midway};

const SCORE: &str = "score --clean C.parquet --pool N.parquet --device cpu";

/// `C.parquet` and `N.parquet`, whose examples are called c0, c1, … and n0, n1, …; which candidates are relevant.
fn named_folder() -> (tempfile::TempDir, Vec<(String, String, bool)>) {
    let (folder, task) = task_folder();
    clean_of(&task).parquet(folder.path().join("C.parquet"), "c");
    noisy_of(&task).parquet(folder.path().join("N.parquet"), "n");
    let truth = task.classes.iter().flat_map(|class| class.truth.iter().copied());
    let classes = noisy_of(&task).classes;
    let candidates = classes.iter().zip(truth).enumerate();
    let known = candidates.map(|(row, (&class, relevant))| (format!("n{row}"), class_name(class), relevant));
    (folder, known.collect())
}

/// Every n-th candidate, decided by the truth.
fn write_decisions(folder: &Path, name: &str, known: &[(String, String, bool)], step: usize) {
    let mut text = "id,class,decision\n".to_owned();
    for (id, class, relevant) in known.iter().step_by(step) {
        text += &format!("{id},{class},{}\n", if *relevant { "accept" } else { "reject" });
    }
    write(folder, name, text.as_bytes());
}

fn relevance(folder: &Path, name: &str) -> RelevanceTable {
    read_relevance(folder.join(name)).expect("a relevance file")
}

#[test]
fn accepted_candidates_have_relevance_one_rejected_ones_zero_and_others_follow() {
    let (folder, known) = named_folder();
    let folder = folder.path();
    write_decisions(folder, "d.csv", &known, 5);
    run(folder, &format!("{SCORE} -o plain.parquet")).ok();
    let done = run(folder, &format!("{SCORE} --decisions d.csv -o R.parquet --json")).ok();
    check_answer(&done, "score");
    let plain = relevance(folder, "plain.parquet");
    let decided = relevance(folder, "R.parquet");
    assert_eq!(plain.decisions, None);
    assert_eq!((&plain.ids, &plain.is_clean), (&decided.ids, &decided.is_clean));
    let decisions = decided.decisions.expect("a column");
    let mut counts = [0; 3];
    for i in 0..decisions.len() {
        match decisions[i] {
            Some(Decision::Accept) => assert_eq!(decided.relevance[i], 1.0),
            Some(Decision::Reject) => assert_eq!(decided.relevance[i], 0.0),
            _ => (),
        }
        counts[decisions[i].map_or(2, |decision| decision as usize)] += 1;
    }
    assert_eq!(counts[0] + counts[1], known.iter().step_by(5).count());
    let answer = done.json();
    assert_eq!(answer["decisions"]["n_accept"], counts[0]);
    assert_eq!(answer["decisions"]["n_reject"], counts[1]);
    let others = (0..decisions.len()).filter(|&i| decisions[i].is_none() && !decided.is_clean[i]);
    assert!(others.into_iter().any(|i| plain.relevance[i] != decided.relevance[i]), "others follow");
    let settings: serde_json::Value = serde_json::from_str(&decided.metadata["labelsieve"]).expect("JSON");
    assert_eq!(settings["decisions"], json!({ "n_accept": counts[0], "n_reject": counts[1], "n_unsure": 0 }));
    assert!(!decided.metadata["labelsieve"].contains("d.csv"));
    // The same bytes at any number of threads, from any format, and through the log of a review that was killed.
    let rows = read_decisions(folder.join("d.csv")).expect("decisions").rows;
    let (log, _) = DecisionLog::open(folder.join("d.parquet")).expect("a log");
    log.append(&rows).expect("disk space");
    for line in ["--decisions d.csv --threads 1", "--decisions d.csv --threads 2", "--decisions d.parquet"] {
        run(folder, &format!("{SCORE} {line} -o again.parquet")).ok();
        assert_eq!(bytes(folder, "again.parquet"), bytes(folder, "R.parquet"), "{line}");
    }
    let csv = run(folder, &format!("{SCORE} --decisions d.csv -o -")).ok().out;
    let header = "id,class,relevance,probability,is_clean,matched_name,best_clean,best_clean_similarity,";
    assert!(csv.starts_with(&format!("{header}reciprocal_neighbours,decision\n")), "{csv}");
}

#[test]
fn every_method_takes_decisions_and_classes_may_be_decided_completely() {
    let (folder, known) = named_folder();
    let folder = folder.path();
    let mut text = "id\tclass\tdecision\n".to_owned();
    for (id, class, _) in &known {
        match class.as_str() {
            "barn owl" => text += &format!("{id}\t{class}\treject\n"),
            "eagle owl" => text += &format!("{id}\t{class}\taccept\n"),
            _ => (),
        }
    }
    write(folder, "d.tsv", text.as_bytes());
    for method in ["gcn", "mlp", "label-propagation", "similarity", "linear", "beta", "mixture", "auto"] {
        run(folder, &format!("{SCORE} --method {method} --decisions d.tsv -o R.csv")).ok();
        let found = relevance(folder, "R.csv");
        for i in (0..found.ids.len()).filter(|&i| !found.is_clean[i]) {
            match found.classes.get(i) {
                "barn owl" => assert_eq!(found.relevance[i], 0.0, "{method}"),
                "eagle owl" => assert_eq!(found.relevance[i], 1.0, "{method}"),
                _ => (),
            }
        }
        let train = "train --clean C.parquet --pool N.parquet --relevance R.csv -o M.safetensors";
        run(folder, train).ok();
    }
}

#[test]
fn decisions_about_nothing_are_named_and_a_file_of_them_is_refused() {
    let (folder, known) = named_folder();
    let folder = folder.path();
    write_decisions(folder, "d.csv", &known, 50);
    let mut text = String::from_utf8(bytes(folder, "d.csv")).expect("text");
    text += "nobody,barn owl,accept\nn0,Barn_Owl,accept\nc0,barn owl,reject\n";
    write(folder, "d.csv", text.as_bytes());
    let done = run(folder, &format!("{SCORE} --decisions d.csv -o R.parquet --json")).ok();
    assert_eq!(done.json()["decisions"]["n_unmatched"], 3);
    for part in ["`nobody` of `barn owl`", "did you mean `barn owl`?", "about clean examples"] {
        assert!(done.err.contains(part), "{done:?}");
    }
    write(folder, "none.csv", b"id,class,decision\nn0,Barn_Owl,accept\n");
    let parts = ["no decision in `none.csv` matches a candidate", "hint: did you mean the class `barn owl`?"];
    refuses(folder, &format!("{SCORE} --decisions none.csv -o S.parquet"), &parts);
    write(folder, "empty.csv", b"id,class,decision\n");
    let done = run(folder, &format!("{SCORE} --decisions empty.csv -o S.parquet")).ok();
    assert!(done.err.contains("`empty.csv` contains no decisions"), "{done:?}");
    refuses(folder, &format!("{SCORE} --decisions d.csv -o d.csv"), &["would replace the input `d.csv`"]);
    refuses(folder, &format!("{SCORE} --decisions d.csv --dry-run"), &["--dry-run does not use --decisions"]);
}

#[test]
fn files_of_garbage_are_refused_with_their_place() {
    let (folder, _) = named_folder();
    let folder = folder.path();
    for (name, contents, message) in [
        (
            "a.csv",
            &b"id,class,decision\nn0,barn owl,yes\n"[..],
            "row 0: expected `accept`, `reject`, `unsure`",
        ),
        ("b.csv", b"id,decision\nn0,accept\n", "expected a column `class`"),
        ("c.csv", b"", "an empty file"),
        ("d.parquet", b"PAR1garbagePAR1", "`d.parquet`"),
        ("e.txt", b"id,class,decision\n", "expected .parquet, .csv or .tsv"),
        ("f.csv", b"id,class,decision\n\xff,x,accept\n", "text in UTF-8"),
    ] {
        write(folder, name, contents);
        refuses(folder, &format!("{SCORE} --decisions {name} -o R.parquet"), &[message]);
    }
    refuses(folder, &format!("{SCORE} --decisions missing.csv -o R.parquet"), &["cannot open `missing.csv`"]);
    write(folder, "g.csv", b"id,class,decision\n");
    write(folder, "g.csv.log", b"12:03 started");
    refuses(folder, &format!("{SCORE} --decisions g.csv -o R.parquet"), &["expected a log of decisions"]);
}

#[test]
fn a_killed_run_goes_on_with_the_same_decisions_and_starts_over_with_others() {
    let folder = slow_folder();
    let folder = folder.path();
    write(folder, "d.csv", b"id,class,decision\n0,0,accept\n1,0,reject\n");
    let line = "score --clean C.npz --pool N.npz --lambda 0.01 --threads 1 --decisions d.csv -o R.parquet";
    kill(stopped_midway(folder, line, JOURNAL));
    // The same decisions in another file, made in another order.
    write(folder, "e.csv", b"id,class,decision,by\n1,0,accept,me\n1,0,reject,me\n0,0,accept,me\n");
    let again = run(folder, &line.replace("d.csv", "e.csv")).ok();
    assert!(again.err.contains("resuming: "), "{again:?}");
    let resumed = bytes(folder, "R.parquet");
    run(folder, line).ok();
    assert_eq!(resumed, bytes(folder, "R.parquet"));
    std::fs::remove_file(folder.join("R.parquet")).expect("a file");
    kill(stopped_midway(folder, line, JOURNAL));
    write(folder, "d.csv", b"id,class,decision\n0,0,accept\n");
    let other = run(folder, line).ok();
    assert!(other.err.contains("made with different settings or files; starting over"), "{other:?}");
}

#[test]
fn a_classifier_counts_accepted_candidates_as_clean_and_leaves_rejected_ones_out() {
    let (folder, known) = named_folder();
    let folder = folder.path();
    write_decisions(folder, "d.csv", &known, 4);
    run(folder, &format!("{SCORE} -o plain.parquet")).ok();
    run(folder, &format!("{SCORE} --decisions d.csv -o R.parquet")).ok();
    let train = "train --clean C.parquet --pool N.parquet --device cpu";
    let trained = |line: &str| {
        let done = run(folder, &format!("{train} {line} --json")).ok();
        check_answer(&done, "train");
        done.json()
    };
    let without = trained("--relevance plain.parquet -o plain.safetensors");
    assert!(without.get("decisions").is_none(), "{without}");
    let by_column = trained("--relevance R.parquet -o column.safetensors");
    let by_file = trained("--relevance R.parquet --decisions d.csv -o file.safetensors");
    assert_eq!(bytes(folder, "column.safetensors"), bytes(folder, "file.safetensors"));
    let n_accepted = by_column["decisions"]["n_accept"].as_u64().expect("a number");
    let n = |answer: &serde_json::Value| answer["left_out"]["n"].as_u64().expect("a number");
    assert_eq!(n(&by_column), n(&without) + n_accepted);
    assert_eq!(by_column["left_out"], by_file["left_out"]);
    // Decisions that came after the scoring count too, and those that no longer hold are named.
    trained("--relevance plain.parquet --decisions d.csv -o later.safetensors");
    write_decisions(folder, "fewer.csv", &known, 8);
    let done =
        run(folder, &format!("{train} --relevance R.parquet --decisions fewer.csv -o f.safetensors")).ok();
    assert!(done.err.contains("candidates that were withdrawn or changed in `fewer.csv`"), "{done:?}");
}

#[test]
fn decisions_are_a_truth_but_not_for_what_was_made_with_them() {
    let (folder, known) = named_folder();
    let folder = folder.path();
    write_decisions(folder, "d.csv", &known, 3);
    write_decisions(folder, "some.csv", &known, 9);
    run(folder, &format!("{SCORE} -o plain.parquet")).ok();
    run(folder, &format!("{SCORE} --decisions some.csv -o R.parquet")).ok();
    let evaluate = |line: &str| {
        let done = run(folder, &format!("evaluate {line} --json")).ok();
        check_answer(&done, "evaluate");
        done
    };
    let all = evaluate("--relevance plain.parquet --decisions d.csv").json();
    let n = |answer: &serde_json::Value| {
        let all = &answer["relevance"]["all"];
        all["n_relevant"].as_u64().unwrap_or(0) + all["n_irrelevant"].as_u64().unwrap_or(0)
    };
    assert_eq!(n(&all) as usize, known.iter().step_by(3).count());
    assert_eq!(all["relevance"]["n_settled"], 0);
    let rest = evaluate("--relevance R.parquet --decisions d.csv");
    let n_some = known.iter().step_by(9).count();
    assert_eq!(rest.json()["relevance"]["n_settled"], n_some);
    assert_eq!(n(&rest.json()) as usize, known.iter().step_by(3).count() - n_some);
    assert!(
        rest.err.contains(&format!("skipping {n_some} candidates whose relevance in `R.parquet` was set")),
        "{rest:?}"
    );
    let line = "evaluate --relevance R.parquet --decisions some.csv";
    run(folder, line)
        .fails_with(&["`R.parquet` was made with decisions about all candidates in `some.csv`", "hint: "]);
    let mut truth = String::from("id,class,relevant\n");
    for (id, class, is_relevant) in &known {
        truth += &format!("{id},{class},{is_relevant}\n");
    }
    write(folder, "t.csv", truth.as_bytes());
    let plain = evaluate("--relevance plain.parquet --truth t.csv").json();
    assert!(plain["relevance"].get("n_settled").is_none(), "{plain}");
    let rest = evaluate("--relevance R.parquet --truth t.csv");
    assert_eq!(rest.json()["relevance"]["n_settled"], n_some);
    assert_eq!(n(&rest.json()) as usize, known.len() - n_some);
    let mut more = bytes(folder, "d.csv");
    more.extend(b"nobody,barn owl,accept\n");
    write(folder, "more.csv", &more);
    let done = evaluate("--relevance plain.parquet --decisions more.csv");
    assert!(
        done.err.contains("ignoring 1 decision in `more.csv`") && done.err.contains("`nobody`"),
        "{done:?}"
    );
    let line = "evaluate --relevance R.parquet --decisions some.csv --truth some.csv";
    run(folder, line).fails_with(&["cannot be used with"]);
}
