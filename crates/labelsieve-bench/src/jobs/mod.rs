//! Training of the compared systems, from files to files: `train_attention` and `train_episodes` learn helpers from base classes,
//! which `train` reads beside the examples of the new classes.

mod losses;
mod train;
mod train_attention;
mod train_episodes;

pub use losses::TrainingSummary;
pub use train::ComparedClassifier;
pub use train_attention::TrainAttention;
pub use train_episodes::TrainEpisodes;
