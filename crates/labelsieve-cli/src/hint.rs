//! What a user can do about an error.

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
        match cause.downcast_ref::<DataError>() {
            Some(DataError::Io { action: "open", source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Some("check the spelling of the path".to_owned())
            }
            Some(DataError::Malformed { place, .. }) if place == "columns" => {
                Some("choose them with --text-column and --id-column".to_owned())
            }
            Some(DataError::Malformed { place, .. }) if place == "format" => {
                Some("say what it is with --format".to_owned())
            }
            Some(DataError::Undecodable { .. }) => {
                Some("the file may be cut off or damaged; copy or download it again".to_owned())
            }
            _ => None,
        }
    })
}
