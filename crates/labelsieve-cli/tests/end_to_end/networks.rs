//! Networks from photos to predictions: `pretrain`, `finetune` and `predict --images`.

use std::path::Path;

use labelsieve_files::{NetworkFile, Precision, RelevanceTable, read_relevance};
use labelsieve_networks::{Architecture, Snapshot, Stem, weights};

pub use crate::pictures::{base_folder, draw, picture};

use crate::common::{Finished, bytes, listing, refuses, run};
use crate::embed::{table, write, write_model};
use crate::resume::{kill, stopped_when};

pub const PRETRAIN: &str = "pretrain --images base --validation checked --architecture convnet128 --size 16 \
                        --epochs 8 --batches 4 --batch-size 8 --rate 0.05 --device cpu";
const CHECKPOINT: &str = "N.safetensors.checkpoint";

fn network(folder: &Path, name: &str) -> NetworkFile {
    NetworkFile::load(folder.join(name)).expect("a network")
}

#[test]
fn a_network_learns_base_classes_and_leaves_its_curves() {
    let folder = base_folder();
    let folder = folder.path();
    write(folder, "base/rows/garbage.png", b"<html>not found</html>");
    let done = run(folder, &format!("{PRETRAIN} --threads 1 -o N.safetensors")).ok();
    assert!(done.err.contains("warning: skipped `rows/garbage.png`: expected JPEG"), "{done:?}");
    assert!(done.err.contains("convnet128 on 24 images of 2 classes"), "{done:?}");
    assert!(done.err.contains("epoch   8/8"), "{done:?}");
    let made: Vec<String> = listing(folder).into_iter().filter(|name| name.starts_with('N')).collect();
    assert_eq!(made, ["N.accuracy.svg", "N.loss.svg", "N.safetensors"]);
    assert!(bytes(folder, "N.loss.svg").starts_with(b"<svg"));
    let metadata = network(folder, "N.safetensors").metadata.expect("metadata");
    assert_eq!((metadata.classes, metadata.image_size), (vec!["columns".into(), "rows".into()], (16, 16)));
    assert!(metadata.accuracy > Some(0.9), "{:?}", metadata.accuracy);

    run(folder, &format!("{PRETRAIN} --threads 2 -o again.safetensors")).ok();
    assert_eq!(bytes(folder, "N.safetensors"), bytes(folder, "again.safetensors"), "whatever the threads");
    run(folder, &format!("{PRETRAIN} --seed 1 --f16 -o other.safetensors")).ok();
    let whole = bytes(folder, "N.safetensors");
    let half = bytes(folder, "other.safetensors");
    assert!(half.len() * 10 < whole.len() * 6, "{} {}", half.len(), whole.len());
    let guessed = predictions(&run(folder, "predict --model other.safetensors --images checked").ok());
    assert!(share_right(&guessed) > 0.9, "{guessed:?}");
}

