//! Commands around the systems that the paper compares with.

mod pretrain;
mod train;
mod train_attention;
mod train_episodes;

pub use pretrain::Pretrain;
pub use train::Train;
pub use train_attention::TrainAttention;
pub use train_episodes::TrainEpisodes;
