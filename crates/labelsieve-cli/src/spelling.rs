//! Options and commands as they are typed.

use labelsieve_files::work::shell_word::shell_word;
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

/// A command with its options as one line for a shell.
pub fn shell_line(command: &JobCommand) -> String {
    let mut line = format!("labelsieve {}", command.name);
    for option in &command.options {
        let name = match option.name {
            "output" => "-o".to_owned(),
            name => format!("--{}", name.replace('_', "-")),
        };
        line.push(' ');
        line.push_str(&name);
        if let Some(value) = &option.value {
            line.push(' ');
            line.push_str(&shell_word(value));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use labelsieve_files::work::{command, option};

    use super::*;

    #[test]
    fn commands_to_copy_quote_their_paths() {
        let score = command("score")
            .with(option("clean").set_to("c.npz"))
            .with(option("pool").set_to("my pool.parquet"))
            .with(option("allow_mixed"))
            .with(option("output").set_to("out/r.parquet"));
        assert_eq!(
            shell_line(&score),
            "labelsieve score --clean c.npz --pool 'my pool.parquet' --allow-mixed -o out/r.parquet"
        );
    }
}
