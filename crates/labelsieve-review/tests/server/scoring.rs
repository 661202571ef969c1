//! The relevance on the page is the relevance that `clean` writes.

use labelsieve::Method;
use labelsieve::relevance::Auto;
use labelsieve_files::work::Silent;
use labelsieve_review::Review;

use crate::client::{Client, Events, number, relevance};
use crate::fixture::{Fixture, score, score_with, serve, written};

/// The relevance of a class once it is scored again.
fn settled(client: &Client, events: &mut Events, class: usize) -> Vec<f32> {
    while events.next("scoring")["class"] != class {}
    while events.next("scores")["class"] != class {}
    relevance(client, class)
}

#[test]
fn it_is_the_same_to_the_last_bit_after_any_number_of_decisions() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let mut events = client.events();
    let name = client.json("api/session")["classes"][1]["name"].clone();
    let mut last = Vec::new();
    for (rows, decision) in [(&[3, 4][..], "accept"), (&[8], "reject"), (&[9], "unsure"), (&[4], "undecided")]
    {
        client.decide(1, rows, decision);
        last = settled(client, &mut events, 1);
    }
    score(fixture.path(), Some(fixture.path().join("decisions.parquet")), "again.parquet");
    let expected = written(&fixture.path().join("again.parquet"), &name);
    assert_eq!(last, expected);
    assert_eq!((last[3], last[8]), (1.0, 0.0));
    assert_ne!(written(&fixture.review.relevance, &name), expected);
    drop(running);

    // From the file that was made with the decisions, nothing has to be scored again.
    let review = Review { relevance: fixture.path().join("again.parquet"), ..fixture.review.clone() };
    let running = serve(review.open(&Silent::default()).unwrap());
    let class = running.client.json("api/classes/1");
    assert_eq!(class["decision"][3], 1);
    assert_eq!(relevance(&running.client, 1), expected);
}

#[test]
fn auto_compares_with_the_same_classes_as_clean() {
    let fixture = Fixture::new();
    let auto = Method::Auto(Auto::default());
    score_with(fixture.path(), auto.clone(), None, "auto.parquet");
    let review = Review { relevance: fixture.path().join("auto.parquet"), ..fixture.review.clone() };
    let running = serve(review.open(&Silent::default()).unwrap());
    let client = &running.client;
    let mut events = client.events();
    let name = client.json("api/session")["classes"][1]["name"].clone();
    client.decide(0, &[5], "accept"); // of another class: changes nothing here
    client.decide(1, &[3, 8], "reject");
    let found = settled(client, &mut events, 1);
    score_with(fixture.path(), auto, Some(fixture.path().join("decisions.parquet")), "again.parquet");
    assert_eq!(found, written(&fixture.path().join("again.parquet"), &name));
}

#[test]
fn a_resumed_review_scores_a_class_when_it_is_looked_at() {
    let fixture = Fixture::new();
    let (expected, before) = {
        let running = fixture.serve();
        let mut events = running.client.events();
        let before = running.client.json("api/classes/0/scores")["relevance"].clone();
        running.client.decide(0, &[2], "reject");
        (settled(&running.client, &mut events, 0), before)
    };
    let running = fixture.serve();
    let mut events = running.client.events();
    running.client.json("api/classes/0");
    assert_eq!(settled(&running.client, &mut events, 0), expected);
    running.client.post("api/undo", "");
    settled(&running.client, &mut events, 0);
    assert_eq!(
        running.client.json("api/classes/0/scores")["relevance"],
        before,
        "as if nothing had been decided"
    );
}

#[test]
fn many_decisions_at_once_end_with_the_relevance_of_the_last() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let mut events = client.events();
    for row in 0..20 {
        client.decide(row % 2, &[row], if row % 3 == 0 { "accept" } else { "reject" });
    }
    score(fixture.path(), Some(fixture.path().join("decisions.parquet")), "again.parquet");
    for class in [0, 1] {
        let name = &client.json("api/session")["classes"][class]["name"];
        let expected = written(&fixture.path().join("again.parquet"), name);
        while relevance(client, class) != expected {
            events.next("scores"); // fails when none comes any more
        }
    }
}

#[test]
fn a_graph_that_was_made_is_told_although_the_relevance_stays() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let mut events = running.client.events();
    let before =
        written(&fixture.review.relevance, &running.client.json("api/session")["classes"][2]["name"]);
    let class = running.client.json("api/classes/2");
    let told = events.next("scores");
    assert_eq!(told["class"], 2);
    assert!(class["revision"].as_u64() <= told["revision"].as_u64());
    assert_eq!(relevance(&running.client, 2), before);
}

#[test]
fn an_order_that_needs_broken_features_says_what_is_wrong_with_them() {
    let fixture = Fixture::new();
    let path = fixture.path().join("noisy.npy");
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes()); // of the last candidate
    std::fs::write(&path, bytes).unwrap();
    let running = fixture.serve();
    let class = number(&running.client, "</script>'\"");
    let path = format!("api/classes/{class}/order?by=similar&to=1");
    let message = running.client.get(&path).is_error(500);
    assert!(message.contains("has no graph: "), "{message}");
    assert_eq!(running.client.get(&format!("api/classes/{class}/order?by=next")).status, 200);
}
