//! What a user can do about texts that cannot be read.

use std::path::Path;

use labelsieve_data::text::ForeignEncoding;
use labelsieve_data::{DataError, is_stream};

/// The hint that fits an error of a text file or a stream, if there is one.
pub fn for_text_error(error: &DataError) -> Option<String> {
    match error {
        DataError::ReadTwice { .. } => Some("give one of the two as a file".to_owned()),
        DataError::Spool { .. } => {
            Some("set TMPDIR to a folder with enough room, or give a file instead of a pipe".to_owned())
        }
        DataError::UnclosedQuote { .. } => Some(
            "close the quote; inside a quoted field write it twice (\"\"); where quotes are ordinary characters, \
             save the file with tabs as .tsv"
                .to_owned(),
        ),
        DataError::Encoding { path, encoding, .. } => Some(for_encoding(path, *encoding)),
        DataError::Damaged { .. } => {
            Some("the file may be cut off or damaged; copy or download it again".to_owned())
        }
        _ => None,
    }
}

/// How to convert a text to UTF-8.
pub fn for_encoding(path: &Path, encoding: ForeignEncoding) -> String {
    match encoding.iconv_name() {
        Some(name) if is_stream(path) => format!("convert it on the way: … | iconv -f {name} -t UTF-8 | …"),
        Some(name) => {
            let converted = match (path.file_stem(), path.extension()) {
                (Some(stem), Some(extension)) => {
                    format!("{}.utf8.{}", stem.to_string_lossy(), extension.to_string_lossy())
                }
                _ => "converted".to_owned(),
            };
            let converted = path.with_file_name(converted);
            format!("convert it: iconv -f {name} -t UTF-8 {} > {}", path.display(), converted.display())
        }
        None if encoding == ForeignEncoding::BrokenUtf8 => "mend or remove these lines".to_owned(),
        None => "find out its encoding and convert it with iconv -f ENCODING -t UTF-8".to_owned(),
    }
}
