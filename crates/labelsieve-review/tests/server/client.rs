//! HTTP by hand: what is sent and what comes back is all visible.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

/// For an event, on a machine that has other things to do.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// One client of one server.
#[derive(Clone)]
pub struct Client {
    pub socket: SocketAddr,
    /// With slashes around.
    pub base: String,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// It must have this status and be an error in words.
    #[track_caller]
    pub fn is_error(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self.json()["error"].as_str().expect("a message").to_owned()
    }
}

impl Client {
    pub fn host(&self) -> String {
        self.socket.to_string()
    }

    /// Any request, with no other headers than these.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.socket).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let _ = stream.write_all(body); // a server that refuses need not read it
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        parse(&bytes)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path)
    }

    /// A request without a body.
    pub fn ask(&self, method: &str, path: &str) -> Answer {
        self.send(method, &format!("{}{path}", self.base), &[("Host", &self.host())], b"")
    }

    #[track_caller]
    pub fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
        answer.json()
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        let origin = format!("http://{}", self.host());
        let headers = [("Host", self.host()), ("Origin", origin)];
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.send("POST", &format!("{}{path}", self.base), &headers, body.as_bytes())
    }

    #[track_caller]
    pub fn decide(&self, class: usize, rows: &[usize], decision: &str) -> Value {
        let body = serde_json::json!({ "class": class, "rows": rows, "decision": decision });
        let answer = self.post("api/decisions", &body.to_string());
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }

    /// Events from now on.
    pub fn events(&self) -> Events {
        let mut stream = TcpStream::connect(self.socket).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET {}api/events HTTP/1.1\r\nHost: {}\r\n\r\n", self.base, self.host()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).expect("headers");
        }
        Events(reader)
    }
}

/// A stream of events.
pub struct Events(BufReader<TcpStream>);

impl Events {
    /// The data of the next event of this name; others are passed over. Fails when none comes in time: the lines that keep a
    /// stream alive never let a read time out.
    pub fn next(&mut self, name: &str) -> Value {
        let (begun, mut current) = (Instant::now(), String::new());
        loop {
            assert!(begun.elapsed() < LONGEST_WAIT, "no event `{name}` in time");
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("an event in time") > 0, "the stream ended");
            if let Some(event) = line.trim_end().strip_prefix("event: ") {
                current = event.to_owned();
            } else if let Some(data) = line.trim_end().strip_prefix("data: ")
                && current == name
            {
                return serde_json::from_str(data).expect("JSON");
            }
        }
    }
}

fn parse(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
    let head = std::str::from_utf8(&bytes[..end]).expect("a head of text");
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status").parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    Answer { status, headers, body: bytes[end + 4..].to_vec() }
}

/// The number of a class by its name.
pub fn number(client: &Client, name: &str) -> usize {
    let session = client.json("api/session");
    let classes = session["classes"].as_array().unwrap();
    classes.iter().position(|class| class["name"] == name).expect("a class of this name")
}

/// The row of a candidate by its id.
pub fn row(class: &Value, id: &str) -> usize {
    class["id"].as_array().unwrap().iter().position(|known| known == id).expect("a candidate of this id")
}

/// The relevance of a class as the page has it.
pub fn relevance(client: &Client, class: usize) -> Vec<f32> {
    let scores = client.json(&format!("api/classes/{class}/scores"));
    let relevance = scores["relevance"].as_array().unwrap().iter();
    relevance.map(|value| value.as_f64().unwrap() as f32).collect()
}
