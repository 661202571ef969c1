//! Files of numbers: what is damaged, impossible or enormous is refused by name, and not read into another result.

use std::io::Write;
use std::path::Path;

use labelsieve_files::{NetworkFile, Precision, SavedClassifier, write_npy_f32};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::common::{bytes, refuses, run, shell};
use crate::damage::poison;
use crate::embed::{folder_of, write};
use crate::examples::{Examples, task_folder};
use crate::resume::{kill, stopped_when};

#[test]
fn a_flipped_bit_in_a_stored_array_is_noticed_wherever_it_is() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    let whole = bytes(folder, "N.npz");
    let clean = "score --clean C.npz --pool N.npz -o R.parquet";
    for at in [1000, whole.len() / 2, whole.len() * 9 / 10] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        write(folder, "N.npz", &damaged);
        refuses(folder, clean, &["N.npz/", ".npy`: checksum: expected ", "file is corrupt"]);
    }
    write(folder, "N.npz", &whole);
    run(folder, clean).ok();
}

/// `n` rows of `d` numbers, packed, of which nothing but a row is ever in memory.
fn write_packed(path: &Path, n: usize, d: usize) {
    let mut archive = ZipWriter::new(std::fs::File::create(path).expect("disk space"));
    let options =
        SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).large_file(true);
    archive.start_file("features.npy", options).expect("disk space");
    let mut empty = Vec::new();
    write_npy_f32(&mut empty, &[0, d], &[]).expect("disk space");
    let header = String::from_utf8_lossy(&empty[10..]).replace("(0, ", &format!("({n}, "));
    let header = format!("{:<width$}\n", header.trim_end(), width = 117);
    archive.write_all(&empty[..8]).expect("disk space");
    archive.write_all(&(header.len() as u16).to_le_bytes()).expect("disk space");
    archive.write_all(header.as_bytes()).expect("disk space");
    let rows: Vec<u8> = (0..64 * d).flat_map(|i| ((i % d % 3) as f32 + 1.0).to_le_bytes()).collect();
    for first in (0..n).step_by(64) {
        archive.write_all(&rows[..4 * d * (n - first).min(64)]).expect("disk space");
    }
    archive.finish().expect("disk space");
}

#[test]
#[cfg(target_os = "linux")]
fn an_array_that_unfolds_to_more_than_memory_is_read_row_by_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let d = 1000;
    write_packed(&folder.join("F.npz"), 300_000, d); // 1.2 GB
    assert!(bytes(folder, "F.npz").len() < 10 << 20);
    let classifier = SavedClassifier {
        classes: vec!["owl".into(), "cat".into()],
        dim: d,
        weight: (0..2 * d).map(|i| if i == 0 || i == d + 1 { 1.0 } else { 0.0 }).collect(),
        scale: 10.0,
        backbone: None,
        network: None,
        n_base: 0,
        settings: serde_json::Value::Null,
        discriminant: None,
        confidence: None,
    };
    classifier.save(folder.join("W.safetensors")).expect("disk space");
    let line = "predict --model W.safetensors --features F.npz --threads 2 -o P.parquet";
    let done = shell(folder, &format!("ulimit -v {}; exec \"$LABELSIEVE\" {line}", 900 << 10)).ok();
    assert!(bytes(folder, "P.parquet").len() > 1000, "{done:?}");
}

const PRETRAIN: &str = "pretrain --images photos --architecture convnet128 --size 16 --epochs 40 --batches 4 \
                        --batch-size 8 --rate 0.05 --threads 1 --device cpu -o N.safetensors";
const CHECKPOINT: &str = "N.safetensors.checkpoint";

