//! The help texts: commands in groups, and an example of each.

use clap::Command;

/// Commands that are for the same thing.
struct Group {
    heading: &'static str,
    commands: &'static [&'static str],
}

const GROUPS: [Group; 5] = [
    Group { heading: "Start", commands: &["demo", "run", "review", "report"] },
    Group {
        heading: "Steps",
        commands: &["classes", "match", "embed", "score", "train", "predict", "evaluate", "decisions"],
    },
    Group { heading: "Networks", commands: &["pretrain", "finetune", "embed-text"] },
    Group { heading: "At scale", commands: &["plan", "merge"] },
    Group { heading: "Shell", commands: &["completions", "man"] },
];

/// A command line that shows what a command is for.
struct Example {
    command: &'static str,
    line: &'static str,
}

const EXAMPLES: [Example; 18] = [
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
];

/// The command line with its commands in groups, and with examples.
pub fn with_groups_and_examples(command: Command) -> Command {
    let command = EXAMPLES.iter().fold(command, |command, example| {
        let template = format!(
            "{{before-help}}{{about-with-newline}}\nExample:\n  {}\n\n{{usage-heading}} {{usage}}\n\n{{all-args}}{{after-help}}",
            example.line
        );
        command.mut_subcommand(example.command, |one| one.help_template(template))
    });
    let template = format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{}:\n{{options}}{{after-help}}",
        groups(&command),
        crate::arguments::COMMON,
    );
    command.help_template(template)
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
    fn every_command_is_in_one_group() {
        let command = crate::command();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|group| group.commands).copied().collect();
        let known: BTreeSet<&str> = command.get_subcommands().map(Command::get_name).collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<&str>>(), known);
        assert_eq!(listed.len(), known.len());
    }

    #[test]
    fn examples_are_commands_that_parse() {
        for example in &EXAMPLES {
            assert!(example.line.starts_with(&format!("labelsieve {}", example.command)));
            crate::command().try_get_matches_from(example.line.split(' ')).unwrap();
        }
    }
}
