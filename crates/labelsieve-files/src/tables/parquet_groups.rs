//! Reading a Parquet file row group by row group, so that damage in one does not affect the others.

use std::fs::File;
use std::path::PathBuf;

use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};

use crate::storage::regular_file::open_regular;
use crate::tables::parquet_columns::{Batches, ParquetFile, guarded};
use crate::{DataError, Result};

/// Rows per batch of a selection within a group: they may be images.
const SELECTED_BATCH_ROWS: usize = 32;

/// The row groups of a file, each of which can be read on its own.
pub struct Groups {
    path: PathBuf,
    file: File,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
}

impl Groups {
    /// Number of row groups.
    pub fn len(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// The number of rows according to the group.
    pub fn rows(&self, group: usize) -> usize {
        usize::try_from(self.metadata.metadata().row_group(group).num_rows()).unwrap_or(0)
    }

    /// The size of the chosen columns according to the group; `u64::MAX` if the claim is impossible.
    pub fn bytes(&self, group: usize) -> u64 {
        let columns = self.metadata.metadata().row_group(group).columns().iter().enumerate();
        let chosen = columns.filter(|(leaf, _)| self.mask.leaf_included(*leaf));
        let sizes = chosen.map(|(_, column)| u64::try_from(column.uncompressed_size()).unwrap_or(u64::MAX));
        sizes.fold(0, u64::saturating_add)
    }

    /// `n` rows of a group after the first `skip`, a few at a time.
    pub fn batches_from(&self, group: usize, skip: usize, n: usize) -> Result<Batches> {
        let rows = RowSelection::from(vec![RowSelector::skip(skip), RowSelector::select(n)]);
        self.chosen_batches(group, SELECTED_BATCH_ROWS.min(n).max(1), Some(rows))
    }

    /// The rows of one group.
    pub fn batches(&self, group: usize, batch_rows: usize) -> Result<Batches> {
        self.chosen_batches(group, batch_rows, None)
    }

    fn chosen_batches(&self, group: usize, batch_rows: usize, rows: Option<RowSelection>) -> Result<Batches> {
        let file = self.file.try_clone().map_err(DataError::io("open", &self.path))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
            .with_projection(self.mask.clone())
            .with_row_groups(vec![group])
            .with_batch_size(batch_rows);
        let builder = match rows {
            Some(rows) => builder.with_row_selection(rows),
            None => builder,
        };
        let reader = guarded(&self.path, || builder.build())?;
        Ok(Batches { path: self.path.clone(), reader })
    }
}

impl ParquetFile {
    /// Decodes only `names`, row group by row group, so that a damaged one does not affect the others.
    pub fn groups(self, names: &[&str]) -> Result<Groups> {
        let mask = self.mask(names)?;
        let file = open_regular(&self.path)?;
        let metadata = self.builder.metadata().clone();
        let metadata =
            guarded(&self.path, || ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::default()))?;
        Ok(Groups { path: self.path, file, metadata, mask })
    }
}
