//! Wrong turns of a new user: each message names the way back.

use std::path::Path;

use labelsieve_files::{TruthRow, TruthWriter};

use crate::common::{refuses, run, shell};
use crate::embed::{folder_of, png, write};
use crate::examples::{clean_of, noisy_of, read_parquet, task_folder, write_parquet, write_task};

const SCORE: &str = "score --clean C.npz --pool N.npz -o S.parquet";
const TRAIN: &str = "train --clean C.npz --pool N.npz --relevance R.parquet -o S.safetensors";
const EVALUATE: &str = "evaluate --model W.safetensors --test T.npz";
const PREDICT: &str = "predict --model W.safetensors --features T.npz -o S.parquet";

/// Photos with a network `M.safetensors`, and features with their relevance and a classifier `W.safetensors`.
fn everything() -> tempfile::TempDir {
    let folder = folder_of(4);
    let path = folder.path();
    write_task(path);
    run(path, "score --clean C.npz --pool N.npz --method similarity -o R.parquet").ok();
    run(path, "train --clean C.npz --pool N.npz --relevance R.parquet -o W.safetensors").ok();
    write(path, "photo.png", &png(1));
    shell(path, "tar cf photos.tar photos && mkdir empty && : > nothing.parquet").ok();
    folder
}

#[test]
fn images_where_features_are_wanted_are_to_be_embedded() {
    let folder = everything();
    let folder = folder.path();
    for (images, found, name) in [
        ("photos", "a folder of images", "photos"),
        ("photo.png", "an image", "photo"),
        ("photos.tar", "a tar archive", "photos"),
    ] {
        let message = format!(
            "`{images}`: expected features (.npz, .npy, .parquet or a clip-retrieval folder), found {found}"
        );
        let hint = format!(
            "hint: compute features of the images first: `labelsieve embed --model NETWORK.safetensors \
             --images {images} -o {name}.parquet`"
        );
        for line in [
            SCORE.replace("C.npz", images),
            SCORE.replace("N.npz", images),
            TRAIN.replace("N.npz", images),
            EVALUATE.replace("T.npz", images),
            PREDICT.replace("T.npz", images),
        ] {
            refuses(folder, &line, &[&message, &hint]);
        }
    }
    let images: arrow_array::BinaryArray = [Some(png(1)), Some(png(2))].into_iter().collect();
    write_parquet(folder.join("P.parquet"), [("image", std::sync::Arc::new(images) as _)]);
    let hint = "hint: compute features of the images first: `labelsieve embed";
    refuses(folder, &SCORE.replace("C.npz", "P.parquet"), &["columns: expected", "found image", hint]);
    refuses(
        folder,
        &SCORE.replace("C.npz", "empty"),
        &["`empty`", "found a folder without `img_emb`", "hint: "],
    );
    // Networks take the images themselves.
    let network = ["`M.safetensors` is a network, not a classifier", "hint: ", "evaluate --images"];
    refuses(folder, &EVALUATE.replace("W.s", "M.s").replace("T.npz", "photos"), &network);
}

#[test]
fn a_mistyped_path_is_answered_with_the_nearest_one() {
    let folder = everything();
    let folder = folder.path();
    std::fs::create_dir(folder.join("data")).expect("disk space");
    std::fs::copy(folder.join("C.npz"), folder.join("data/clean.npz")).expect("disk space");
    let check = |line: &str, path: &str, hint: &str| {
        refuses(folder, line, &[&format!("cannot open `{path}`"), "No such file", &format!("hint: {hint}")]);
    };
    let embed = "embed --model M.safetensors -o S.parquet --images";
    check(
        &format!("{embed} phtos"),
        "phtos",
        "`phtos` does not exist in the current folder; did you mean `photos`?",
    );
    let clean = |path: &str| SCORE.replace("C.npz", path);
    check(&clean("phtos"), "phtos", "`phtos` does not exist in the current folder; did you mean `photos`?");
    check(
        &clean("data/claen.npz"),
        "data/claen.npz",
        "`claen.npz` does not exist in `data`; did you mean `data/clean.npz`?",
    );
    check(
        &clean("dat/clean.npz"),
        "dat/clean.npz",
        "`dat` does not exist in the current folder; did you mean `data/clean.npz`?",
    );
    check(
        &clean("C.parquet"),
        "C.parquet",
        "`C.parquet` does not exist in the current folder; did you mean `C.npz`?",
    );
    check(
        &clean("xylophone.npz"),
        "xylophone.npz",
        "`xylophone.npz` does not exist in the current folder; check the spelling of the path",
    );
    refuses(
        folder,
        &clean("C.npz/x.npz"),
        &["cannot open `C.npz/x.npz`", "hint: `C.npz` is a file, not a folder"],
    );
    refuses(
        folder,
        &SCORE.replace("S.parquet", "results/S.parquet"),
        &["cannot write `results/S.parquet`", "hint: `results` does not exist", "`mkdir -p results`"],
    );
}

