//! The help texts: commands in groups, and an example of each. `labelsieve-bench` has examples too.

use clap::Command;

/// Commands that are for the same thing.
struct Group {
    heading: &'static str,
    commands: &'static [&'static str],
}

const GROUPS: [Group; 4] = [
    Group { heading: "Start", commands: &["demo", "run", "review", "report"] },
    Group {
        heading: "Steps",
        commands: &["classes", "match", "embed", "score", "train", "predict", "evaluate", "decisions"],
    },
    Group { heading: "Networks", commands: &["pretrain", "finetune", "embed-text"] },
    Group { heading: "At scale", commands: &["plan", "merge"] },
];

/// The line for commands outside the groups.
const SHELL: &str = "Shell completions are printed by `labelsieve completions`, manual pages are written by `labelsieve man`.";

/// A command line that shows the purpose of a command.
pub struct Example {
    /// The command; inner commands by both names.
    pub command: &'static str,
    /// The line, ready to be typed.
    pub line: &'static str,
}

const EXAMPLES: [Example; 21] = [
    Example { command: "demo", line: "labelsieve demo" },
    Example { command: "run", line: "labelsieve run --clean photos/verified --pool photos/found -o out" },
    Example { command: "review", line: "labelsieve review out" },
    Example {
        command: "report",
        line: "labelsieve report out/relevance.parquet --images photos/found -o report.html",
    },
    Example { command: "classes", line: "labelsieve classes photos/verified -o classes.toml" },
    Example {
        command: "match",
        line: "labelsieve match --classes classes.toml --text captions.csv -o candidates.parquet",
    },
    Example { command: "embed", line: "labelsieve embed --images photos/found -o pool.parquet" },
    Example {
        command: "score",
        line: "labelsieve score --clean clean.parquet --pool pool.parquet --candidates candidates.parquet -o relevance.parquet",
    },
    Example {
        command: "train",
        line: "labelsieve train --clean clean.parquet --pool pool.parquet --relevance relevance.parquet -o model.safetensors",
    },
    Example {
        command: "predict",
        line: "labelsieve predict --model model.safetensors --features new.parquet -o predictions.csv",
    },
    Example {
        command: "evaluate",
        line: "labelsieve evaluate --model model.safetensors --test test.parquet",
    },
    Example { command: "decisions", line: "labelsieve decisions import export.json -o decisions.parquet" },
    Example {
        command: "decisions import",
        line: "labelsieve decisions import export.json -o decisions.parquet",
    },
    Example { command: "decisions show", line: "labelsieve decisions show decisions.parquet" },
    Example { command: "pretrain", line: "labelsieve pretrain --images photos/base -o network.safetensors" },
    Example {
        command: "finetune",
        line: "labelsieve finetune --network network.safetensors --relevance relevance.parquet --images photos -o tuned.safetensors",
    },
    Example {
        command: "embed-text",
        line: "labelsieve embed-text --model clip-vit-base-patch32 --classes classes.toml -o text.parquet",
    },
    Example {
        command: "plan",
        line: "labelsieve plan --clean clean.parquet --pool pool.parquet --bins 64 -o plan.json",
    },
    Example { command: "merge", line: "labelsieve merge parts -o relevance.parquet" },
    Example { command: "completions", line: "labelsieve completions bash" },
    Example { command: "man", line: "labelsieve man -o ~/.local/share/man/man1" },
];

/// The command line with its commands in groups, and with examples.
pub(crate) fn with_groups_and_examples(command: Command) -> Command {
    let command = with_examples(command, &EXAMPLES);
    let template = format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{SHELL}\n\n{}:\n{{options}}{{after-help}}",
        groups(&command),
        crate::arguments::COMMON,
    );
    command.help_template(template)
}

/// The command line with an example of each command: between its purpose and its options.
pub fn with_examples(command: Command, examples: &[Example]) -> Command {
    examples.iter().fold(command, |command, example| {
        let names: Vec<&str> = example.command.split(' ').collect();
        with_example(command, &names, example.line)
    })
}

fn with_example(command: Command, names: &[&str], line: &str) -> Command {
    match names {
        [] => command.help_template(format!(
            "{{before-help}}{{about-with-newline}}\nExample:\n  {line}\n\n{{usage-heading}} {{usage}}\n\n{{all-args}}{{after-help}}"
        )),
        [name, inner @ ..] => command.mut_subcommand(name, |command| with_example(command, inner, line)),
    }
}

/// Panics unless each command below `command` has, between its purpose and its usage, one example that it can parse. For the
/// tests of both programs.
#[doc(hidden)]
pub fn assert_examples(program: &Command) {
    let mut n_commands = 0;
    for names in command_names(program) {
        let mut command = program.clone();
        for name in &names {
            command = command.find_subcommand(name).expect("a listed command").clone();
        }
        let names = names.join(" ");
        let help = command.render_help().to_string();
        let (about, rest) =
            help.split_once("\nExample:\n").unwrap_or_else(|| panic!("`{names}` has no example"));
        assert!(!about.trim().is_empty(), "`{names}` does not say what it does");
        let (line, options) = rest.split_once("\n\nUsage: ").unwrap_or_else(|| panic!("`{names}`: {help}"));
        let line = line.trim();
        assert!(line.starts_with(&format!("{} {names}", program.get_name())), "`{names}`: `{line}`");
        assert!(!options.contains("Example:"), "`{names}` has two examples");
        let parsed = program.clone().try_get_matches_from(line.split(' '));
        assert!(parsed.is_ok(), "`{line}`: {}", parsed.expect_err("a refusal"));
        n_commands += 1;
    }
    assert!(n_commands > 0, "no commands");
}

/// The names of all commands below one, inner ones by all their names.
fn command_names(command: &Command) -> Vec<Vec<String>> {
    let below = command.get_subcommands().flat_map(|command| {
        let name = command.get_name().to_owned();
        let inner = command_names(command);
        let inner = inner.into_iter().map(|names| [vec![name.clone()], names].concat());
        [vec![name.clone()]].into_iter().chain(inner).collect::<Vec<_>>()
    });
    below.collect()
}

/// All groups as `--help` lists them.
fn groups(command: &Command) -> String {
    let width = GROUPS.iter().flat_map(|group| group.commands).map(|name| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for group in &GROUPS {
        text += &format!("{}:\n", group.heading);
        for name in group.commands {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text += &format!("  {name:width$}  {about}\n");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_for_the_work_is_in_one_group() {
        let command = crate::command();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|group| group.commands).copied().collect();
        let known = command.get_subcommands().map(Command::get_name);
        let known: BTreeSet<&str> =
            known.filter(|name| !SHELL.contains(&format!("`labelsieve {name}`"))).collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<&str>>(), known);
        assert_eq!(listed.len(), known.len());
        assert_eq!(command.get_subcommands().count(), listed.len() + 2);
    }

    #[test]
    fn the_help_shows_four_groups_and_then_the_common_options() {
        let help = crate::command().render_help().to_string();
        let is_heading = |line: &&str| line.ends_with(':') && !line.starts_with(' ');
        let headings: Vec<&str> = help.lines().filter(is_heading).collect();
        assert_eq!(headings, ["Start:", "Steps:", "Networks:", "At scale:", "Common options:"]);
    }

    #[test]
    fn every_command_has_an_example_that_parses() {
        assert_examples(&crate::command());
    }
}
