//! Options and commands as they are typed.

use labelsieve_files::work::{JobCommand, JobOption, Spelling};

/// The spelling of the command line.
pub struct CommandLine;

impl Spelling for CommandLine {
    fn option(&self, option: &JobOption) -> String {
        let name = option.name.replace('_', "-");
        match &option.value {
            Some(value) => format!("--{name} {value}"),
            None => format!("--{name}"),
        }
    }

    fn command(&self, command: &JobCommand) -> String {
        let options = command.options.iter().map(|option| format!(" {}", self.option(option)));
        format!("`labelsieve {}{}`", command.name, options.collect::<String>())
    }
}
