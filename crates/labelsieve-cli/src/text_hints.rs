//! Hints about texts that cannot be read.

use labelsieve_files::DataError;
use labelsieve_matching::job::how_to_convert;

/// The hint that fits an error of a text file or a stream, if there is one.
pub fn for_text_error(error: &DataError) -> Option<String> {
    match error {
        DataError::ReadTwice { .. } => Some("pass one of the two as a file".to_owned()),
        DataError::Spool { .. } => {
            Some("set TMPDIR to a folder with enough space, or pass a file instead of a pipe".to_owned())
        }
        DataError::UnclosedQuote { .. } => Some(
            "close the quote; inside a quoted field write it twice (\"\"); where quotes are ordinary characters, \
             save the file with tabs as .tsv"
                .to_owned(),
        ),
        DataError::Encoding { path, encoding, .. } => Some(how_to_convert(path, *encoding)),
        DataError::Damaged { .. } => {
            Some("the file may be truncated or corrupt; copy or download it again".to_owned())
        }
        _ => None,
    }
}
