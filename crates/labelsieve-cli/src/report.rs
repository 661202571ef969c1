//! The job behind `report`: a page of a run, and figures.

use std::path::{Path, PathBuf};

use labelsieve_files::counted;
use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_files::work::{Error, Monitor, Result, command, option};
use labelsieve_report::{Pictures, Progress, Report as Contents, RunDirectory, Summary};
use serde::Serialize;

use crate::commands::words::{Words, words};
use crate::options::ReportOptions;

/// Pages above this size take browsers seconds to open.
const LARGE_PAGE: u64 = 100_000_000;
/// Examples that are named in a warning.
const MAX_NAMED: usize = 3;

/// The answer of a report.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum WrittenReport {
    /// Figures alone.
    Figures(FigureCount),
    /// A page, perhaps with figures beside it.
    Page(PageCounts),
}

/// The figures without a page.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FigureCount {
    /// Figures written.
    pub n_figures: usize,
}

/// How much there is on a page.
#[derive(Clone, Debug, Serialize)]
pub struct PageCounts {
    /// Size of the page in bytes.
    pub n_bytes: u64,
    /// Examples with a caption.
    pub n_captions: usize,
    /// Classes shown.
    pub n_classes: usize,
    /// Candidates with a decision.
    pub n_decisions: usize,
    /// Examples shown: all of them.
    pub n_examples: usize,
    /// Figures on the page.
    pub n_figures: usize,
    /// Examples with a link to the file of their picture.
    pub n_links: usize,
    /// Examples with a picture.
    pub n_pictures: usize,
    /// Tables on the page.
    pub n_tables: usize,
    /// Examples whose picture was not found.
    pub n_without_picture: usize,
}

impl ReportOptions {
    /// Writes the page, the figures, or both.
    pub fn write_report(&self, monitor: &dyn Monitor) -> Result<WrittenReport> {
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
                monitor.note(&format!("{} written to `{}`", counted(n, "figure"), folder.display()));
                n
            }
            None => 0,
        };
        match &self.output {
            Some(output) => Ok(WrittenReport::Page(write_page(&contents, output, monitor)?)),
            None => Ok(WrittenReport::Figures(FigureCount { n_figures })),
        }
    }

    fn contents(&self) -> Result<Contents> {
        let mut contents = if self.source.is_dir() {
            if !self.source.join("run.json").exists() {
                let relevance = self.source.join("relevance.parquet");
                if relevance.exists() {
                    return Err(Error::input(
                        format!("`{}` is not a run directory: run.json is missing", self.source.display()),
                        format!("give the relevance file in it: `{}`", relevance.display()),
                    ));
                }
                return Err(Error::input(
                    format!("`{}` is not a run directory: run.json is missing", self.source.display()),
                    labelsieve_files::work::words![
                        "give the folder that `labelsieve-bench photos` or ",
                        command("demo"),
                        " wrote, or a relevance file of ",
                        command("score"),
                    ],
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
                text_columns: self.text_columns.clone(),
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
        let mut line = words("review").path(&self.source);
        if !self.images.is_empty() {
            line = line.options("--images", &self.images);
        }
        let columns = [("--image-column", &self.image_column), ("--id-column", &self.id_column)];
        for (name, column) in columns {
            line = column.iter().fold(line, |line, column| line.option(name, column));
        }
        if !self.text.is_empty() {
            line = line.options("--text", &self.text);
        }
        line = self.text_columns.iter().fold(line, |line, column| line.option("--text-column", column));
        let folder = if self.source.is_dir() {
            self.source.as_path()
        } else {
            self.source.parent().unwrap_or(Path::new(""))
        };
        // A run directory of `demo` lies in the folder of the features.
        let above = self.source.is_dir().then(|| folder.parent()).flatten();
        if let Some(folder) = [folder].into_iter().chain(above).find(|folder| has_features(folder)) {
            line = line.option("--clean", folder.join("clean.parquet"));
            line = line.option("--pool", folder.join("pool.parquet"));
            let candidates = Some(folder.join("candidates.parquet")).filter(|path| path.is_file());
            line = candidates.iter().fold(line, |line, path| line.option("--candidates", path));
        }
        line.option("-o", self.decisions.as_ref().unwrap_or(&folder.join("decisions.parquet")))
    }
}

fn write_page(contents: &Contents, output: &Path, monitor: &dyn Monitor) -> Result<PageCounts> {
    let bar = monitor.progress(0, "pictures");
    let summary = contents.write(output, &mut |Progress { found, wanted }| {
        bar.set_length(wanted as u64);
        bar.set_position(found as u64);
    })?;
    bar.finish();
    warn(&summary, monitor);
    let n_bytes = std::fs::metadata(output).map(|data| data.len()).unwrap_or(0);
    if n_bytes > LARGE_PAGE {
        monitor.warning(&format!("the page is {:.0} MB and slow to open", n_bytes as f64 / 1e6));
        monitor.hint(&labelsieve_files::work::words![
            "choose fewer pictures with ",
            option("per_class"),
            ", or use ",
            command("review"),
            ", which loads what it shows"
        ]);
    }
    Ok(PageCounts {
        n_tables: summary.tables,
        n_figures: summary.figures,
        n_classes: summary.classes,
        n_examples: summary.examples,
        n_pictures: summary.pictures,
        n_captions: summary.captions,
        n_links: summary.links,
        n_decisions: summary.decisions,
        n_without_picture: summary.missing.len(),
        n_bytes,
    })
}

/// Whether a folder has the features that `labelsieve run` and `demo` keep beside their relevance.
fn has_features(folder: &Path) -> bool {
    ["clean.parquet", "pool.parquet"].iter().all(|name| folder.join(name).is_file())
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
fn warn(summary: &Summary, monitor: &dyn Monitor) {
    if !summary.unreadable.is_empty() {
        let named = summary.unreadable.iter().map(|(id, reason)| format!("`{id}` ({reason})"));
        monitor.warning(&format!("skipped unreadable pictures: {}", some(named)));
    }
    if !summary.missing.is_empty() {
        let clean = match summary.n_missing_clean {
            0 => String::new(),
            n => format!(", {n} of them clean"),
        };
        let n = summary.missing.len();
        let named = summary.missing.iter().map(|id| format!("`{id}`"));
        let have = if n == 1 { "example has" } else { "examples have" };
        monitor.warning(&format!("{n} {have} no picture{clean}: {}", some(named)));
        monitor.hint(&labelsieve_files::work::words![
            "pass ",
            option("images"),
            " for clean examples and candidates, e.g. `clean photos`",
        ]);
    }
    if !summary.foreign_decisions.is_empty() {
        let named = summary.foreign_decisions.iter().map(|(id, class)| format!("`{id}` of `{class}`"));
        let decisions = counted(named.len(), "decision");
        monitor.warning(&format!("{decisions} about examples that are not candidates here: {}", some(named)));
    }
    if !summary.ambiguous.is_empty() {
        let n = summary.ambiguous.len();
        let named = summary.ambiguous.iter().map(|id| format!("`{id}`"));
        let match_several = if n == 1 { "id matches" } else { "ids match" };
        monitor.warning(&format!(
            "{n} {match_several} several pictures, one of which is shown: {}",
            some(named)
        ));
    }
}

/// The first few, and how many more.
fn some(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let named = names.take(MAX_NAMED).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}
