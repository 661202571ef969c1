//! The loss that makes a relevance model out of a binary classifier.

/// Keeps the logarithms finite when a probability saturates.
const EPSILON: f32 = 1e-6;

/// **Eq. (3)**: the loss that separates clean from noisy examples.
///
/// ```text
/// L = -1/k Σ_clean ln p_i  -  λ/z Σ_noisy ln(1 - p_i)
/// ```
///
/// `p`: k + z probabilities, clean rows first; `n_clean`: k; `lambda`: λ. As in the published code, 10⁻⁶ is added
/// inside both logarithms.
pub fn cleaning_loss(p: &[f32], n_clean: usize, lambda: f32) -> f32 {
    let (clean, noisy) = p.split_at(n_clean);
    -mean(clean, |p| (p + EPSILON).ln()) - lambda * mean(noisy, |p| (1.0 - p + EPSILON).ln())
}

/// dL/da of **eq. (3)** for one example with p = σ(a): `weight` is 1/k for a clean example and λ/z for a noisy one.
#[inline(always)]
pub(super) fn loss_gradient(p: f32, is_clean: bool, weight: f32) -> f32 {
    let sigmoid_derivative = p * (1.0 - p);
    if is_clean {
        -weight * sigmoid_derivative / (p + EPSILON)
    } else {
        weight * sigmoid_derivative / (1.0 - p + EPSILON)
    }
}

fn mean(values: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    if values.is_empty() {
        return 0.0;
    }
    (values.iter().map(|&v| f64::from(f(v))).sum::<f64>() / values.len() as f64) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eq_3_is_a_weighted_cross_entropy() {
        // One clean row at 1/2 and two noisy at 1/2 and 3/4: ln 2 + λ/2 (ln 2 + ln 4) with λ = 2.
        let loss = cleaning_loss(&[0.5, 0.5, 0.75], 1, 2.0);
        assert!((loss - 4.0 * 2f32.ln()).abs() < 1e-5, "{loss}");
    }

    #[test]
    fn eq_3_stays_finite_when_probabilities_saturate() {
        assert!(cleaning_loss(&[0.0, 1.0], 1, 1.0).is_finite());
        assert_eq!(cleaning_loss(&[1.0], 1, 1.0), -(1.0 + EPSILON).ln());
    }

    #[test]
    fn the_gradient_agrees_with_finite_differences() {
        let sigmoid = |a: f32| 1.0 / (1.0 + (-a).exp());
        for a in [-3.0f32, -0.5, 0.0, 2.0] {
            for (n_clean, lambda) in [(1, 0.0), (0, 0.7)] {
                let h = 1e-2;
                let loss = |a: f32| cleaning_loss(&[sigmoid(a)], n_clean, lambda);
                let numeric = (loss(a + h) - loss(a - h)) / (2.0 * h);
                let weight = if n_clean == 1 { 1.0 } else { lambda };
                let gradient = loss_gradient(sigmoid(a), n_clean == 1, weight);
                assert!((gradient - numeric).abs() < 1e-3, "at {a}: {gradient} against {numeric}");
            }
        }
    }
}
