//! Options as arguments, and commands as functions.

use labelsieve_cli::options::{self, OptionKind};
use labelsieve_files::work::{JobCommand, JobOption, Spelling};

/// The spelling of Python.
pub struct PythonSpelling;

/// The argument of an option by the option's name: two are keywords of Python, two are plurals where a function takes
/// several values at once.
pub fn argument_name(option: &str) -> &str {
    match option {
        "from" => "source",
        "lambda" => "lam",
        "text_column" => "text_columns",
        "template" => "templates",
        name => name,
    }
}

fn argument(option: &JobOption) -> String {
    let name = argument_name(option.name);
    match &option.value {
        Some(value) => format!("{name}={value:?}"),
        None => name.to_owned(),
    }
}

/// A command as a call that can be pasted: values are written as their options take them.
pub fn call(command: &JobCommand) -> String {
    let described = options::describe(command.name).unwrap_or_default();
    let kind = |name: &str| described.iter().find(|option| option.name == name).map(|option| option.kind);
    let arguments = command.options.iter().map(|option| {
        let name = argument_name(option.name);
        match (&option.value, kind(option.name)) {
            (None, _) => format!("{name}=True"),
            (Some(value), Some(OptionKind::Integer | OptionKind::Number)) => format!("{name}={value}"),
            (Some(value), _) => format!("{name}={value:?}"),
        }
    });
    let function = format!("{}_files", command.name.replace('-', "_"));
    format!("labelsieve.{function}({})", arguments.collect::<Vec<_>>().join(", "))
}

impl Spelling for PythonSpelling {
    fn option(&self, option: &JobOption) -> String {
        format!("`{}`", argument(option))
    }

    fn command(&self, command: &JobCommand) -> String {
        let arguments: Vec<String> = command.options.iter().map(argument).collect();
        match function(command.name) {
            Some(function) if arguments.is_empty() => format!("`{function}`"),
            Some(function) => format!("`{function}({})`", arguments.join(", ")),
            None => format!("`labelsieve {}` in a shell", command.name),
        }
    }
}

/// The function that does what a command does; the wheel has the command for the others.
fn function(command: &str) -> Option<String> {
    match command {
        "decisions import" => Some("import_decisions".to_owned()),
        "demo" | "decisions show" => None,
        _ => Some(format!("{}_files", command.replace('-', "_"))),
    }
}
