//! Input that is wrong: every case has a message with file, place, expected and found, and leaves nothing behind.

use std::path::Path;

use labelsieve_files::read_relevance;

use crate::common::{bytes, refuses, run};
use crate::examples::{Examples, clean_of, noisy_of, task_folder, test_of};

const SCORE: &str = "score --clean C.npz --pool N.npz -o R.parquet";
const TRAIN: &str = "train --clean C.npz --pool N.npz --relevance R.parquet -o M.safetensors";
const EVALUATE: &str = "evaluate --model M.safetensors --test T.npz";
const PREDICT: &str = "predict --model M.safetensors --features T.npz -o P.parquet";

fn trained() -> (tempfile::TempDir, labelsieve::synthetic::SyntheticTask) {
    let (folder, task) = task_folder();
    run(folder.path(), &format!("{SCORE} --method similarity")).ok();
    run(folder.path(), TRAIN).ok();
    (folder, task)
}

#[test]
fn numbers_that_are_none_are_named_by_row_and_column() {
    let (folder, task) = trained();
    let folder = folder.path();
    let names = [("NaN", f32::NAN), ("inf", f32::INFINITY), ("-inf", f32::NEG_INFINITY)];
    for (name, value) in names {
        let found = format!("expected a finite number, found {name}");
        clean_of(&task).with(7, 3, value).npz(folder.join("C.npz"));
        let message = ["`C.npz/features_all.npy`: row 7, column 3: ", found.as_str()];
        refuses(folder, &SCORE.replace("R.p", "S.p"), &message);
        refuses(folder, &TRAIN.replace("M.s", "S.s"), &message);
        clean_of(&task).npz(folder.join("C.npz"));

        noisy_of(&task).with(201, 15, value).npz(folder.join("N.npz"));
        let message = ["`N.npz/features_all.npy`: row 201, column 15: ", found.as_str()];
        refuses(folder, &SCORE.replace("R.p", "S.p"), &message);
        refuses(folder, &TRAIN.replace("M.s", "S.s"), &message);
        noisy_of(&task).npz(folder.join("N.npz"));

        test_of(&task).with(5, 0, value).npz(folder.join("T.npz"));
        let message = ["`T.npz/features_all.npy`: row 5, column 0: ", found.as_str()];
        refuses(folder, EVALUATE, &message);
        refuses(folder, PREDICT, &message);
    }
    noisy_of(&task).with(201, 15, f32::NAN).parquet(folder.join("N.parquet"), "n");
    clean_of(&task).parquet(folder.join("C.parquet"), "c");
    let line = "score --clean C.parquet --pool N.parquet -o S.parquet";
    refuses(folder, line, &["`N.parquet`: row 201, column 15: expected a finite number, found NaN"]);
}

#[test]
fn files_without_rows_are_an_error_only_where_rows_are_needed() {
    let (folder, task) = trained();
    let folder = folder.path();
    let none = Examples::new(16, &[], &[]);
    none.npz(folder.join("E.npz"));
    none.parquet(folder.join("E.parquet"), "");
    clean_of(&task).parquet(folder.join("C.parquet"), "c");
    for format in ["npz", "parquet"] {
        let line = format!("score --clean E.{format} --pool N.npz -o S.parquet");
        refuses(folder, &line, &[&format!("`E.{format}` contains no examples"), "hint: every class needs"]);
        // No candidates at all: the clean examples are listed alone, and the classifier is learned from them.
        let pools = format!("--clean C.{format} --pool E.{format}");
        for method in ["gcn", "mlp", "label-propagation", "similarity", "linear", "beta", "mixture", "auto"] {
            run(folder, &format!("score {pools} --method {method} -o S.parquet")).ok();
        }
        let table = read_relevance(folder.join("S.parquet")).expect("what we wrote");
        assert!(table.is_clean.iter().all(|clean| *clean));
        for classifier in ["prototype", "cosine --epochs 2"] {
            let line =
                format!("train {pools} --relevance S.parquet --classifier {classifier} -o S.safetensors");
            run(folder, &line).ok();
        }
        run(folder, &format!("score {pools} --dry-run")).ok();
        let line = format!("evaluate --model M.safetensors --test E.{format} --json");
        refuses(folder, &line, &[&format!("`E.{format}` contains no examples"), "hint: "]);
        let predicted = run(folder, &format!("predict --model M.safetensors --features E.{format}")).ok();
        assert_eq!(predicted.out, "id\trank\tclass\tscore\tprobability\ttypicality\n");
    }
}

