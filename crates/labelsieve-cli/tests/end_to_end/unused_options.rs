//! Options that would do nothing are refused by name.

use crate::common::{refuses, run};
use crate::examples::{clean_of, noisy_of, task_folder};

#[test]
fn options_that_do_nothing_are_refused_by_name() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    clean_of(&task).parquet(folder.join("C.parquet"), "c");
    noisy_of(&task).clip_retrieval(&folder.join("clip"), "n");
    run(folder, "score --clean C.npz --pool N.npz --method beta -o R.parquet").ok();
    run(folder, "train --clean C.npz --pool N.npz --relevance R.parquet -o W.safetensors").ok();
    let clean = "score --clean C.npz --pool N.npz -o S.parquet";
    let train = "train --clean C.npz --pool N.npz --relevance R.parquet -o M.safetensors";
    let finetune = "finetune --network W.safetensors --images . --relevance R.parquet -o M.safetensors";
    let predict = "predict --model W.safetensors --features T.npz";
    let no_columns = "none of the inputs has columns, so ";
    for (line, option, message) in [
        (clean, "--beta 0.5", "--method auto does not use --beta"),
        (clean, "--method mlp --neighbours 5", "--method mlp does not use --neighbours"),
        (clean, "--method mlp --beta 1", "--method mlp does not use --beta"),
        (clean, "--method label-propagation --lambda 1", "--method label-propagation does not use --lambda"),
        (clean, "--method similarity --lambda 1", "--method similarity does not use --lambda"),
        (clean, "--method similarity --neighbours 50", "--method similarity does not use --neighbours"),
        (clean, "--method linear --beta 1", "--method linear does not use --beta"),
        (clean, "--method gcn --beta 1", "--method gcn does not use --beta"),
        (clean, "--method mixture --lambda 5", "--method mixture does not use --lambda"),
        (clean, "--method gcn --base W.safetensors", "--method gcn does not use --base"),
        (clean, "--method beta --lambda 1", "--method beta does not use --lambda"),
        (clean, "--method beta --neighbours 50", "--method beta does not use --neighbours"),
        (clean, "--id-column id", &format!("{no_columns}--id-column")),
        (clean, "--embedding-column e", &format!("{no_columns}--embedding-column")),
        (clean, "--label-column l", &format!("{no_columns}--label-column")),
        (clean, "--candidates c.csv --pool-labels n.txt", "--candidates does not use --pool-labels"),
        ("score --clean C.npz --pool clip -o S.parquet", "--embedding-column e", no_columns),
        (train, "--epochs 30", "--classifier auto does not use --epochs"),
        (train, "--batch-size 512", "--classifier auto does not use --batch-size"),
        (train, "--id-column id", &format!("{no_columns}--id-column")),
        (
            "match --classes c.toml --text t.csv -o c.csv",
            "--near-duplicate 0.9",
            "does not use --near-duplicate",
        ),
        (predict, "--id-column id", &format!("{no_columns}--id-column")),
        (predict, "--label-column l", "predict does not use --label-column"),
        (
            "predict --model W.safetensors --images .",
            "--embedding-column e",
            "predict --images does not use --embedding-column",
        ),
        (
            "evaluate --relevance R.parquet --truth t.parquet",
            "--id-column i",
            "evaluate without --test does not use --id-column",
        ),
        (
            "evaluate --relevance R.parquet --truth t.parquet",
            "--test-labels i",
            "without --test does not use --test-labels",
        ),
        (
            "evaluate --model W.safetensors --test T.npz",
            "--label-column l",
            &format!("{no_columns}--label-column"),
        ),
        (
            "evaluate --model W.safetensors --test T.npz",
            "--relevance R.parquet",
            "evaluate --model does not use --relevance",
        ),
        ("report R.parquet --figures f", "--title t", "report without --output does not use --title"),
        ("report R.parquet --figures f", "--images .", "report without --output does not use --images"),
        (
            "report R.parquet --figures f",
            "--per-class 60",
            "report without --output does not use --per-class",
        ),
        (
            "pretrain --images . --architecture convnet128 -o N.safetensors",
            "--stem small",
            "convnet128 does not use --stem",
        ),
    ] {
        refuses(folder, &format!("{line} {option}"), &[message, "hint: "]);
    }
    // What clap knows nothing of or has a rule for, it refuses itself; options of another command are said to be theirs.
    for (line, option, parts) in [
        (
            train,
            "--rate 0.1",
            [
                "unexpected argument '--rate'",
                "hint: `labelsieve pretrain` and `labelsieve finetune` take --rate",
            ],
        ),
        (
            train,
            "--base-images .",
            ["unexpected argument '--base-images'", "hint: `labelsieve finetune` takes --base-images"],
        ),
        (
            finetune,
            "--clean C.npz",
            [
                "unexpected argument '--clean'",
                "hint: `labelsieve run`, `labelsieve review` and 3 other commands take --clean",
            ],
        ),
        (finetune, "--scale 10", ["unexpected argument '--scale'", "hint: `labelsieve train` takes --scale"]),
        (finetune, "--base-where a=b", ["not provided", "--base-images <SOURCE>"]),
        (finetune, "--base-label-column a", ["not provided", "--base-images <SOURCE>"]),
    ] {
        refuses(folder, &format!("{line} {option}"), &parts);
    }
    // Defaults are not options that were given, and neither are those of other files.
    run(folder, clean).ok();
    run(folder, train).ok();
    noisy_of(&task).parquet(folder.join("N.parquet"), "n");
    run(folder, "score --clean C.parquet --pool N.parquet --id-column id -o S.parquet").ok();
}

#[test]
fn predict_does_not_offer_the_column_that_it_never_uses() {
    let folder = tempfile::tempdir().expect("a folder");
    let help = run(folder.path(), "predict --help").ok().out;
    assert!(help.contains("--id-column") && !help.contains("--label-column"), "{help}");
}
