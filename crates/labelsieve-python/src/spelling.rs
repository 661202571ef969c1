//! Options as arguments, and commands as functions.

use labelsieve_files::work::{JobCommand, JobOption, Spelling};

/// The spelling of Python.
pub struct PythonSpelling;

/// The argument of an option; `lambda` is a keyword of Python.
fn argument(option: &JobOption) -> String {
    let name = match option.name {
        "lambda" => "lam",
        "text_column" => "text_columns",
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
        let function = format!("{}_files", command.name.replace('-', "_"));
        let arguments: Vec<String> = command.options.iter().map(argument).collect();
        if arguments.is_empty() {
            format!("`{function}`")
        } else {
            format!("`{function}({})`", arguments.join(", "))
        }
    }
}
