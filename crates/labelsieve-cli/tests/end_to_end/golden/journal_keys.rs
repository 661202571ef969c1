//! Resume keys of journals.

use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::common::{bytes, listing};

/// When all inputs were changed last, in seconds since 1970.
const CHANGED: u64 = 1_600_000_000;

/// A key belongs to the times of change of its inputs.
pub fn set_times(folder: &Path) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(CHANGED);
    for name in listing(folder) {
        let path = folder.join(name);
        if path.is_file() {
            let file = std::fs::File::options().write(true).open(path).expect("a file");
            file.set_modified(time).expect("a time");
        }
    }
}

/// Keys and contents of the whole records of a journal.
pub fn records(journal: &[u8]) -> Vec<(String, &[u8])> {
    let mut rest = journal.strip_prefix(b"labelsieve journal 1\n").unwrap_or_default();
    let mut records = Vec::new();
    while rest.len() >= 12 {
        let length =
            |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("four bytes")) as usize;
        let key_end = 12 + length(0);
        let end = key_end + length(4);
        if rest.len() < end {
            break;
        }
        let key = String::from_utf8(rest[12..key_end].to_vec()).expect("text");
        records.push((key, &rest[key_end..end]));
        rest = &rest[end..];
    }
    records
}

/// The key of a journal, and the sorted keys of its records if the run is over.
pub fn keys_of_journal(folder: &Path, name: &str) -> String {
    let journal = bytes(folder, name);
    let records = records(&journal);
    let (name, key) = &records[0];
    assert_eq!(name, "fingerprint");
    let mut names: Vec<&str> = records[1..].iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let names: String = names.iter().map(|name| format!("record {name}\n")).collect();
    stable(folder, &String::from_utf8_lossy(key)) + &names
}

/// The key with placeholders for what is volatile: the version, the instruction level, a digest, and the size and time of files as they are now.
pub fn stable(folder: &Path, key: &str) -> String {
    let version = format!("labelsieve {},", env!("CARGO_PKG_VERSION"));
    let mut text = String::new();
    for line in key.lines() {
        let line = line.replace(&version, "labelsieve {version},");
        text += &(without_volatile(&without_stamp(folder, &line)) + "\n");
    }
    text
}

/// The instruction level, and the digest of a run in parts, which holds the version (`bytes/parts.txt` pins it).
pub fn without_volatile(line: &str) -> String {
    let mut line = line.to_owned();
    for (name, placeholder) in [("\"instructions\":\"", "{level}"), ("\"run\":\"", "{run}")] {
        if let Some((before, rest)) = line.split_once(name) {
            let (_, after) = rest.split_once('"').expect("the end of a text");
            line = format!("{before}{name}{placeholder}\"{after}");
        }
    }
    line
}

pub fn without_stamp(folder: &Path, line: &str) -> String {
    let Some((path, _)) = line.strip_prefix('"').and_then(|rest| rest.split_once("\" ")) else {
        return line.to_owned();
    };
    let size = std::fs::metadata(folder.join(path)).expect("a file").len();
    assert_eq!(line, format!("\"{path}\" {size} {CHANGED}000000000"), "path, size and time");
    format!("\"{path}\" {{size}} {{time}}")
}
