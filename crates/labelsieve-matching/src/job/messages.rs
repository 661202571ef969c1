//! Messages about the texts: skipped rows and files, names that several classes share.

use std::path::Path;

use labelsieve_files::work::{Error, Monitor, Result, Words, option, words};
use labelsieve_files::{ForeignEncoding, counted, is_stream};

use crate::names::{ClassList, NameWarning};
use crate::text::{DamagedFile, Position, ScanSummary};

/// Maximum number of warnings of one kind.
pub(super) const MAX_SHOWN: usize = 5;

/// Reports skipped rows and files.
pub(super) fn report_rows(summary: &ScanSummary, monitor: &dyn Monitor) {
    if summary.n_bad > 0 {
        let swallowed = match summary.n_swallowed {
            0 => String::new(),
            n => format!(", with {n} lines after unclosed quotes"),
        };
        monitor.warning(&format!("{} malformed rows skipped{swallowed}; the first:", summary.n_bad));
        for (path, bad) in &summary.first_bad {
            let place = match bad.position {
                Position::Line(n) | Position::Row(n) => format!("{}:{n}", path.display()),
                Position::Byte(_) => format!("{}: {}", path.display(), bad.position),
            };
            monitor.note(&format!("  {place}: expected {}, found {}", bad.expected, bad.found));
        }
    }
    // If nothing was read, the error contains it.
    for (path, encoding) in summary.foreign.iter().take(if summary.n_rows > 0 { MAX_SHOWN } else { 0 }) {
        monitor.hint(&how_to_convert(path, *encoding).into());
    }
    for DamagedFile { path, message, unread } in summary.damaged.iter().take(MAX_SHOWN) {
        monitor.warning(&format!("`{}` is damaged: {unread} ({message})", path.display()));
    }
    if summary.damaged.len() > MAX_SHOWN {
        monitor.warning(&format!("… and {} more damaged files", summary.damaged.len() - MAX_SHOWN));
    }
    let damaged = match summary.damaged.len() {
        0 => String::new(),
        n => format!("; {n} of {} files damaged", summary.n_files),
    };
    let skipped = match summary.n_skipped {
        0 => String::new(),
        n => format!(" ({n} videos or failed downloads skipped)"),
    };
    monitor.note(&format!("{} read{skipped}{damaged}", counted(summary.n_rows as usize, "row")));
}

/// Fails if no row was read.
pub(super) fn check_rows(summary: &ScanSummary) -> Result<()> {
    if summary.n_rows > 0 {
        return Ok(());
    }
    let message = match (summary.n_bad, summary.n_skipped) {
        (0, 0) => "no rows: the files are empty".to_owned(),
        (0, n) => format!("no readable rows: all {n} are videos or failed downloads"),
        (n, _) => format!("no readable rows: all {n} are malformed"),
    };
    let hint = match summary.foreign.first() {
        Some((path, encoding)) => Words::from(how_to_convert(path, *encoding)),
        None => words!["set ", option("format"), " if the format was not detected correctly"],
    };
    Err(Error::input(message, hint))
}

/// How to convert a text to UTF-8.
pub fn how_to_convert(path: &Path, encoding: ForeignEncoding) -> String {
    match encoding.iconv_name() {
        Some(name) if is_stream(path) => {
            format!("convert it in the pipeline: … | iconv -f {name} -t UTF-8 | …")
        }
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
        None if encoding == ForeignEncoding::BrokenUtf8 => "repair or remove these lines".to_owned(),
        None => "convert it with iconv -f ENCODING -t UTF-8".to_owned(),
    }
}

/// Warns about names that cannot be found, or that several classes share.
pub(super) fn warn_about_names(warnings: &[NameWarning], classes: &ClassList, monitor: &dyn Monitor) {
    let id = |class: usize| classes.classes()[class].id.as_str();
    for warning in warnings.iter().take(MAX_SHOWN) {
        match warning {
            NameWarning::Shared { words, classes } => {
                let ids: Vec<&str> = classes.iter().map(|&class| id(class)).collect();
                monitor.warning(&format!("`{words}` names {} classes: {}", ids.len(), ids.join(", ")));
            }
            NameWarning::Unsearchable { class, name } => {
                monitor.warning(&format!(
                    "class `{}`: no text can contain `{name}`, which has no letters",
                    id(*class)
                ));
            }
        }
    }
    if warnings.len() > MAX_SHOWN {
        monitor.warning(&format!("… and {} more names like these", warnings.len() - MAX_SHOWN));
    }
}
