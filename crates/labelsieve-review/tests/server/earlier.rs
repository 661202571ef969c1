//! Reviews of files that have decisions already.

use std::path::Path;

use labelsieve_files::work::Silent;
use labelsieve_files::{read_decisions, write_csv};
use labelsieve_review::Review;
use serde_json::{Value, json};

use crate::client::{Client, number, relevance};
use crate::fixture::{Fixture, Running, score, serve};

/// A table of decisions as a spreadsheet has it, without names and times.
fn write_sheet(path: &Path, rows: &[(&str, &str)]) {
    let rows = rows.iter().map(|(id, decision)| [*id, "owl", *decision]);
    write_csv(path, ["id", "class", "decision"], rows).unwrap();
}

fn review_of_sheet(fixture: &Fixture, rows: &[(&str, &str)]) -> Running {
    let output = fixture.path().join("sheet.csv");
    write_sheet(&output, rows);
    serve(Review { output, ..fixture.review.clone() }.open(&Silent::default()).unwrap())
}

/// The decisions about the first owls.
fn first_decisions(client: &Client) -> Vec<Value> {
    let owl = number(client, "owl");
    client.json(&format!("api/classes/{owl}"))["decision"].as_array().unwrap()[..3].to_vec()
}

#[test]
fn undo_takes_back_one_row_of_a_spreadsheet_and_not_all() {
    let fixture = Fixture::new();
    let rows = [("owl 0", "accept"), ("owl 1", "accept"), ("owl 2", "reject")];
    let running = review_of_sheet(&fixture, &rows);
    assert_eq!(running.client.json("api/session")["n_undo"], 3);
    assert_eq!(running.client.post("api/undo", "").json()["changes"], json!([[2, 0]]));
    assert_eq!(first_decisions(&running.client), [1, 1, 0]);
}

#[test]
fn redo_brings_back_what_was_undone_and_nothing_that_a_file_had_withdrawn() {
    let fixture = Fixture::new();
    let rows = [("owl 0", "accept"), ("owl 0", "undecided"), ("owl 1", "accept")];
    for has_moment in [false, true] {
        let output = fixture.path().join("sheet.csv");
        write_sheet(&output, &rows);
        if has_moment {
            let at = "2026-01-02T03:04:05.000006Z";
            let rows = rows.iter().map(|(id, decision)| [*id, "owl", *decision, at]);
            write_csv(&output, ["id", "class", "decision", "at"], rows).unwrap();
        }
        let review = Review { output, ..fixture.review.clone() };
        let running = serve(review.open(&Silent::default()).unwrap());
        let client = &running.client;
        let before = first_decisions(client);
        assert_eq!(before, [0, 1, 0]);
        client.post("api/undo", "");
        assert_eq!(client.post("api/redo", "").status, 200);
        assert_eq!(first_decisions(client), before, "with a moment: {has_moment}");
    }
}

#[test]
fn a_new_file_begins_with_the_decisions_that_the_relevance_was_made_with() {
    let fixture = Fixture::new();
    let sheet = fixture.path().join("before.csv");
    write_sheet(&sheet, &[("owl 0", "accept"), ("owl 2", "reject")]);
    score(fixture.path(), Some(sheet), "decided.parquet");
    let review = Review { relevance: fixture.path().join("decided.parquet"), ..fixture.review.clone() };
    let running = serve(review.open(&Silent::default()).unwrap());
    let client = &running.client;
    assert_eq!(client.json("api/session")["n_decisions"], 2);
    assert_eq!(first_decisions(client), [1, 0, 2]);
    let owls = relevance(client, number(client, "owl"));
    assert_eq!((owls[0], owls[2]), (1.0, 0.0));
    let saved = read_decisions(&review.output).unwrap();
    assert_eq!(saved.latest().len(), 2, "also for the next `clean`");
    client.post("api/undo", "");
    drop(running);
    let running = serve(review.open(&Silent::default()).unwrap());
    assert_eq!(first_decisions(&running.client), [1, 0, 0], "only a new file begins with them");
}
