//! Files of the compared systems. `attention_file` and `model_file` are the formats; `attention`, `episodes` and `classifier`
//! convert between them and the models in `classifier/`.

mod attention;
mod attention_file;
mod classifier;
mod episodes;
mod model_file;

pub use attention::{AttentionDescription, load_attention, saved_attention};
pub use attention_file::SavedAttention;
pub use classifier::{Model, load_classifier};
pub use episodes::{KIND, load_episodes, settings_of, tensors_of};
pub use model_file::{ModelTensor, SavedModel};
