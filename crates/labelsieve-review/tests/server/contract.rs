//! Every question of the page, and questions that make no sense.

use serde_json::{Value, json};

use crate::client::Client;
use crate::fixture::{CLASSES, Fixture, HOSTILE, N_CANDIDATES, serve};
use labelsieve_pipeline::Silent;
use labelsieve_pipeline::review::Review;

/// The number of a class by its name.
fn number(client: &Client, name: &str) -> usize {
    let session = client.json("api/session");
    let classes = session["classes"].as_array().unwrap();
    classes.iter().position(|class| class["name"] == name).expect("a class of this name")
}

/// The row of a candidate by its id.
fn row(class: &Value, id: &str) -> usize {
    class["id"].as_array().unwrap().iter().position(|known| known == id).expect("a candidate of this id")
}

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
        ("seed", json!(3)),
        ("last", Value::Null),
        ("n_decisions", json!(0)),
        ("n_undo", json!(0)),
        ("n_redo", json!(0)),
    ] {
        assert_eq!(session[field], expected, "{field}");
    }
    assert!(session["default_lambda"].as_f64().unwrap() > 0.0);
    assert!(session["lambda_range"][0].as_f64() < session["lambda_range"][1].as_f64());
    assert!(session["command"].as_str().unwrap().starts_with("labelsieve clean --clean "));
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
    let rank = row["rank"].as_u64().unwrap() as usize;
    assert!((1..=N_CANDIDATES).contains(&rank));
    let neighbours = row["neighbours"].as_array().unwrap();
    assert!(!neighbours.is_empty() && neighbours.len() <= 12);
    assert!(neighbours.is_sorted_by(|a, b| a["similarity"].as_f64() >= b["similarity"].as_f64()));
    assert!(row["best_clean"]["similarity"].is_f64());
    assert_eq!((&row["group"], &row["history"]), (&json!([7]), &json!([])));
}

#[test]
fn decisions_are_made_undone_redone_and_downloaded() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let owl = number(client, "owl");
    let changed = client.decide(owl, &[2, 5, 2], "accept");
    assert_eq!((&changed["saved"], &changed["changes"]), (&json!(true), &json!([[2, 1], [5, 1]])));
    assert_eq!(changed["counts"], json!({ "n_accept": 2, "n_reject": 0, "n_unsure": 0 }));
    assert_eq!(
        (&changed["n_decisions"], &changed["n_undo"], &changed["n_redo"]),
        (&json!(2), &json!(1), &json!(0))
    );
    let at = changed["at"].as_str().unwrap();
    assert!(at.len() == 27 && at.ends_with('Z'), "{at}");
    client.decide(owl, &[9], "reject");
    client.decide(owl, &[10], "unsure");
    assert_eq!(client.decide(owl, &[10], "unsure")["changes"], json!([]), "it is so already");

    let undone = client.post("api/undo", "").json();
    assert_eq!((&undone["class"], &undone["changes"]), (&json!(owl), &json!([[10, 0]])));
    assert_eq!((&undone["n_undo"], &undone["n_redo"]), (&json!(2), &json!(1)));
    let redone = client.post("api/redo", "").json();
    assert_eq!(redone["changes"], json!([[10, 3]]));
    assert_eq!(client.post("api/redo", "").is_error(409), "nothing to redo");
    client.decide(owl, &[9], "undecided");
    for _ in 0..3 {
        client.post("api/undo", "");
    }
    let class = client.json(&format!("api/classes/{owl}"));
    let decided: Vec<&Value> =
        class["decision"].as_array().unwrap().iter().filter(|code| **code != 0).collect();
    assert_eq!(decided, [&json!(1), &json!(1)], "the first action is left");

    let row = client.json(&format!("api/classes/{owl}/rows/9"));
    let words: Vec<&str> =
        row["history"].as_array().unwrap().iter().map(|past| past["decision"].as_str().unwrap()).collect();
    assert_eq!(words, ["reject", "undecided", "reject", "undecided"]);
    let csv = client.get("api/decisions.csv");
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    let text = String::from_utf8(csv.body).unwrap();
    assert!(text.starts_with("id,class,decision,by,at\nowl 2,owl,accept,ann,2"), "{text}");
    assert_eq!(text.lines().count(), 1 + 2 + 1 + 1 + 1 + 1 + 1 + 3);
    assert_eq!(client.json("api/session")["last"], json!({ "class": owl, "row": 9 }));
    assert_eq!(client.post("api/undo", "").status, 200);
    assert_eq!(client.post("api/undo", "").is_error(409), "nothing to undo");
}

