//! `labelsieve report`: what a run found, as one HTML file and as figures.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_report::{Pictures, Progress, Report as Contents, RunDirectory, Summary};
use serde_json::json;

use super::words::{Words, words};
use crate::arguments::JsonArguments;
use crate::given::Given;
use crate::hint::user_error;
use crate::printer::Printer;

/// Write an HTML report of a run or a relevance file
#[derive(Args)]
#[command(override_usage = "labelsieve report [OPTIONS] --output <FILE> <RUN>\n       \
                            labelsieve report [OPTIONS] --figures <DIR> <RUN>")]
pub struct Report {
    /// Run directory (from `labelsieve bench photos` or `demo`) or relevance file (from `labelsieve score`)
    #[arg(value_name = "RUN")]
    source: PathBuf,

    /// Output HTML file, self-contained
    #[arg(short, long, value_name = "FILE", required_unless_present = "figures")]
    output: Option<PathBuf>,

    /// Ground truth: Parquet or CSV with `id`, `class` and `relevant` [default: the run's own]
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,

    /// Decisions to mark: .parquet, .csv or .tsv with `id`, `class` and `decision` [default: those in the relevance file]
    #[arg(long, value_name = "FILE")]
    decisions: Option<PathBuf>,

    /// Pictures of clean examples and candidates: folders, .parquet files with image bytes, .tar files, image
    /// files [default: the run's own]
    #[arg(long, value_name = "SOURCE", num_args = 1..)]
    images: Vec<PathBuf>,

    /// Image column [default: image, img, jpg or bytes]
    #[arg(long, value_name = "NAME", requires = "images")]
    image_column: Option<String>,

    /// Id column of images and texts [default: id, key, uid, image_path or file_name]
    #[arg(long, value_name = "NAME", requires = "images")]
    id_column: Option<String>,

    /// Captions of the examples: the files that `labelsieve match` takes [default: metadata.csv, .jsonl or .parquet in a
    /// folder of images, text columns of Parquet files, .txt and .json in tars]
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "images")]
    text: Vec<PathBuf>,

    /// Caption column; repeatable [default: caption, title, text or description]
    #[arg(long, value_name = "NAME", requires = "images")]
    text_column: Vec<String>,

    /// Output folder for the figures (.svg)
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,

    /// Heading of the page [default: the run's own]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Candidates shown with a picture per class, or `all`: half from the top of the ranking, a quarter each from the
    /// middle and the bottom; the others are listed
    #[arg(long, value_name = "N", default_value = "60", value_parser = per_class)]
    per_class: usize,

    #[command(flatten)]
    json: JsonArguments,
}

/// Pages above this size take browsers seconds to open.
const LARGE_PAGE: u64 = 100_000_000;
/// Examples that are named in a warning.
const MOST_NAMED: usize = 3;