#[test]
fn a_killed_training_goes_on_and_ends_with_the_bytes_of_an_unbroken_one() {
    let folder = base_folder();
    let folder = folder.path();
    let line = format!("{PRETRAIN} --epochs 12 --threads 1 -o N.safetensors").replace("--epochs 8 ", "");
    let stopped = || stopped_when(folder, &line, (CHECKPOINT, "N.safetensors"), &|so_far| !so_far.is_empty());
    kill(stopped());
    let checkpoint = bytes(folder, CHECKPOINT);
    let again = run(folder, &line).ok();
    assert!(again.err.contains("resuming: "), "{again:?}");
    assert!(!again.err.contains("epoch   1/12"), "{again:?}");
    let resumed = ["N.safetensors", "N.accuracy.svg", "N.loss.svg"].map(|name| bytes(folder, name));
    assert!(!folder.join(CHECKPOINT).exists());
    let unbroken = run(folder, &line).ok();
    assert!(unbroken.err.contains("epoch   1/12"), "{unbroken:?}");
    assert_eq!(resumed, ["N.safetensors", "N.accuracy.svg", "N.loss.svg"].map(|name| bytes(folder, name)));

    let anew = "N.safetensors.checkpoint` was made with different settings or files; starting over";
    let other = line.replace("--rate 0.05", "--rate 0.02").replace("--epochs 12", "--epochs 1");
    run(folder, &other.replace("N.safetensors", "expected.safetensors")).ok();
    write(folder, CHECKPOINT, &checkpoint);
    assert!(run(folder, &other).ok().err.contains(anew));
    assert_eq!(bytes(folder, "N.safetensors"), bytes(folder, "expected.safetensors"));
    write(folder, CHECKPOINT, &checkpoint);
    write(folder, "checked/rows/100.png", &picture("columns", 3)); // what is measured is in the file too
    assert!(run(folder, &line.replace("--epochs 12", "--epochs 1")).ok().err.contains(anew));

    let refused =
        ["`N.safetensors.checkpoint` is not a readable checkpoint", "hint: move it elsewhere to start over"];
    write(folder, CHECKPOINT, &checkpoint[..checkpoint.len() / 2]);
    refuses(folder, &line, &refused);
    std::fs::copy(folder.join("N.safetensors"), folder.join(CHECKPOINT)).expect("disk space");
    refuses(folder, &line, &refused);
    assert_eq!(bytes(folder, CHECKPOINT), bytes(folder, "N.safetensors"), "somebody's file stays as it is");
}

#[test]
fn settings_that_cannot_work_are_named_before_anything_is_done() {
    let folder = base_folder();
    let folder = folder.path();
    for (settings, parts) in [
        ("--preset large", &["large", "lowshot-imagenet, mini-imagenet, small"][..]),
        (
            "--architecture resnet12",
            &["resnet12", "expected resnet10, resnet18, resnet50, convnet128 or efficientnet-lite0"],
        ),
        ("--stem tiny", &["tiny", "expected photo or small"]),
        (
            "--architecture convnet128 --size 8",
            &["larger images for convnet128, found 8×8", "hint: ", "--size"],
        ),
        ("--size 0", &["larger images for resnet10, found 0×0", "hint: ", "--size"]),
        ("--size 18446744073709551615", &["image size: expected at most 4096 pixels per side", "hint: "]),
        ("--batch-size 1", &["batch size: expected at least 2", "found 1", "hint: ", "--batch-size"]),
        ("--batch-size 999999999999", &["batch size: expected at most 65536", "hint: "]),
        ("--epochs 0", &["epochs: expected 1 to 1000000, found 0", "hint: "]),
        ("--batches 0", &["batches per epoch: expected 1 to ", "found 0", "hint: "]),
        ("--rate NaN", &["learning rate: expected a non-negative number, found NaN", "hint: ", "--rate"]),
        ("--rate -0.1", &["learning rate: expected a non-negative number, found -0.1", "hint: "]),
        ("--least-crop 0", &["share of an image in a crop", "found 0 to 1", "hint: ", "--least-crop"]),
        ("--least-crop 2", &["share of an image in a crop", "found 2 to 1", "hint: "]),
        ("--least-crop -1", &["share of an image in a crop", "found -1 to 1", "hint: "]),
    ] {
        refuses(folder, &format!("pretrain --images base {settings} -o N.safetensors"), parts);
    }
}

