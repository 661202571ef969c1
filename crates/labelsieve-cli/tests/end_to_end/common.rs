//! Running the binary in a folder and looking at what it did.

use std::path::Path;
use std::process::{Command, Output};

/// The output and the exit code of a run.
#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// The binary, set to work in `folder`, so that files have short names in messages.
pub fn command(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(crate::BINARY);
    command.current_dir(folder).args(line.split_whitespace());
    command
}

/// Runs the program with the arguments of `line` in `folder`.
pub fn run(folder: &Path, line: &str) -> Finished {
    Finished::from(command(folder, line).output().expect("the binary starts"))
}

/// Runs a line of shell in `folder`, where `$LABELSIEVE` is the binary.
pub fn shell(folder: &Path, line: &str) -> Finished {
    let mut command = Command::new("sh");
    command.current_dir(folder).env("LABELSIEVE", crate::BINARY).args(["-c", line]);
    Finished::from(command.output().expect("sh starts"))
}

impl From<Output> for Finished {
    fn from(output: Output) -> Finished {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Finished { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Finished {
    /// It must have succeeded.
    #[track_caller]
    pub fn ok(self) -> Finished {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    /// It must have failed with a message that holds all these parts, in order, and nothing of a panic.
    #[track_caller]
    pub fn fails_with(self, parts: &[&str]) -> Finished {
        assert!(matches!(self.code, Some(1 | 2)), "exit code {:?}: {self:#?}", self.code);
        assert!(self.err.contains("error: "), "{self:#?}");
        assert_eq!(self.out, "", "a failed command prints no result");
        for sign in ["panicked", "internal error", "RUST_BACKTRACE"] {
            assert!(!self.err.contains(sign), "{self:#?}");
        }
        let mut rest = self.err.as_str();
        for part in parts {
            let Some(at) = rest.find(part) else { panic!("no `{part}` in {rest:?}, {self:#?}") };
            rest = &rest[at + part.len()..];
        }
        self
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// The names of everything in a folder and below, hidden files too, in order.
pub fn listing(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            names.extend(listing(&path).into_iter().map(|below| format!("{name}/{below}")));
        }
        names.push(name);
    }
    names.sort();
    names
}

/// The run must fail with these parts of a message and leave the folder as it was, byte for byte in names.
#[track_caller]
pub fn refuses(folder: &Path, line: &str, parts: &[&str]) {
    let before = listing(folder);
    run(folder, line).fails_with(parts);
    assert_eq!(listing(folder), before, "after `{line}`");
}

pub fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs the program with a closed stdout.
#[track_caller]
pub fn with_closed_stdout(folder: &Path, line: &str) {
    let said = shell(folder, &format!("{{ sleep 0.2; $LABELSIEVE {line}; echo $? > code; }} | true")).ok();
    let code = std::fs::read_to_string(folder.join("code")).expect("a code");
    assert_eq!(code, "0\n", "{line}: {said:?}");
}
