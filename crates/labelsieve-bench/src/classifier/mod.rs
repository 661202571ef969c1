//! The systems that the paper compares with, in memory: class weights with attention to base classes (`attention`, its training and the
//! gradient), diffusion (`diffusion`), logistic regression (`logistic`), and networks on features that learn from episodes of base
//! classes (`episodic`).

mod attention;
mod attention_gradient;
mod attention_training;
#[cfg(test)]
#[path = "../../../labelsieve/src/classifier/contract.rs"]
mod contract;
#[cfg(test)]
mod contract_learners;
mod diffusion;
mod episodic;
mod logistic;

pub use attention::{Attention, AttentionParameters};
pub use attention_training::AttentionTraining;
pub use diffusion::{
    Collection, Diffusion, DiffusionClassifier, FUSION_WEIGHTS, Fusion, SparseLabels, TextRule, fuse,
};
pub use episodic::{
    EpisodicClassifier, EpisodicKind, EpisodicModel, EpisodicSizes, EpisodicTraining, Tensor,
};
pub use logistic::{DECAYS, LinearClassifier, Logistic};
