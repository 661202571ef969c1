//! The documents of the repository, and the commands in them.

use std::path::{Path, PathBuf};

use crate::common::run;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// README.md, ARCHITECTURE.md, CONTRIBUTING.md, SECURITY.md, models/README.md and docs/*.md.
pub fn documents() -> Vec<PathBuf> {
    let root = root();
    let names = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "models/README.md"];
    let mut found = names.map(|name| root.join(name)).to_vec();
    let docs = std::fs::read_dir(root.join("docs")).expect("a folder docs");
    found.extend(
        docs.map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|e| e == "md")),
    );
    found.sort();
    found
}

/// Every `PROGRAM …` in backticks or in a code block, continued lines joined.
pub fn commands(text: &str, program: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let mut in_code = false;
    let mut found: Vec<String> = code_spans(&joined).into_iter().map(str::to_owned).collect();
    for line in joined.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            found.push(line.trim_start_matches(['$', ' ']).split(" #").next().unwrap_or("").to_owned());
        }
    }
    let is_command = |line: &str| {
        let mut words = line.split_whitespace();
        words.next() == Some(program) && words.next().is_some()
    };
    found.retain(|line| is_command(line));
    found
}

/// The text between single backticks.
pub fn code_spans(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("```"))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .collect()
}

/// Every command of `program` in the documents must have the options that it is given there.
#[track_caller]
pub fn check_commands(program: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    for path in documents() {
        let text = read(&path);
        for line in commands(&text, program) {
            let words: Vec<&str> = line.split_whitespace().skip(1).collect();
            let is_name = |word: &&str| {
                !word.starts_with('-') && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
            };
            let names: Vec<&str> = words.iter().copied().take(1).filter(is_name).collect();
            let help = run(folder.path(), &format!("{} --help", names.join(" "))).ok().out;
            for word in words.iter().filter(|word| word.starts_with("--")) {
                let option = word.split('=').next().unwrap_or(word);
                assert!(help.contains(option), "{}: `{line}`: no option {option}", path.display());
            }
        }
    }
}
