use labelsieve::Decision;
use serde_json::json;

use super::*;

fn import(name: &str, text: &str, options: &ImportOptions) -> Result<ImportedDecisions> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    import_decisions(&path, options)
}

fn decided(found: &ImportedDecisions) -> Vec<(&str, &str, Decision)> {
    found.rows.iter().map(|row| (row.id.as_str(), row.class.as_str(), row.decision.unwrap())).collect()
}

fn answer(choice: &str, at: &str, by: Value) -> Value {
    json!({
        "result": [{ "from_name": "class", "type": "choices", "value": { "choices": [choice] } }],
        "updated_at": at, "completed_by": by,
    })
}

fn task(id: &str, class: &str, annotations: Vec<Value>) -> Value {
    json!({ "data": { "image": "x", "id": id, "class": class }, "annotations": annotations, "predictions": [] })
}

#[test]
fn the_latest_answer_of_label_studio_counts() {
    let mut cancelled = answer("owl", "2026-01-09T00:00:00Z", json!(1));
    cancelled["was_cancelled"] = json!(true);
    let tasks = json!([
        task("a", "owl", vec![answer("owl", "2026-01-02T00:00:00Z", json!(1))]),
        task(
            "b",
            "owl",
            vec![
                answer("owl", "2026-01-03T00:00:00+00:00", json!({ "id": 7, "email": "ann@example.org" })),
                answer("None of these", "2026-01-02T00:00:00Z", json!(2)),
            ]
        ),
        task("c", "owl", vec![answer("cat", "", json!(1)), cancelled]),
        task("d", "cat", vec![answer("cannot tell", "", json!(1))]),
        task("e", "cat", vec![]),
        task("f", "cat", vec![answer("dog", "", json!(1))]),
        json!({ "data": { "image": "x" }, "annotations": [] }),
    ]);
    let words = DecisionWords { unsure: vec!["Cannot tell".into()], ..DecisionWords::default() };
    let found = import("e.json", &tasks.to_string(), &ImportOptions { words, ..Default::default() }).unwrap();
    let expected = [
        ("a", "owl", Decision::Accept),
        ("b", "owl", Decision::Accept),
        ("c", "owl", Decision::Reject),
        ("d", "cat", Decision::Unsure),
    ];
    assert_eq!(decided(&found), expected);
    assert_eq!((found.n_undecided, found.n_cancelled), (1, 1));
    assert_eq!(found.not_understood.len(), 2);
    assert!(found.not_understood[0].starts_with("task 5 (`f` of `cat`): "), "{:?}", found.not_understood);
    assert_eq!(found.not_understood[1], "task 6: no `data.id` or no `data.class`");
    let row = &found.rows[1];
    assert_eq!((row.by.as_str(), row.at.as_str()), ("ann@example.org", "2026-01-03T00:00:00.000000Z"));
}

#[test]
fn tags_and_fields_of_fiftyone_are_decisions() {
    let label = |class: &str, id: &str, tags: &[&str]| json!({ "_cls": "Classification", "label": class, "confidence": 0.5, "tags": tags, "example": id });
    let samples = json!({ "samples": [
        { "filepath": "/a.jpg", "tags": [], "ground_truth": label("owl", "a", &["accept", "blurred"]) },
        { "filepath": "/b.jpg", "tags": ["train", "reject"], "ground_truth": label("owl", "b", &[]) },
        { "filepath": "/c.jpg", "tags": ["accept"], "ground_truth": { "_cls": "Classifications",
            "classifications": [label("owl", "c", &["unsure"]), label("cat", "c", &[])] } },
        { "filepath": "/d.jpg", "tags": ["reject"], "ground_truth": label("owl", "d", &["accept"]) },
        { "filepath": "/e.jpg", "ground_truth": label("owl", "e", &[]),
          "decision": { "_cls": "Classification", "label": "accept", "tags": [] } },
        { "filepath": "/f.jpg" },
    ] });
    let found = import("samples.json", &samples.to_string(), &ImportOptions::default()).unwrap();
    let expected = [
        ("a", "owl", Decision::Accept),
        ("b", "owl", Decision::Reject),
        ("c", "owl", Decision::Unsure),
        ("e", "owl", Decision::Accept),
    ];
    assert_eq!(decided(&found), expected);
    assert_eq!(found.n_undecided, 1);
    let expected = ["sample 3 (`d` of `owl`): tags contradict each other", "sample 5: no classification"]
        .map(str::to_owned);
    assert_eq!(found.not_understood, expected);
    let labels = json!({ "classes": ["owl"], "labels": {
        "000000000": { "label": "owl", "confidence": 1.0, "attributes": { "example": "a", "decision": "reject" } },
        "000000001": [{ "label": "owl", "attributes": { "example": "b" } }],
    } });
    let found = import("labels.json", &labels.to_string(), &ImportOptions::default()).unwrap();
    assert_eq!(decided(&found), [("a", "owl", Decision::Reject)]);
}

