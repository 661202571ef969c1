//! Reading texts of examples from files, row by row and in parallel, with only a few blocks in memory.
//!
//! ```text
//! file ──compression──► bytes ──line_blocks──► blocks ──yfcc │ delimited │ json_lines──► rows ──► RowSink
//!      ──parquet_rows───────────────────────► batches ─────────────────────────────────► rows ──► RowSink
//! ```
//!
//! [`TextSource`] determines the format and columns of each file (`layout`) before the long work starts, and may be `cut` into
//! shards. [`scan`] drives the pipeline: `scan_files` reads blocks, threads parse them, and their rows go to a [`RowSink`].
//! Class files are read here as well ([`read_class_file`]).

mod captions;
mod cell_text;
mod class_file;
mod compression;
mod content_hashes;
mod cut;
#[cfg(test)]
mod cut_tests;
mod delimited;
mod extent;
mod folder;
mod json_lines;
mod keep;
mod layout;
mod line_blocks;
mod parquet_rows;
mod rows;
mod scan;
mod scan_files;
mod scan_summary;
mod source;
mod synset_list;
mod yfcc;

pub use captions::{CAPTION_NAMES, has_captions, read_captions};
pub use class_file::{read_class_file, write_class_file};
pub use content_hashes::read_content_hashes;
pub use folder::{expand_pattern, find_metadata};
pub use keep::KeepColumn;
pub use layout::column_names;
pub use parquet_rows::{for_each_text, is_textual};
pub use rows::{BadRow, KeptValues, Position, RowSink};
pub use scan::{ScanProgress, scan};
pub use scan_summary::{DamagedFile, OnBadRow, ScanSummary};
pub use source::{TextColumns, TextFormat, TextSource};