#[test]
fn images_that_nothing_can_be_learned_from_are_refused() {
    let folder = base_folder();
    let folder = folder.path();
    std::fs::create_dir(folder.join("empty")).expect("disk space");
    draw(folder, "one", &["rows"], 3, 0);
    draw(folder, "others", &["dots"], 3, 0);
    write(folder, "bad/rows/a.png", b"bad");
    write(folder, "bad/columns/a.png", b"worse");
    std::fs::copy(folder.join("base/rows/000.png"), folder.join("single.png")).expect("disk space");
    std::fs::hard_link(folder.join("single.png"), folder.join("S.safetensors")).expect("disk space");
    for (options, parts) in [
        ("--images one -o N.safetensors", &["3 images of 1 class are too few to train on", "hint: "][..]),
        ("--images empty -o N.safetensors", &["empty"]),
        ("--images nowhere -o N.safetensors", &["cannot open `nowhere`", "hint: "]),
        (
            "--images bad -o N.safetensors",
            &["skipped `columns/a.png`", "error: 0 images of 0 classes", "hint: "],
        ),
        ("--images base -o none/N.safetensors", &["cannot write `none/N.safetensors`", "hint: "]),
        ("--images base single.png -o S.safetensors", &["would replace the input `single.png`", "hint: "]),
        ("--images base --validation single.png -o S.safetensors", &["would replace the input", "hint: "]),
        (
            "--images base --validation others -o N.safetensors",
            &["no validation images of these classes", "hint: "],
        ),
        (
            "--images base --rate 1e30 --epochs 2 -o N.safetensors",
            &["training diverged in epoch 1", "hint: ", "--rate"],
        ),
    ] {
        let line =
            format!("pretrain --architecture convnet128 --size 16 --batch-size 8 --device cpu {options}");
        refuses(folder, &line, parts);
    }
}

/// A network of base classes, pictures of two novel classes in `clean`, `pool` and `test`, and the relevance of the pool,
/// in which every third picture shows something else.
pub fn novel_folder() -> tempfile::TempDir {
    let folder = base_folder();
    let path = folder.path();
    let novel = ["checks", "plain"];
    draw(path, "clean", &novel, 3, 200);
    draw(path, "pool", &novel, 12, 300);
    draw(path, "test", &novel, 10, 400);
    for class in novel {
        for i in (300..312).step_by(3) {
            write(path, &format!("pool/{class}/{i}.png"), &picture("rows", i));
        }
    }
    run(path, &format!("{PRETRAIN} -o N.safetensors")).ok();
    for name in ["clean", "pool"] {
        let line = format!("embed --model N.safetensors --device cpu --images {name} -o {name}.parquet");
        run(path, &line).ok();
    }
    let clean = "score --clean clean.parquet --pool pool.parquet --lambda 1 --neighbours 3 -o R.parquet";
    run(path, clean).ok();
    folder
}

pub const FINETUNE: &str = "finetune --relevance R.parquet --device cpu --batch-size 8 --epochs 3 \
                        --network N.safetensors --images clean pool";

/// Id and class of each line.
fn predictions(finished: &Finished) -> Vec<(String, String)> {
    let lines = finished.out.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    lines.map(|fields| (fields[0].to_owned(), fields[2].to_owned())).collect()
}

/// How often the predicted class is the folder that the picture is in.
fn share_right(predictions: &[(String, String)]) -> f64 {
    let right = predictions.iter().filter(|(id, class)| id.split('/').next() == Some(class)).count();
    right as f64 / predictions.len() as f64
}

fn relevance(folder: &Path) -> RelevanceTable {
    read_relevance(folder.join("R.parquet")).expect("relevance")
}

