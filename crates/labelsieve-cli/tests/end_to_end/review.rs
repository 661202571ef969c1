//! `labelsieve review` as a process: what it prints, what a kill leaves, what it refuses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::{command, run, shell};
use crate::examples::{clean_of, noisy_of, task_folder};
use crate::json::check_answer_text;
use crate::resume::signal;

const REVIEW: &str =
    "review R.parquet --clean C.npz --pool N.npz -o D.parquet --no-open --device cpu --by ann";

/// A review at work.
struct Review {
    child: Child,
    url: String,
}

impl Review {
    fn start(mut command: Command) -> Review {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("an address");
        if line.is_empty() {
            let mut said = String::new();
            child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
            panic!("it ended: {said}");
        }
        Review { child, url: line.trim().to_owned() }
    }

    fn of(folder: &Path) -> Review {
        Review::start(command(folder, REVIEW))
    }

    /// Status and body.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let rest = self.url.strip_prefix("http://").expect("an address");
        let (host, base) = rest.split_once('/').expect("a token");
        let mut stream = TcpStream::connect(host).expect("it listens");
        write!(
            stream,
            "{method} /{base}{path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, answer.split_once("\r\n\r\n").expect("a body").1.to_owned())
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.ask("GET", path, "").1).expect("JSON")
    }

    fn decide(&self, rows: &str, decision: &str) -> (u16, String) {
        let body = format!(r#"{{"class": 1, "rows": [{rows}], "decision": "{decision}"}}"#);
        self.ask("POST", "api/decisions", &body)
    }

    /// Ends it by a signal; exit code and what it said.
    fn end(mut self, name: &str) -> (Option<i32>, String) {
        signal(&self.child, name);
        let mut said = String::new();
        self.child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        (self.child.wait().expect("it ends").code(), said)
    }
}

/// No server outlives its test.
impl Drop for Review {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder() -> tempfile::TempDir {
    let (folder, _) = task_folder();
    run(folder.path(), "score --clean C.npz --pool N.npz --device cpu -o R.parquet").ok();
    folder
}

#[test]
fn a_kill_after_a_decision_loses_nothing_and_the_review_goes_on() {
    let folder = folder();
    let folder = folder.path();
    let review = Review::of(folder);
    assert_eq!(review.decide("3, 4", "accept").0, 200);
    assert_eq!(review.decide("5", "reject").0, 200);
    assert_eq!(review.end("-KILL").0, None);
    assert!(folder.join("D.parquet.log").exists());

    let review = Review::of(folder);
    let session = review.json("api/session");
    assert_eq!((&session["n_decisions"], &session["n_undo"]), (&3.into(), &2.into()));
    assert_eq!(review.json("api/classes/1")["decision"][4], 1);
    assert_eq!(review.ask("POST", "api/undo", "").0, 200);
    let (code, said) = review.end("-TERM");
    assert_eq!(code, Some(0), "{said}");
    let clean = "labelsieve score --clean C.npz --pool N.npz --decisions D.parquet -o R-reviewed.parquet";
    assert!(said.contains("2 decisions in `D.parquet`\n") && said.contains(clean), "{said}");
    assert!(!folder.join("D.parquet.log").exists(), "the log is folded");
    let table = labelsieve_files::read_decisions(folder.join("D.parquet")).expect("decisions");
    assert_eq!((table.rows.len(), table.latest().len()), (4, 2));
    assert!(table.rows.iter().all(|row| row.by == "ann"));
    shell(folder, &clean.replace("labelsieve", "$LABELSIEVE")).ok();
}

#[test]
fn the_folder_of_a_run_needs_nothing_else_and_keeps_the_decisions() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    let run_folder = folder.join("out");
    let photos = folder.join("photos");
    std::fs::create_dir_all(&run_folder).expect("a folder");
    std::fs::create_dir_all(&photos).expect("a folder");
    clean_of(&task).parquet(run_folder.join("clean.parquet"), "c");
    noisy_of(&task).parquet(run_folder.join("pool.parquet"), "n");
    run(
        folder,
        "score --clean out/clean.parquet --pool out/pool.parquet --device cpu -o out/relevance.parquet",
    )
    .ok();
    image::RgbImage::new(9, 9).save(photos.join("n0.png")).expect("a picture");
    let sources = serde_json::json!({ "images": [photos], "texts": [] });
    std::fs::write(run_folder.join("sources.json"), sources.to_string()).expect("a file");
    let review = Review::start(command(folder, "review out --no-open --device cpu"));
    let session = review.json("api/session");
    assert_eq!((&session["can_score"], &session["has_pictures"]), (&true.into(), &true.into()));
    assert_eq!((&session["title"], &session["output"]), (&"out".into(), &"out/decisions.parquet".into()));
    assert_eq!(review.decide("0", "accept").0, 200);
    assert_eq!(review.end("-TERM").0, Some(0));
    let table = labelsieve_files::read_decisions(run_folder.join("decisions.parquet")).expect("decisions");
    assert_eq!(table.rows.len(), 1);
}

