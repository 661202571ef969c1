//! The keys by which killed runs find their own work again: a key that changes loses the work of every run at hand.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::Golden;
use super::answers::short_photo_folder;
use crate::common::{bytes, listing, run};
use crate::embed::{folder_of, write};
use crate::examples::task_folder;
use crate::networks::{FINETUNE, PRETRAIN, base_folder, novel_folder};
use crate::resume::{kill, stopped_when};
use crate::{bench_photos, release};

/// When all inputs were changed last, in seconds since 1970.
const CHANGED: u64 = 1_600_000_000;

/// A key belongs to the times of change of its inputs.
fn set_times(folder: &Path) {
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
fn records(journal: &[u8]) -> Vec<(String, &[u8])> {
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
fn keys_of_journal(folder: &Path, name: &str) -> String {
    let journal = bytes(folder, name);
    let records = records(&journal);
    let (name, key) = &records[0];
    assert_eq!(name, "fingerprint");
    let mut names: Vec<&str> = records[1..].iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let names: String = names.iter().map(|name| format!("record {name}\n")).collect();
    stable(folder, &String::from_utf8_lossy(key)) + &names
}

/// The key in a checkpoint, which is a safetensors file.
fn key_of_checkpoint(folder: &Path, name: &str) -> String {
    let file = bytes(folder, name);
    let length = u64::from_le_bytes(file[..8].try_into().expect("eight bytes")) as usize;
    let header: serde_json::Value = serde_json::from_slice(&file[8..8 + length]).expect("a header");
    let metadata = header["__metadata__"].as_object().expect("metadata");
    let found = metadata.values().filter_map(|value| find_text(value, "fingerprint")).next();
    stable(folder, &found.unwrap_or_else(|| panic!("no key in {metadata:?}")))
}

/// The text of this name, in JSON within JSON too.
fn find_text(value: &serde_json::Value, name: &str) -> Option<String> {
    match value {
        serde_json::Value::Object(fields) => match fields.get(name) {
            Some(serde_json::Value::String(text)) => Some(text.clone()),
            _ => fields.values().find_map(|value| find_text(value, name)),
        },
        serde_json::Value::String(text) => find_text(&serde_json::from_str(text).ok()?, name),
        _ => None,
    }
}

/// The key with placeholders for what is volatile: the version, the instruction level, a digest, and the size and time of files as they are now.
fn stable(folder: &Path, key: &str) -> String {
    let version = format!("labelsieve {},", env!("CARGO_PKG_VERSION"));
    let mut text = String::new();
    for line in key.lines() {
        let line = line.replace(&version, "labelsieve {version},");
        text += &(without_volatile(&without_stamp(folder, &line)) + "\n");
    }
    text
}

/// The instruction level, and the digest of a run in parts, which holds the version (`bytes/parts.txt` pins it).
fn without_volatile(line: &str) -> String {
    let mut line = line.to_owned();
    for (name, placeholder) in [("\"instructions\":\"", "{level}"), ("\"run\":\"", "{run}")] {
        if let Some((before, rest)) = line.split_once(name) {
            let (_, after) = rest.split_once('"').expect("the end of a text");
            line = format!("{before}{name}{placeholder}\"{after}");
        }
    }
    line
}

fn without_stamp(folder: &Path, line: &str) -> String {
    let Some((path, _)) = line.strip_prefix('"').and_then(|rest| rest.split_once("\" ")) else {
        return line.to_owned();
    };
    let size = std::fs::metadata(folder.join(path)).expect("a file").len();
    assert_eq!(line, format!("\"{path}\" {size} {CHANGED}000000000"), "path, size and time");
    format!("\"{path}\" {{size}} {{time}}")
}

/// The key of a run that is killed as soon as `partial` holds one.
fn key_of_killed(folder: &Path, line: &str, partial: &str) -> String {
    set_times(folder);
    let is_checkpoint = partial.ends_with(".checkpoint");
    let has_key = |found: &[u8]| if is_checkpoint { !found.is_empty() } else { !records(found).is_empty() };
    kill(stopped_when(folder, line, (partial, "R.out"), &has_key));
    let key =
        if is_checkpoint { key_of_checkpoint(folder, partial) } else { keys_of_journal(folder, partial) };
    std::fs::remove_file(folder.join(partial)).expect("it exists");
    key
}

#[test]
fn keys_of_relevance_and_features_stay_as_they_are() {
    let mut golden = Golden::default();
    let (folder, _) = task_folder();
    let folder = folder.path();
    let score = "score --clean C.npz --pool N.npz --device cpu --threads 1 -o R.parquet";
    for (name, options) in [
        ("score", ""),
        ("score-gcn", "--method gcn --lambda 0.5 --seed 3"),
        ("score-label-propagation", "--method label-propagation"),
        ("score-shard", "--shard 1/2"),
    ] {
        let key = key_of_killed(folder, &format!("{score} {options}"), "R.parquet.partial");
        golden.check(&format!("keys/{name}.txt"), first_key(&key));
    }
    let folder = folder_of(40);
    let folder = folder.path();
    let embed = "embed --model M.safetensors --device cpu --images photos --batch 2 --threads 1 -o R.parquet";
    for (name, options) in [("embed", ""), ("embed-size", "--image-size 32")] {
        let key = key_of_killed(folder, &format!("{embed} {options}"), "R.parquet.partial");
        golden.check(&format!("keys/{name}.txt"), first_key(&key));
    }
    golden.finish();
}

/// Without the records, of which a killed run may have any number.
fn first_key(keys: &str) -> &str {
    keys.split("\nrecord ").next().unwrap_or_default()
}

#[test]
fn keys_of_trainings_stay_as_they_are() {
    let mut golden = Golden::default();
    let folder = base_folder();
    let line = format!("{PRETRAIN} --threads 1 -o N.safetensors");
    let key = key_of_killed(folder.path(), &line, "N.safetensors.checkpoint");
    golden.check("keys/pretrain.txt", &key);
    let folder = novel_folder();
    let line = format!("{FINETUNE} --base-images base --threads 1 -o F.safetensors");
    let key = key_of_killed(folder.path(), &line, "F.safetensors.checkpoint");
    golden.check("keys/finetune.txt", &key);
    golden.finish();
}

#[test]
fn keys_of_journals_that_stay_are_as_they_were() {
    let mut golden = Golden::default();
    let folder = base_folder();
    let folder = folder.path();
    write(
        folder,
        "base/metadata.csv",
        b"file_name,caption\nrows/000.png,some rows\ncolumns/001.png,some columns\n",
    );
    set_times(folder);
    run(folder, "run --clean checked --pool base --model tiny-resnet10 --device cpu -o RUN").ok();
    golden.check("keys/run.txt", &keys_of_journal(folder, "RUN/steps.journal"));

    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    release::write(folder);
    set_times(folder);
    let line =
        "bench paper --features . --splits . --run R.run --shots 1 --episodes 1 --no-cosine --device cpu";
    run(folder, line).ok();
    golden.check("keys/bench-paper.txt", &keys_of_journal(folder, "R.run"));
    let line = "bench relevance -o out --sets generated-small --shots 1 --draws 1 --methods gcn --device cpu";
    run(folder, line).ok();
    golden.check("keys/bench-relevance.txt", &keys_of_journal(folder, "out/cells-generated-small.journal"));

    let folder = short_photo_folder();
    let folder = folder.path();
    set_times(folder);
    run(folder, &format!("{} --device cpu", bench_photos::BENCH)).ok();
    golden.check("keys/bench-photos.txt", &keys_of_journal(folder, "RUN/cells-features.journal"));
    golden.finish();
}
