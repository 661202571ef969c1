//! A command line, word by word: to run it, and to show it as a shell would read it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

use anyhow::Result;
use clap::Parser;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::shell_word::shell_word;
use labelsieve_jobs::run::JobLine;

use super::Command;
use crate::front_end::Commands;
use crate::printer::Printer;

/// The words after `labelsieve`.
pub struct Words(Vec<OsString>);

/// A command without options.
pub fn words(command: &str) -> Words {
    Words(vec![command.into()])
}

impl Words {
    /// Adds an option with its value.
    pub fn option(mut self, name: &str, value: impl AsRef<OsStr>) -> Words {
        self.0.push(name.into());
        self.path(value)
    }

    /// Adds an option with several values.
    pub fn options<V: AsRef<OsStr>>(mut self, name: &str, values: impl IntoIterator<Item = V>) -> Words {
        self.0.push(name.into());
        values.into_iter().fold(self, Words::path)
    }

    /// Adds an argument without a name. One that begins with a dash would look like an option.
    pub fn path(mut self, path: impl AsRef<OsStr>) -> Words {
        let path = path.as_ref();
        self.0.push(if path.as_encoded_bytes().starts_with(b"-") {
            Path::new(".").join(path).into()
        } else {
            path.to_owned()
        });
        self
    }

    /// The arguments of a process, the program's name first.
    pub fn arguments(&self) -> impl Iterator<Item = OsString> {
        [OsString::from("labelsieve")].into_iter().chain(self.0.iter().cloned())
    }
}

/// The step of a run as it is typed.
impl From<&JobLine> for Words {
    fn from(line: &JobLine) -> Words {
        line.options.iter().fold(words(line.command), |words, option| {
            if option.is_positional {
                return option.values.iter().fold(words, Words::path);
            }
            let name = if option.name == "output" {
                "-o".to_owned()
            } else {
                format!("--{}", option.name.replace('_', "-"))
            };
            words.options(&name, &option.values)
        })
    }
}

/// A command line inside a command line.
#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// Shows a command, runs it, and returns it as it was shown.
pub fn run_step(why: &str, words: &Words, printer: &Printer) -> Result<String> {
    printer.note(&format!("\n# {why}\n$ {words}"));
    Line::try_parse_from(words.arguments())?.command.run(printer)?;
    Ok(words.to_string())
}

/// Ready to be pasted into a shell.
impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.arguments().map(|word| shell_word(&word)).collect();
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_or_expand_them() {
        let line =
            words("match").option("--text", "my dir/*.csv").option("-o", "it's $HOME").path("größe-1.csv");
        assert_eq!(
            line.to_string(),
            r"labelsieve match --text 'my dir/*.csv' -o 'it'\''s $HOME' größe-1.csv"
        );
    }
}