#[test]
fn a_command_with_too_little_names_its_ways_of_use() {
    let folder = everything();
    let folder = folder.path();
    let ways = [
        "nothing to evaluate",
        "hint: ",
        "--model CLASSIFIER --test FEATURES",
        "--images",
        "--relevance FILE",
    ];
    refuses(folder, "evaluate", &ways);
    refuses(folder, "evaluate --json", &ways);
    let examples = ["--model needs examples", "hint: ", "--test FEATURES", "--images SOURCE"];
    refuses(folder, "evaluate --model W.safetensors", &examples);
    refuses(
        folder,
        "evaluate --relevance R.parquet",
        &["--relevance needs ground truth", "hint: ", "--truth"],
    );
    refuses(folder, "evaluate --test T.npz", &["--model <FILE>"]);
    refuses(folder, "predict", &["--model <FILE>", "--features <FILE>|--images <SOURCE>"]);
    refuses(folder, "predict --model W.safetensors", &["--features <FILE>|--images <SOURCE>"]);
    let both = "predict --model W.safetensors --features T.npz --images photos";
    refuses(folder, both, &["cannot be used with"]);
}

#[test]
fn an_unknown_column_is_answered_with_its_option_and_the_nearest_name() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    clean_of(&task).parquet(folder.join("C.parquet"), "c");
    noisy_of(&task).parquet(folder.join("N.parquet"), "n");
    let clean = "score --clean C.parquet --pool N.parquet --method similarity -o R.parquet";
    for (options, column, hint) in [
        ("--embedding-column embeding", "embeding", "did you mean `--embedding-column embedding`?"),
        ("--label-column klass", "klass", "did you mean `--label-column class`?"),
        ("--id-column photo", "photo", "choose one of these columns with --id-column"),
    ] {
        let message = format!("`C.parquet`: columns: expected `{column}`, found id, class, embedding");
        refuses(folder, &format!("{clean} {options}"), &[&message, &format!("hint: {hint}")]);
    }
    run(folder, clean).ok();

    // Files whose columns have fixed names.
    let rename = |from: &str, column: &str, name: &str, to: &str| {
        let batches = read_parquet(folder.join(from));
        let [batch] = &batches[..] else { panic!("one batch") };
        let schema = batch.schema();
        let columns = schema.fields().iter().map(|field| {
            let called = if field.name() == column { name } else { field.name() };
            (called.to_owned(), batch.column_by_name(field.name()).expect("a column").clone())
        });
        let columns: Vec<_> = columns.collect();
        write_parquet(folder.join(to), columns.iter().map(|(name, array)| (name.as_str(), array.clone())));
    };
    let mut truth = TruthWriter::create(folder.join("T.parquet")).expect("disk space");
    truth.write(&[TruthRow { id: "n0".into(), class: "0".into(), relevant: true }]).expect("disk space");
    truth.finish().expect("disk space");
    rename("T.parquet", "relevant", "relevance", "X.parquet");
    let parts = [
        "`X.parquet`: columns: expected `relevant`, found id, class, relevance",
        "hint: rename the column `relevance` to `relevant`",
    ];
    refuses(folder, "evaluate --relevance R.parquet --truth X.parquet", &parts);
    rename("R.parquet", "relevance", "score", "X.parquet");
    let parts = [
        "`X.parquet`: columns: expected `relevance`",
        "found id, class, score",
        "hint: the file needs a column `relevance`",
    ];
    refuses(folder, "evaluate --relevance X.parquet --truth T.parquet", &parts);
    rename("R.parquet", "matched_name", "name", "X.parquet");
    refuses(
        folder,
        &format!("{clean} --candidates X.parquet").replace("R.parquet", "S.parquet"),
        &[
            "`X.parquet`: columns: expected `matched_name`",
            "hint: the file looks like relevance from `labelsieve score`",
        ],
    );
    refuses(
        folder,
        "train --clean C.parquet --pool N.parquet --relevance N.parquet -o W.safetensors",
        &[
            "`N.parquet`: columns: expected `relevance`",
            "hint: the file looks like features from `labelsieve embed`",
        ],
    );
}

