//! λ chosen on the page: what is told, what is scored again, and what the command says.

use labelsieve::Method;
use labelsieve::relevance::{Gcn, Training};
use labelsieve_files::work::Silent;
use labelsieve_review::Review;
use serde_json::{Value, json};

use crate::client::relevance;
use crate::fixture::{Fixture, score_with, serve, written};

#[test]
fn it_comes_with_the_command_that_has_it() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let mut events = client.events();
    let command = |answer: &Value| answer["command"].as_str().unwrap().to_owned();
    let without = command(&client.json("api/session"));
    assert!(!without.contains("lambda"), "{without}");
    let chosen = client.post("api/lambda", r#"{"lambda": 2.5}"#).json();
    assert_eq!(chosen["lambda"], 2.5);
    assert!(command(&chosen).contains(" lambda=2.5 "), "{chosen}");
    assert_eq!(events.next("lambda"), chosen);
    let session = client.json("api/session");
    assert_eq!((&session["lambda"], &session["command"]), (&json!(2.5), &chosen["command"]));
    let back = client.post("api/lambda", r#"{"lambda": null}"#).json();
    assert_eq!(back, json!({ "lambda": null, "command": without }));
}

#[test]
fn every_class_follows_once_its_relevance_is_asked_for() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let mut events = client.events();
    client.json("api/classes/0");
    client.json("api/classes/1"); // the last one that is looked at
    client.post("api/lambda", r#"{"lambda": 2.5}"#);
    let gcn = Method::Gcn(Gcn { lambda: Some(2.5), ..Gcn::default() });
    score_with(fixture.path(), gcn, None, "again.parquet");
    for class in [0, 1] {
        let name = &client.json("api/session")["classes"][class]["name"];
        let expected = written(&fixture.path().join("again.parquet"), name);
        assert_ne!(written(&fixture.review.relevance, name), expected);
        while relevance(client, class) != expected {
            events.next("scores"); // fails when none comes any more
        }
    }
}

#[test]
fn settings_that_the_command_line_lacks_give_no_command() {
    let fixture = Fixture::new();
    let training = Training { iterations: 5, ..Training::default() };
    let gcn = Method::Gcn(Gcn { training, ..Gcn::default() });
    score_with(fixture.path(), gcn, None, "short.parquet");
    let review = Review { relevance: fixture.path().join("short.parquet"), ..fixture.review.clone() };
    let running = serve(review.open(&Silent::default()).unwrap());
    let session = running.client.json("api/session");
    assert_eq!((&session["can_score"], &session["command"]), (&json!(true), &Value::Null));
}
