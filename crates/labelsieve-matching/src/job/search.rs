//! The long work: all texts go by, and what is found is written as it comes.

use std::io::ErrorKind;

use labelsieve_files::DataError;
use labelsieve_files::work::outputs::{Target, on_stdout};
use labelsieve_files::work::parts::MatchDetail;
use labelsieve_files::work::{Monitor, Result};

use super::candidates::{Along, CandidateSink, NameSearch, PluralCount};
use super::downloads::{ListWriter, ListedPhotos};
use super::leaks::CheckedExamples;
use super::{LeakFate, MIB, Match};
use crate::CandidateWriter;
use crate::names::{CandidateStatistics, ClassList};
use crate::text::{ScanSummary, TextSource, scan};

/// What was found, in files that are not finished yet.
pub(super) struct Found {
    pub(super) writer: CandidateWriter,
    pub(super) list: Option<ListWriter>,
    pub(super) summary: ScanSummary,
    /// Candidates of each class.
    pub(super) counts: Vec<u64>,
    plural: Option<PluralCount>,
    pub(super) n_leaks: u64,
    /// Candidates that the leak guard has no features of.
    pub(super) n_unchecked: u64,
}

impl Match {
    /// Searches the texts of `source` for the names of `classes`.
    pub(super) fn search(
        &self,
        target: Target<'_>,
        names: &NameSearch,
        (classes, source, checked): (&ClassList, &TextSource, Option<&CheckedExamples>),
        monitor: &dyn Monitor,
    ) -> Result<Found> {
        let fate = self.leaks.as_ref().map_or(LeakFate::Flag, |leaks| leaks.fate);
        let along = Along { n_keep: self.keep.len(), lists_photos: self.download_list.is_some() };
        let sink = || CandidateSink::new(names, classes, source, (checked, fate), along);
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
        monitor.watch().check()?; // before the error that ended the scan for it
        let summary = on_stdout(target, summary)?;
        progress.finish();
        Ok(Found { writer, list, summary, counts, plural, n_leaks, n_unchecked })
    }
}

impl Found {
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

    /// Says so if the rule `plural` was tried on some rows only.
    pub(super) fn tell_of_estimate(&self, monitor: &dyn Monitor) {
        if let Some(plural) = self.plural.as_ref().filter(|plural| plural.n_rows < self.summary.n_rows) {
            let n_rows = plural.n_rows;
            monitor.note(&format!("the count for --rule plural is estimated from {n_rows} rows"));
        }
    }

    /// Gives the files their names.
    pub(super) fn finish(self, target: Target<'_>, monitor: &dyn Monitor) -> Result<Option<ListedPhotos>> {
        let photos = self.list.map(|list| list.finish(monitor)).transpose()?;
        on_stdout(target, self.writer.finish())?;
        Ok(photos)
    }
}
