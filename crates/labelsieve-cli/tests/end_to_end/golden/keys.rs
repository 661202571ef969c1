//! The keys by which killed runs find their own work again: a key that changes loses the work of every run at hand.

use std::path::Path;

use super::files::Golden;
use super::journal_keys::{keys_of_journal, records, set_times, stable};
use crate::common::{bytes, run};
use crate::embed::{folder_of, write};
use crate::examples::task_folder;
use crate::networks::{FINETUNE, PRETRAIN, base_folder, novel_folder};
use crate::pictures::copy_small_network;
use crate::resume::{kill, stopped_when};

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
    copy_small_network(folder);
    set_times(folder);
    run(folder, "run --clean checked --pool base --model tiny-resnet10.safetensors --device cpu -o RUN").ok();
    golden.check("keys/run.txt", &keys_of_journal(folder, "RUN/steps.journal"));
    golden.finish();
}
