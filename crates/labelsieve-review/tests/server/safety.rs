//! Who is let in, and what every answer carries.

use std::io::{Read, Write};
use std::net::TcpStream;

use labelsieve_files::work::Silent;
use labelsieve_review::server::guard::{CONTENT_SECURITY_POLICY, MAX_BODY};

use crate::fixture::Fixture;

#[test]
fn only_the_page_itself_with_its_token_may_ask_and_decide() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let host = client.host();
    let ours = format!("http://{}", client.host());
    let session = format!("{}api/session", client.base);
    let foreign_token = format!("/{}/api/session", "0".repeat(32));
    for path in ["/", "/api/session", &foreign_token, &session[..session.len() - 20]] {
        client.send("GET", path, &[("Host", &host)], b"").is_error(404);
    }
    for host in ["evil.example", "evil.example:80", "127.0.0.1:1"] {
        client.send("GET", &session, &[("Host", host)], b"").is_error(403);
    }
    client.send("GET", &session, &[("Host", &host), ("Host", "evil.example")], b"").is_error(403);
    for (named, status) in [("evil.example", 403), (host.as_str(), 200)] {
        let answer = client.send("GET", &format!("http://{named}{session}"), &[("Host", &host)], b"");
        assert_eq!(answer.status, status, "{named}");
    }
    client.send("GET", &session, &[("Host", &host), ("Sec-Fetch-Site", "cross-site")], b"").is_error(403);
    assert_eq!(
        client.send("GET", &session, &[("Host", &host), ("Sec-Fetch-Site", "same-origin")], b"").status,
        200
    );
    let opened = [("Host", host.as_str()), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")];
    let in_a_tab = [&opened[..], &[("Sec-Fetch-Dest", "document")]].concat();
    assert_eq!(
        client.send("GET", &client.base, &in_a_tab, b"").status,
        200,
        "a link to the page may be followed"
    );
    let in_a_frame = [&opened[..], &[("Sec-Fetch-Dest", "iframe")]].concat();
    client.send("GET", &client.base, &in_a_frame, b"").is_error(403);
    client.send("GET", &session, &in_a_tab, b"").is_error(403);

    let decisions = format!("{}api/decisions", client.base);
    let body = br#"{"class": 0, "rows": [0], "decision": "accept"}"#;
    for origin in ["null", "http://evil.example", "https://127.0.0.1", &ours.replace("http", "https")] {
        client.send("POST", &decisions, &[("Host", &host), ("Origin", origin)], body).is_error(403);
    }
    client.send("POST", &decisions, &[("Host", &host)], body).is_error(403);
    let same_site = [("Host", host.as_str()), ("Origin", &ours), ("Sec-Fetch-Site", "same-site")];
    client.send("POST", &decisions, &same_site, body).is_error(403);
    assert_eq!(client.json("api/session")["n_decisions"], 0);
    assert_eq!(client.send("POST", &decisions, &[("Host", &host), ("Origin", &ours)], body).status, 200);
}

#[test]
fn every_answer_forbids_what_the_page_does_not_need() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let answers = [
        client.get(""),
        client.get("app.js"),
        client.get("app.css"),
        client.get("api/session"),
        client.get("thumbnails/0"),
        client.get("nothing"),
        client.post("api/undo", ""),
        client.send("GET", "/", &[("Host", &client.host())], b""),
    ];
    for answer in &answers {
        assert_eq!(answer.header("content-security-policy"), Some(CONTENT_SECURITY_POLICY));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
        assert!(answer.header("content-type").is_some() && answer.header("cache-control").is_some());
    }
    assert_eq!(answers[0].header("content-type"), Some("text/html; charset=utf-8"));
    let page = String::from_utf8(answers[0].body.clone()).unwrap();
    assert!(!page.contains("http://") && !page.contains("https://"), "it loads nothing from elsewhere");
}

#[test]
fn a_body_that_is_too_long_is_refused() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let body = " ".repeat(MAX_BODY + 1);
    let message = running.client.post("api/decisions", &body).is_error(413);
    assert_eq!(message, format!("expected at most {MAX_BODY} bytes"));
    assert_eq!(running.client.json("api/session")["n_decisions"], 0);
}

#[test]
fn a_request_that_is_too_long_gets_an_answer_and_not_a_broken_pipe() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let mut stream = TcpStream::connect(client.socket).unwrap();
    let host = client.host();
    let body = vec![b' '; 8 * MAX_BODY];
    write!(
        stream,
        "POST {}api/decisions HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n",
        client.base,
        body.len()
    )
    .unwrap();
    stream.write_all(&body).expect("all of it is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the connection is closed in order");
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[test]
fn a_second_review_of_the_same_decisions_is_refused() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let error = fixture.review.open(&Silent::default()).err().expect("it is taken").to_string();
    assert!(
        error.starts_with("another process is using `") && error.ends_with("decisions.parquet`"),
        "{error}"
    );
    drop(running);
    fixture.review.open(&Silent::default()).unwrap();
}

#[test]
fn decisions_never_replace_an_input() {
    let fixture = Fixture::new();
    let relevance = fixture.review.relevance.clone();
    let review = labelsieve_review::Review { output: relevance, ..fixture.review.clone() };
    let error = review.open(&Silent::default()).err().expect("it is an input").to_string();
    assert!(error.contains("would replace the input"), "{error}");
}
