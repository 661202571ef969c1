//! Checking outputs before any work: extensions, `-` for standard output, and that no output replaces an input.

use std::path::{Path, PathBuf};

use crate::work::{Context, Error, Result};
use crate::{Action, DataError};

/// The contents of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// Relevance or candidates.
    Table,
    /// Classes of examples.
    Predictions,
    /// Decisions about candidates.
    Decisions,
    /// Features of images.
    Features,
    /// Classifiers, networks, PCAs.
    Weights,
    /// HTML.
    Page,
    /// Class names.
    Classes,
    /// Statistics, as JSON.
    Statistics,
    /// A NumPy array.
    Array,
    /// A part of relevance or candidates.
    Part,
    /// The plan of a run in parts.
    Plan,
}

/// The destination of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A file.
    File(&'a Path),
    /// [`Monitor::stdout`](crate::work::Monitor::stdout).
    Stdout,
}

impl OutputKind {
    fn endings(self) -> &'static [&'static str] {
        match self {
            OutputKind::Table => &["parquet", "csv"],
            OutputKind::Predictions | OutputKind::Decisions => &["parquet", "csv", "tsv"],
            OutputKind::Features => &["parquet", "npz", "npy"],
            OutputKind::Weights => &["safetensors"],
            OutputKind::Page => &["html", "htm"],
            OutputKind::Classes => &["toml"],
            OutputKind::Statistics => &["json"],
            OutputKind::Array => &["npy"],
            OutputKind::Part => &["parquet"],
            OutputKind::Plan => &["json"],
        }
    }

    /// Whether it can be written to stdout, as CSV.
    fn is_text(self) -> bool {
        matches!(self, OutputKind::Table | OutputKind::Predictions)
    }

    /// The destination for `path`. An extension that does not fit the contents is refused, before any work is
    /// done.
    pub fn target(self, path: &Path) -> Result<Target<'_>> {
        if path == Path::new("-") && self.is_text() {
            return Ok(Target::Stdout);
        }
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        if ending.as_deref().is_some_and(|ending| self.endings().contains(&ending)) {
            return Ok(Target::File(path));
        }
        let endings: Vec<String> = self.endings().iter().map(|ending| format!(".{ending}")).collect();
        let (last, others) = endings.split_last().context("a kind of output has an ending")?;
        let names = if others.is_empty() { last.clone() } else { format!("{} or {last}", others.join(", ")) };
        let or_stdout = if self.is_text() { ", or - for CSV on stdout" } else { "" };
        Err(Error::input(
            format!("cannot write `{}`: the extension must be {names}{or_stdout}", path.display()),
            "the extension decides the format",
        ))
    }
}

impl<'a> Target<'a> {
    /// The file, if it is one.
    pub fn file(self) -> Option<&'a Path> {
        match self {
            Target::File(path) => Some(path),
            Target::Stdout => None,
        }
    }
}

/// Turns a failure to write to standard output into [`Error::Stdout`], so that a closed pipe is recognised.
pub fn on_stdout<T>(target: Target<'_>, result: crate::Result<T>) -> Result<T> {
    match (target, result) {
        (Target::Stdout, Err(DataError::Io { action: Action::Write, path, cause }))
            if path == Path::new("-") =>
        {
            Err(Error::Stdout(cause))
        }
        (_, result) => Ok(result?),
    }
}

/// All files that a command reads and writes, to check that no output replaces an input or another output. Files are compared
/// by identity, not by name, so links are recognised.
#[derive(Default)]
pub struct Files {
    inputs: Vec<PathBuf>,
    outputs: Vec<PathBuf>,
}

impl Files {
    /// Adds tables that are read: with a clip-retrieval folder its files, with features the table of ids beside them.
    pub fn reads<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Files {
        for path in paths {
            let path = path.as_ref();
            if path.is_dir() {
                for part in ["img_emb", "text_emb", "metadata"] {
                    self.inputs.extend(files_in(&path.join(part)));
                }
            }
            self.inputs.extend([beside(path, ".ids.csv"), path.to_path_buf()]);
        }
        self
    }

    /// Adds images that are read.
    pub fn reads_images(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Files {
        self.inputs.extend(paths);
        self
    }

    /// Adds the files of a run directory except for pages, which are made from the others.
    pub fn reads_run(mut self, folder: &Path) -> Files {
        let is_page = |path: &PathBuf| OutputKind::Page.target(path).is_ok();
        self.inputs.extend(files_in(folder).into_iter().filter(|path| !is_page(path)));
        self
    }

    /// Adds files that are written, ignoring `-`.
    pub fn writes<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Files {
        let paths = paths.into_iter().map(|path| path.as_ref().to_path_buf());
        self.outputs.extend(paths.filter(|path| path != Path::new("-")));
        self
    }

    /// Adds files that are written beside `output`.
    pub fn writes_beside(self, output: &Path, suffixes: &[&str]) -> Files {
        self.writes(suffixes.iter().map(|suffix| beside(output, suffix)))
    }

    /// Refuses an output in the place of another file of the command.
    pub fn check(&self) -> Result<()> {
        for (i, output) in self.outputs.iter().enumerate() {
            let name = name(output);
            if self.outputs[..i].iter().any(|other| name.is_some() && self::name(other) == name) {
                return Err(Error::input(
                    format!("`{}` is given as two outputs", output.display()),
                    "use a different file for each",
                ));
            }
        }
        for output in &self.outputs {
            let replaced = identity(output);
            if replaced.is_none() {
                continue; // no such file yet
            }
            if let Some(input) = self.inputs.iter().find(|input| identity(input) == replaced) {
                return Err(Error::input(
                    format!(
                        "the output `{}` would replace the input `{}`",
                        output.display(),
                        input.display()
                    ),
                    "choose another name for the output",
                ));
            }
        }
        Ok(())
    }
}

/// The path of `output` with a suffix appended.
pub fn beside(output: &Path, suffix: &str) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The files of a folder; none if `folder` is not one.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}

/// The canonical path of a file that need not exist yet.
fn name(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(folder.canonicalize().ok()?.join(path.file_name()?))
}

/// The identity of a file, independent of its name; `None` if it does not exist.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_outputs_of_one_name_are_refused_before_there_is_such_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let one = folder.path().join("a.npy");
        let other = folder.path().join("./a.npy");
        let error = Files::default().writes([&one, &other]).check().unwrap_err().to_string();
        assert!(error.ends_with("a.npy` is given as two outputs"), "{error}");
        let error = Files::default().writes([&one]).writes_beside(&one, &[""]).check().unwrap_err();
        assert!(error.to_string().ends_with("a.npy` is given as two outputs"), "{error}");
        Files::default().writes([&one]).writes_beside(&one, &[".partial", ".ids.csv"]).check().unwrap();
        Files::default().writes(["-", "-"]).check().unwrap();
    }

    #[test]
    fn a_new_output_beside_an_input_and_an_old_one_that_is_not_an_input_are_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("in.npz");
        let output = folder.path().join("out.parquet");
        std::fs::write(&input, "in").unwrap();
        Files::default().reads([&input]).writes([&output]).check().unwrap();
        std::fs::write(&output, "in").unwrap(); // equal contents are not the same file
        Files::default().reads([&input]).writes([&output]).check().unwrap();
        std::fs::write(folder.path().join("in.npz.ids.csv"), "id").unwrap();
        let ids = Files::default().reads([&input]).writes([folder.path().join("in.npz.ids.csv")]);
        assert!(ids.check().is_err(), "the ids beside features are read too");
    }
}
