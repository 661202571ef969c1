//! What `embed` has done so far, in memory and as records of a journal.

use labelsieve_vision::Prepared;
use labelsieve_vision::images::{Cause, Skipped};
use serde::{Deserialize, Serialize};

/// Features of the images so far, in the order of the source.
#[derive(Default)]
pub struct Embedded {
    /// Images of the source that are behind us, readable or not.
    pub n_read: usize,
    pub ids: Vec<String>,
    pub labels: Vec<Option<String>>,
    /// Unit rows, one after the other.
    pub features: Vec<f32>,
    pub skipped: Vec<Skipped>,
}

/// The part of a record that is no feature.
#[derive(Serialize, Deserialize)]
struct Head {
    n_read: usize,
    ids: Vec<String>,
    labels: Vec<Option<String>>,
    skipped: Vec<(String, String, Cause)>,
}

impl Embedded {
    /// Adds a batch and returns its record: the length of the head (four bytes), the head as JSON, the features.
    pub fn append(&mut self, prepared: Prepared, features: Vec<f32>) -> Vec<u8> {
        let head = Head {
            n_read: prepared.n_read,
            ids: prepared.ids,
            labels: prepared.labels,
            skipped: prepared.skipped.into_iter().map(|s| (s.id, s.reason, s.cause)).collect(),
        };
        let json = serde_json::to_vec(&head).unwrap_or_default(); // texts and numbers: cannot fail
        let mut record = (json.len() as u32).to_le_bytes().to_vec();
        record.extend(json);
        record.extend(features.iter().flat_map(|value| value.to_le_bytes()));
        self.add(head, &features);
        record
    }

    /// Adds what [`Embedded::append`] wrote; false, and nothing changed, if it is not that.
    pub fn append_record(&mut self, record: &[u8], dim: usize) -> bool {
        let Some((length, rest)) = record.split_first_chunk::<4>() else { return false };
        let Some((json, features)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize) else {
            return false;
        };
        let Ok(head) = serde_json::from_slice::<Head>(json) else { return false };
        let (quads, rest) = features.as_chunks::<4>();
        let fits = head.ids.len() == head.labels.len()
            && head.ids.len() + head.skipped.len() == head.n_read
            && quads.len() == head.ids.len() * dim
            && rest.is_empty();
        if fits {
            let features: Vec<f32> = quads.iter().map(|&quad| f32::from_le_bytes(quad)).collect();
            self.add(head, &features);
        }
        fits
    }

    fn add(&mut self, head: Head, features: &[f32]) {
        self.n_read += head.n_read;
        self.ids.extend(head.ids);
        self.labels.extend(head.labels);
        self.features.extend_from_slice(features);
        let skipped = head.skipped.into_iter().map(|(id, reason, cause)| Skipped { id, reason, cause });
        self.skipped.extend(skipped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_brings_back_what_was_done_and_damage_brings_nothing() {
        let prepared = Prepared {
            n_read: 3,
            ids: vec!["a".into(), "b".into()],
            labels: vec![Some("owl".into()), None],
            batch: None,
            skipped: vec![Skipped { id: "c".into(), reason: "cut".into(), cause: Cause::BadImage }],
        };
        let mut first = Embedded::default();
        let record = first.append(prepared, vec![0.5, 1.5, -2.0, 0.0]);
        let mut second = Embedded::default();
        assert!(second.append_record(&record, 2));
        assert_eq!((second.n_read, &second.ids, &second.labels), (3, &first.ids, &first.labels));
        assert_eq!((&second.features, &second.skipped), (&first.features, &first.skipped));
        for cut in 0..record.len() {
            assert!(!second.append_record(&record[..cut], 2), "{cut}");
        }
        assert!(!second.append_record(&record, 3));
        assert_eq!(second.n_read, 3);
    }
}
