//! Settings out of their range are refused by name, before any work.

use crate::common::{refuses, run};
use crate::examples::task_folder;

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    run(folder, "score --clean C.npz --pool N.npz --method beta -o R.parquet").ok();
    let clean = "score --clean C.npz --pool N.npz -o S.parquet";
    let train = "train --clean C.npz --pool N.npz --relevance R.parquet -o M.safetensors";
    for (command, options, message) in [
        (clean, "--lambda NaN", "lambda: expected a non-negative number, found NaN"),
        (clean, "--lambda -1", "lambda: expected a non-negative number, found -1"),
        (clean, "--method mlp --lambda=inf", "lambda: expected a non-negative number, found inf"),
        (clean, "--neighbours 0", "neighbours: expected at least 1, found 0"),
        (clean, "--method label-propagation --neighbours 0", "neighbours: expected at least 1, found 0"),
        (clean, "--method beta --beta 2", "beta: expected a number in [0, 1], found 2"),
        (clean, "--method beta --beta -0.5", "beta: expected a number in [0, 1], found -0.5"),
        (clean, "--lambda much", "'much' for '--lambda <λ>'"),
        (clean, "--threads 0", "'0' for '--threads <N>'"),
        (clean, "--seed -1", "-1"),
        (clean, "--method magic", "'magic' for '--method <METHOD>'"),
        (train, "--classifier cosine --epochs 0", "epochs: expected 1 to 1000000, found 0"),
        (train, "--classifier cosine --batch-size 0", "batch_size: expected at least 1, found 0"),
        (train, "--scale 0", "scale: expected a positive number, found 0"),
        (train, "--scale -3", "scale: expected a positive number, found -3"),
        (train, "--classifier cosine --scale NaN", "scale: expected a positive number, found NaN"),
        (train, "--classifier forest", "'forest' for '--classifier <CLASSIFIER>'"),
        ("score --clean C.npz --pool N.npz", "", "--output <FILE>"),
        ("evaluate", "--model M.safetensors", "--test FEATURES"),
        ("predict", "--model M.safetensors --features T.npz --top 0", "'0' for '--top <N>'"),
    ] {
        refuses(folder, &format!("{command} {options}"), &[message]);
    }
}

#[test]
fn linear_needs_a_second_class() {
    let (folder, task) = task_folder();
    let one = crate::examples::clean_of(&task).only(|class| class == 0);
    one.npz(folder.path().join("C.npz"));
    let line = "score --clean C.npz --pool N.npz --method linear -o R.parquet";
    refuses(folder.path(), line, &["linear needs", "hint: `linear` needs at least two classes"]);
}
