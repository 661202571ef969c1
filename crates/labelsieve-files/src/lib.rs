//! The file formats that several stages share, and the environment in which every job runs.
//!
//! - [`storage`]: files independent of their format: atomic writes, the journal of a run, locks, pipes
//! - [`arrays`], [`tables`], [`tensors`]: NumPy, Parquet, CSV and safetensors
//! - [`examples`], [`results`] and decisions: the contents of these files
//! - [`inputs`]: opening and joining them
//! - [`work`]: reporting to a front end, outputs that never replace an input, resuming, and the error type of all jobs
//!
//! No stage of the pipeline is known here: class files belong to matching, images to the networks, figures to the report.
//!
//! Input is not trusted: every length in a file is checked against the length of the file before it is used, and errors name
//! the place. Output appears whole or not at all.

pub mod arrays;
mod decisions;
mod error;
pub mod examples;
pub mod inputs;
pub mod moment;
pub mod results;
pub mod storage;
pub mod tables;
pub mod tensors;
mod wording;
pub mod work;

pub use arrays::array_file::{ArrayFile, read_ints};
pub use arrays::matrix::Matrix;
pub use arrays::npy::{Dtype, NPY_HEAD_LIMIT, NpyHeader};
pub use arrays::npy_write::{write_npy_f16, write_npy_f32, write_npy_i64};
pub use arrays::npz::{Npz, NpzWriter};
pub use arrays::scratch::{ScratchFolder, temporary_folder};
pub use decisions::{
    DecisionCounts, DecisionJoin, DecisionLog, DecisionRow, DecisionTable, UNDECIDED, decision_code,
    decision_word, read_decisions,
};
pub use error::{Action, ColumnRole, DataError, Result, TensorsOf};
pub use examples::class_texts::{is_text_id, text_id};
pub use examples::feature_file::{FeatureFormat, FeatureLayout, FeatureRows, FeatureWriter};
pub use examples::feature_part::{FeatureKind, FeaturePart, FeaturePartRows};
pub use examples::table::{ExampleTable, NETWORK_KEY, Spill, TableColumns};
pub use moment::rfc3339;
pub use results::prediction_file::{PredictionRow, PredictionWriter};
pub use results::relevance_file::{
    OptionalColumns, RelevanceReasons, RelevanceRow, RelevanceTable, RelevanceWriter, read_relevance,
    read_relevance_reasons,
};
pub use results::truth_file::{TruthRow, TruthTable, TruthWriter, read_truth};
pub use storage::atomic::{AtomicFile, abandon_unfinished_files};
pub use storage::encoding::ForeignEncoding;
pub use storage::file_kind::{ExpectedFile, FileKind};
pub use storage::input::is_stream;
pub use storage::journal::{Journal, JournalRecord, JournalStart};
pub use storage::locked_file::open_locked;
pub use storage::unread::Unread;
pub use tables::csv_write::{csv_bytes, write_csv};
pub use tables::ids_table::ids_table_of;
pub use tables::labels::{Ids, Labels};
pub use tables::merged_table::{MergedTable, PartRows};
pub use tables::parquet_columns::read_text_columns;
pub use tables::part::{PART_KEY, Part, PartFile, PartOf, Shard};
pub use tables::table_write::TableFormat;
pub use tables::texts::Texts;
pub use tensors::classifier_file::{SavedClassifier, SavedConfidence, SavedDiscriminant, read_f32};
pub use tensors::network_file::{NamedTensor, NetworkFile, NetworkMetadata, Precision, Verified};
pub use tensors::tensor_shards::TensorShards;
pub use wording::{counted, noun_for};
