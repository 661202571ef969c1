//! Cutting all files into N shards, for several machines.
//!
//! The concatenated files are cut into N ranges of bytes of the same size. A row belongs to the shard in whose range it begins,
//! so each row belongs to exactly one, and the concatenated shards are the rows of all files in order.

use std::ops::Range;

use labelsieve_files::Shard;

use super::source::{Cuts, TextFile, TextSource};

impl TextSource {
    /// Keeps only the rows of one shard. A compressed file cannot be cut: it belongs to the shard in which it begins, as does an
    /// unreadable file. A Parquet file is cut between its row groups.
    pub fn cut(mut self, shard: Shard) -> TextSource {
        let n_bytes = self.n_bytes_listed;
        let bound = |i: usize| {
            if i == shard.of { u64::MAX } else { (u128::from(n_bytes) * i as u128 / shard.of as u128) as u64 }
        };
        let range = bound(shard.index)..bound(shard.index + 1);
        self.files.retain_mut(|file| match file.within(&range) {
            Some(extent) => {
                file.extent = extent;
                true
            }
            None => false,
        });
        self.damaged.retain(|file| range.contains(&file.start));
        self
    }
}

impl TextFile {
    /// The part of the file in a range of all bytes, if rows may begin there.
    fn within(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let n_bytes = self.n_bytes.unwrap_or(0);
        let local = |place: u64| place.saturating_sub(self.start).min(n_bytes);
        let start = local(range.start);
        let end = local(range.end);
        match self.cuts {
            Cuts::Nowhere => range.contains(&self.start).then_some(0..n_bytes),
            Cuts::Groups => (start < end).then_some(start..end),
            // A byte order mark and a header belong to the first row, wherever the cut is.
            Cuts::Lines { first_row } if end <= first_row => None,
            Cuts::Lines { first_row } if start <= first_row => Some(0..end),
            Cuts::Lines { .. } => (start < end).then_some(start..end),
        }
    }
}