#[test]
fn from_photos_to_predictions_of_novel_and_base_classes() {
    let folder = novel_folder();
    let folder = folder.path();
    let table = relevance(folder);
    let kept = (0..table.ids.len()).filter(|&i| table.is_clean[i] || table.relevance[i] >= 0.1).count();
    assert!(kept < table.ids.len(), "some candidates are irrelevant: {:?}", table.relevance);
    let done = run(folder, &format!("{FINETUNE} --threads 1 -o F.safetensors")).ok();
    assert!(done.err.contains(&format!("fine-tuning on {kept} examples of 2 classes")), "{done:?}");
    assert_eq!(network(folder, "F.safetensors").metadata.expect("metadata").classes, ["checks", "plain"]);
    assert!(folder.join("F.accuracy.svg").exists() && !folder.join("F.safetensors.checkpoint").exists());
    let guessed = predictions(&run(folder, "predict --model F.safetensors --images test").ok());
    assert_eq!(guessed.len(), 20);
    assert!(share_right(&guessed) > 0.85, "{guessed:?}");
    run(folder, &format!("{FINETUNE} --threads 2 -o again.safetensors")).ok();
    assert_eq!(bytes(folder, "F.safetensors"), bytes(folder, "again.safetensors"));

    run(folder, &format!("{FINETUNE} --base-images base -o A.safetensors")).ok();
    let classes = network(folder, "A.safetensors").metadata.expect("metadata").classes;
    assert_eq!(classes, ["columns", "rows", "checks", "plain"]);
    let novel = predictions(&run(folder, "predict --model A.safetensors --images test --device cpu").ok());
    assert!(share_right(&novel) > 0.85, "among four classes: {novel:?}");
    let base = predictions(&run(folder, "predict --model A.safetensors --images checked --device cpu").ok());
    assert!(share_right(&base) > 0.85, "among four classes: {base:?}");

    // Eq. (8) sums two losses that know nothing of each other: base classes are told apart among themselves.
    run(folder, &format!("{FINETUNE} --base-images base --softmax separate -o B.safetensors")).ok();
    let line = "predict --model B.safetensors --images checked --device cpu --top 4";
    let mut base = predictions(&run(folder, line).ok());
    assert_eq!(base.len(), 4 * 20);
    base.retain(|(_, class)| ["columns", "rows"].contains(&class.as_str()));
    let best: Vec<_> = base.into_iter().step_by(2).collect();
    assert!(share_right(&best) > 0.9, "{best:?}");
}

#[test]
fn images_must_be_those_of_the_relevance_file() {
    let folder = novel_folder();
    let folder = folder.path();
    let line = |images: &str| format!("{FINETUNE} -o F.safetensors").replace("clean pool", images);
    let missing = ["the clean example `checks/200.png` of class `checks` is not among the images", "hint: "];
    refuses(folder, &line("pool"), &missing);
    write(folder, "pool/checks/200.png", &picture("checks", 1));
    refuses(folder, &line("clean pool"), &["two images have the same id `checks/200.png`", "hint: "]);
    std::fs::remove_file(folder.join("pool/checks/200.png")).expect("it exists");
    write(folder, "pool/plain/301.png", b"bad");
    std::fs::remove_file(folder.join("pool/checks/302.png")).expect("it exists");
    let done = run(folder, &line("clean pool")).ok();
    assert!(done.err.contains("warning: skipped `plain/301.png`: "), "{done:?}");
    assert!(done.err.contains("warning: skipped 2 candidates without a readable image"), "{done:?}");
}

#[test]
fn base_classes_need_weights_names_and_images_of_their_own() {
    let folder = novel_folder();
    let folder = folder.path();
    let line = |options: &str| format!("{FINETUNE} {options} -o F.safetensors");
    draw(folder, "part", &["rows"], 2, 0);
    refuses(folder, &line("--base-images part"), &["class `columns` has no training images", "hint: "]);
    write_model(&folder.join("bare.safetensors"), 0);
    let bare = line("--base-images base").replace("N.safetensors", "bare.safetensors");
    refuses(folder, &bare, &["`bare.safetensors` is a network without a classifier", "hint: "]);
    run(folder, &format!("{FINETUNE} --epochs 1 -o F.safetensors").replace("--epochs 3 ", "")).ok();
    let again = "--base-images clean".to_owned();
    let again = format!("{FINETUNE} {again} -o G.safetensors").replace("N.safetensors", "F.safetensors");
    refuses(folder, &again, &["class `checks` is both a base class and a new class", "hint: "]);
}