#[test]
fn unknown_columns_of_images_are_answered_with_their_options() {
    let folder = folder_of(2);
    let folder = folder.path();
    write(
        folder,
        "photos/metadata.csv",
        b"file_name,kind,split\ncat/000.png,cat,train\nowl/001.png,owl,test\n",
    );
    let embed = "embed --model M.safetensors --device cpu -o F.parquet --images photos";
    for (options, hint) in [
        ("--label-column kinds", "did you mean `--label-column kind`?"),
        ("--id-column name", "choose one of these columns with --id-column"),
        ("--where splits=test", "did you mean `--where split=…`?"),
    ] {
        let message =
            ["metadata.csv`: columns: expected `", "found file_name, kind, split", &format!("hint: {hint}")];
        refuses(folder, &format!("{embed} {options}"), &message);
    }
    run(folder, &embed.replace("F.parquet", "E.parquet")).ok();
    let features = embed.replace("photos", "E.parquet");
    refuses(
        folder,
        &features,
        &["`E.parquet`: columns: expected a column `image`", "hint: it looks like features"],
    );
    refuses(
        folder,
        &format!("{features} --image-column embeding"),
        &["columns: expected `embeding`", "hint: did you mean `--image-column embedding`?"],
    );
}

/// The same file under several wrong names.
fn check_network(folder: &Path, name: &str, contents: &[u8], parts: &[&str]) {
    write(folder, name, contents);
    // What `embed` says of ONNX files depends on the build: `onnx.rs`.
    let embed =
        (!name.ends_with(".onnx")).then(|| format!("embed --model {name} --images photos -o F.parquet"));
    for line in embed.into_iter().chain([
        format!("predict --model {name} --images photos"),
        format!("predict --model {name} --features T.npz"),
        format!("evaluate --model {name} --test T.npz"),
    ]) {
        let message = format!("`{name}`: expected a safetensors file, found ");
        refuses(folder, &line, &[&[message.as_str()], parts].concat());
    }
}

#[test]
fn networks_of_other_programs_come_with_a_way_to_convert_them() {
    let folder = everything();
    let folder = folder.path();
    let zip = [&b"PK\x03\x04"[..], &[0; 22], &[10, 0, 0, 0], b"r/data.pkl", &[0; 90]].concat();
    let recipe = [
        "a PyTorch file",
        "hint: convert it: `python -c \"import sys, torch, safetensors.torch as s; ",
        "\" r18.pth r18.safetensors`",
    ];
    check_network(folder, "r18.pth", &zip, &recipe);
    check_network(
        folder,
        "net.ckpt",
        b"\x80\x04\x95 anything pickled",
        &["a PyTorch file", "hint: convert it: "],
    );
    check_network(folder, "keras.h5", b"\x89HDF\r\n\x1a\n\0\0\0\0", &["an HDF5 file", "hint: ", "PyTorch"]);
    check_network(
        folder,
        "net.onnx",
        b"\x08\x07\x12\x00\x1a\x00\x22\x00\x2a\x00",
        &["an ONNX file", "hint: ", "`labelsieve embed --model net.onnx`"],
    );
    check_network(folder, "lfs.safetensors", LFS, &["a Git LFS pointer", "hint: ", "`git lfs pull`"]);
    check_network(
        folder,
        "page.safetensors",
        b"<!DOCTYPE html><html>404</html>",
        &["a web page", "hint: ", "download"],
    );
    check_network(folder, "none.safetensors", b"", &["an empty file", "hint: the file is empty"]);
}

const LFS: &[u8] = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n";

