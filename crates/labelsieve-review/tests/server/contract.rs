//! Every question of the page, and questions that make no sense.

use labelsieve_files::work::Silent;
use labelsieve_review::Review;
use serde_json::{Value, json};

use crate::client::{number, row};
use crate::fixture::{CLASSES, Fixture, HOSTILE, N_CANDIDATES, serve};

#[test]
fn the_session_the_classes_and_their_rows_say_what_the_contract_promises() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let session = client.json("api/session");
    for (field, expected) in [
        ("title", json!("Test")),
        ("by", json!("ann")),
        ("method", json!("gcn")),
        ("lambda", Value::Null),
        ("can_score", json!(true)),
        ("has_pictures", json!(true)),
        ("has_captions", json!(true)),
        ("last", Value::Null),
        ("n_decisions", json!(0)),
        ("n_undo", json!(0)),
        ("n_redo", json!(0)),
    ] {
        assert_eq!(session[field], expected, "{field}");
    }
    assert!(session["default_lambda"].as_f64().unwrap() > 0.0);
    assert!(session["lambda_range"][0].as_f64() < session["lambda_range"][1].as_f64());
    assert!(session["command"].as_str().unwrap().starts_with("score clean="));
    assert_eq!(session["classes"].as_array().unwrap().len(), CLASSES.len());
    let owl = number(client, "owl");
    let summary = &session["classes"][owl];
    assert_eq!((&summary["n_clean"], &summary["n_candidates"]), (&json!(2), &json!(N_CANDIDATES)));
    assert!((0.0..=1.0).contains(&summary["mean_relevance"].as_f64().unwrap()));

    let class = client.json(&format!("api/classes/{owl}"));
    for field in ["example", "id", "caption", "name", "relevance", "decision", "group"] {
        assert_eq!(class[field].as_array().unwrap().len(), N_CANDIDATES, "{field}");
    }
    assert_eq!(class["clean"].as_array().unwrap().len(), 2);
    let scores = client.json(&format!("api/classes/{owl}/scores"));
    assert_eq!(scores["relevance"], class["relevance"]);

    let next = client.json(&format!("api/classes/{owl}/order?by=next"));
    let mut rows: Vec<u64> =
        next["rows"].as_array().unwrap().iter().map(|row| row.as_u64().unwrap()).collect();
    rows.sort_unstable();
    rows.dedup();
    assert_eq!((rows.len(), &next["by"]), (next["rows"].as_array().unwrap().len(), &json!("next")));
    let similar = client.json(&format!("api/classes/{owl}/order?by=similar&to=7"));
    assert_eq!((&similar["rows"][0], similar["rows"].as_array().unwrap().len()), (&json!(7), N_CANDIDATES));

    let row = client.json(&format!("api/classes/{owl}/rows/7"));
    assert_eq!(
        (&row["row"], &row["relevance"], &row["id"]),
        (&json!(7), &class["relevance"][7], &class["id"][7])
    );
    assert!(row["probability"].is_null(), "gcn knows none");
    let rank = row["rank"].as_u64().unwrap() as usize;
    assert!((1..=N_CANDIDATES).contains(&rank));
    let neighbours = row["neighbours"].as_array().unwrap();
    assert!(!neighbours.is_empty() && neighbours.len() <= 12);
    assert!(neighbours.is_sorted_by(|a, b| a["similarity"].as_f64() >= b["similarity"].as_f64()));
    assert!(row["best_clean"]["similarity"].is_f64());
    assert_eq!((&row["group"], &row["history"]), (&json!([7]), &json!([])));
}

#[test]
fn hostile_names_and_captions_come_out_as_text_in_json() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let cat = number(client, "cat");
    let answer = client.get(&format!("api/classes/{cat}"));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let class = answer.json();
    let at = row(&class, HOSTILE);
    assert_eq!((&class["id"][at], &class["caption"][at]), (&json!(HOSTILE), &json!(HOSTILE)));
    assert_eq!(client.json(&format!("api/classes/{cat}/rows/{at}"))["id"], HOSTILE);
    client.decide(cat, &[at], "accept");
    let table = labelsieve_files::read_decisions(fixture.path().join("decisions.parquet")).unwrap();
    assert_eq!(table.rows[0].id, HOSTILE);
    number(client, CLASSES[2]); // a class of that name is there
}

