//! Options by name, as other front ends than the command line have them: the same definitions parse them.

use std::any::TypeId;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Args, Command};

/// The value of an option.
#[derive(Clone, Debug)]
pub enum OptionValue {
    /// The default applies.
    Default,
    /// Whether a switch is on.
    Switch(bool),
    /// A number, as digits.
    Number(String),
    /// Text or a path.
    Text(OsString),
    /// The values of an option that takes several.
    List(Vec<OptionValue>),
}

/// An option as other front ends show it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct OptionDescription {
    /// The name of its field, which is its name in Python too.
    pub name: String,
    /// Its spelling on the command line; none for arguments without a name.
    pub flag: Option<String>,
    /// Stands for its value in a help text.
    pub metavar: Option<String>,
    /// Its description in `--help`.
    pub help: String,
    /// The value it has when it is not given, if that is a constant.
    pub default: Option<String>,
    /// The words that it may be.
    pub choices: Vec<String>,
    /// The type of its value.
    pub kind: OptionKind,
    /// Whether it takes several values.
    pub is_list: bool,
    /// Whether the command cannot do without it, whatever else is given.
    pub is_required: bool,
}

/// The type of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OptionKind {
    /// On or off, without a value.
    Switch,
    /// A whole number.
    Integer,
    /// A real number.
    Number,
    /// Text, a path, or text in a form of its own such as `80x60`.
    Text,
}

/// The names of all commands that do something: those of a group by both names, without the group.
pub fn commands() -> Vec<String> {
    let command = crate::command();
    let names = command.get_subcommands().flat_map(|command| {
        let name = command.get_name();
        let inner: Vec<String> =
            command.get_subcommands().map(|inner| format!("{name} {}", inner.get_name())).collect();
        if inner.is_empty() { vec![name.to_owned()] } else { inner }
    });
    names.collect()
}

/// The options of the command called `name`; commands of a group by both names.
pub fn describe(name: &str) -> Option<Vec<OptionDescription>> {
    let mut command = crate::command();
    for part in name.split(' ') {
        command = command.find_subcommand(part)?.clone();
    }
    let is_own = |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "json";
    let arguments = command.get_arguments().filter(|argument| !argument.is_global_set());
    Some(arguments.filter(is_own).map(describe_option).collect())
}

fn describe_option(argument: &Arg) -> OptionDescription {
    let values = argument.get_possible_values();
    let choices =
        values.iter().filter(|value| !value.is_hide_set() && kind_of(argument) != OptionKind::Switch);
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let kind = kind_of(argument);
    OptionDescription {
        name: argument.get_id().to_string(),
        flag: argument.get_long().map(|long| format!("--{long}")),
        metavar: argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string),
        help: argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default(),
        default: (kind != OptionKind::Switch && !defaults.is_empty()).then(|| defaults.join(",")),
        choices: choices.map(|value| value.get_name().to_owned()).collect(),
        kind,
        is_list: matches!(argument.get_action(), ArgAction::Append),
        is_required: argument.is_required_set(),
    }
}

fn kind_of(argument: &Arg) -> OptionKind {
    if !argument.get_action().takes_values() {
        return OptionKind::Switch;
    }
    let kind = argument.get_value_parser().type_id();
    let is_any = |kinds: &[TypeId]| kinds.iter().any(|one| kind == *one);
    let integers =
        [TypeId::of::<u16>(), TypeId::of::<u64>(), TypeId::of::<usize>(), TypeId::of::<NonZeroUsize>()];
    if is_any(&integers) {
        OptionKind::Integer
    } else if is_any(&[TypeId::of::<f32>(), TypeId::of::<f64>()]) {
        OptionKind::Number
    } else {
        OptionKind::Text
    }
}

/// The options of a job from their values by name. An error names the option it is about, if it is about one.
pub fn parse<O: Args>(values: &[(String, OptionValue)]) -> Result<O, String> {
    let mut command = definition::<O>();
    let mut words = Vec::new();
    let mut positional = vec![OsString::from("--")];
    for (name, value) in values {
        let found = command.get_arguments().find(|argument| argument.get_id() == name.as_str());
        let argument = found.ok_or_else(|| format!("{name}: unknown option"))?;
        let into = if argument.is_positional() { &mut positional } else { &mut words };
        add(argument, value, into)?;
    }
    words.append(&mut positional);
    let parsed =
        command.try_get_matches_from_mut(words).and_then(|matches: ArgMatches| O::from_arg_matches(&matches));
    parsed.map_err(|error| message(&error, &command))
}

/// The command that has these options and no others. Values come one by one, so none is split at commas.
fn definition<O: Args>() -> Command {
    let command = Command::new("job").no_binary_name(true).disable_help_flag(true).disable_version_flag(true);
    O::augment_args(command).mut_args(|argument| argument.value_delimiter(None))
}

/// Adds an option to a command line.
fn add(argument: &Arg, value: &OptionValue, words: &mut Vec<OsString>) -> Result<(), String> {
    let name = argument.get_id();
    let is_switch = kind_of(argument) == OptionKind::Switch;
    let long = argument.get_long().unwrap_or_default();
    let text = match value {
        OptionValue::Default | OptionValue::Switch(false) if is_switch => return Ok(()),
        OptionValue::Switch(true) if is_switch => {
            words.push(format!("--{long}").into());
            return Ok(());
        }
        _ if is_switch => return Err(format!("{name}: expected True or False")),
        OptionValue::Default => return Ok(()),
        OptionValue::List(values) => return values.iter().try_for_each(|value| add(argument, value, words)),
        OptionValue::Switch(_) => return Err(format!("{name}: expected a value, found True or False")),
        OptionValue::Number(number) if is_words(argument) => {
            return Err(format!("{name}: expected text, found {number}"));
        }
        OptionValue::Number(number) => OsString::from(number),
        OptionValue::Text(text) => text.clone(),
    };
    if argument.is_positional() {
        words.push(text);
    } else {
        let mut word = OsString::from(format!("--{long}="));
        word.push(text);
        words.push(word);
    }
    Ok(())
}

