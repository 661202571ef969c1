//! Decisions: made, taken back, found again, seen by others.

use serde_json::{Value, json};

use crate::client::number;
use crate::fixture::Fixture;

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
    let mine = running.client.clone();
    let theirs = running.client.clone();
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