#[test]
fn a_second_review_of_the_same_file_and_a_port_that_is_taken_are_refused() {
    let folder = folder();
    let folder = folder.path();
    let review = Review::of(folder);
    run(folder, REVIEW)
        .fails_with(&["another process is using `D.parquet`", "hint: wait until it has finished"]);
    let port = review.url.split([':', '/']).nth(4).expect("a port").to_owned();
    let other = REVIEW.replace("D.parquet", "E.parquet");
    run(folder, &format!("{other} --port {port}"))
        .fails_with(&["cannot listen on 127.0.0.1:", "hint: choose another --port"]);
    assert_eq!(review.end("-TERM").0, Some(0));
}

#[test]
fn a_full_disk_is_said_and_what_was_not_saved_does_not_count() {
    let folder = folder();
    let folder = folder.path();
    assert_eq!(Review::of(folder).end("-TERM").0, Some(0)); // makes D.parquet
    // Files may not grow beyond this limit: 4 blocks of 512 bytes.
    let mut limited = Command::new("sh");
    let line = format!("trap '' XFSZ; ulimit -f 4; exec $LABELSIEVE {REVIEW}");
    limited.current_dir(folder).env("LABELSIEVE", env!("CARGO_BIN_EXE_labelsieve")).args(["-c", &line]);
    let review = Review::start(limited);
    let mut n_saved = 0;
    let refused = loop {
        let (status, body) = review.decide(&n_saved.to_string(), "accept");
        match status {
            200 => n_saved += 1,
            _ => break (status, body),
        }
        assert!(n_saved < 100, "the limit has no effect");
    };
    assert_eq!(refused.0, 507, "{}", refused.1);
    assert!(
        refused.1.contains("the decision was not saved: ") && refused.1.contains("hint"),
        "{}",
        refused.1
    );
    assert_eq!(review.json("api/session")["n_decisions"], n_saved);
    assert_eq!(review.json("api/classes/1")["decision"][n_saved], 0);
    review.end("-KILL");
    let review = Review::of(folder);
    assert_eq!(review.json("api/session")["n_decisions"], n_saved);
}

#[test]
fn the_address_comes_as_json_too_and_other_machines_are_let_in_with_a_warning_only() {
    let folder = folder();
    let folder = folder.path();
    let mut child = command(folder, &format!("{REVIEW} --json --host 0.0.0.0"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut text = String::new();
    while !text.trim_end().ends_with("\n}") {
        assert!(out.read_line(&mut text).expect("text") > 0, "{text}");
    }
    check_answer_text(&text, "review");
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    assert!(answer["url"].as_str().expect("an address").starts_with("http://localhost:"), "{text}");
    signal(&child, "-TERM");
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert!(said.contains("warning: listening on 0.0.0.0: "), "{said}");
}

#[test]
fn earlier_decisions_count_and_those_about_nothing_are_named() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("D.csv"), "id,class,decision\nnobody,nothing,accept\n").expect("a file");
    let line = REVIEW.replace("D.parquet", "D.csv").replace(" --by ann", "");
    let mut nameless = command(folder, &line);
    for name in ["USER", "LOGNAME", "USERNAME"] {
        nameless.env_remove(name);
    }
    let review = Review::start(nameless);
    assert_ne!(review.json("api/session")["by"], "", "the system knows the account");
    let (code, said) = review.end("-TERM");
    assert_eq!(code, Some(0), "{said}");
    let expected =
        "warning: 1 decision in `D.csv` about no candidate of this review: `nobody` of `nothing`\n";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn nonsense_is_refused_before_anything_is_served() {
    let folder = folder();
    let folder = folder.path();
    let fails = |line: &str, parts: &[&str]| drop(run(folder, line).fails_with(parts));
    fails("review", &["required", "RELEVANCE"]);
    fails(
        "review R.parquet --no-open",
        &["no file for the decisions", "hint: give one with --output, e.g. `decisions.parquet`"],
    );
    fails("review R.parquet -o D.txt", &["D.txt"]);
    fails("review R.parquet -o R.parquet", &["would replace the input `R.parquet`"]);
    fails("review nope", &["`nope` does not exist", "hint: give a relevance file, or the folder"]);
    fails("review no.parquet -o D.parquet", &["`no.parquet` does not exist"]);
    fails("review C.npz -o D.parquet", &["C.npz"]);
    fails("review . -o D.parquet", &["has no relevance.parquet", "hint: give the folder"]);
    fails("review R.parquet -o D.parquet --clean C.npz", &["--pool"]);
    fails(
        "review R.parquet -o D.parquet --image-column x",
        &["review without --images does not use --image-column"],
    );
    fails("review R.parquet -o D.parquet --label-column x", &["does not use --label-column"]);
    for folder in ["review . -o D.parquet", "review --demo -o D.parquet"] {
        for option in ["--label-column x", "--embedding-column x", "--allow-mixed"] {
            let unused = format!("does not use {}", option.split(' ').next().expect("a name"));
            fails(&format!("{folder} {option}"), &[&unused, "hint: the folder's own features"]);
        }
    }
    fails("review R.parquet -o D.parquet --host nowhere", &["--host"]);
    let swapped = "review R.parquet -o D.parquet --clean T.npz --pool T.npz";
    fails(swapped, &["has no features in `T.npz`", "hint: give the --clean"]);
    assert!(!folder.join("D.parquet").exists() && !folder.join("D.parquet.log").exists());
}
