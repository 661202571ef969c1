//! The relevance on the page is the relevance that `clean` writes.

use labelsieve_data::read_relevance;
use labelsieve_pipeline::Silent;
use labelsieve_pipeline::review::Review;
use serde_json::json;

use crate::client::{Client, Events};
use crate::fixture::{Fixture, clean, serve};

/// The relevance of a class once it has followed all decisions.
fn settled(client: &Client, events: &mut Events, class: usize) -> Vec<f32> {
    loop {
        let told = events.next("scores");
        let scores = client.json(&format!("api/classes/{class}/scores"));
        if told["class"] == class && told["revision"] == scores["revision"] {
            return scores["relevance"]
                .as_array()
                .unwrap()
                .iter()
                .map(|value| value.as_f64().unwrap() as f32)
                .collect();
        }
    }
}

#[test]
fn it_is_the_same_to_the_last_bit_after_any_number_of_decisions() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let mut events = client.events();
    let name = client.json("api/session")["classes"][1]["name"].clone();
    let mut relevance = Vec::new();
    for (rows, decision) in [(&[3, 4][..], "accept"), (&[8], "reject"), (&[9], "unsure"), (&[4], "undecided")]
    {
        client.decide(1, rows, decision);
        relevance = settled(client, &mut events, 1);
    }
    clean(fixture.path(), Some(fixture.path().join("decisions.parquet")), "again.parquet");
    let written = read_relevance(fixture.path().join("again.parquet")).unwrap();
    let expected: Vec<f32> = (0..written.ids.len())
        .filter(|&row| written.classes.get(row) == name && !written.is_clean[row])
        .map(|row| written.relevance[row])
        .collect();
    assert_eq!(relevance, expected);
    assert_eq!((relevance[3], relevance[8]), (1.0, 0.0));
    let before = read_relevance(&fixture.review.relevance).unwrap();
    assert_ne!(before.relevance, written.relevance);
    drop(running);

    // From the file that was made with the decisions, nothing has to be scored again.
    let review = Review { relevance: fixture.path().join("again.parquet"), ..fixture.review.clone() };
    let running = serve(review.open(&Silent::default()).unwrap());
    let class = running.client.json("api/classes/1");
    assert_eq!(class["decision"][3], 1);
    let shown: Vec<f32> =
        class["relevance"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as f32).collect();
    assert_eq!(shown, expected);
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
    for class in [0, 1] {
        loop {
            let scores = client.json(&format!("api/classes/{class}"));
            let fixed = |row: usize| match scores["decision"][row].as_u64() {
                Some(1) => scores["relevance"][row] == json!(1.0),
                Some(2) => scores["relevance"][row] == json!(0.0),
                _ => true,
            };
            if (0..20).all(fixed) {
                break;
            }
            events.next("scores");
        }
    }
}
