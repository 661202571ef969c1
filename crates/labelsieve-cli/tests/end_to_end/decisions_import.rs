//! `labelsieve decisions import`.

use labelsieve::Decision;
use labelsieve_files::{DecisionLog, DecisionRow, read_decisions};
use serde_json::json;

use crate::common::{bytes, listing, refuses, run};
use crate::embed::write;
use crate::json::check_answer;

#[test]
fn decisions_from_other_tools_are_added_to_those_that_are_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let answer = |choice: &str, at: &str| {
        json!({ "result": [{ "from_name": "class", "type": "choices", "value": { "choices": [choice] } }],
                "completed_by": 3, "updated_at": at, "was_cancelled": false })
    };
    let tasks = json!([
        { "id": 1, "data": { "id": "a.jpg", "class": "owl", "image": "x" },
          "annotations": [answer("None of these", "2026-01-01T10:00:00Z"), answer("owl", "2026-01-02T10:00:00Z")] },
        { "id": 2, "data": { "id": "b.jpg", "class": "owl", "image": "x" },
          "annotations": [answer("cat", "2026-01-01T11:00:00Z")] },
        { "id": 3, "data": { "id": "c.jpg", "class": "cat", "image": "x" }, "annotations": [] },
    ]);
    write(folder, "export.json", tasks.to_string().as_bytes());
    let done = run(folder, "decisions import export.json -o d.parquet --json").ok();
    check_answer(&done, "decisions import");
    let answer = done.json();
    assert_eq!((&answer["n_new"], &answer["n_undecided"]), (&json!(2), &json!(1)));
    assert_eq!(listing(folder), ["d.parquet", "export.json"]);
    let again = run(folder, "decisions import export.json -o d.parquet --json").ok().json();
    assert_eq!((&again["n_new"], &again["n_known"]), (&json!(0), &json!(2)));
    write(folder, "table.csv", b"file,label,verdict\na.jpg,owl,no\nd.jpg,cat,perhaps\n");
    let columns = "--id-column file --class-column label --decision-column verdict --reject no";
    let done = run(folder, &format!("decisions import table.csv {columns} -o d.parquet")).ok();
    assert!(done.err.contains("1 entry not understood: row 1 (`d.jpg` of `cat`): `perhaps`"), "{done:?}");
    let table = read_decisions(folder.join("d.parquet")).expect("decisions");
    assert_eq!(table.rows.len(), 3);
    let expected = [(("a.jpg", "owl"), Decision::Reject), (("b.jpg", "owl"), Decision::Reject)];
    assert_eq!(table.latest().into_iter().collect::<Vec<_>>(), expected, "the last one wins");
    write(folder, "table.csv", b"id,class,decision\na.jpg,owl,undecided\nz.jpg,owl,undecided\n");
    let withdrawn = run(folder, "decisions import table.csv -o d.parquet --json").ok().json();
    assert_eq!(
        (&withdrawn["n_new"], &withdrawn["n_undecided"]),
        (&json!(1), &json!(2)),
        "nothing held for z.jpg"
    );
    let table = read_decisions(folder.join("d.parquet")).expect("decisions");
    assert_eq!(table.latest().into_keys().collect::<Vec<_>>(), [("b.jpg", "owl")]);
    refuses(
        folder,
        "decisions import table.csv -o new.csv",
        &["no decisions in `table.csv`: 2 examples undecided"],
    );
    let shown = run(folder, "decisions show d.parquet --json").ok();
    check_answer(&shown, "decisions show");
    assert_eq!(shown.json()["classes"][0]["n_reject"], 1);
    let lines = run(folder, "decisions show d.parquet").ok().out;
    assert!(lines.contains("class  accept  reject  unsure") && lines.contains("owl"), "{lines}");
}

#[test]
fn imports_of_nothing_fail_and_leave_the_decisions_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let row = DecisionRow {
        id: "a".into(),
        class: "owl".into(),
        decision: Some(Decision::Accept),
        by: String::new(),
        at: String::new(),
    };
    let (log, _) = DecisionLog::open(folder.join("d.csv")).expect("a log");
    log.append(&[row]).expect("disk space");
    write(folder, "t.csv", b"id,class,decision\na,owl,accept\n");
    let in_use = "decisions import t.csv -o d.csv";
    run(folder, in_use).fails_with(&["another process is using `d.csv`", "hint: end the review"]);
    log.close().expect("disk space");
    let before = bytes(folder, "d.csv");
    for (contents, message) in [
        (&b"[]"[..], "unknown format"),
        (b"{\"samples\": []}", "no decisions in `x.json`: 0 examples undecided"),
        (b"{\"samples\": [{\"tags\": [\"accept\"]}]}", "1 entry not understood"),
        (b"garbage", "`x.json` is not a readable JSON file"),
    ] {
        write(folder, "x.json", contents);
        refuses(folder, "decisions import x.json -o d.csv", &[message]);
    }
    write(folder, "t.csv", b"id,class,verdict\na,owl,accept\n");
    refuses(
        folder,
        "decisions import t.csv -o d.csv",
        &["hint: name the columns with --id-column, --class-column and --decision-column"],
    );
    write(folder, "x.json", b"[]");
    refuses(folder, "decisions import x.json -o d.csv", &["name the tool that wrote it with --from"]);
    std::fs::create_dir(folder.join("folder.csv")).expect("a folder");
    refuses(
        folder,
        "decisions import folder.csv -o d.csv",
        &["`folder.csv` is a folder without samples.json"],
    );
    let twice = "decisions import t.csv --accept yes --reject Yes -o d.csv";
    refuses(folder, twice, &["`yes` is given with --accept and with --reject"]);
    refuses(folder, "decisions import d.csv -o d.csv", &["would replace the input"]);
    refuses(folder, "decisions import t.csv -o d.json", &["the extension must be .parquet, .csv or .tsv"]);
    assert_eq!(bytes(folder, "d.csv"), before);
}

#[test]
fn times_that_cannot_be_read_leave_the_order_of_the_file_and_the_last_row_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(
        folder,
        "t.csv",
        b"id,class,decision,at\nx,owl,accept,12/31/2025 10:00\nx,owl,reject,01/02/2026 09:00\n",
    );
    let done = run(folder, "decisions import t.csv -o d.csv").ok();
    assert!(done.err.contains("2 of 2 decisions without a time such as"), "{done:?}");
    let held = |name: &str| {
        let table = read_decisions(folder.join(name)).expect("decisions");
        table.latest().get(&("x", "owl")).copied()
    };
    assert_eq!(held("d.csv"), Some(Decision::Reject));
    for (word, n_new) in [("accept", 1), ("reject", 1), ("accept", 1), ("accept", 0)] {
        write(folder, "t.csv", format!("id,class,decision\nx,owl,{word}\n").as_bytes());
        let answer = run(folder, "decisions import t.csv -o again.csv --json").ok().json();
        assert_eq!(answer["n_new"], n_new, "{word}");
    }
    assert_eq!(held("again.csv"), Some(Decision::Accept));
}
