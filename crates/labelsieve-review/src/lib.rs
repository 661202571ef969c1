//! A person looks at candidates and decides, and the relevance follows.
//!
//! [`Review`] opens a relevance file, features, pictures and earlier decisions, and gives a [`Session`], which answers what a page asks:
//! everything is in memory or found by number, so no question names a file. Decisions are on disk before they count
//! (`session/deciding.rs`); classes are scored in the background by the code that `score` uses (`session/working.rs`).
//! [`server`] puts HTTP around it, and [`import`] reads decisions that were made in other tools.

mod answers;
mod cache;
mod command;
mod contents;
mod curve;
mod decisions;
mod earlier;
mod events;
pub mod import;
pub mod import_decisions;
mod job;
mod order;
mod pictures;
mod queue;
mod ready;
mod refusal;
mod scores;
pub mod server;
mod session;

pub use answers::{
    BestClean, CandidatePosition, ClassSummary, ClassView, CleanView, Counts, CurvePoint, DecisionChange,
    LambdaChoice, NeighbourView, OrderView, Overview, PastDecision, RowView, ScoresView, SharedVec,
};
pub use events::{Event, Listener};
pub use import::{
    DecisionSource, DecisionWords, ImportOptions, ImportedDecisions, import_decisions, is_moment,
};
pub use job::{MEMORY, Review};
pub use labelsieve_networks::images::BrowserImage;
pub use pictures::Picture;
pub use refusal::Refusal;
pub use server::{Address, Error, Server, Stop};
pub use session::{Order, Session, SessionSummary};
