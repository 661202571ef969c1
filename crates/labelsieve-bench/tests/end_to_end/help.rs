//! The help of `labelsieve-bench`, and its commands in the documents.

use crate::common::run;
use crate::documents::check_commands;

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
fn every_command_in_the_documents_parses() {
    check_commands("labelsieve-bench");
}
