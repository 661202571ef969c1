//! The cosine classifier on top of a network and its loss.

use labelsieve_numerics::kernels::matrix::{Layout, Sum, multiply};
use labelsieve_numerics::level::Level;
use labelsieve_numerics::unit_rows;

use crate::learner::Targets;

/// The loss of a batch and its gradients.
#[derive(Clone, Debug, PartialEq)]
pub struct CosineLoss {
    /// The loss.
    pub loss: f64,
    /// Images whose class had the largest score.
    pub correct: u64,
    /// N×d: by the features.
    pub by_features: Vec<f32>,
    /// K×d: by the class weights.
    pub by_weights: Vec<f32>,
    /// By the scale.
    pub by_scale: f32,
}

/// **Eq. (7)**, and eq. (6) and (8) with other weights: the weighted cross entropy of the cosine classifier.
///
/// ```text
/// L = - Σ_i u_i ln softmax(s Ŵᵀ ĝ_i)_{c_i}
/// ```
///
/// `features`: N×d, the g_i before they are scaled to unit length; `weights`: K×d, W likewise; `scale`: s; `targets`: the
/// classes c_i and weights u_i. Eq. (7) has u_i = 1 / |X_B^c|, eq. (6) u_i = r(x_i) / r(X_E^c), and eq. (8) is their sum,
/// with a softmax for either side of `targets.split`.
pub fn cosine_loss(
    features: &[f32],
    weights: &[f32],
    scale: f32,
    dim: usize,
    targets: Targets,
) -> CosineLoss {
    cosine_loss_at(Level::current(), features, weights, scale, dim, targets)
}

/// [`cosine_loss`] by the instructions of `level`.
pub(crate) fn cosine_loss_at(
    level: Level,
    features: &[f32],
    weights: &[f32],
    scale: f32,
    dim: usize,
    targets: Targets,
) -> CosineLoss {
    let n = targets.classes.len();
    let n_classes = weights.len() / dim;
    let (unit_features, feature_lengths) = unit_rows(features, dim, length);
    let (unit_weights, weight_lengths) = unit_rows(weights, dim, length);
    // cosines: N×K
    let mut gradients = vec![0.0; n * n_classes];
    let by_image = Layout::by_rows(n, dim);
    let by_class = Layout::by_rows(n_classes, dim);
    let cosines = Layout::by_rows(n, n_classes);
    let product = |a: (&[f32], Layout), b: (&[f32], Layout), out: (&mut [f32], Layout)| {
        multiply(level, a, b, Sum::Replace, out);
    };
    product((&unit_features, by_image), (&unit_weights, by_class.transposed()), (&mut gradients, cosines));
    let mut loss = 0.0;
    let mut correct = 0;
    let mut by_scale = 0.0f64;
    for (row, (&class, &weight)) in
        gradients.chunks_exact_mut(n_classes.max(1)).zip(targets.classes.iter().zip(targets.weights))
    {
        let class = class as usize;
        let rivals = if class < targets.split { 0..targets.split } else { targets.split..n_classes };
        let before = rivals.start;
        let after = rivals.end;
        row[..before].fill(0.0);
        row[after..].fill(0.0);
        let row = &mut row[rivals];
        let class = class - before;
        let own = row[class];
        let best = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        correct += u64::from(row.iter().position(|&cosine| cosine == best) == Some(class));
        let sum: f32 = row.iter().map(|cosine| (scale * (cosine - best)).exp()).sum();
        loss += f64::from(weight) * f64::from(sum.ln() + scale * (best - own));
        for (other, gradient) in row.iter_mut().enumerate() {
            let cosine = *gradient;
            let p = (scale * (cosine - best)).exp() / sum;
            *gradient = weight * (p - f32::from(u8::from(other == class)));
            by_scale += f64::from(*gradient * cosine);
        }
    }
    let mut by_features = vec![0.0; n * dim];
    product((&gradients, cosines), (&unit_weights, by_class), (&mut by_features, by_image));
    through_unit_length(&mut by_features, &unit_features, &feature_lengths, scale);
    let mut by_weights = vec![0.0; n_classes * dim];
    product((&gradients, cosines.transposed()), (&unit_features, by_image), (&mut by_weights, by_class));
    through_unit_length(&mut by_weights, &unit_weights, &weight_lengths, scale);
    CosineLoss { loss, correct, by_features, by_weights, by_scale: by_scale as f32 }
}

/// ‖row‖, never 0: gradients are divided by it.
pub(crate) fn length(row: &[f32]) -> f32 {
    (row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt() as f32).max(1e-12)
}

