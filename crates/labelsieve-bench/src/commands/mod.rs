//! The commands that train the systems which the paper compares with: arguments into jobs, results into messages.

mod pretrain;
mod train;
mod train_attention;
mod train_episodes;

pub use pretrain::Pretrain;
pub use train::Train;
pub use train_attention::TrainAttention;
pub use train_episodes::TrainEpisodes;
