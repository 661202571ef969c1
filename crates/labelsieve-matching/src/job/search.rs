//! Scanning all texts and writing candidates as they are found.

use std::io::ErrorKind;

use labelsieve_files::DataError;
use labelsieve_files::work::outputs::{Target, on_stdout};
use labelsieve_files::work::parts::MatchDetail;
use labelsieve_files::work::{Monitor, Result};

use super::candidates::{CandidateSink, ExtraColumns, NameSearch, PluralCount};
use super::downloads::{ListWriter, ListedPhotos};
use super::leaks::{CheckedExamples, LeakFilter};
use super::{LeakFate, MIB, Match};
use crate::CandidateWriter;
use crate::names::{CandidateStatistics, ClassList};
use crate::text::{ScanSummary, TextSource, scan};

/// The texts to scan, and what to search them for.
pub(super) struct TextScan<'a> {
    pub(super) names: &'a NameSearch,
    pub(super) classes: &'a ClassList,
    pub(super) source: &'a TextSource,
    /// The examples compared by the leak check, if there is one.
    pub(super) checked: Option<&'a CheckedExamples>,
}

/// The result of a search, with output files that are not finished yet.
pub(super) struct SearchResult {
    pub(super) writer: CandidateWriter,
    pub(super) list: Option<ListWriter>,
    pub(super) summary: ScanSummary,
    /// Candidates of each class.
    pub(super) counts: Vec<u64>,
    plural: Option<PluralCount>,
    pub(super) n_leaks: u64,
    /// Candidates without features for the leak guard.
    pub(super) n_unchecked: u64,
}

impl Match {
    /// Searches the texts for the class names.
    pub(super) fn search(
        &self,
        target: Target<'_>,
        texts: &TextScan<'_>,
        monitor: &dyn Monitor,
    ) -> Result<SearchResult> {
        let &TextScan { names, classes, source, checked } = texts;
        let fate = self.leaks.as_ref().map_or(LeakFate::Flag, |leaks| leaks.fate);
        let leaks = LeakFilter { checked, fate };
        let extra = ExtraColumns { n_keep: self.keep.len(), lists_photos: self.download_list.is_some() };
        let sink = || CandidateSink::new(names, classes, source, leaks, extra);
        let mut writer = match target {
            Target::File(output) => CandidateWriter::create_with(output, &self.keep, &self.provenance())?,
            Target::Stdout => CandidateWriter::to_stream(monitor.stdout(), &self.keep),
        };
        let list = self.download_list.as_ref();
        let mut list = list.map(|list| ListWriter::create(list, &self.provenance())).transpose()?;
        let progress = match source.n_bytes() {
            Some(n_bytes) => monitor.progress(n_bytes / MIB, "MiB"),
            None => monitor.counter("MiB"),
        };
        let mut counts = vec![0; classes.classes().len()];
        let mut plural = names.compares().then(|| PluralCount::new(counts.len()));
        let mut n_leaks = 0;
        let mut n_unchecked = 0;
        let summary = scan(source, self.on_bad_row, sink, CandidateSink::take, |found, read| {
            if monitor.watch().is_stopped() {
                return Err(DataError::io("read", &self.classes)(ErrorKind::Interrupted.into()));
            }
            found.classes.iter().for_each(|&class| counts[class] += 1);
            plural.iter_mut().for_each(|plural| plural.add(&found));
            n_leaks += found.n_leaks;
            n_unchecked += found.n_unchecked;
            progress.set_position(read.n_bytes / MIB);
            progress.set_message(&format!("{} rows", read.n_rows));
            list.iter_mut().try_for_each(|list| list.add(&found.photos))?;
            writer.write_with(&found.rows, &found.kept)
        });
        monitor.watch().check()?; // takes precedence over the error by which the scan was ended
        let summary = on_stdout(target, summary)?;
        progress.finish();
        Ok(SearchResult { writer, list, summary, counts, plural, n_leaks, n_unchecked })
    }
}

impl SearchResult {
    pub(super) fn statistics(&self, classes: &ClassList) -> CandidateStatistics {
        let estimate = self.plural.as_ref().map(|plural| plural.estimate(&self.counts, self.summary.n_rows));
        CandidateStatistics::compared(classes, &self.counts, estimate.as_deref())
    }

    pub(super) fn detail(&self) -> MatchDetail {
        MatchDetail {
            n_rows: self.summary.n_rows,
            n_malformed: self.summary.n_bad,
            n_damaged_files: self.summary.damaged.len(),
            n_leaks: self.n_leaks,
        }
    }

    /// Reports that the count for the rule `plural` is an estimate, if it was tried on some rows only.
    pub(super) fn report_estimate(&self, monitor: &dyn Monitor) {
        if let Some(plural) = self.plural.as_ref().filter(|plural| plural.n_rows < self.summary.n_rows) {
            let n_rows = plural.n_rows;
            monitor.note(&format!("the count for the rule `plural` is estimated from {n_rows} rows"));
        }
    }

    /// Completes the files.
    pub(super) fn finish(self, target: Target<'_>, monitor: &dyn Monitor) -> Result<Option<ListedPhotos>> {
        let photos = self.list.map(|list| list.finish(monitor)).transpose()?;
        on_stdout(target, self.writer.finish())?;
        Ok(photos)
    }
}
