//! A class as one point: the weighted mean of its examples.

use rayon::prelude::*;

use super::{WeightMatrix, WeightedClass};
use crate::error::Result;
use crate::features::Features;

/// **Eq. (5)**: the prototype of a class.
///
/// ```text
/// w_c = 1/r(X) Σ_{x ∈ X} r(x) g(x)
/// ```
///
/// X: the class's clean and noisy examples; r: their relevance, 1 for clean ones; g(x): their features. Returned as
/// the mean itself; a [`WeightMatrix`] scales it to unit length.
pub fn prototype(class: &WeightedClass) -> Vec<f32> {
    let total = class.total();
    class.weighted_sum(|relevance| relevance).iter().map(|&sum| (f64::from(sum) / total) as f32).collect()
}

/// The classifier of all prototypes, in the order of `classes`.
pub fn prototypes(classes: &[WeightedClass], dim: usize, scale: f32) -> Result<WeightMatrix> {
    let rows: Vec<Vec<f32>> = classes.par_iter().map(prototype).collect();
    WeightMatrix::new(Features::new(rows.concat(), dim)?, scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::{assert_close, count, features, numbers, read};

    #[test]
    fn eq_5_is_a_weighted_mean() {
        let clean = Features::new(vec![1.0, 0.0], 2).unwrap();
        let noisy = Features::new(vec![0.0, 1.0, 0.0, 1.0], 2).unwrap();
        let class = WeightedClass::new(&clean, &noisy, &[0.75, 0.25]).unwrap();
        assert_eq!(prototype(&class), [0.5, 0.5]); // (1·(1,0) + ¾·(0,1) + ¼·(0,1)) / 2
    }

    #[test]
    fn prototypes_agree_with_numpy() {
        let golden = read("prototype");
        let all = features(&golden["features"]);
        let k = count(&golden["n_clean"]);
        let relevance = numbers(&golden["relevance"]);
        let clean = all.select(&(0..k).collect::<Vec<_>>());
        let noisy = all.select(&(k..all.len()).collect::<Vec<_>>());
        let class = WeightedClass::new(&clean, &noisy, &relevance[k..]).unwrap();
        assert_close(&prototype(&class), &numbers(&golden["mean_f64"]), 1e-6);
        let matrix = prototypes(&[class], all.dim(), 10.0).unwrap();
        assert_close(matrix.weights().row(0), &numbers(&golden["prototype_f64"]), 1e-6);
    }

    #[test]
    fn relevance_of_another_length_is_refused() {
        let clean = Features::new(vec![1.0, 0.0], 2).unwrap();
        let error = WeightedClass::new(&clean, &clean, &[]).err().unwrap();
        assert_eq!(error.to_string(), "relevance: expected 1 values, found 0");
    }
}
