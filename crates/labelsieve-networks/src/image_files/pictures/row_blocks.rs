//! Rows of a Parquet file with image bytes, in any order.

use std::sync::{Mutex, PoisonError};

use labelsieve_files::Result;
use labelsieve_files::tables::parquet_groups::Groups;

use super::super::parquet_images::{ParquetImages, RowBytes};

/// Row groups up to this size are read whole: requests are mostly for neighbouring rows.
const MAX_BLOCK_BYTES: u64 = 64 << 20;
/// Rows that are read together of larger groups.
const BLOCK_ROWS: usize = 32;
/// Bytes of cached pictures of a table; the last block is always kept.
const MAX_CACHED_BYTES: usize = 128 << 20;

/// A table whose rows are read a block at a time; the blocks read last are kept.
pub(super) struct RowBlocks {
    images: ParquetImages,
    /// First row of each group.
    starts: Vec<usize>,
    /// The reader has a single file position.
    state: Mutex<State>,
}

struct State {
    groups: Groups,
    /// In order of use, the latest last.
    kept: Vec<Block>,
}

struct Block {
    first_row: usize,
    rows: Vec<RowBytes>,
}

impl Block {
    fn bytes(&self) -> usize {
        self.rows.iter().flatten().map(Vec::len).sum()
    }
}

impl RowBlocks {
    pub(super) fn open(images: ParquetImages) -> Result<RowBlocks> {
        let groups = images.groups()?;
        let mut starts = Vec::with_capacity(groups.len());
        let mut start = 0usize;
        for group in 0..groups.len() {
            starts.push(start);
            start = start.saturating_add(groups.rows(group));
        }
        Ok(RowBlocks { images, starts, state: Mutex::new(State { groups, kept: Vec::new() }) })
    }

    /// The image of a row.
    pub(super) fn read(&self, row: usize) -> Result<Vec<u8>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = |block: &Block| (block.first_row..block.first_row + block.rows.len()).contains(&row);
        let block = match state.kept.iter().position(holds) {
            Some(at) => state.kept.remove(at),
            None => self.read_block(&state.groups, row)?,
        };
        let found = block.rows.get(row.saturating_sub(block.first_row)).cloned();
        state.kept.push(block);
        while state.kept.len() > 1 && state.kept.iter().map(Block::bytes).sum::<usize>() > MAX_CACHED_BYTES {
            state.kept.remove(0);
        }
        match found {
            Some(Ok(bytes)) => Ok(bytes),
            Some(Err(found)) => Err(self.images.bad_row(row, found)),
            None => Err(self.images.bad_row(row, "no such row".to_owned())),
        }
    }

    fn read_block(&self, groups: &Groups, row: usize) -> Result<Block> {
        let group = self.starts.partition_point(|&start| start <= row).saturating_sub(1);
        let start = self.starts.get(group).copied().unwrap_or(0);
        let (skip, n) = if groups.bytes(group) <= MAX_BLOCK_BYTES {
            (0, groups.rows(group))
        } else {
            ((row - start) / BLOCK_ROWS * BLOCK_ROWS, BLOCK_ROWS)
        };
        let rows = self.images.read_rows(groups, group, skip, n)?;
        Ok(Block { first_row: start + skip, rows })
    }
}
