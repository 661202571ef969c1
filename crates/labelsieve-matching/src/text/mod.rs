//! Texts of examples from the files people have, row by row and in parallel, with only a few blocks in memory.
//!
//! ```text
//! file ──compression──► bytes ──line_blocks──► blocks ──yfcc │ delimited │ json_lines──► rows ──► RowSink
//!      ──parquet_rows───────────────────────► batches ─────────────────────────────────► rows ──► RowSink
//! ```
//!
//! [`TextSource`] finds out what the files are and which columns to read before the long work starts; [`scan`] drives the
//! pipeline. Class files live here too ([`read_class_file`]).

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
mod source;
mod synset_list;
mod yfcc;

pub use captions::CAPTION_NAMES;
pub use folder::{expand_pattern, find_metadata};
pub use layout::column_names;
pub use parquet_rows::{for_each_text, is_textual};

pub use captions::{has_captions, read_captions};
pub use class_file::{read_class_file, write_class_file};
pub use content_hashes::read_content_hashes;
pub use keep::KeepColumn;
pub use rows::{BadRow, KeptValues, Position, RowSink};
pub use scan::{DamagedFile, OnBadRow, ScanProgress, ScanSummary, scan};
pub use source::{TextColumns, TextFormat, TextSource};
