//! `--json`: one object on stdout, every field of which is on the page about them.

use std::path::Path;

use labelsieve_files::NpzWriter;

use crate::common::run;
use crate::examples::task_folder;
use crate::json_page::check_answer;
use crate::{photos, release};

#[track_caller]
fn check_bench(folder: &Path, name: &str, options: &str) {
    let done = run(folder, &format!("{name} {options} --json")).ok();
    check_answer(&done, &format!("labelsieve-bench {name}"));
}

#[test]
fn answers_about_features_are_documented() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    check_bench(folder, "train-attention", "--base C.npz --steps 4 --posing 2 -o A.safetensors");
    let episodes = "--base C.npz --system hallucination --ways 4 --steps 4 -o E.safetensors";
    check_bench(folder, "train-episodes", episodes);
    let class = &task.classes[0];
    let writer = NpzWriter::create(folder.join("class.npz")).expect("a folder");
    let writer = writer.f32("clean", &[3, 16], class.clean.block(0..3)).expect("disk space");
    let n = class.noisy.len();
    writer.f32("noisy", &[n, 16], class.noisy.block(0..n)).expect("disk space").finish().expect("disk space");
    check_bench(folder, "class", "class.npz --repeats 1");
}

#[test]
fn answers_of_benchmarks_are_documented() {
    let folder = photos::photo_folder();
    let options = photos::BENCH.replace("photos ", "");
    check_bench(folder.path(), "photos", &options);
    check_bench(folder.path(), "photos", &format!("{} --protocol 5way", options.replace("RUN", "5WAY")));
    let compared = format!("{} --compared --untuned", options.replace("RUN", "COMPARED"));
    check_bench(folder.path(), "photos", &compared);
    let lists = photos::mini_imagenet_folder();
    check_bench(lists.path(), "mini-imagenet", "--splits . --images . -o mini.parquet");
    check_bench(folder.path(), "sanity", "--shots 1");
    let paper = tempfile::tempdir().expect("a folder");
    release::write(paper.path());
    let options = "--features . --splits . --run run --shots 1 --episodes 1";
    check_bench(paper.path(), "paper", &format!("{options} --no-cosine"));
    check_bench(paper.path(), "paper", &format!("{options} --tune"));
    check_bench(paper.path(), "paper", &format!("{options} --dry-run"));
}
