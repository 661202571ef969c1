//! The classifiers that the contract is checked on.

use labelsieve_numerics::Watch;

use super::discriminant::ClassSums;
use super::{Cosine, Discriminant, WeightedClass, prototypes};
use crate::features::Features;
use crate::model::Classifier;

pub type Learn = Box<dyn Fn(&[WeightedClass], u64) -> Box<dyn Classifier> + Send + Sync>;

/// Numbers per feature.
pub const DIM: usize = 24;

/// Every way to learn a classifier; none of these needs examples of base classes.
pub fn all(_base: &[Features]) -> Vec<(&'static str, Learn)> {
    vec![
        ("prototypes", Box::new(|classes, _| Box::new(prototypes(classes, DIM, 10.0).unwrap()))),
        (
            "discriminant",
            Box::new(|classes, _| {
                let sums = ClassSums::of(classes, DIM).unwrap();
                Box::new(Discriminant::default().fit(&sums, None, Watch::unwatched()).unwrap().model)
            }),
        ),
        ("cosine", Box::new(|classes, seed| Box::new(Cosine::default().train(classes, DIM, seed).unwrap()))),
    ]
}
