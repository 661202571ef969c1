//! Options that would do nothing are refused by name: a user who gives one expects an effect.
//!
//! Only what was typed counts, not defaults. `--seed`, `--device` and `--threads` are taken everywhere: they say how, not what.

use std::path::Path;

use anyhow::Result;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use crate::hint::user_error;

/// The options of a command that stand on the command line.
pub struct Given<'a> {
    matches: &'a ArgMatches,
    command: &'a Command,
}

/// The columns of a table, as every command calls them.
const COLUMNS: [&str; 3] = ["embedding_column", "label_column", "id_column"];

impl<'a> Given<'a> {
    /// Of the innermost command.
    pub fn new(mut matches: &'a ArgMatches, mut command: &'a Command) -> Given<'a> {
        while let Some((name, below)) = matches.subcommand()
            && let Some(subcommand) = command.find_subcommand(name)
        {
            (matches, command) = (below, subcommand);
        }
        Given { matches, command }
    }

    /// Whether an option, by the name of its field, was typed.
    pub fn has(&self, field: &str) -> bool {
        let is_known = self.matches.ids().any(|id| id == field);
        is_known && self.matches.value_source(field) == Some(ValueSource::CommandLine)
    }

    /// Refuses the first of these options that was typed.
    pub fn refuse(&self, fields: &[&str], who: &str, hint: &str) -> Result<()> {
        match fields.iter().find(|field| self.has(field)) {
            None => Ok(()),
            Some(field) => Err(user_error(format!("{who} does not use {}", self.option(field)), hint)),
        }
    }

    /// Refuses names of columns when none of the files has any.
    pub fn refuse_columns<'p>(&self, tables: impl IntoIterator<Item = &'p Path>) -> Result<()> {
        let kinds: Vec<Columns> = tables.into_iter().map(Columns::of).collect();
        let is_used = |field: &str| {
            kinds.iter().any(|kind| match kind {
                Columns::All => true,
                Columns::AllButEmbedding => field != "embedding_column",
                Columns::None => false,
            })
        };
        match COLUMNS.iter().find(|field| self.has(field) && !is_used(field)) {
            None => Ok(()),
            Some(field) => Err(user_error(
                format!("none of the inputs has columns, so {} has no effect", self.option(field)),
                "it is for Parquet files and for the metadata of clip-retrieval folders",
            )),
        }
    }

    /// The option as it is typed.
    fn option(&self, field: &str) -> String {
        let argument = self.command.get_arguments().find(|argument| argument.get_id() == field);
        let long = argument.and_then(|argument| argument.get_long());
        format!("--{}", long.unwrap_or(field))
    }
}

/// For an option that the command does not have: which commands do.
pub fn of_another_command(error: &clap::Error, all: &Command) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let name = option.strip_prefix("--").filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let has = |command: &&Command| command.get_arguments().any(|argument| argument.get_long() == Some(name));
    let commands: Vec<String> = all
        .get_subcommands()
        .filter(has)
        .map(|command| format!("`{} {}`", all.get_name(), command.get_name()))
        .collect();
    Some(match commands.as_slice() {
        [] => return None,
        [only] => format!("{only} takes {option}"),
        [first, second] => format!("{first} and {second} take {option}"),
        [first, second, third] => format!("{first}, {second} and {third} take {option}"),
        [first, second, others @ ..] => {
            format!("{first}, {second} and {} other commands take {option}", others.len())
        }
    })
}

/// Which columns of a table can be named.
enum Columns {
    All,
    /// A folder of clip-retrieval has its embeddings in files of their own.
    AllButEmbedding,
    None,
}

impl Columns {
    fn of(path: &Path) -> Columns {
        match path.extension().and_then(|ending| ending.to_str()) {
            _ if path.is_dir() => Columns::AllButEmbedding,
            Some("npz" | "npy") => Columns::None,
            _ => Columns::All,
        }
    }
}
