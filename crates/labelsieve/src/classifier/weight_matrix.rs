//! W: one unit-length vector per class.

use labelsieve_numerics::kernels::{add, product_with_transposed};
use rayon::prelude::*;

use crate::error::{Result, check};
use crate::features::Features;
use crate::model::{Classifier, Scores};

/// A classifier by cosine: **eq. (4)**, π(x) = argmax_c ŵ_c·ĝ(x).
///
/// The scale s turns cosines into the logits of eq. (6); it does not change the predicted class.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightMatrix {
    weights: Features,
    scale: f32,
}

impl WeightMatrix {
    /// K rows of d numbers and the scale s.
    pub fn new(weights: Features, scale: f32) -> Result<WeightMatrix> {
        check(scale > 0.0 && scale.is_finite(), "scale", "a positive number", scale)?;
        Ok(WeightMatrix { weights, scale })
    }

    /// Ŵ, one unit row per class.
    pub fn weights(&self) -> &Features {
        &self.weights
    }

    /// s.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// **W_A = [W_B, W]**: base classes first, then `novel`'s, with `self`'s scale.
    pub fn with_novel(&self, novel: &WeightMatrix) -> Result<WeightMatrix> {
        Ok(WeightMatrix { weights: self.weights.stack(&novel.weights)?, scale: self.scale })
    }
}

impl Classifier for WeightMatrix {
    fn n_classes(&self) -> usize {
        self.weights.len()
    }

    /// Cosines ŵ_c·ĝ(x).
    fn scores(&self, features: &Features) -> Scores {
        let k = self.weights.len();
        affine_scores(features, self.weights.block(0..k), &vec![0.0; k])
    }
}

/// N×K scores W g(x) + b, for K×d weights.
#[doc(hidden)] // for our own crates
pub fn affine_scores(features: &Features, weights: &[f32], biases: &[f32]) -> Scores {
    const CHUNK: usize = 256;
    let k = biases.len();
    let mut values = vec![0f32; features.len() * k];
    if k > 0 {
        values.par_chunks_mut(CHUNK * k).enumerate().for_each(|(chunk, values)| {
            let start = chunk * CHUNK;
            let rows = features.block(start..start + values.len() / k);
            product_with_transposed(rows, weights, values, features.dim());
            values.chunks_exact_mut(k).for_each(|scores| add(scores, biases));
        });
    }
    Scores { values, n_classes: k }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> WeightMatrix {
        WeightMatrix::new(Features::new(vec![2.0, 0.0, 0.0, 3.0], 2).unwrap(), 10.0).unwrap()
    }

    #[test]
    fn eq_4_gives_the_class_of_largest_cosine_whatever_the_lengths() {
        let examples = Features::new(vec![30.0, 1.0, 0.1, 0.2], 2).unwrap();
        let scores = axes().scores(&examples);
        let winners: Vec<bool> = scores.rows().map(|row| row[0] > row[1]).collect();
        assert_eq!(winners, [true, false]);
        assert!((scores.values[0] - 30.0 / 901f32.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn all_classes_are_the_base_ones_and_then_the_novel_ones() {
        let novel = WeightMatrix::new(Features::new(vec![1.0, 1.0], 2).unwrap(), 1.0).unwrap();
        let all = axes().with_novel(&novel).unwrap();
        assert_eq!((all.n_classes(), all.scale()), (3, 10.0));
        assert_eq!(all.weights().row(2), novel.weights().row(0));
    }
}
