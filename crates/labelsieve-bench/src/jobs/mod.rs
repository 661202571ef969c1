//! Training of the compared systems, from files to files.

mod train;
mod train_attention;
mod train_episodes;

pub use train::ComparedClassifier;
pub use train_attention::{TrainAttention, TrainedAttention};
pub use train_episodes::{TrainEpisodes, TrainedEpisodes};
