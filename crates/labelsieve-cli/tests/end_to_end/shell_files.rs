//! Shell completions and manual pages: made from the commands there are.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::{listing, run};

/// Commands that the help mentions below the groups.
pub const UNLISTED: [&str; 2] = ["completions", "man"];

/// The names that the help of a command lists, in groups or under `Commands:`.
fn commands_of(folder: &Path, command: &str) -> BTreeSet<String> {
    let help = run(folder, &format!("{command} --help")).ok().out;
    let names = listed_commands(&help);
    assert!(!names.is_empty(), "a list of commands: {help}");
    let unlisted = if command.is_empty() { UNLISTED.as_slice() } else { &[] };
    names.into_iter().chain(unlisted.iter().map(|name| (*name).to_owned())).collect()
}

/// The names of commands in a help text.
pub fn listed_commands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| !["Start:", "Commands:"].contains(line));
    let list = list.take_while(|line| *line != "Common options:");
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

#[test]
fn every_shell_gets_a_script_that_knows_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let commands = commands_of(folder.path(), "");
    assert!(commands.contains("score"), "{commands:?}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(folder.path(), &format!("completions {shell}")).ok().out;
        for command in &commands {
            assert!(script.contains(command.as_str()), "{shell}: no {command}");
        }
        assert!(script.contains("embedding-column"), "{shell}: no options");
    }
    run(folder.path(), "completions tcsh").fails_with(&["invalid value 'tcsh'", "bash"]);
}

#[cfg(unix)]
#[test]
fn bash_completes_commands_and_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let complete = |words: &str, position: usize| {
        let line = format!(
            r#"source <("$LABELSIEVE" completions bash)
               COMP_WORDS=({words}) COMP_CWORD={position}
               _labelsieve labelsieve "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
               echo "${{COMPREPLY[@]}}""#
        );
        let mut bash = std::process::Command::new("bash");
        bash.current_dir(folder.path()).env("LABELSIEVE", crate::BINARY);
        let output = bash.args(["--norc", "-c", &line]).output().expect("bash starts");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    };
    assert_eq!(complete("labelsieve sc", 1), "score");
    assert_eq!(complete("labelsieve score --poo", 2), "--pool --pool-labels");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), "man -o share/man1").ok();
    let mut wanted: BTreeSet<String> = ["labelsieve.1".to_owned()].into();
    wanted.extend(commands_of(folder.path(), "").iter().map(|name| format!("labelsieve-{name}.1")));
    let inner = commands_of(folder.path(), "decisions");
    wanted.extend(inner.iter().map(|name| format!("labelsieve-decisions-{name}.1")));
    let pages: BTreeSet<String> = listing(&folder.path().join("share/man1")).into_iter().collect();
    assert_eq!(pages, wanted);
    let page = std::fs::read_to_string(folder.path().join("share/man1/labelsieve-score.1")).expect("a page");
    assert!(page.contains(".TH labelsieve-score 1") && page.contains(r"\-\-candidates"), "{page}");
    std::fs::write(folder.path().join("file"), "").expect("a file");
    run(folder.path(), "man -o file").fails_with(&["cannot write `file`"]);
}
