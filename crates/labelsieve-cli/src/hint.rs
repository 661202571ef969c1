//! Hints: how to resolve an error.

mod columns;
mod kinds;
mod paths;

use std::io::ErrorKind;
use std::path::Path;

use labelsieve_files::work::{Error, Words};
use labelsieve_files::{Action, DataError, FileKind, TensorsOf};
use labelsieve_networks::Setting;

use crate::spelling::CommandLine;
use crate::text_hints;

/// Shorthand for an [`anyhow::Error`] with a hint.
pub fn user_error(message: impl Into<Words>, hint: impl Into<Words>) -> anyhow::Error {
    Error::input(message, hint).into()
}

/// The message of an error with its causes, options and commands as they are typed.
pub fn message(error: &anyhow::Error) -> String {
    let mut lines = Vec::new();
    for cause in error.chain() {
        if let Some(error) = cause.downcast_ref::<Error>() {
            lines.push(error.spelled(&CommandLine));
            break; // its own causes are in its message
        }
        lines.push(cause.to_string());
    }
    lines.join(": ")
}

/// The hint that fits an error, if there is one.
pub fn for_error(error: &anyhow::Error) -> Option<Words> {
    of_cause(error).or_else(|| of_text(error).map(Words::from))
}

/// The hint that came with the error.
fn of_cause(error: &anyhow::Error) -> Option<Words> {
    error.chain().find_map(|cause| match cause.downcast_ref::<Error>().map(Error::root) {
        Some(Error::Input { hint, .. }) if !hint.is_empty() => Some(hint.clone()),
        _ => None,
    })
}

/// A hint for errors that know nothing of a user.
fn of_text(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| match cause.downcast_ref::<Error>().map(Error::root) {
        Some(Error::Data(error)) => for_data_error(error),
        Some(Error::Method(error)) => for_method_error(error).map(str::to_owned),
        Some(Error::Stage(error)) => error.downcast_ref().and_then(for_network_error).map(str::to_owned),
        Some(_) => None,
        None => {
            let method = cause.downcast_ref().and_then(for_method_error).map(str::to_owned);
            let network = || cause.downcast_ref().and_then(for_network_error).map(str::to_owned);
            method.or_else(network).or_else(|| cause.downcast_ref().and_then(for_data_error))
        }
    })
}

fn for_method_error(error: &labelsieve::Error) -> Option<&'static str> {
    match error {
        labelsieve::Error::Width { .. } => Some("extract all features with the same backbone"),
        labelsieve::Error::Numerics(labelsieve_numerics::Error::Scratch(_)) => {
            Some("choose a folder with more space with --scratch, or raise --memory")
        }
        labelsieve::Error::NoOtherClass => Some("`linear` needs at least two classes; try `--method gcn`"),
        _ => None,
    }
}

fn for_network_error(error: &labelsieve_networks::Error) -> Option<&'static str> {
    match error {
        labelsieve_networks::Error::Setting { name, .. } => Some(match name {
            Setting::BatchSize => "choose it with --batch-size",
            Setting::BatchesPerEpoch => "choose them with --batches",
            Setting::Epochs => "choose them with --epochs",
            Setting::ImageSize => "choose it with --size; in `labelsieve embed`, with --image-size",
            Setting::LearningRate => "choose it with --rate",
            Setting::CropShare => "choose the smaller with --least-crop",
            Setting::PcaWidth => "choose it with --fit-pca",
            Setting::Ways => "choose them with --ways, --shots and --queries",
            Setting::Shots => "choose them with --shots",
            Setting::Queries => "choose them with --queries",
            Setting::Architecture
            | Setting::Stem
            | Setting::View
            | Setting::Momentum
            | Setting::WeightDecay => return None,
        }),
        labelsieve_networks::Error::Diverged { .. } => Some("try a lower --rate"),
        _ => None,
    }
}

fn for_data_error(error: &DataError) -> Option<String> {
    let hint = match error {
        DataError::Io { action, path, cause } => return for_system_error(*action, path, cause.kind()),
        DataError::WrongKind { path, wanted, found } => return kinds::for_kind(path, Some(*wanted), *found),
        DataError::MissingColumn { path, role, asked, present, .. } => {
            let missing = columns::Missing { path, role: *role, asked: asked.as_deref(), present };
            return of_contents(path).or_else(|| Some(missing.hint()));
        }
        DataError::OtherTensors { wanted: TensorsOf::Classifier, .. } => {
            "networks take images: `labelsieve predict --images`, `labelsieve evaluate --images`; classifiers of features \
             come from `labelsieve train`"
        }
        DataError::OtherTensors { wanted: TensorsOf::Network, .. } => {
            "classifiers take features: `labelsieve predict --features`, `labelsieve evaluate --test`; networks come from \
             `labelsieve pretrain` and `labelsieve finetune`"
        }
        DataError::NotAJournal { .. } => "it is in the place of the run's journal; move it",
        DataError::InUse { .. } => "wait until it has finished, or choose another output with -o",
        DataError::UnknownFormat { path, .. } => {
            return of_contents(path).or_else(|| Some("say what it is with --format".to_owned()));
        }
        DataError::Undecodable { path, .. } => {
            let damaged = "the file may be truncated or corrupt; copy or download it again";
            return of_contents(path).or_else(|| Some(damaged.to_owned()));
        }
        DataError::Malformed { path, .. } => return of_contents(path),
        DataError::ReadTwice { .. }
        | DataError::Spool { .. }
        | DataError::UnclosedQuote { .. }
        | DataError::Encoding { .. }
        | DataError::Damaged { .. } => return text_hints::for_text_error(error),
    };
    Some(hint.to_owned())
}

/// For files that hold nothing of any format, whatever is missing in them.
fn of_contents(path: &Path) -> Option<String> {
    kinds::for_kind(path, None, FileKind::of(path)?)
}

fn for_system_error(action: Action, path: &Path, kind: ErrorKind) -> Option<String> {
    let hint = match (action, kind) {
        (Action::Open | Action::Read, ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Some(paths::missing_input(path));
        }
        (Action::Open | Action::Read, ErrorKind::IsADirectory) => "it is a folder; pass a file in it",
        (Action::Open | Action::Read, ErrorKind::PermissionDenied) => "check who may read it",
        (Action::Open | Action::Read, ErrorKind::InvalidData) => return of_contents(path),
        (Action::Write, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge) => {
            "free some disk space and run the same command again; finished work is kept"
        }
        (Action::Write, ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Some(paths::missing_folder(path));
        }
        (Action::Write, ErrorKind::AlreadyExists) => "a file with that name exists; choose another folder",
        (Action::Write, _) => "the output must be a file name in a folder that exists and is writable",
        _ => return None,
    };
    Some(hint.to_owned())
}