#[test]
fn a_restart_finds_decisions_undo_and_redo_as_they_were() {
    let fixture = Fixture::new();
    let (before, owl) = {
        let running = fixture.serve();
        let client = &running.client;
        let owl = number(client, "owl");
        client.decide(owl, &[1, 2], "accept");
        client.decide(number(client, "cat"), &[3], "reject");
        client.decide(owl, &[4], "reject");
        client.post("api/undo", "");
        (client.json("api/session"), owl)
    };
    let running = fixture.serve();
    let client = &running.client;
    let after = client.json("api/session");
    for field in ["n_decisions", "n_undo", "n_redo", "last"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    for (a, b) in after["classes"].as_array().unwrap().iter().zip(before["classes"].as_array().unwrap()) {
        assert_eq!((&a["n_accept"], &a["n_reject"]), (&b["n_accept"], &b["n_reject"]));
    }
    assert_eq!(client.post("api/redo", "").json()["changes"], json!([[4, 2]]));
    for expected in [json!([[4, 0]]), json!([[3, 0]]), json!([[1, 0], [2, 0]])] {
        assert_eq!(client.post("api/undo", "").json()["changes"], expected);
    }
    assert_eq!(client.json("api/session")["classes"][owl]["n_accept"], 0);
}

#[test]
fn two_clients_see_each_others_decisions() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let (mine, theirs) = (running.client.clone(), running.client.clone());
    let (mut first, mut second) = (mine.events(), theirs.events());
    let answered = mine.decide(1, &[4], "accept");
    assert_eq!(first.next("decisions"), answered);
    assert_eq!(second.next("decisions"), answered);
    assert_eq!(second.next("scoring"), json!({ "class": 1 }));
    let scores = second.next("scores");
    assert_eq!(scores["class"], 1);
    assert!(scores["seconds"].as_f64().unwrap() > 0.0);
    let fetched = theirs.json("api/classes/1/scores");
    assert_eq!((&fetched["relevance"][4], &fetched["revision"]), (&json!(1.0), &scores["revision"]));
    let undone = theirs.post("api/undo", "").json();
    assert_eq!(first.next("decisions"), undone);
    assert_eq!(mine.post("api/lambda", r#"{"lambda": 2.5}"#).json(), json!({ "lambda": 2.5 }));
    assert_eq!(second.next("lambda"), json!({ "lambda": 2.5 }));
    assert_eq!(second.next("scores")["class"], 1, "the class that was looked at last follows");
    assert_eq!(theirs.json("api/session")["lambda"], 2.5);
}

#[test]
fn the_curve_grows_with_the_decisions() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let mut events = running.client.events();
    running.client.decide(0, &[4], "accept");
    let curve = loop {
        let curve = events.next("curve");
        if curve["points"].as_array().unwrap().last().unwrap()["n_left_out"] == 9 {
            break curve;
        }
    };
    let points = curve["points"].as_array().unwrap();
    assert_eq!(points.last().unwrap()["n_decisions"], 1);
    for point in points {
        assert_eq!(point["n_left_out"], 9, "all points are measured on the same examples");
        assert!((0.0..=1.0).contains(&point["accuracy"].as_f64().unwrap()));
    }
    assert_eq!(running.client.json("api/curve"), curve);
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
    let table = labelsieve_data::read_decisions(fixture.path().join("decisions.parquet")).unwrap();
    assert_eq!(table.rows[0].id, HOSTILE);
    number(client, CLASSES[2]); // a class of that name is there
}

#[test]
fn pictures_come_small_and_whole_and_what_is_none_says_so() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let class = client.json(&format!("api/classes/{}", number(client, "cat")));
    let picture =
        |folder: &str, id: &str| client.get(&format!("{folder}/{}", class["example"][row(&class, id)]));
    let size = |bytes: &[u8]| {
        let image = image::load_from_memory(bytes).unwrap();
        (image.width(), image.height())
    };
    let large = picture("thumbnails", "cat 1");
    assert_eq!((large.header("content-type"), size(&large.body)), (Some("image/jpeg"), (192, 144)));
    assert!(large.header("cache-control").unwrap().contains("max-age"));
    assert_eq!(picture("thumbnails", "cat 1").body, large.body, "kept");
    let whole = picture("pictures", "cat 1");
    assert_eq!(whole.body, std::fs::read(fixture.path().join("pictures/cat 1.png")).unwrap());
    let small = picture("thumbnails", "cat 2");
    assert_eq!((small.header("content-type"), size(&small.body)), (Some("image/png"), (20, 20)));
    let tiff = picture("pictures", "cat 4");
    assert_eq!((tiff.header("content-type"), size(&tiff.body)), (Some("image/jpeg"), (50, 30)));
    for folder in ["thumbnails", "pictures"] {
        let message = picture(folder, "cat 3").is_error(415);
        assert!(message.starts_with("expected JPEG, PNG"), "{message}");
        picture(folder, "cat 5").is_error(404);
        client.get(&format!("{folder}/4000000")).is_error(404);
        client.get(&format!("{folder}/..%2f..%2fcaptions.csv")).is_error(400);
    }
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
