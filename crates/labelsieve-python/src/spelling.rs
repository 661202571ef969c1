//! Options as arguments, and commands as functions.

use labelsieve_files::work::{JobCommand, JobOption, Spelling};

/// The spelling of Python.
pub struct PythonSpelling;

/// The argument of an option; `lambda` is a keyword of Python.
fn argument(option: &JobOption) -> String {
    let name = match option.name {
        "lambda" => "lam",
        "text_column" => "text_columns",
        "template" => "templates",
        name => name,
    };
    match &option.value {
        Some(value) => format!("{name}={value:?}"),
        None => name.to_owned(),
    }
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
        "review" | "demo" | "report" | "decisions show" | "train-attention" | "train-episodes" => None,
        "decisions import" => Some("import_decisions".to_owned()),
        _ => Some(format!("{}_files", command.replace('-', "_"))),
    }
}