#[test]
fn rows_of_zeros_have_a_defined_result() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    let zero = |mut examples: Examples, row: usize| {
        examples.features[row * 16..(row + 1) * 16].fill(0.0);
        examples
    };
    zero(clean_of(&task), 0).npz(folder.join("C.npz"));
    zero(zero(noisy_of(&task), 0), 130).npz(folder.join("N.npz"));
    zero(test_of(&task), 0).npz(folder.join("T.npz"));
    for method in ["gcn", "mlp", "label-propagation", "similarity", "linear", "beta", "mixture", "auto"] {
        let cleaned = run(folder, &format!("{SCORE} --method {method}")).ok();
        assert!(cleaned.err.contains("clean examples of `0` have all-zero feature vectors"), "{cleaned:?}");
        let table = read_relevance(folder.join("R.parquet")).expect("numbers in [0, 1]");
        assert_eq!(table.ids.len(), clean_of(&task).len() + noisy_of(&task).len());
        for classifier in ["prototype", "cosine --epochs 2"] {
            run(folder, &format!("{TRAIN} --classifier {classifier}")).ok();
            run(folder, &format!("{EVALUATE} --json")).ok();
        }
    }
    // All rows zero, in every file.
    let nothing = |examples: Examples| Examples { features: vec![0.0; examples.features.len()], ..examples };
    nothing(clean_of(&task)).npz(folder.join("C.npz"));
    nothing(noisy_of(&task)).npz(folder.join("N.npz"));
    for method in ["gcn", "label-propagation", "linear", "auto"] {
        run(folder, &format!("{SCORE} --method {method}")).ok();
        run(folder, &format!("{TRAIN} --classifier cosine --epochs 2")).ok();
        run(folder, EVALUATE).ok();
    }
}

#[test]
fn widths_that_differ_are_named_with_both_numbers() {
    let (folder, _) = trained();
    let folder = folder.path();
    Examples::new(3, &[1.0; 12], &[0, 1, 2, 3]).npz(folder.join("narrow.npz"));
    let message =
        ["`narrow.npz` has 3 columns, but the clean examples in `C.npz` have 16", "hint: extract both"];
    refuses(folder, &SCORE.replace("N.npz", "narrow.npz").replace("R.p", "S.p"), &message);
    refuses(folder, &TRAIN.replace("N.npz", "narrow.npz").replace("M.s", "S.s"), &message);
    let message =
        ["`narrow.npz` has 3 columns, but the classifier in `M.safetensors` has 16", "hint: extract all"];
    refuses(folder, &EVALUATE.replace("T.npz", "narrow.npz"), &message);
    refuses(folder, &PREDICT.replace("T.npz", "narrow.npz"), &message);
    Examples::new(3, &[1.0; 6], &[8, 9]).npz(folder.join("narrow.npz"));
    run(folder, "score --clean narrow.npz --pool narrow.npz --method similarity -o S.parquet").ok();
    let line = "train --clean narrow.npz --pool narrow.npz --relevance S.parquet --base M.safetensors \
                -o S.safetensors";
    let message = ["`narrow.npz` have 3 columns, but the base classes in `M.safetensors` have 16", "hint: "];
    refuses(folder, line, &message);
}

