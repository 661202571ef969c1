//! The help of `labelsieve-bench`, and its commands in the documents.

use crate::common::run;
use crate::documents::{check_commands, commands, documents, read};

#[test]
fn help_names_every_command_and_a_typo_gets_a_suggestion() {
    let folder = tempfile::tempdir().expect("a folder");
    let help = run(folder.path(), "--help").ok().out;
    for command in ["paper", "photos", "sanity", "train-attention", "train", "predict", "evaluate"] {
        assert!(help.contains(&format!("\n  {command}")), "{help}");
    }
    assert!(run(folder.path(), "--version").ok().out.starts_with("labelsieve-bench 0."));
    run(folder.path(), "papper").fails_with(&["unrecognized subcommand 'papper'", "paper"]);
}

#[test]
fn every_option_in_the_documents_exists() {
    check_commands("labelsieve-bench");
}

/// With `--help` at the end, a command line is parsed up to there without running: unknown arguments and invalid values are errors.
#[test]
fn every_command_line_in_the_documents_parses() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in documents() {
        for line in commands(&read(&path), "labelsieve-bench") {
            if line.contains('…') {
                continue; // abbreviated
            }
            let arguments = line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
            let done = run(folder.path(), &format!("{arguments} --help"));
            assert_eq!(done.code, Some(0), "{}: `{line}`: {done:?}", path.display());
        }
    }
}
