//! Data on stdout, everything else on stderr, also when either is closed.

use crate::common::{listing, run, shell};
use crate::examples::{RECIPE, task_folder};

const SCORE: &str = "score --clean C.npz --pool N.npz -o R.parquet";
const TRAIN: &str = "train --clean C.npz --pool N.npz --relevance R.parquet -o M.safetensors";

#[test]
fn quiet_commands_say_nothing_on_success() {
    let (folder, _) = task_folder();
    for line in [
        SCORE,
        &TRAIN.replace("-o", "--classifier cosine --epochs 2 -o"),
        "predict --model M.safetensors --features T.npz -o P.parquet",
        "evaluate --model M.safetensors --test T.npz",
    ] {
        assert_eq!(run(folder.path(), &format!("-q {line}")).ok().err, "", "{line}");
        assert_eq!(run(folder.path(), &format!("{line} --quiet")).ok().err, "", "{line}");
    }
}

#[test]
fn verbose_commands_tell_of_every_class() {
    let (folder, _) = task_folder();
    let said = run(folder.path(), &format!("-v {SCORE}")).ok().err;
    for class in 0..RECIPE.n_classes {
        assert!(said.contains(&format!("\n{class}: ")) || said.starts_with(&format!("{class}: ")), "{said}");
    }
}

#[test]
fn a_dry_run_estimates_and_writes_nothing() {
    let (folder, _) = task_folder();
    let before = listing(folder.path());
    for line in ["score --clean C.npz --pool N.npz --dry-run", &format!("{SCORE} --dry-run")] {
        let estimate = run(folder.path(), line).ok().out;
        for word in ["classes       6", "candidates    ", "memory        about ", "time          about "] {
            assert!(estimate.contains(word), "{estimate}");
        }
        assert_eq!(listing(folder.path()), before);
    }
}

#[test]
fn the_demo_runs_in_an_empty_folder_and_shows_its_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let demo = run(folder.path(), "demo").ok();
    assert!(demo.err.contains("32 words, 64 clean examples, 2838 candidates"), "{demo:?}");
    assert!(demo.err.contains("$ labelsieve score --clean labelsieve-demo/clean.parquet"), "{demo:?}");
    let shares = |row: &str| -> f64 {
        let line = demo.out.lines().find(|line| line.starts_with(row)).unwrap_or_else(|| panic!("{demo:?}"));
        line.split_whitespace().rev().nth(1).and_then(|share| share.parse().ok()).unwrap()
    };
    let (clean, alike, cleaned) = (
        shares("clean icons only"),
        shares("all, weighted equally"),
        shares("all, by relevance (prototypes)"),
    );
    assert!(cleaned > alike + 3.0 && alike > clean, "{demo:?}");
    let report = std::fs::read_to_string(folder.path().join("labelsieve-demo/report.html")).unwrap();
    assert!(report.contains("mouse: the computer mouse"));
    let again = run(folder.path(), "demo -q").ok();
    assert_eq!(again.out, demo.out, "a second demo is the same demo");
    let flat = ["warning: relevance hardly tells the candidates of ", "hint: find more candidates "];
    assert!(again.err.lines().all(|line| flat.iter().any(|start| line.starts_with(start))), "{}", again.err);
    let names = listing(folder.path());
    assert!(names.contains(&"labelsieve-demo/model.safetensors".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("partial") || name.contains("/.")), "{names:?}");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    run(folder, SCORE).ok();
    run(folder, TRAIN).ok();
    // `head` may be quicker or slower than the write; `true` never reads at all.
    for reader in ["head -1", "true"] {
        let line = format!(
            "{{ for i in 1 2 3; do $LABELSIEVE -q predict --model M.safetensors --features N.npz --top 6 || \
             echo failed >&2; done; }} | {reader}"
        );
        assert_eq!(shell(folder, &line).ok().err, "", "{reader}");
    }
}

#[test]
fn a_closed_stderr_does_not_stop_the_work() {
    let (folder, _) = task_folder();
    let line = format!("{{ $LABELSIEVE -v {SCORE}; echo $? > code; }} 2>&1 | true");
    shell(folder.path(), &line).ok();
    assert_eq!(std::fs::read_to_string(folder.path().join("code")).expect("a code"), "0\n");
    assert!(folder.path().join("R.parquet").exists());
}

#[test]
fn a_result_that_cannot_be_printed_is_a_failure() {
    if !std::path::Path::new("/dev/full").exists() {
        eprintln!("skipped: this system has no /dev/full");
        return;
    }
    let (folder, _) = task_folder();
    run(folder.path(), SCORE).ok();
    run(folder.path(), TRAIN).ok();
    for line in [
        "evaluate --model M.safetensors --test T.npz --json",
        "predict --model M.safetensors --features T.npz",
    ] {
        let finished = shell(folder.path(), &format!("$LABELSIEVE {line} > /dev/full"));
        finished.fails_with(&["error: cannot write to standard output: ", "No space left"]);
    }
}

#[test]
fn help_names_every_command_and_a_typo_gets_a_suggestion() {
    let folder = tempfile::tempdir().expect("a folder");
    let help = run(folder.path(), "--help").ok().out;
    for command in ["score", "train", "predict", "evaluate", "demo"] {
        assert!(help.contains(&format!("\n  {command}")), "{help}");
    }
    assert!(run(folder.path(), "--version").ok().out.starts_with("labelsieve 0."));
    run(folder.path(), "socre").fails_with(&["unrecognized subcommand 'socre'", "score"]);
}
