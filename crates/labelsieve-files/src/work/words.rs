//! Messages and hints made of parts, so that each front end spells options and commands its own way: as flags on the command
//! line, as keyword arguments in Python. No string below the front ends contains a spelling.
//!
//! ```
//! use labelsieve_files::work::{command, option, words};
//!
//! let hint = words!["make one with ", command("score").with(option("decisions")), " or leave out ", option("id_column")];
//! assert_eq!(hint.to_string(), "make one with `score` with `decisions` or leave out `id_column`");
//! ```

use std::fmt;

/// A message or a hint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(Vec<Part>);

/// A part of [`Words`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Plain text.
    Text(String),
    /// An option of a job.
    Option(JobOption),
    /// A command.
    Command(JobCommand),
}

/// An option of a job, by the name of its field, with an optional value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOption {
    /// The field.
    pub name: &'static str,
    /// Its value, if the message suggests one.
    pub value: Option<String>,
}

/// A command with options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobCommand {
    /// Its name.
    pub name: &'static str,
    /// The options.
    pub options: Vec<JobOption>,
}

/// An option of a job, by the name of its field.
pub fn option(name: &'static str) -> JobOption {
    JobOption { name, value: None }
}

/// A command by its name.
pub fn command(name: &'static str) -> JobCommand {
    JobCommand { name, options: Vec::new() }
}

impl JobOption {
    /// The option with this value.
    pub fn set_to(self, value: impl fmt::Display) -> JobOption {
        JobOption { value: Some(value.to_string()), ..self }
    }
}

impl JobCommand {
    /// The command with one more option.
    pub fn with(mut self, option: JobOption) -> JobCommand {
        self.options.push(option);
        self
    }
}

/// How a front end writes options and commands.
pub trait Spelling {
    /// An option within a sentence.
    fn option(&self, option: &JobOption) -> String;

    /// A command within a sentence.
    fn command(&self, command: &JobCommand) -> String;
}

/// The spelling of logs and debuggers: plain names.
struct Plain;

impl Spelling for Plain {
    fn option(&self, option: &JobOption) -> String {
        match &option.value {
            Some(value) => format!("`{} = {value}`", option.name),
            None => format!("`{}`", option.name),
        }
    }

    fn command(&self, command: &JobCommand) -> String {
        let options = command.options.iter().map(|option| self.option(option)).collect::<Vec<_>>();
        if options.is_empty() {
            format!("`{}`", command.name)
        } else {
            format!("`{}` with {}", command.name, options.join(" and "))
        }
    }
}

impl Words {
    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, with options and commands as a front end writes them.
    pub fn spelled(&self, spelling: &dyn Spelling) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Option(option) => spelling.option(option),
            Part::Command(command) => spelling.command(command),
        };
        self.0.iter().map(part).collect()
    }

    /// The words followed by more parts.
    pub fn and(mut self, more: impl Into<Words>) -> Words {
        self.0.extend(more.into().0);
        self
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled(&Plain))
    }
}

impl FromIterator<Words> for Words {
    fn from_iter<I: IntoIterator<Item = Words>>(parts: I) -> Words {
        Words(parts.into_iter().flat_map(|words| words.0).collect())
    }
}

impl From<&str> for Words {
    fn from(text: &str) -> Words {
        Words(vec![Part::Text(text.to_owned())])
    }
}

impl From<String> for Words {
    fn from(text: String) -> Words {
        Words(vec![Part::Text(text)])
    }
}

impl From<JobOption> for Words {
    fn from(option: JobOption) -> Words {
        Words(vec![Part::Option(option)])
    }
}

impl From<JobCommand> for Words {
    fn from(command: JobCommand) -> Words {
        Words(vec![Part::Command(command)])
    }
}

/// [`Words`] made of texts, options and commands: `words!["choose ", option("rule")]`.
#[macro_export]
macro_rules! words {
    ($($part:expr),+ $(,)?) => {
        [$($crate::work::Words::from($part)),+].into_iter().collect::<$crate::work::Words>()
    };
}
pub use crate::words;

#[cfg(test)]
mod tests {
    use super::*;

    /// As the command line writes them.
    struct Dashes;

    impl Spelling for Dashes {
        fn option(&self, option: &JobOption) -> String {
            let value = option.value.as_deref().map_or(String::new(), |value| format!(" {value}"));
            format!("--{}{value}", option.name.replace('_', "-"))
        }

        fn command(&self, command: &JobCommand) -> String {
            let options = command.options.iter().map(|option| format!(" {}", self.option(option)));
            format!("`labelsieve {}{}`", command.name, options.collect::<String>())
        }
    }

    #[test]
    fn each_front_end_spells_options_and_commands_its_own_way() {
        let words = words![
            "try ",
            command("match").with(option("rule").set_to("plural")),
            format!(", or name {} with ", "it"),
            option("id_column"),
        ];
        let spelled = "try `labelsieve match --rule plural`, or name it with --id-column";
        assert_eq!(words.spelled(&Dashes), spelled);
        assert_eq!(words.to_string(), "try `match` with `rule = plural`, or name it with `id_column`");
    }
}
