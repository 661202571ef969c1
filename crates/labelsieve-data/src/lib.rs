//! Every file that Labelsieve reads or writes. This crate knows formats, not the method.
//!
//! Input is not trusted: every length in a file is compared with the length of the file before it is used, and errors
//! name the place. Output appears whole or not at all.

mod array_file;
mod atomic;
mod byte_source;
mod candidates_file;
mod class_texts;
mod classifier_file;
mod clip_retrieval;
mod column_values;
mod csv_write;
mod decisions;
mod download_list;
mod error;
mod feature_file;
mod feature_part;
mod file_kind;
mod ids_table;
pub mod images;
mod input;
mod journal;
mod labels;
mod locked_file;
mod mapped;
mod matrix;
mod merged_table;
mod moment;
mod network_file;
mod npy;
mod npy_dictionary;
mod npy_write;
mod npz;
mod parquet_columns;
mod parquet_table;
mod parquet_write;
mod part;
mod photo_file;
mod prediction_file;
mod regular_file;
mod relevance_file;
mod run_directory;
mod scratch;
mod table;
mod table_read;
mod table_write;
#[doc(hidden)] // for our own crates
pub mod tensor_file;
mod tensor_shards;
pub mod text;
mod texts;
mod thumbnail_file;
mod truth_file;
mod unread;
mod wording;

pub use array_file::{ArrayFile, read_ints};
pub use atomic::{AtomicFile, abandon_unfinished_files};
pub use candidates_file::{CandidateRow, CandidateTable, CandidateWriter, LeakedExample, read_candidates};
pub use class_texts::{is_text_id, text_id};
pub use classifier_file::SavedClassifier;
#[doc(hidden)] // for our own crates
pub use classifier_file::read_f32;
pub use csv_write::{csv_bytes, write_csv};
pub use decisions::{
    DecisionCounts, DecisionJoin, DecisionLog, DecisionRow, DecisionSource, DecisionTable, DecisionWords,
    ImportOptions, ImportedDecisions, decision_code, decision_word, import_decisions, is_moment,
    read_decisions,
};
pub use download_list::{DownloadListWriter, DownloadRow};
pub use error::{Action, ColumnRole, DataError, Result, TensorsOf};
pub use feature_file::{FeatureFormat, FeatureLayout, FeatureRows, FeatureWriter};
pub use feature_part::{FeatureKind, FeaturePart, ReadRows};
pub use file_kind::{FileKind, Wanted};
pub use ids_table::ids_table_of;
pub use input::is_stream;
pub use journal::{Journal, JournalRecord, JournalStart};
pub use labels::{Ids, Labels};
pub use locked_file::open_locked;
pub use matrix::Matrix;
pub use merged_table::{MergedTable, PartRows};
pub use moment::rfc3339;
pub use network_file::{NamedTensor, NetworkFile, NetworkMetadata, Precision, Verified};
pub use npy::{Dtype, NPY_HEAD_LIMIT, NpyHeader};
pub use npy_write::{write_npy_f16, write_npy_f32, write_npy_i64};
pub use npz::{Npz, NpzWriter};
pub use parquet_columns::read_text_columns;
pub use part::{PART_KEY, Part, PartFile, PartOf, Shard};
pub use photo_file::{PhotoRow, PhotoWriter};
pub use prediction_file::{PredictionRow, PredictionWriter};
pub use relevance_file::{
    OptionalColumns, RelevanceReasons, RelevanceRow, RelevanceTable, RelevanceWriter, read_relevance,
    read_relevance_reasons,
};
pub use run_directory::{
    Axis, AxisScale, BarSeries, Best, Cell, ClassRelevance, Figure, FigureKind, LineSeries, Number, Point,
    PoolSize, ReliabilitySeries, ResultTable, RunDirectory, RunInfo, Setting, TableColumn, TableRow,
};
pub use scratch::{ScratchFolder, temporary_folder};
pub use table::{ExampleTable, NETWORK_KEY, Spill, TableColumns};
pub use table_write::TableFormat;
pub use tensor_shards::TensorShards;
pub use texts::Texts;
pub use thumbnail_file::{ThumbnailRow, ThumbnailWriter};
pub use truth_file::{TruthRow, TruthTable, TruthWriter, read_truth};
pub use unread::Unread;
pub use wording::{counted, noun_for};
