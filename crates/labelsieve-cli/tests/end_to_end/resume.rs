//! Killed runs go on where they stopped, and end where an unbroken run ends.

use labelsieve::synthetic::Recipe;
use labelsieve_files::Precision;

pub use crate::stopping::{holds_work, kill, signal, stopped_midway, stopped_when};

use crate::common::{Finished, bytes, refuses, run};
use crate::embed::{png, write};
use crate::examples::{clean_of, noisy_of};
use crate::hub_folder::{Published, save};
use crate::pictures::TINY_RESNET10;
use crate::stopping::went_on_after;

pub const SCORE: &str = "score --clean C.npz --pool N.npz --lambda 0.01 --threads 1 -o R.parquet";
pub const JOURNAL: &str = "R.parquet.partial";

/// Pools of a few hundred rows: a class takes long enough to be caught between two.
pub fn slow_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let recipe = Recipe { dim: 64, n_classes: 12, n_clean: 1, largest_pool: 1500, ..crate::examples::RECIPE };
    let task = recipe.generate(0);
    clean_of(&task).npz(folder.path().join("C.npz"));
    noisy_of(&task).npz(folder.path().join("N.npz"));
    folder
}

#[test]
fn a_killed_clean_goes_on_and_ends_with_the_bytes_of_an_unbroken_run() {
    let folder = slow_folder();
    let folder = folder.path();
    kill(stopped_midway(folder, SCORE, JOURNAL));
    assert!(!folder.join("R.parquet").exists());
    let again = run(folder, SCORE).ok();
    assert!((1..12).contains(&went_on_after(&again, "classes")), "{again:?}");
    let resumed = bytes(folder, "R.parquet");
    assert!(!folder.join(JOURNAL).exists());
    let unbroken = run(folder, SCORE).ok();
    assert!(!unbroken.err.contains("resuming"), "{unbroken:?}");
    assert_eq!(resumed, bytes(folder, "R.parquet"));
}

#[test]
fn a_run_killed_again_and_again_loses_nothing() {
    let folder = slow_folder();
    let folder = folder.path();
    run(folder, &SCORE.replace("R.parquet", "whole.parquet")).ok();
    kill(stopped_midway(folder, SCORE, JOURNAL));
    // A kill in the middle of a write leaves a torn record.
    let mut torn = bytes(folder, JOURNAL);
    let whole_records = torn.len();
    torn.extend_from_within(20..60);
    std::fs::write(folder.join(JOURNAL), &torn).expect("disk space");
    let again = run(folder, SCORE).ok();
    assert!(went_on_after(&again, "classes") >= 1, "{whole_records} {again:?}");
    assert_eq!(bytes(folder, "R.parquet"), bytes(folder, "whole.parquet"));
}

#[test]
fn other_settings_or_files_start_anew() {
    let folder = slow_folder();
    let folder = folder.path();
    let other = SCORE.replace("0.01", "0.5");
    run(folder, &other).ok();
    let expected = bytes(folder, "R.parquet");
    std::fs::remove_file(folder.join("R.parquet")).expect("it exists");
    kill(stopped_midway(folder, SCORE, JOURNAL));
    let anew = run(folder, &other).ok();
    assert!(anew.err.contains("was made with different settings or files; starting over"), "{anew:?}");
    assert_eq!(bytes(folder, "R.parquet"), expected);
    std::fs::remove_file(folder.join("R.parquet")).expect("it exists");

    kill(stopped_midway(folder, &other, JOURNAL));
    let same_bytes = bytes(folder, "C.npz");
    std::fs::write(folder.join("C.npz"), same_bytes).expect("disk space"); // rewritten: the contents may have changed
    assert!(run(folder, &other).ok().err.contains("starting over"));
    assert_eq!(bytes(folder, "R.parquet"), expected);
}

#[test]
fn two_runs_do_not_work_on_one_output() {
    let folder = slow_folder();
    let folder = folder.path();
    let first = stopped_midway(folder, SCORE, JOURNAL);
    let message = ["another process is using `R.parquet.partial`", "hint: "];
    refuses(folder, SCORE, &message);
    signal(&first, "-CONT");
    Finished::from(first.wait_with_output().expect("it ends")).ok();
    assert!(folder.join("R.parquet").exists() && !folder.join(JOURNAL).exists());
}

#[test]
fn a_killed_embed_goes_on_and_ends_with_the_bytes_of_an_unbroken_run() {
    let folder = crate::embed::folder_of(120);
    let folder = folder.path();
    let line = "embed --model M.safetensors --device cpu --images photos --batch 2 --threads 1 -o R.parquet";
    kill(stopped_midway(folder, line, JOURNAL));
    assert!(!folder.join("R.parquet").exists());
    let again = run(folder, line).ok();
    assert!((1..60).contains(&went_on_after(&again, "batches")), "{again:?}");
    let resumed = bytes(folder, "R.parquet");
    assert!(!folder.join(JOURNAL).exists());
    run(folder, line).ok();
    assert_eq!(resumed, bytes(folder, "R.parquet"));
}

/// The same with a network of our own layers and with a folder of the hub. What one network left is not continued by another, nor
/// at another size.
#[test]
fn a_killed_embed_is_continued_by_the_same_network_alone() {
    let published = Published::new("dinov2");
    let folder = published.path();
    (0..160).for_each(|i| write(folder, &format!("photos/{i:03}.png"), &png(i % 40)));
    let line = |model: &str| {
        format!("embed --model {model} --device cpu --images photos --batch 1 --threads 1 -o R.parquet")
    };
    let take = || {
        let made = bytes(folder, "R.parquet");
        std::fs::remove_file(folder.join("R.parquet")).expect("it exists");
        made
    };
    let models = ["net", TINY_RESNET10, "net --image-size 32"];
    let unbroken = models.map(|model| {
        run(folder, &line(model)).ok();
        take()
    });
    for (at, model) in models.iter().enumerate() {
        kill(stopped_midway(folder, &line(model), JOURNAL));
        let left = bytes(folder, JOURNAL);
        let again = run(folder, &line(model)).ok();
        assert!((1..=162).contains(&went_on_after(&again, "batches")), "{again:?}");
        assert_eq!(take(), unbroken[at], "{model}");

        let other = (at + 1) % models.len();
        write(folder, JOURNAL, &left);
        let again = run(folder, &line(models[other])).ok();
        let anew = "`R.parquet.partial` was made with different settings or files; starting over";
        assert!(again.err.contains(anew) && !again.err.contains("resuming"), "{again:?}");
        assert_eq!(take(), unbroken[other], "{model}");
    }
    // Weights that were replaced under the same name are another network.
    kill(stopped_midway(folder, &line("net"), JOURNAL));
    let mut tensors = published.tensors.clone();
    tensors[0].2[0] += 0.25;
    save(&tensors, &published.net("model.safetensors"), Precision::F32);
    let again = run(folder, &line("net")).ok();
    assert!(again.err.contains("starting over"), "{again:?}");
    assert_ne!(take(), unbroken[0]);
}
