//! The classifiers that the contract is checked on.

use super::{Cosine, WeightedClass, prototypes};
use crate::features::Features;
use crate::model::Classifier;

pub type Learn = Box<dyn Fn(&[WeightedClass], u64) -> Box<dyn Classifier> + Send + Sync>;

/// Numbers per feature.
pub const DIM: usize = 24;

/// Every way to learn a classifier; none of these needs examples of base classes.
pub fn all(_base: &[Features]) -> Vec<(&'static str, Learn)> {
    vec![
        ("prototypes", Box::new(|classes, _| Box::new(prototypes(classes, DIM, 10.0).unwrap()))),
        ("cosine", Box::new(|classes, seed| Box::new(Cosine::default().train(classes, DIM, seed).unwrap()))),
    ]
}
