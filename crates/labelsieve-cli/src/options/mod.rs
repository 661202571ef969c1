//! The options of each job, defined once: the command line parses them, Python and Ray pass values by their names
//! (`values.rs`), and help, defaults and checks are the same for all three.

mod classes;
mod embed;
mod embed_text;
mod evaluate;
mod finetune;
mod import_decisions;
mod match_text;
mod merge;
mod plan;
mod predict;
mod pretrain;
mod report;
mod review;
mod run;
mod score;
mod train;
mod values;

pub use classes::ClassesOptions;
pub use embed::EmbedOptions;
pub use embed_text::EmbedTextOptions;
pub use evaluate::EvaluateOptions;
pub use finetune::FineTuneOptions;
pub use import_decisions::ImportDecisionsOptions;
pub use match_text::MatchOptions;
pub use merge::MergeOptions;
pub use plan::PlanOptions;
pub use predict::PredictOptions;
pub use pretrain::PretrainOptions;
pub use report::ReportOptions;
pub use review::ReviewOptions;
pub use run::RunOptions;
pub use score::ScoreOptions;
pub use train::{ClassifierName, TrainOptions};
pub use values::{OptionDescription, OptionKind, OptionValue, commands, describe, parse};