#[test]
fn options_and_files_of_the_other_kind_of_training_are_named() {
    let folder = novel_folder();
    let folder = folder.path();
    let line = |options: &str| format!("{FINETUNE} {options} -o F.safetensors");
    refuses(
        folder,
        &line("--base N.safetensors"),
        &["unexpected argument '--base' found", "hint: `labelsieve "],
    );
    for option in ["--rate", "--final-rate"] {
        let parts = ["learning rate: expected a non-negative number, found NaN", "hint: "];
        refuses(folder, &line(&format!("{option} NaN")), &parts);
    }
    refuses(folder, &line("--softmax separate"), &["--base-images"]);
    let one = line("").replace("--batch-size 8", "--batch-size 1");
    refuses(folder, &one, &["batch size: expected at least 2", "hint: "]);
    let bare = "finetune --relevance R.parquet -o F.safetensors";
    refuses(
        folder,
        bare,
        &["required arguments were not provided", "--network <NAME|FILE>", "--images <SOURCE>"],
    );
    refuses(folder, &format!("{FINETUNE} -o N.safetensors"), &["would replace the input", "hint: "]);
    std::fs::hard_link(folder.join("clean/checks/200.png"), folder.join("L.safetensors"))
        .expect("disk space");
    let single = format!("{FINETUNE} clean/checks/200.png -o L.safetensors");
    refuses(folder, &single, &["would replace the input `clean/checks/200.png`", "hint: "]);

    let train = "train --clean clean.parquet --pool pool.parquet --relevance R.parquet -o W.safetensors";
    let other = ["unexpected argument '--network' found", "hint: `labelsieve finetune` takes --network"];
    refuses(folder, &format!("{train} --network N.safetensors"), &other);
    run(folder, train).ok();
    refuses(folder, &train.replace("--pool pool.parquet", ""), &["not provided", "--pool <FILE>"]);
    let kind = ["`W.safetensors` is a classifier of features, not a network", "hint: ", "predict --features"];
    refuses(folder, "predict --model W.safetensors --images test", &kind);
    refuses(folder, &line("").replace("N.safetensors", "W.safetensors"), &kind);
    let kind = ["`N.safetensors` is a network, not a classifier of features", "hint: ", "predict --images"];
    refuses(folder, "predict --model N.safetensors --features clean.parquet", &kind);
    std::fs::create_dir(folder.join("junk")).expect("disk space");
    write(folder, "junk/a.png", b"junk");
    let unreadable = ["skipped `a.png`: ", "error: no readable images", "hint: "];
    refuses(folder, "predict --model N.safetensors --images junk --device cpu", &unreadable);
    refuses(folder, "predict --model N.safetensors --images junk --device cpu -o P.parquet", &unreadable);
}

#[test]
fn a_network_with_torchvisions_names_needs_no_description() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    draw(folder, "test", &["rows", "checks"], 2, 0);
    let network = Architecture::ResNet10.network(32, 32, Stem::Photo).expect("a size");
    let snapshot = Snapshot::initial(&network, 0, 4);
    let mut tensors = weights::to_tensors(&network, &snapshot).expect("a valid snapshot");
    tensors.push(("fc.weight".to_owned(), vec![3, 512], vec![0.5; 3 * 512]));
    write_without_description(&folder.join("T.safetensors"), &tensors);
    let embed = "embed --model T.safetensors --image-size 32 --images test --device cpu -o F.parquet";
    run(folder, embed).ok();
    let (ids, _, rows) = table(folder, "F.parquet");
    assert_eq!((ids.len(), rows[0].len()), (4, 512));
    let train = "predict --model T.safetensors --images test --device cpu";
    refuses(folder, train, &["`T.safetensors` is a network without a classifier", "hint: "]);
}

/// Tensors as safetensors, and nothing else in the header.
fn write_without_description(path: &Path, tensors: &[(String, Vec<usize>, Vec<f32>)]) {
    let file = NetworkFile { tensors: tensors.to_vec(), metadata: None };
    file.save(path, Precision::F32).expect("disk space");
    let whole = std::fs::read(path).expect("just written");
    let length = u64::from_le_bytes(whole[..8].try_into().expect("eight bytes")) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&whole[8..8 + length]).expect("a header");
    header.as_object_mut().expect("an object").remove("__metadata__").expect("our description");
    let header = header.to_string();
    let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &whole[8 + length..]].concat();
    std::fs::write(path, bytes).expect("disk space");
}
