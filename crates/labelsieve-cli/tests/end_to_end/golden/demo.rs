//! The demo at its seed, on one thread.
//!
//! Pinned by their bytes: what is drawn, matched and copied. Its features come out of a network and may differ by rounding
//! from machine to machine: some are pinned by rounded numbers, and so are the accuracies. Relevance magnifies rounding
//! where another neighbour becomes the nearest (by 0.01 in the mean of a class at the level `plain`), so it is compared on one
//! machine alone, and so are predictions. Left out: the report and `run/run.json`, which hold the version.

use std::path::Path;

use super::files::Golden;
use super::hashes::{hash_of_file, hash_of_folder};
use super::stable::stable;
use crate::common::{bytes, run};
use crate::embed::table;

#[test]
fn the_demo_computes_what_it_always_did() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut golden = Golden::default();
    let demo = run(folder, "demo --dir demo --seed 0 --threads 1 --json").ok();
    golden.check("demo/answer.json", &stable(&demo.out));
    golden.check("demo/commands.txt", &commands(&demo.err));

    let mut hashes = String::new();
    for name in ["images/clean", "images/pool", "images/test"] {
        hashes += &hash_of_folder(folder, &format!("demo/{name}"));
    }
    for name in [
        "ATTRIBUTION.md",
        "candidates.parquet",
        "classes.toml",
        "network.safetensors",
        "run/thumbnails.parquet",
        "truth.parquet",
    ] {
        hashes += &hash_of_file(folder, &format!("demo/{name}"));
    }
    golden.check("demo/files.sha256", &hashes);

    let evaluate = "evaluate --model demo/model.safetensors --test demo/test.parquet --json";
    golden.check("demo/classifier.json", &stable(&run(folder, evaluate).ok().out));
    let features: String = ["clean", "pool", "test"].map(|name| summary_of_features(folder, name)).concat();
    golden.check("demo/features.txt", &features);

    let names = ["clean.parquet", "pool.parquet", "test.parquet", "relevance.parquet", "model.safetensors"];
    let hashes: String = names.iter().map(|name| hash_of_file(folder, &format!("demo/{name}"))).collect();
    golden.check_on_this_machine("demo.sha256", &hashes);
    let evaluate = "evaluate --relevance demo/relevance.parquet --truth demo/truth.parquet --json";
    golden.check_on_this_machine("demo-relevance.json", &stable(&run(folder, evaluate).ok().out));
    let predict =
        "predict --model demo/model.safetensors --features demo/test.parquet -o demo/predictions.csv";
    run(folder, predict).ok();
    golden.check_on_this_machine("demo-predictions.csv", &text(folder, "demo/predictions.csv"));
    golden.finish();
}

/// The commands that the demo runs.
fn commands(said: &str) -> String {
    said.lines().filter(|line| line.starts_with("$ labelsieve ")).map(|line| format!("{line}\n")).collect()
}

/// How many rows and columns, their mean magnitude, and the beginning of a few rows.
fn summary_of_features(folder: &Path, name: &str) -> String {
    let (ids, _, rows) = table(folder, &format!("demo/{name}.parquet"));
    let n_values = rows.iter().map(Vec::len).sum::<usize>();
    let magnitude: f64 = rows.iter().flatten().map(|value| f64::from(value.abs())).sum();
    let mut text = format!(
        "{name}.parquet: {} rows, {} columns, mean magnitude {:.4}\n",
        rows.len(),
        rows[0].len(),
        magnitude / n_values as f64
    );
    for at in (0..rows.len()).step_by(rows.len() / 3) {
        let values: Vec<String> = rows[at].iter().take(4).map(|value| format!("{value:.4}")).collect();
        text += &format!("  {}: {}\n", ids[at], values.join(" "));
    }
    text
}

fn text(folder: &Path, name: &str) -> String {
    String::from_utf8(bytes(folder, name)).expect("text")
}