/// Whether the option is plain text or a path, for which a number is a mistake.
fn is_words(argument: &Arg) -> bool {
    let kind = argument.get_value_parser().type_id();
    kind == TypeId::of::<String>() || kind == TypeId::of::<PathBuf>()
}

/// The message of a refusal, with the names of options as other front ends know them.
fn message(error: &clap::Error, command: &Command) -> String {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let named = |shown: String| {
        let names = shown.split(", ").map(|one| name_of(one, command));
        names.collect::<Vec<_>>().join(" and ")
    };
    let option = text(ContextKind::InvalidArg).map(named);
    let name = option.unwrap_or_else(|| "options".to_owned());
    match error.kind() {
        ErrorKind::MissingRequiredArgument => format!("{name}: expected a value"),
        ErrorKind::ArgumentConflict => match text(ContextKind::PriorArg) {
            Some(other) => format!("{name}: expected none beside {}", named(other)),
            None => format!("{name}: given twice"),
        },
        ErrorKind::InvalidValue => {
            let found = text(ContextKind::InvalidValue).unwrap_or_default();
            let valid = text(ContextKind::ValidValue).unwrap_or_default();
            format!("{name}: expected {valid}, found `{found}`")
        }
        _ => {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            let found = || text(ContextKind::InvalidValue).unwrap_or_default();
            format!("{name}: {}", cause.unwrap_or_else(|| format!("cannot use `{}`", found())))
        }
    }
}

/// The name of an option that clap shows as `--id-column <NAME>`, or `<PART>...`.
fn name_of(shown: &str, command: &Command) -> String {
    let word = shown.split([' ', '=']).next().unwrap_or(shown);
    let is_shown = |argument: &&Arg| match argument.get_long() {
        Some(long) => word.strip_prefix("--") == Some(long),
        None => argument.to_string() == shown,
    };
    let found = command.get_arguments().find(is_shown);
    found.map_or_else(|| shown.to_owned(), |argument| argument.get_id().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{MergeOptions, ScoreOptions};

    fn text(value: &str) -> OptionValue {
        OptionValue::Text(value.into())
    }

    fn named(values: &[(&str, OptionValue)]) -> Vec<(String, OptionValue)> {
        values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn values_by_name_are_parsed_by_the_definition() {
        let values = [
            ("clean", text("-c.npz")),
            ("pool", text("p.npz")),
            ("output", text("r.parquet")),
            ("lambda", OptionValue::Number("-0.5".to_owned())),
            ("plan", OptionValue::Default),
            ("dry_run", OptionValue::Switch(false)),
        ];
        let options: ScoreOptions = parse(&named(&values)).unwrap();
        assert_eq!(options.scored.pools.clean, Some(PathBuf::from("-c.npz")));
        assert_eq!((options.method.lambda, options.seed.seed), (Some(-0.5), 0));
        let parts = OptionValue::List(vec![text("a,b"), text("-")]);
        let options: MergeOptions = parse(&named(&[("parts", parts), ("output", text("o.csv"))])).unwrap();
        assert_eq!(options.parts, [PathBuf::from("a,b"), PathBuf::from("-")]);
    }

    #[test]
    fn refusals_name_the_option_without_dashes() {
        let pools = [("clean", text("c")), ("pool", text("p")), ("output", text("o"))];
        let refused = |more: &[(&str, OptionValue)]| {
            parse::<ScoreOptions>(&named(&[&pools, more].concat())).unwrap_err()
        };
        assert_eq!(refused(&[("nois", text("n"))]), "nois: unknown option");
        assert_eq!(refused(&[("plan", text("p.json"))]), "bin: expected a value");
        let number = OptionValue::Number("3".to_owned());
        assert_eq!(refused(&[("label_column", number)]), "label_column: expected text, found 3");
        let both = [("plan", text("p.json")), ("bin", text("0")), ("shard", text("0/2"))];
        assert!(refused(&both).contains("expected none beside"), "{}", refused(&both));
        assert!(refused(&[("device", text("gpu"))]).starts_with("device: device `gpu`: expected auto"));
    }

    #[test]
    fn every_option_of_every_command_is_described() {
        let commands = commands();
        assert!(["score", "decisions import"].iter().all(|name| commands.iter().any(|one| one == name)));
        assert!(!commands.iter().any(|name| name == "decisions"), "a group does nothing by itself");
        for command in commands {
            let options = describe(&command).unwrap();
            assert!(!options.is_empty(), "`{command}` has no options");
            for option in options {
                let help = &option.help;
                let is_written =
                    help.starts_with(|first: char| !first.is_lowercase()) && !help.ends_with('.');
                assert!(is_written, "{command}: {}: `{help}`", option.name);
            }
        }
    }

    #[test]
    fn a_description_has_the_default_the_choices_and_the_help() {
        let options = describe("score").unwrap();
        let of = |name: &str| options.iter().find(|option| option.name == name).unwrap();
        assert_eq!(of("method").default.as_deref(), Some("auto"));
        assert!(of("method").choices.contains(&"label-propagation".to_owned()));
        assert_eq!((of("lambda").kind, of("bin").kind), (OptionKind::Number, OptionKind::Integer));
        assert!(of("pool").help.starts_with("Candidates"));
        assert!(describe("decisions import").is_some() && describe("clean").is_none());
    }
}
