//! Golden files of the benchmarks.

#[path = "../../../labelsieve-cli/tests/end_to_end/golden/diff.rs"]
mod diff;
#[path = "../../../labelsieve-cli/tests/end_to_end/golden/files.rs"]
#[expect(dead_code, reason = "the product's tests use the rest")]
mod files;
#[path = "../../../labelsieve-cli/tests/end_to_end/golden/journal_keys.rs"]
mod journal_keys;
#[path = "../../../labelsieve-cli/tests/end_to_end/golden/stable.rs"]
mod stable;

use std::path::Path;

use self::files::Golden;
use self::journal_keys::{keys_of_journal, set_times};
use self::stable::stable;
use crate::common::run;
use crate::examples::task_folder;
use crate::{photos, release};

/// `labelsieve-bench COMMAND OPTIONS --json` must answer what `answers/NAME.json` says.
#[track_caller]
fn check(golden: &mut Golden, folder: &Path, name: &str, line: &str) {
    let done = run(folder, &format!("{line} --json")).ok();
    golden.check(&format!("answers/{name}.json"), &stable(&done.out));
}

/// Photos with one rule, one shot and one episode.
fn short_photo_folder() -> tempfile::TempDir {
    let folder = photos::photo_folder();
    let config = photos::CONFIG.replace("\"phrase\", \"any-word\"", "\"phrase\"");
    let config = config.replace("shots = [1, 3]\nepisodes = 2", "shots = [1]\nepisodes = 1");
    assert_eq!(config.matches("[1]").count(), 2, "{config}");
    std::fs::write(folder.path().join("c.toml"), config).expect("disk space");
    folder
}

#[test]
fn answers_of_benchmarks_stay_as_they_are() {
    let mut golden = Golden::default();
    let folder = short_photo_folder();
    check(&mut golden, folder.path(), "bench-photos", photos::BENCH);
    check(&mut golden, folder.path(), "bench-sanity", "sanity --shots 1");
    let five_way = photos::BENCH.replace("RUN", "5WAY");
    check(&mut golden, folder.path(), "bench-photos-5way", &format!("{five_way} --protocol 5way"));
    let lists = photos::mini_imagenet_folder();
    let line = "mini-imagenet --splits . --images . -o mini.parquet";
    check(&mut golden, lists.path(), "bench-mini-imagenet", line);
    let paper = tempfile::tempdir().expect("a folder");
    release::write(paper.path());
    let line = "paper --features . --splits . --run run --shots 1 --episodes 1";
    check(&mut golden, paper.path(), "bench-paper", &format!("{line} --no-cosine"));
    check(&mut golden, paper.path(), "bench-paper-dry-run", &format!("{line} --dry-run"));
    let line = "relevance -o out --sets generated-small --shots 1 --draws 1 --methods label-propagation --device cpu";
    check(&mut golden, paper.path(), "bench-relevance", line);
    golden.finish();
}

#[test]
fn answers_of_the_compared_systems_stay_as_they_are() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    let mut golden = Golden::default();
    let line = "train-attention --base C.npz --steps 4 --posing 2 -o A.safetensors";
    check(&mut golden, folder, "train-attention", line);
    for system in ["hallucination", "prototypical", "pmn"] {
        let line = format!(
            "train-episodes --base C.npz --system {system} --ways 4 --steps 4 -o {system}.safetensors"
        );
        check(&mut golden, folder, &format!("train-episodes-{system}"), &line);
    }
    golden.finish();
}

#[test]
fn keys_of_benchmarks_stay_as_they_are() {
    let mut golden = Golden::default();
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    release::write(folder);
    set_times(folder);
    let line = "paper --features . --splits . --run R.run --shots 1 --episodes 1 --no-cosine --device cpu";
    run(folder, line).ok();
    golden.check("keys/bench-paper.txt", &keys_of_journal(folder, "R.run"));
    let line = "relevance -o out --sets generated-small --shots 1 --draws 1 --methods gcn --device cpu";
    run(folder, line).ok();
    golden.check("keys/bench-relevance.txt", &keys_of_journal(folder, "out/cells-generated-small.journal"));
    let folder = short_photo_folder();
    let folder = folder.path();
    set_times(folder);
    run(folder, &format!("{} --device cpu", photos::BENCH)).ok();
    golden.check("keys/bench-photos.txt", &keys_of_journal(folder, "RUN/cells-features.journal"));
    golden.finish();
}
