//! Messages of the pipeline name options and commands of the command line; here they name arguments and functions.

use std::borrow::Cow;

/// Commands that are functions here, with `_files` behind their names.
const FUNCTIONS: [&str; 10] =
    ["match", "embed", "embed-text", "score", "plan", "merge", "train", "finetune", "predict", "evaluate"];

/// Options whose values follow them in messages.
const CHOICES: [&str; 2] = ["rule", "method"];

/// The text with options as arguments and commands as functions: `--id-column` is called `id_column` here, and
/// `labelsieve score` `score_files`. Anything else between backticks stays as it is: names, or commands with options.
pub fn in_python(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(i, part)| match i % 2 {
        0 => with_arguments(part),
        _ => function(part).map_or(Cow::from(part), Cow::from),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// The function that does what a command does.
fn function(command: &str) -> Option<String> {
    let name = command.strip_prefix("labelsieve ")?;
    FUNCTIONS.contains(&name).then(|| format!("{}_files", name.replace('-', "_")))
}

/// A text without backticks, its options between some.
fn with_arguments(text: &str) -> Cow<'_, str> {
    let mut said = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("--") {
        let (before, option) = rest.split_at(start);
        let option = &option["--".len()..];
        let end = option.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(option.len());
        let (name, mut after) = option.split_at(end);
        let mut argument = argument(name);
        if CHOICES.contains(&name)
            && let Some((value, behind)) = value(after)
        {
            argument = format!("{argument}=\"{value}\"");
            after = behind;
        }
        said = format!("{said}{before}`{argument}`");
        rest = after;
    }
    if said.is_empty() { Cow::from(text) } else { Cow::from(said + rest) }
}

/// The name of the argument for an option; `lambda` is a keyword of Python.
fn argument(option: &str) -> String {
    match option {
        "lambda" => "lam".to_owned(),
        "text-column" => "text_columns".to_owned(),
        option => option.replace('-', "_"),
    }
}

/// A value that follows an option, and what is behind it.
fn value(after: &str) -> Option<(&str, &str)> {
    const VALUES: [&str; 5] = ["plural", "any-word", "phrase", "substring", "gcn"];
    let after = after.strip_prefix(' ')?;
    let value = VALUES.into_iter().find(|value| after.starts_with(value))?;
    Some((value, &after[value.len()..]))
}
