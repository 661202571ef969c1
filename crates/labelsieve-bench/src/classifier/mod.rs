//! The systems that the paper compares with, in memory: prototypes with attention to base classes, diffusion, logistic regression,
//! and what is learned from episodes of base classes.

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
