//! What a user can do about an error.

use std::io::ErrorKind;

use labelsieve_data::DataError;

/// An error of the command line with its own hint.
#[derive(Debug)]
pub struct UserError {
    pub message: String,
    pub hint: String,
}

impl std::fmt::Display for UserError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for UserError {}

/// Shorthand for an [`anyhow::Error`] with a hint.
pub fn user_error(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    UserError { message: message.into(), hint: hint.into() }.into()
}

/// The hint that fits an error, if there is one.
pub fn for_error(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(error) = cause.downcast_ref::<UserError>() {
            return Some(error.hint.clone());
        }
        match cause.downcast_ref::<labelsieve::Error>() {
            Some(labelsieve::Error::Width { .. }) => {
                return Some("extract all features with the same backbone".to_owned());
            }
            Some(labelsieve::Error::Missing { method: "linear", .. }) => {
                return Some("`linear` needs at least two classes; try `--method gcn`".to_owned());
            }
            _ => (),
        }
        if let Some(hint) = cause.downcast_ref().and_then(for_network_error) {
            return Some(hint.to_owned());
        }
        if let Some(hint) = cause.downcast_ref().and_then(crate::text_hints::for_text_error) {
            return Some(hint);
        }
        cause.downcast_ref::<DataError>().and_then(for_data_error).map(str::to_owned)
    })
}

fn for_network_error(error: &labelsieve_vision::Error) -> Option<&'static str> {
    match error {
        labelsieve_vision::Error::Setting { name, .. } => Some(match *name {
            "batch size" => "choose it with --batch-size",
            "batches per epoch" => "choose them with --batches",
            "epochs" => "choose them with --epochs",
            "image size" => "choose it with --size; in `labelsieve embed`, with --image-size",
            "learning rate" => "choose it with --rate",
            "share of an image in a crop" => "choose the smaller with --least-crop",
            _ => return None,
        }),
        labelsieve_vision::Error::Diverged { .. } => Some("try a lower --rate"),
        _ => None,
    }
}

fn for_data_error(error: &DataError) -> Option<&'static str> {
    match error {
        DataError::Io { action: "open" | "read", cause, .. } if cause.kind() == ErrorKind::NotFound => {
            Some("check the spelling of the path")
        }
        DataError::Io { action: "write", cause, .. } => match cause.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Some("make room, then run the same command again; finished work is kept where there is any")
            }
            _ => Some("the output must be a file name in a folder that exists and is writable"),
        },
        DataError::Malformed { place, found, .. } if place == "journal" => Some(match found.as_str() {
            "another file" => "it stands where the journal of the run should be; move it elsewhere",
            _ => "wait for the other run to end, or choose another output",
        }),
        DataError::Malformed { place, .. } if place == "format" => Some("say what it is with --format"),
        DataError::Undecodable { .. } => {
            Some("the file may be cut off or damaged; copy or download it again")
        }
        _ => None,
    }
}