#[test]
fn a_class_without_candidates_is_empty_and_not_an_error() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let zebra = number(client, "zebra");
    let summary = &client.json("api/session")["classes"][zebra];
    assert_eq!((&summary["n_candidates"], &summary["mean_relevance"]), (&json!(0), &Value::Null));
    let class = client.json(&format!("api/classes/{zebra}"));
    assert_eq!((&class["id"], class["clean"].as_array().unwrap().len()), (&json!([]), 2));
    assert_eq!(client.json(&format!("api/classes/{zebra}/order?by=next"))["rows"], json!([]));
    client.get(&format!("api/classes/{zebra}/rows/0")).is_error(404);
    let decision = format!(r#"{{"class": {zebra}, "rows": [0], "decision": "accept"}}"#);
    client.post("api/decisions", &decision).is_error(404);
}

#[test]
fn without_features_people_can_decide_and_only_that_changes() {
    let fixture = Fixture::new();
    let review = Review { files: None, ..fixture.review.clone() };
    let running = serve(review.open(&Silent::default()).unwrap());
    let client = &running.client;
    let session = client.json("api/session");
    assert_eq!((&session["can_score"], &session["lambda_range"]), (&json!(false), &Value::Null));
    assert_eq!(session["command"], Value::Null);
    let before = client.json("api/classes/0");
    let mut events = client.events();
    client.decide(0, &[3], "accept");
    client.decide(0, &[4], "reject");
    events.next("scores");
    let after = client.json("api/classes/0/scores");
    assert_eq!((&after["relevance"][3], &after["relevance"][4]), (&json!(1.0), &json!(0.0)));
    assert_eq!(after["relevance"][5], before["relevance"][5]);
    let order = client.json("api/classes/0/order?by=next");
    let relevance =
        |rank: usize| before["relevance"][order["rows"][rank].as_u64().unwrap() as usize].as_f64();
    assert!(relevance(0) > relevance(1), "the top, then the middle of the ranking");
    assert_eq!(order["rows"].as_array().unwrap().len(), N_CANDIDATES - 2);
    let message = client.get("api/classes/0/order?by=similar&to=1").is_error(409);
    assert!(message.contains("needs features"), "{message}");
    client.post("api/lambda", r#"{"lambda": 1}"#).is_error(409);
    client.post("api/undo", "");
    assert_eq!(client.json("api/classes/0/scores")["relevance"][4], before["relevance"][4]);
}

#[test]
fn nonsense_is_refused_in_words_and_changes_nothing() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    for (path, status) in [
        ("api/classes/99", 404),
        ("api/classes/-1", 400),
        ("api/classes/1e3", 400),
        ("api/classes/99999999999999999999999", 400),
        ("api/classes/0/rows/3000", 404),
        ("api/classes/0/order?by=magic", 400),
        ("api/classes/0/order?by=similar", 400),
        ("api/classes/0/order?by=similar&to=3000", 404),
        ("api/nothing", 404),
        ("api/../../etc/passwd", 404),
        ("nothing.js", 404),
        ("..%2findex.html", 404),
    ] {
        client.get(path).is_error(status);
    }
    for body in [
        "",
        "{}",
        "[]",
        r#"{"class": 0, "rows": [], "decision": "accept"}"#,
        r#"{"class": 0, "rows": [0], "decision": "keep"}"#,
        r#"{"class": 0, "rows": [-1], "decision": "accept"}"#,
        r#"{"class": 0, "rows": [0], "decision": "accept", "by": "eve"}"#,
    ] {
        client.post("api/decisions", body).is_error(400);
    }
    client.post("api/decisions", r#"{"class": 0, "rows": [0, 3000], "decision": "accept"}"#).is_error(404);
    for body in [r#"{"lambda": -1}"#, r#"{"lambda": 1e99}"#, r#"{"lambda": "a"}"#, "{\"lambda\": NaN}"] {
        client.post("api/lambda", body).is_error(400);
    }
    client
        .send("DELETE", &format!("{}api/decisions", client.base), &[("Host", &client.host())], b"")
        .is_error(403);
    let session = client.json("api/session");
    assert_eq!((&session["n_decisions"], &session["lambda"]), (&json!(0), &Value::Null));
}

#[test]
fn head_is_answered_as_get_is_without_the_body() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let cat = client.json(&format!("api/classes/{}", number(client, "cat")));
    let picture = |id: &str| format!("pictures/{}", cat["example"][row(&cat, id)]);
    for (path, status) in [
        (String::new(), 200),
        ("api/session".to_owned(), 200),
        (picture("cat 1"), 200),
        (picture("cat 3"), 415),
        (picture("cat 5"), 404),
    ] {
        let asked = client.ask("HEAD", &path);
        let got = client.get(&path);
        assert_eq!((asked.status, got.status), (status, status), "{path}");
        assert_eq!(asked.header("content-type"), got.header("content-type"), "{path}");
        assert!(asked.body.is_empty() && !got.body.is_empty(), "{path}");
    }
}