#[test]
fn a_table_may_call_its_columns_and_its_answers_what_it_likes() {
    let text = "file,label,verdict,at\n1.jpg,owl,Keep,2026-01-02 03:04:05\n2.jpg,owl,drop,\n3.jpg,owl,?,\n4.jpg,owl,,\n\
                5.jpg,owl,\"blurred,keep\",\n,owl,keep,\n";
    let options = ImportOptions {
        id: Some("file".into()),
        class: Some("label".into()),
        decision: Some("verdict".into()),
        words: DecisionWords {
            accept: vec!["keep".into()],
            reject: vec!["drop".into()],
            ..DecisionWords::default()
        },
        ..ImportOptions::default()
    };
    let found = import("t.csv", text, &options).unwrap();
    let expected = [
        ("1.jpg", "owl", Decision::Accept),
        ("2.jpg", "owl", Decision::Reject),
        ("5.jpg", "owl", Decision::Accept),
    ];
    assert_eq!(decided(&found), expected);
    assert_eq!(found.rows[0].at, "2026-01-02T03:04:05.000000Z");
    assert_eq!(found.n_undecided, 1);
    assert_eq!(found.not_understood, ["row 2 (`3.jpg` of `owl`): `?`", "row 5: no id or no class"]);
    let error = import("t.csv", text, &ImportOptions::default()).unwrap_err().to_string();
    let expected = "columns: expected a column `id`, found file, label, verdict, at";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn a_decision_that_a_table_withdraws_is_withdrawn_and_an_empty_cell_withdraws_nothing() {
    let text = "id,class,decision\na,owl,accept\nb,owl,reject\na,owl,Undecided\nb,owl,\n";
    let found = import("d.csv", text, &ImportOptions::default()).unwrap();
    assert_eq!(found.n_undecided, 2);
    let table = labelsieve_files::DecisionTable { path: "d.csv".into(), rows: found.rows };
    let latest: Vec<_> = table.latest().into_iter().collect();
    assert_eq!(latest, [(("b", "owl"), Decision::Reject)]);
}

#[test]
fn what_no_tool_writes_is_refused() {
    for (text, expected) in [
        ("[1, 2]", "unknown format; expected JSON from Label Studio or FiftyOne"),
        ("{}", "unknown format"),
        ("[", "is not a readable JSON file"),
        ("", "is not a readable JSON file"),
    ] {
        let error = import("x.json", text, &ImportOptions::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in proptest::collection::vec(proptest::sample::select(b"{}[]\":,1a \\\xff".to_vec()), 0..60),
    ) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["x.json", "x.csv", "x.tsv", "x.parquet"] {
            std::fs::write(folder.path().join(name), &bytes).unwrap();
            for source in [None, Some(DecisionSource::LabelStudio), Some(DecisionSource::FiftyOne)] {
                let options = ImportOptions { source, ..ImportOptions::default() };
                let _ = import_decisions(folder.path().join(name), &options);
            }
        }
    }
}