#[test]
fn labels_and_features_must_be_there_and_be_as_many() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    noisy_of(&task).npz_with_labels(folder.join("N.npz"), &[0, 1, 2]);
    let n = noisy_of(&task).len();
    let expected = format!("`N.npz`: labels: expected {n}, one per row of `N.npz/features_all.npy`, found 3");
    refuses(folder, SCORE, &[&expected]);

    let labels = labelsieve_files::NpzWriter::create(folder.join("N.npz")).expect("a folder");
    labels.i64("labels_all", &[2], &[0, 1]).expect("disk space").finish().expect("disk space");
    refuses(
        folder,
        SCORE,
        &["`N.npz`: archive: expected an array `features_all`", "found the arrays labels_all"],
    );

    noisy_of(&task).npy(folder.join("N.npy"));
    let line = "score --clean C.npz --pool N.npy -o R.parquet";
    refuses(folder, line, &["`N.npy` contains no classes", "hint: give them with --pool-labels"]);
    std::fs::write(folder.join("N.txt"), "0\n1\n").expect("disk space");
    let expected = format!("`N.txt`: labels: expected {n}, one per row of `N.npy`, found 2");
    refuses(folder, &format!("{line} --pool-labels N.txt"), &[&expected]);
    std::fs::write(folder.join("N.txt"), "0\n\n1\n").expect("disk space");
    let expected = "`N.txt`: line 2: expected a label, found an empty line";
    refuses(folder, &format!("{line} --pool-labels N.txt"), &[expected]);

    noisy_of(&task).clip_retrieval(&folder.join("web"), "web/");
    let half = folder.join("web/metadata");
    std::fs::copy(half.join("metadata_0000.parquet"), half.join("metadata_0001.parquet"))
        .expect("disk space");
    clean_of(&task).clip_retrieval(&folder.join("few"), "few/");
    std::fs::copy(folder.join("few/img_emb/img_emb_0000.npy"), folder.join("web/img_emb/img_emb_0000.npy"))
        .expect("disk space");
    let message = [
        "`web/metadata/metadata_0000.parquet`: rows: expected 9, as in `web/img_emb/img_emb_0000.npy`, found ",
    ];
    refuses(folder, "score --clean C.npz --pool web -o R.parquet", &message);
}

/// Cuts `name` to several lengths; `line` must refuse each with a message that names the file.
fn refuses_every_cut(folder: &Path, name: &str, line: &str) {
    let whole = bytes(folder, name);
    let n = whole.len();
    for length in [0, 1, 7, 8, 100, n / 3, n / 2, n - 100, n - 8, n - 1] {
        std::fs::write(folder.join(name), &whole[..length]).expect("disk space");
        refuses(folder, line, &[&format!("`{name}")]);
    }
    std::fs::write(folder.join(name), &whole).expect("disk space");
}

#[test]
fn files_that_were_cut_off_are_refused_at_any_length() {
    let (folder, task) = trained();
    let folder = folder.path();
    refuses_every_cut(folder, "N.npz", &SCORE.replace("R.p", "S.p"));
    refuses_every_cut(folder, "C.npz", &SCORE.replace("R.p", "S.p"));
    refuses_every_cut(folder, "R.parquet", &TRAIN.replace("M.s", "S.s"));
    refuses_every_cut(folder, "M.safetensors", EVALUATE);
    refuses_every_cut(folder, "M.safetensors", PREDICT);
    noisy_of(&task).npy(folder.join("N.npy"));
    noisy_of(&task).labels_npy(folder.join("L.npy"));
    let line = "score --clean C.npz --pool N.npy --pool-labels L.npy -o S.parquet";
    refuses_every_cut(folder, "N.npy", line);
    refuses_every_cut(folder, "L.npy", line);
    clean_of(&task).parquet(folder.join("C.parquet"), "c");
    refuses_every_cut(folder, "C.parquet", "score --clean C.parquet --pool N.npz -o S.parquet");
}

#[test]
fn a_damaged_file_gets_a_hint() {
    let (folder, _) = trained();
    let folder = folder.path();
    std::fs::write(folder.join("N.npz"), &bytes(folder, "N.npz")[..5000]).expect("disk space");
    refuses(folder, &SCORE.replace("R.p", "S.p"), &["`N.npz` is not a readable npz file", "hint: "]);
    std::fs::write(folder.join("R.parquet"), &bytes(folder, "R.parquet")[..500]).expect("disk space");
    let line = TRAIN.replace("N.npz", "C.npz").replace("M.s", "S.s");
    refuses(folder, &line, &["`R.parquet` is not a readable Parquet file", "hint: "]);
}

#[test]
fn headers_that_promise_more_than_there_is_cost_no_memory() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    for shape in [
        "(4611686018427387904, 16)",
        "(99999999999999999999, 16)",
        "(1000000000, 2048)",
        "(0, 4611686018427387904)",
    ] {
        let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.as_bytes());
        file.extend([0; 64]);
        std::fs::write(folder.join("N.npy"), file).expect("disk space");
        refuses(
            folder,
            "score --clean C.npz --pool N.npy -o R.parquet",
            &["`N.npy`: npy", "expected", "found"],
        );
    }
    std::fs::write(folder.join("N.npy"), b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'").expect("disk space");
    let message = ["`N.npy`: npy header: expected at most 8 bytes, found 4294967295"];
    refuses(folder, "score --clean C.npz --pool N.npy -o R.parquet", &message);
    let mut model = u64::MAX.to_le_bytes().to_vec();
    model.extend(b"{}");
    std::fs::write(folder.join("M.safetensors"), model).expect("disk space");
    refuses(folder, EVALUATE, &["`M.safetensors`: safetensors header: expected", "found a file of 10 bytes"]);
}

