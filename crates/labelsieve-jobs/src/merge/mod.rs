//! One result out of its parts: the file that a single run would have written, byte for byte, or an error that names the part
//! that is missing, duplicated or of another run.
//!
//! `set` opens the parts and checks that they belong together; `relevance` merges the metadata of scored parts.

mod relevance;
mod set;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use labelsieve_files::work::outputs::{Files, OutputKind, Target, on_stdout};
use labelsieve_files::work::parts::MatchDetail;
use labelsieve_files::work::{Monitor, Result, SeenKeys};
use labelsieve_files::{MergedTable, PartOf, PartRows};
use serde::Serialize;

use self::set::PartSet;

/// Puts parts together.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The parts in any order; of a folder, the Parquet files in it.
    pub parts: Vec<PathBuf>,
    /// The file to write, `.parquet` or `.csv`; `-` for [`Monitor::stdout`].
    pub output: PathBuf,
}

/// Summary of a merge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MergeSummary {
    /// Which result it is. `command` is `merge` in every answer.
    #[serde(rename = "result")]
    pub command: PartOf,
    /// The digest that all parts share.
    pub run: String,
    /// How many parts there were.
    pub n_parts: usize,
    /// Rows of the whole.
    pub n_rows: usize,
    /// For relevance: classes, candidates and their mean relevance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relevance: Option<MergedRelevance>,
    /// For candidates: what was read and what could not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<MatchDetail>,
    /// For a list of photos: those that an earlier part has too, and that are listed once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_repeated: Option<usize>,
}

/// Summary of the relevance of all parts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MergedRelevance {
    /// Classes of the run.
    pub n_classes: usize,
    /// Candidates that were scored.
    pub n_candidates: usize,
    /// Their mean relevance.
    pub mean_relevance: f64,
}

impl Merge {
    /// Checks that all parts are there, and writes the whole.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<MergeSummary> {
        let target = OutputKind::Table.target(&self.output)?;
        let set = PartSet::open(&self.parts, target.file())?;
        Files::default().reads(set.paths()).writes(target.file()).check()?;
        monitor.detail(&format!("run {}: {} parts", set.run(), set.parts.len()));
        let merged = MergeSummary {
            command: set.command(),
            run: set.run().to_owned(),
            n_parts: set.parts.len(),
            n_rows: set.parts.iter().map(|part| part.n_rows).sum(),
            relevance: None,
            matched: None,
            n_repeated: None,
        };
        match set.command() {
            PartOf::Score => {
                Ok(MergeSummary { relevance: Some(relevance::merge(&set, target, monitor)?), ..merged })
            }
            PartOf::Match => {
                Ok(MergeSummary { matched: Some(set.merge_candidates(target, monitor)?), ..merged })
            }
            PartOf::DownloadList => {
                let n_rows = set.merge_download_list(target, monitor)?;
                Ok(MergeSummary { n_rows, n_repeated: Some(merged.n_rows - n_rows), ..merged })
            }
        }
    }
}

impl PartSet {
    /// Candidates follow each other as their texts do.
    fn merge_candidates(&self, target: Target<'_>, monitor: &dyn Monitor) -> Result<MatchDetail> {
        let mut all = MatchDetail::default();
        for part in &self.parts {
            let detail: MatchDetail = self.detail(part)?;
            all.n_rows += detail.n_rows;
            all.n_malformed += detail.n_malformed;
            all.n_damaged_files += detail.n_damaged_files;
            all.n_leaks += detail.n_leaks;
        }
        let metadata = &self.parts[0].metadata;
        let metadata: Vec<(String, String)> = metadata.clone().into_iter().collect();
        let mut rows = self.rows()?;
        let mut table = create(target, &rows, &metadata, monitor)?;
        let progress = monitor.progress(self.parts.len() as u64, "parts");
        for (part, rows) in self.parts.iter().zip(&mut rows) {
            monitor.watch().check()?;
            on_stdout(target, table.append(rows, part.n_rows, f32::NAN))?;
            progress.inc(1);
        }
        on_stdout(target, table.finish())?;
        Ok(all)
    }

    /// Each photo once, where it is first. Returns how many there are.
    fn merge_download_list(&self, target: Target<'_>, monitor: &dyn Monitor) -> Result<usize> {
        let metadata: Vec<(String, String)> = self.parts[0].metadata.clone().into_iter().collect();
        let mut rows = self.rows()?;
        let mut table = create(target, &rows, &metadata, monitor)?;
        let progress = monitor.progress(self.parts.len() as u64, "parts");
        let mut seen = SeenKeys::default();
        let mut n_rows = 0;
        for rows in &mut rows {
            monitor.watch().check()?;
            n_rows += on_stdout(target, table.append_kept(rows, "key", &mut |key| seen.is_new(key)))?;
            progress.inc(1);
        }
        on_stdout(target, table.finish())?;
        Ok(n_rows)
    }
}

/// Starts the whole.
fn create(
    target: Target<'_>,
    rows: &[PartRows],
    metadata: &[(String, String)],
    monitor: &dyn Monitor,
) -> Result<MergedTable> {
    Ok(match target {
        Target::File(output) => MergedTable::create(output, rows, metadata)?,
        Target::Stdout => MergedTable::to_stream(monitor.stdout(), rows)?,
    })
}