impl Report {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        match &self.output {
            Some(_) => Ok(()),
            None => {
                let of_page = ["title", "images", "per_class", "decisions"];
                given.refuse(
                    &of_page,
                    "report without --output",
                    "--figures writes no pictures, no heading and no decisions",
                )
            }
        }
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        if let Some(output) = &self.output {
            OutputKind::Page.target(output)?;
            let images = self.images.iter().flat_map(|images| files_below(images));
            let given =
                [&self.source].into_iter().chain(&self.truth).chain(&self.decisions).chain(&self.text);
            let files = Files::default().reads(given).reads_images(images).reads_run(&self.source);
            files.writes([output]).check()?;
        }
        let contents = self.contents()?;
        let n_figures = match &self.figures {
            Some(folder) => {
                let n = contents.write_figures(folder)?.len();
                let figures = counted(n, "figure");
                printer.note(&format!("{figures} written to `{}`", folder.display()));
                n
            }
            None => 0,
        };
        match &self.output {
            Some(output) => self.write(&contents, output, printer),
            None if self.json.json => printer.json("report", &json!({ "n_figures": n_figures })),
            None => Ok(()),
        }
    }

    fn contents(&self) -> Result<Contents> {
        let mut contents = if self.source.is_dir() {
            if !self.source.join("run.json").exists() {
                let relevance = self.source.join("relevance.parquet");
                if relevance.exists() {
                    return Err(user_error(
                        format!("`{}` is not a run directory: run.json is missing", self.source.display()),
                        format!("give the relevance file in it: `{}`", relevance.display()),
                    ));
                }
                return Err(user_error(
                    format!("`{}` is not a run directory: run.json is missing", self.source.display()),
                    "give the folder that `labelsieve bench photos` or `labelsieve demo` wrote, or a relevance file of \
                     `labelsieve score`",
                ));
            }
            Contents::of_run(&RunDirectory::open(&self.source)?)?
        } else {
            Contents::of_relevance(&self.source)?
        };
        if let Some(truth) = &self.truth {
            contents = contents.with_truth(truth);
        }
        if let Some(decisions) = &self.decisions {
            contents = contents.with_decisions(decisions);
        }
        if !self.images.is_empty() {
            contents = contents.with_pictures(Pictures {
                images: self.images.clone(),
                image_column: self.image_column.clone(),
                id_column: self.id_column.clone(),
                texts: self.text.clone(),
                text_columns: self.text_column.clone(),
            });
        }
        if let Some(title) = &self.title {
            contents = contents.with_title(title);
        }
        let review = self.review_command().to_string();
        Ok(contents.with_candidates_per_class(self.per_class).with_review_command(review))
    }

    /// The review of the same files.
    fn review_command(&self) -> Words {
        let mut command = words("review").path(&self.source);
        if !self.images.is_empty() {
            command = command.options("--images", &self.images);
        }
        let columns = [("--image-column", &self.image_column), ("--id-column", &self.id_column)];
        for (name, column) in columns {
            command = column.iter().fold(command, |command, column| command.option(name, column));
        }
        if !self.text.is_empty() {
            command = command.options("--text", &self.text);
        }
        command =
            self.text_column.iter().fold(command, |command, column| command.option("--text-column", column));
        let folder = match self.source.is_dir() {
            true => self.source.as_path(),
            false => self.source.parent().unwrap_or(Path::new("")),
        };
        // A run directory of `demo` lies in the folder of the features.
        let above = self.source.is_dir().then(|| folder.parent()).flatten();
        if let Some(folder) = [folder].into_iter().chain(above).find(|folder| has_features(folder)) {
            command = command.option("--clean", folder.join("clean.parquet"));
            command = command.option("--pool", folder.join("pool.parquet"));
            let candidates = Some(folder.join("candidates.parquet")).filter(|path| path.is_file());
            command = candidates.iter().fold(command, |command, path| command.option("--candidates", path));
        }
        command.option("-o", self.decisions.as_ref().unwrap_or(&folder.join("decisions.parquet")))
    }

    fn write(&self, contents: &Contents, output: &Path, printer: &Printer) -> Result<()> {
        let bar = printer.progress(0, "pictures");
        let summary = contents.write(output, &mut |Progress { found, wanted }| {
            bar.set_length(wanted as u64);
            bar.set_position(found as u64);
        })?;
        bar.finish();
        warn(&summary, printer);
        let bytes = std::fs::metadata(output).map(|data| data.len()).unwrap_or(0);
        if bytes > LARGE_PAGE {
            printer.warning(&format!("the page is {:.0} MB and slow to open", bytes as f64 / 1e6));
            printer.hint(&"choose fewer pictures with --per-class, or use `labelsieve review`, which loads what it shows".into());
        }
        if self.json.json {
            return printer.json(
                "report",
                &json!({
                    "n_tables": summary.tables, "n_figures": summary.figures, "n_classes": summary.classes,
                    "n_examples": summary.examples, "n_pictures": summary.pictures, "n_captions": summary.captions,
                    "n_links": summary.links, "n_decisions": summary.decisions, "n_without_picture": summary.missing.len(), "n_bytes": bytes,
                }),
            );
        }
        printer.note(&format!(
            "`{}`: {}, {}, {}, {} shown, {} of them with a picture and {} with a caption; {:.1} MB",
            output.display(),
            counted(summary.tables, "table"),
            counted(summary.figures, "figure"),
            counted(summary.classes, "class"),
            counted(summary.examples, "example"),
            summary.pictures,
            summary.captions,
            bytes as f64 / 1e6
        ));
        Ok(())
    }
}

/// Whether a folder has the features that `labelsieve run` and `demo` keep beside their relevance.
fn has_features(folder: &Path) -> bool {
    ["clean.parquet", "pool.parquet"].iter().all(|name| folder.join(name).is_file())
}

fn per_class(text: &str) -> std::result::Result<usize, String> {
    match text {
        "all" => Ok(usize::MAX),
        number => number.parse().map_err(|_| "expected a non-negative integer or `all`".to_owned()),
    }
}

/// A file, or all files of a folder and below, where pictures are looked for.
fn files_below(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else { return vec![path.to_path_buf()] };
    entries
        .flatten()
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_below(&entry.path()), // links are not followed, so it ends
            _ => vec![entry.path()],
        })
        .collect()
}

/// Pictures that are missing, broken or not the only one.
fn warn(summary: &Summary, printer: &Printer) {
    if !summary.unreadable.is_empty() {
        let named = summary.unreadable.iter().map(|(id, reason)| format!("`{id}` ({reason})"));
        printer.warning(&format!("skipped unreadable pictures: {}", some(named)));
    }
    if !summary.missing.is_empty() {
        let clean = match summary.n_missing_clean {
            0 => String::new(),
            n => format!(", {n} of them clean"),
        };
        let n = summary.missing.len();
        let named = summary.missing.iter().map(|id| format!("`{id}`"));
        let have = if n == 1 { "example has" } else { "examples have" };
        printer.warning(&format!("{n} {have} no picture{clean}: {}", some(named)));
        printer.hint(&"pass --images for clean examples and candidates, e.g. `--images clean photos`".into());
    }
    if !summary.foreign_decisions.is_empty() {
        let named = summary.foreign_decisions.iter().map(|(id, class)| format!("`{id}` of `{class}`"));
        let decisions = counted(named.len(), "decision");
        printer.warning(&format!("{decisions} about examples that are no candidates here: {}", some(named)));
    }
    if !summary.ambiguous.is_empty() {
        let (n, named) = (summary.ambiguous.len(), summary.ambiguous.iter().map(|id| format!("`{id}`")));
        let match_several = if n == 1 { "id matches" } else { "ids match" };
        printer.warning(&format!(
            "{n} {match_several} several pictures, one of which is shown: {}",
            some(named)
        ));
    }
}

/// The first few, and how many more.
fn some(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(MOST_NAMED);
    let named = names.take(MOST_NAMED).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}