#[test]
fn files_that_are_something_else_are_called_what_they_are() {
    let folder = everything();
    let folder = folder.path();
    for ending in ["npz", "npy", "parquet"] {
        for (contents, found, hint) in [
            (LFS, "a Git LFS pointer", "`git lfs pull`"),
            (&b"\n<html><body>not found</body></html>"[..], "a web page", "download the file itself"),
            (b"", "an empty file", "the file is empty"),
            (b"\x89PNG\r\n\x1a\n", "an image", "labelsieve embed"),
        ] {
            let name = format!("x.{ending}");
            write(folder, &name, contents);
            let message = format!("`{name}`: expected ");
            let found = format!("found {found}");
            let hint = if ending == "parquet" && hint == "labelsieve embed" { "" } else { hint };
            refuses(folder, &SCORE.replace("N.npz", &name), &[&message, &found, hint]);
        }
    }
    // Tables that go elsewhere, and the right file under a wrong name.
    std::fs::copy(folder.join("R.parquet"), folder.join("R.npz")).expect("disk space");
    std::fs::copy(folder.join("N.npz"), folder.join("N.dat")).expect("disk space");
    refuses(
        folder,
        &SCORE.replace("N.npz", "N.dat"),
        &["found a NumPy archive", "hint: ", "rename it to `N.npz`"],
    );
    refuses(
        folder,
        &SCORE.replace("N.npz", "W.safetensors"),
        &["found a safetensors file", "hint: ", "--model"],
    );
    refuses(
        folder,
        &TRAIN.replace("R.parquet", "C.npz"),
        &["`C.npz`: expected a Parquet file, found a NumPy archive"],
    );
    refuses(
        folder,
        &TRAIN.replace("R.parquet", "photos"),
        &["cannot open `photos`: is a directory", "hint: it is a folder"],
    );
    refuses(
        folder,
        &EVALUATE.replace("W.safetensors", "photos"),
        &["cannot read `photos`: ", "hint: it is a folder"],
    );
    refuses(
        folder,
        &EVALUATE.replace("W.safetensors", "R.parquet"),
        &["found a Parquet file", "hint: it holds a table"],
    );
    refuses(
        folder,
        &TRAIN.replace("R.parquet", "nothing.parquet"),
        &["found an empty file", "hint: the file is empty"],
    );
    std::fs::copy(folder.join("photo.png"), folder.join("photo.dat")).expect("disk space");
    write(folder, "photos/metadata.csv", b"file_name,caption\n");
    for (images, parts) in [
        ("N.npz", ["found a NumPy archive", "hint: it looks like features"]),
        ("photos/metadata.csv", ["found a text file", "hint: pass the folder that it describes: `photos`"]),
        ("photo.dat", ["found an image", "hint: it is an image; rename it accordingly"]),
    ] {
        refuses(folder, &format!("embed --model M.safetensors --images {images} -o F.parquet"), &parts);
    }
    write(folder, "classes.txt", b"owl\n");
    let parts = [
        "`classes.txt`: expected a safetensors file, found a text file",
        "hint: networks and classifiers are ",
    ];
    refuses(folder, "predict --model classes.txt --features N.npz", &parts);
    write(folder, "truth.parquet", b"id,class,relevant\n");
    let parts = [
        "`truth.parquet`: expected a Parquet file, found a text file",
        "hint: if it is CSV, rename it to `truth.csv`",
    ];
    refuses(folder, "evaluate --relevance R.parquet --truth truth.parquet", &parts);
    let base = ["`M.safetensors` is a network, not a classifier of features", "hint: networks take images"];
    refuses(folder, &format!("{TRAIN} --base M.safetensors"), &base);
    write(folder, "m.csv", LFS);
    write(folder, "classes.toml", b"[[class]]\nid = \"owl\"\nnames = [\"owl\"]\n");
    refuses(
        folder,
        "match --classes classes.toml --text m.csv -o M.parquet",
        &["`m.csv`: ", "hint: the file itself was not downloaded"],
    );
}

#[test]
fn clean_and_noisy_the_wrong_way_round_are_noticed() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    let swapped = "are --clean and --pool swapped?";
    noisy_of(&task).npy(folder.join("N.npy"));
    let parts =
        ["the --clean file `N.npy` contains no classes, but the --pool file `C.npz` does", "hint: ", swapped];
    refuses(folder, "score --clean N.npy --pool C.npz -o R.parquet", &parts);
    clean_of(&task).parquet(folder.join("C.parquet"), "c");
    noisy_of(&task).parquet(folder.join("N.parquet"), "n");
    let mut candidates =
        labelsieve_matching::CandidateWriter::create(folder.join("K.parquet"), &[]).expect("disk space");
    let row = |id: &str| labelsieve_matching::CandidateRow {
        id: id.into(),
        class: "0".into(),
        matched_name: "zero".into(),
        field: "title".into(),
        leak: None,
    };
    candidates.write(&[row("n0"), row("n1"), row("lost")]).expect("disk space");
    candidates.finish().expect("disk space");
    let line = "score --clean N.parquet --pool C.parquet --candidates K.parquet -o R.parquet";
    let parts =
        ["2 of the 3 candidates in `K.parquet` are in the --clean file `N.parquet`", "hint: ", swapped];
    refuses(folder, line, &parts);
    let done = run(folder, "score --clean N.npz --pool C.npz --method similarity -o R.parquet").ok();
    assert!(done.err.contains("warning: every class has more clean examples than candidates"), "{done:?}");
    let done = run(folder, "score --clean C.npz --pool N.npz --method similarity -o R.parquet").ok();
    assert!(!done.err.contains("swapped"), "{done:?}");
}
