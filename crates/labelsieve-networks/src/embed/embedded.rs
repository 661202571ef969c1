//! The progress of `embed`: the records of its journal and their totals.

use std::collections::HashSet;
use std::ops::ControlFlow;

use labelsieve_files::work::{Context, Result};
use labelsieve_files::{FeatureRows, Journal};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::PreparedBatch;
use crate::images::{Cause, SkippedImage};

/// The images embedded so far, in the order of the source. Their features are only in the journal, so that memory grows by some
/// 40 bytes per image.
#[derive(Default)]
pub struct EmbeddingProgress {
    /// Images read from the source so far, readable or not.
    pub n_read: usize,
    /// Rows of features.
    pub n_rows: usize,
    /// How many of them have a class.
    pub n_with_class: usize,
    pub skipped: Vec<SkippedImage>,
    /// Digests of all ids, to detect duplicates.
    ids: HashSet<u128>,
}

/// A record of the journal: consecutive images.
pub struct Record {
    head: Head,
    /// Unit rows, one after the other.
    features: Vec<f32>,
}

/// A record without its features.
#[derive(Serialize, Deserialize)]
struct Head {
    n_read: usize,
    ids: Vec<String>,
    labels: Vec<Option<String>>,
    skipped: Vec<(String, String, Cause)>,
}

impl Record {
    pub fn new(prepared: PreparedBatch, features: Vec<f32>) -> Record {
        let head = Head {
            n_read: prepared.n_read,
            ids: prepared.ids,
            labels: prepared.labels,
            skipped: prepared.skipped.into_iter().map(|s| (s.id, s.reason, s.cause)).collect(),
        };
        Record { head, features }
    }

    /// The length of the head (four bytes), the head as JSON, the features.
    pub fn bytes(&self) -> Vec<u8> {
        let json = serde_json::to_vec(&self.head).unwrap_or_default(); // texts and numbers: cannot fail
        let mut record = (json.len() as u32).to_le_bytes().to_vec();
        record.extend(json);
        record.extend(self.features.iter().flat_map(|value| value.to_le_bytes()));
        record
    }

    /// The inverse of [`Record::bytes`]; `None` for a damaged record.
    pub fn parse(record: &[u8], dim: usize) -> Option<Record> {
        let (length, rest) = record.split_first_chunk::<4>()?;
        let (json, features) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let head = serde_json::from_slice::<Head>(json).ok()?;
        let (quads, rest) = features.as_chunks::<4>();
        let fits = head.ids.len() == head.labels.len()
            && head.ids.len() + head.skipped.len() == head.n_read
            && quads.len() == head.ids.len() * dim
            && rest.is_empty();
        let features = || quads.iter().map(|&quad| f32::from_le_bytes(quad)).collect();
        fits.then(|| Record { head, features: features() })
    }

    /// Its rows of features.
    pub fn rows(&self) -> FeatureRows<'_> {
        FeatureRows { ids: &self.head.ids, labels: &self.head.labels, values: &self.features }
    }
}

impl EmbeddingProgress {
    /// Appends a record. Returns the first id that is a duplicate.
    pub fn add(&mut self, record: Record) -> Option<String> {
        let Head { n_read, ids, labels, skipped } = record.head;
        self.n_read += n_read;
        self.n_rows += ids.len();
        self.n_with_class += labels.iter().flatten().count();
        let skipped = skipped.into_iter().map(|(id, reason, cause)| SkippedImage { id, reason, cause });
        self.skipped.extend(skipped);
        ids.into_iter().find(|id| !self.ids.insert(digest(id)))
    }

    /// Appends a record of an earlier run. A record that does not continue the one before belongs to an interrupted batch and is
    /// skipped.
    pub fn restore(&mut self, key: &str, payload: &[u8], dim: usize) {
        let follows = key == self.n_read.to_string();
        if let Some(record) = Record::parse(payload, dim).filter(|_| follows) {
            self.add(record);
        }
    }

    /// Visits the rows of all records, one record in memory at a time. A record that does not continue the one before belongs
    /// to an interrupted batch and is skipped.
    pub fn for_each(
        &self,
        journal: &Journal,
        dim: usize,
        mut visit: impl FnMut(FeatureRows) -> Result<()>,
    ) -> Result<()> {
        let mut n_read = 0usize;
        let mut n_rows = 0;
        let mut result = Ok(());
        journal.for_each_record(|key, payload| {
            let follows = key == n_read.to_string() && n_read < self.n_read;
            if let Some(record) = Record::parse(payload, dim).filter(|_| follows) {
                n_read += record.head.n_read;
                n_rows += record.head.ids.len();
                result = visit(record.rows());
            }
            if result.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        result?;
        let is_whole = (n_read, n_rows) == (self.n_read, self.n_rows);
        is_whole.then_some(()).context("the journal is incomplete")
    }
}

fn digest(id: &str) -> u128 {
    let digest = Sha256::digest(id.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    u128::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let prepared = PreparedBatch {
            n_read: 3,
            ids: vec!["a".into(), "b".into()],
            labels: vec![Some("owl".into()), None],
            batch: None,
            skipped: vec![SkippedImage { id: "c".into(), reason: "cut".into(), cause: Cause::BadImage }],
        };
        Record::new(prepared, vec![0.5, 1.5, -2.0, 0.0])
    }

    #[test]
    fn a_record_brings_back_what_was_done_and_damage_brings_nothing() {
        let bytes = record().bytes();
        let read = Record::parse(&bytes, 2).unwrap();
        assert_eq!(read.rows().ids, ["a", "b"]);
        assert_eq!(read.rows().labels, [Some("owl".to_owned()), None]);
        assert_eq!(read.rows().values, [0.5, 1.5, -2.0, 0.0]);
        assert!((0..bytes.len()).all(|cut| Record::parse(&bytes[..cut], 2).is_none()));
        assert!(Record::parse(&bytes, 3).is_none());
    }

    #[test]
    fn an_id_that_comes_twice_is_named() {
        let mut embedded = EmbeddingProgress::default();
        assert_eq!(embedded.add(record()), None);
        assert_eq!((embedded.n_read, embedded.n_rows, embedded.n_with_class), (3, 2, 1));
        assert_eq!(embedded.skipped.len(), 1);
        assert_eq!(embedded.add(record()).as_deref(), Some("a"));
    }

    #[test]
    fn records_that_do_not_follow_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = Journal::open(folder.path().join("j"), "run").unwrap();
        let mut embedded = EmbeddingProgress::default();
        journal.append("0", &record().bytes()).unwrap();
        journal.append("64", &record().bytes()).unwrap();
        embedded.add(record());
        let mut n = 0;
        let count = |rows: FeatureRows| {
            n += rows.ids.len();
            Ok(())
        };
        embedded.for_each(&journal, 2, count).unwrap();
        assert_eq!(n, 2);
        assert!(embedded.for_each(&journal, 3, |_| Ok(())).is_err(), "rows of another width");
    }
}