#[test]
fn a_flipped_bit_in_a_checkpoint_is_noticed_and_one_without_checksum_is_not_used() {
    let folder = folder_of(24);
    let folder = folder.path();
    kill(stopped_when(folder, PRETRAIN, (CHECKPOINT, "N.safetensors"), &|so_far| !so_far.is_empty()));
    std::fs::remove_file(folder.join("N.safetensors.lock")).expect("a killed run leaves it");
    let whole = bytes(folder, CHECKPOINT);
    let end = whole.len();
    for at in [end - 3, end / 2, end - end / 10] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        write(folder, CHECKPOINT, &damaged);
        let parts =
            ["`N.safetensors.checkpoint` is not a readable checkpoint", "checksum: expected ", "hint: "];
        refuses(folder, PRETRAIN, &parts);
    }
    // As an older version wrote it: the same without the checksum.
    let place = whole.windows(8).position(|window| window == b"checksum").expect("a checksum");
    let mut old = whole.clone();
    old[place..place + 8].copy_from_slice(b"something"[..8].as_ref());
    write(folder, CHECKPOINT, &old);
    let done = run(folder, PRETRAIN).ok();
    assert!(done.err.contains("was made by an older version without a checksum; starting over"), "{done:?}");
    assert!(done.err.contains("epoch   1/40"), "{done:?}");
}

#[test]
fn numbers_that_cannot_be_are_refused_with_file_tensor_and_position() {
    let folder = folder_of(4);
    let folder = folder.path();
    let embed = |model: &str| format!("embed --model {model} --device cpu --images photos");
    run(folder, &format!("{} --fit-pca 2 --pca-output P.safetensors -o F.parquet", embed("M.safetensors")))
        .ok();
    let network = NetworkFile::load(folder.join("M.safetensors")).expect("a network");

    for (deviation, found) in [(0.0, "0"), (-0.2, "-0.2")] {
        let mut changed = network.clone();
        changed.metadata.as_mut().expect("metadata").channel_deviation[1] = deviation;
        changed.save(folder.join("D.safetensors"), Precision::F32).expect("disk space");
        let expected = format!("`channel_deviation`, number 1: expected a positive number, found {found}");
        refuses(folder, &format!("{} -o G.parquet", embed("D.safetensors")), &["`D.safetensors`", &expected]);
    }

    // What no writer of ours lets through.
    let poisoned = |name: &str, tensor: &str, value: f32| poison(folder, name, tensor, value);
    for tensor in ["pca.mean", "pca.components", "pca.variances", "pca.kept"] {
        poisoned("P.safetensors", tensor, f32::NAN);
        let place =
            format!("`X-P.safetensors`: tensor `{tensor}`, number 0: expected a finite number, found NaN");
        refuses(folder, &format!("{} --pca X-P.safetensors -o G.parquet", embed("M.safetensors")), &[&place]);
    }
    poisoned("M.safetensors", "block0.conv.weight", f32::INFINITY);
    let place =
        "`X-M.safetensors`: tensor `block0.conv.weight`, number 0: expected a finite number, found inf";
    refuses(folder, &format!("{} -o G.parquet", embed("X-M.safetensors")), &[place]);

    let (task, _) = task_folder();
    let task = task.path();
    run(task, "score --clean C.npz --pool N.npz -o R.parquet").ok();
    run(task, "train --clean C.npz --pool N.npz --relevance R.parquet -o W.safetensors").ok();
    std::fs::copy(task.join("W.safetensors"), folder.join("W.safetensors")).expect("disk space");
    poisoned("W.safetensors", "scale", 0.0);
    std::fs::copy(folder.join("X-W.safetensors"), task.join("X-W.safetensors")).expect("disk space");
    let scale = "tensor `scale`, number 0: expected a positive number, found 0";
    refuses(task, "predict --model X-W.safetensors --features T.npz", &["`X-W.safetensors`: ", scale]);
}

#[test]
fn features_may_have_as_many_columns_as_is_promised() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (dim, method) in [(196_609, "gcn"), (1 << 20, "label-propagation")] {
        let value = |row: usize, column: usize| if (column + row).is_multiple_of(97) { 1.0 } else { 0.01 };
        let rows = |n: usize| (0..n).flat_map(|row| (0..dim).map(move |column| value(row, column)));
        let write = |name: &str, n: usize| {
            let classes: Vec<usize> = (0..n).map(|row| row % 2).collect();
            Examples::new(dim, &rows(n).collect::<Vec<f32>>(), &classes).npz(folder.join(name));
        };
        write("C.npz", 2);
        write("N.npz", 6);
        let line = format!("score --clean C.npz --pool N.npz --method {method} --neighbours 2 -o R.parquet");
        let done = run(folder, &line).ok();
        assert!(folder.join("R.parquet").exists(), "{done:?}");
        std::fs::remove_file(folder.join("R.parquet")).expect("it exists");
    }
}