/// Turns gradients by unit rows (still to be multiplied by `scale`) into gradients by the rows: g ← s (g - û (û·g)) / |u|.
pub(crate) fn through_unit_length(gradient: &mut [f32], unit: &[f32], lengths: &[f32], scale: f32) {
    let dim = unit.len() / lengths.len().max(1);
    for ((gradient, unit), length) in
        gradient.chunks_exact_mut(dim.max(1)).zip(unit.chunks_exact(dim.max(1))).zip(lengths)
    {
        let along: f32 = gradient.iter().zip(unit).map(|(g, u)| g * u).sum();
        for (g, u) in gradient.iter_mut().zip(unit) {
            *g = scale * (*g - u * along) / length;
        }
    }
}

#[cfg(test)]
mod tests {
    use labelsieve_numerics::random::Stream;

    use super::*;

    #[test]
    fn eq_7_of_two_classes_at_right_angles_is_the_softmax_of_their_cosines() {
        // g along w_0: cosines 1 and 0, s = 2. softmax = e² / (e² + 1), and the other feature lies between both.
        let features = [3.0, 0.0, 1.0, 1.0];
        let weights = [2.0, 0.0, 0.0, 5.0];
        let targets = Targets { classes: &[0, 1], weights: &[1.0, 0.5], split: 0 };
        let e2 = 2f64.exp();
        let expected = -(e2 / (e2 + 1.0)).ln() - 0.5 * 0.5f64.ln();
        for level in Level::available() {
            let found = cosine_loss_at(level, &features, &weights, 2.0, 2, targets);
            assert!((found.loss - expected).abs() < 1e-6, "{level}: {} instead of {expected}", found.loss);
            assert_eq!(found.correct, 1); // the tie goes to class 0
        }
    }

    #[test]
    fn eq_8_is_the_sum_of_both_losses() {
        let stream = Stream::new(1);
        let numbers = |label: u64, n: usize| -> Vec<f32> {
            (0..n).map(|i| stream.branch(label).normal(i as u64)).collect()
        };
        let dim = 5;
        let features = numbers(0, 4 * 5);
        let weights = numbers(1, 7 * 5);
        let both = Targets { classes: &[0, 2, 3, 6], weights: &[0.5, 0.5, 0.2, 0.8], split: 3 };
        let both = cosine_loss(&features, &weights, 4.0, dim, both);
        let base = Targets { classes: &[0, 2], weights: &[0.5, 0.5], split: 0 };
        let base = cosine_loss(&features[..10], &weights[..15], 4.0, dim, base);
        let novel = Targets { classes: &[0, 3], weights: &[0.2, 0.8], split: 0 };
        let novel = cosine_loss(&features[10..], &weights[15..], 4.0, dim, novel);
        assert!((both.loss - base.loss - novel.loss).abs() < 1e-6);
        assert_eq!(both.correct, base.correct + novel.correct);
        for (found, expected) in both.by_weights.iter().zip(base.by_weights.iter().chain(&novel.by_weights)) {
            assert!((found - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let stream = Stream::new(3);
        let n = 4;
        let k = 3;
        let dim = 6;
        let scale = 5.0f32;
        let numbers = |label: u64, n: usize| -> Vec<f32> {
            (0..n).map(|i| stream.branch(label).normal(i as u64)).collect()
        };
        let features = numbers(0, n * dim);
        let weights = numbers(1, k * dim);
        let targets = Targets { classes: &[0, 1, 2, 1], weights: &[0.1, 0.5, 0.2, 0.9], split: 0 };
        let found = cosine_loss(&features, &weights, scale, dim, targets);
        let difference = |f: &dyn Fn(f32) -> f64| (f(1e-2) - f(-1e-2)) / 2e-2;
        for i in 0..n * dim {
            let moved = |h: f32| {
                let mut features = features.clone();
                features[i] += h;
                cosine_loss(&features, &weights, scale, dim, targets).loss
            };
            assert!((difference(&moved) - f64::from(found.by_features[i])).abs() < 2e-3);
        }
        for i in 0..k * dim {
            let moved = |h: f32| {
                let mut weights = weights.clone();
                weights[i] += h;
                cosine_loss(&features, &weights, scale, dim, targets).loss
            };
            assert!((difference(&moved) - f64::from(found.by_weights[i])).abs() < 2e-3);
        }
        let moved = |h: f32| cosine_loss(&features, &weights, scale + h, dim, targets).loss;
        assert!((difference(&moved) - f64::from(found.by_scale)).abs() < 1e-3);
    }
}