#[test]
fn missing_files_and_unknown_formats_are_named() {
    let (folder, _) = trained();
    let folder = folder.path();
    let missing = |line: String| refuses(folder, &line, &["`none.", "No such file", "hint: `none."]);
    for name in ["C.npz", "N.npz"] {
        for extension in ["npz", "npy", "parquet"] {
            missing(SCORE.replace(name, &format!("none.{extension}")).replace("R.p", "S.p"));
        }
    }
    missing(format!("{SCORE} --candidates none.parquet").replace("R.p", "S.p"));
    missing(format!("{SCORE} --pool-labels none.txt").replace("R.p", "S.p"));
    missing(TRAIN.replace("R.parquet", "none.parquet").replace("M.s", "S.s"));
    missing(format!("{TRAIN} --base none.safetensors").replace("M.s", "S.s"));
    missing(EVALUATE.replace("M.safetensors", "none.safetensors"));
    missing(PREDICT.replace("T.npz", "none.npz"));
    std::fs::write(folder.join("N.csv"), "1,2\n").expect("disk space");
    let message =
        ["`N.csv`: expected features (.npz, .npy, .parquet or a clip-retrieval folder), found a text file"];
    refuses(folder, &SCORE.replace("N.npz", "N.csv").replace("R.p", "S.p"), &message);
    std::fs::create_dir(folder.join("empty")).expect("disk space");
    refuses(folder, &SCORE.replace("N.npz", "empty").replace("R.p", "S.p"), &["`empty", "img_emb"]);
}

#[test]
fn files_of_different_runs_do_not_mix() {
    let (folder, task) = trained();
    let folder = folder.path();
    noisy_of(&task).only(|class| class == 0).npz(folder.join("other.npz"));
    let line = TRAIN.replace("N.npz", "other.npz").replace("M.s", "S.s");
    let message =
        ["`R.parquet`, row ", "the example `120` is not in `other.npz`", "hint: train with the --pool"];
    refuses(folder, &line, &message);
    clean_of(&task).only(|class| class != 3).npz(folder.join("fewer.npz"));
    let line = TRAIN.replace("C.npz", "fewer.npz").replace("M.s", "S.s");
    let message =
        ["`R.parquet` has candidates of class `3`, which has no clean example in `fewer.npz`", "hint: "];
    refuses(folder, &line, &message);
    let renamed = Examples { classes: vec![17; clean_of(&task).len()], ..clean_of(&task) };
    renamed.npz(folder.join("renamed.npz"));
    let line = SCORE.replace("C.npz", "renamed.npz").replace("R.p", "S.p");
    let message =
        ["`renamed.npz` and `N.npz` have no class in common: one has `17`, the other `0`", "hint: "];
    refuses(folder, &line, &message);
    noisy_of(&task).parquet(folder.join("N.parquet"), "n");
    run(folder, "predict --model M.safetensors --features N.parquet -o P.parquet").ok();
    let line = "train --clean C.npz --pool N.npz --relevance P.parquet -o S.safetensors";
    refuses(folder, line, &["`P.parquet`", "relevance", "found"]);
}

#[test]
fn two_examples_of_one_name_cannot_be_told_apart() {
    let (folder, task) = trained();
    let folder = folder.path();
    let noisy = noisy_of(&task);
    noisy.parquet(folder.join("once.parquet"), "n");
    let [batch] = &crate::examples::read_parquet(folder.join("once.parquet"))[..] else {
        panic!("one batch")
    };
    let ids =
        arrow_array::StringArray::from_iter_values((0..noisy.len()).map(|row| format!("n{}", row.max(1))));
    let column = |name| batch.column_by_name(name).expect("a column").clone();
    let columns = [
        ("id", std::sync::Arc::new(ids) as _),
        ("class", column("class")),
        ("embedding", column("embedding")),
    ];
    crate::examples::write_parquet(folder.join("twice.parquet"), columns);
    let line = TRAIN.replace("N.npz", "twice.parquet").replace("M.s", "S.s");
    let message = ["`twice.parquet`: row 1: expected a unique id, found `n1`, also the id of row 0"];
    refuses(folder, &line, &message);
}
