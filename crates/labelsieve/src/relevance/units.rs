//! Activations, dropout and outputs: all of the network except the matrix products.

use labelsieve_numerics::kernels::{COLUMNS, for_this_machine};
use labelsieve_numerics::random::Stream;

use super::loss::loss_gradient;

/// Hidden units m.
pub(super) const HIDDEN: usize = COLUMNS;

/// The hidden units dropped in a step: inverted dropout, drawn by the content of a row rather than its position, so that the order
/// of rows has no effect. Equal rows drop the same units.
#[derive(Clone, Copy)]
pub(super) struct Dropout {
    stream: Stream,
    /// Units whose 16 random bits lie below this are dropped.
    threshold: u32,
    /// The factor of the other units.
    pub scale: f32,
}

impl Dropout {
    pub fn new(probability: f32, stream: Stream) -> Dropout {
        Dropout { stream, threshold: (probability * 65536.0) as u32, scale: 1.0 / (1.0 - probability) }
    }

    pub fn none() -> Dropout {
        Dropout::new(0.0, Stream::new(0))
    }

    /// The factor of each hidden unit of one example: four draws of 64 bits hold sixteen of 16.
    #[inline(always)]
    fn factors(&self, key: u64) -> [f32; HIDDEN] {
        let mut factors = [self.scale; HIDDEN];
        for (q, factors) in factors.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let bits = self.stream.bits(key.wrapping_add(q as u64));
            for (b, factor) in factors.iter_mut().enumerate() {
                let kept = ((bits >> (16 * b)) & 0xffff) as u32 >= self.threshold;
                *factor = if kept { self.scale } else { 0.0 };
            }
        }
        factors
    }
}

for_this_machine! {
/// In place: R = dropout [H + b₁]+, and s = R Θ₂.
pub(super) fn activate(
    hidden: &mut [f32],
    support: &mut [f32],
    bias_1: &[f32; HIDDEN],
    theta_2: &[f32; HIDDEN],
    dropout: Dropout,
    keys: &[u64],
) {
    let rows = hidden.as_chunks_mut::<HIDDEN>().0;
    for ((row, support), &key) in rows.iter_mut().zip(support).zip(keys) {
        let factors = if dropout.threshold == 0 { [1.0; HIDDEN] } else { dropout.factors(key) };
        let mut terms = [0f32; HIDDEN];
        for u in 0..HIDDEN {
            row[u] = (row[u] + bias_1[u]).max(0.0) * factors[u];
            terms[u] = row[u] * theta_2[u];
        }
        *support = sum_16(terms);
    }
}
}

for_this_machine! {
/// In place: R becomes ∂H; adds the gradients of b₁ and Θ₂ to `gradients`.
pub(super) fn hidden_gradients(
    hidden: &mut [f32],
    support_gradients: &[f32],
    theta_2: &[f32; HIDDEN],
    scale: f32,
    gradients: &mut [f32],
) {
    let [bias_1_gradient, theta_2_gradient] = &mut gradients.as_chunks_mut::<HIDDEN>().0[..2] else { return };
    for (row, &gradient) in hidden.as_chunks_mut::<HIDDEN>().0.iter_mut().zip(support_gradients) {
        for u in 0..HIDDEN {
            theta_2_gradient[u] += gradient * row[u];
            row[u] = if row[u] > 0.0 { gradient * theta_2[u] * scale } else { 0.0 };
            bias_1_gradient[u] += row[u];
        }
    }
}
}

for_this_machine! {
/// In place: a becomes p = σ(a); and ∂L/∂a.
pub(super) fn outputs(a: &mut [f32], loss_weights: &[f32], gradients: &mut [f32]) {
    for ((a, &weight), gradient) in a.iter_mut().zip(loss_weights).zip(gradients) {
        *a = sigmoid(*a);
        *gradient = loss_gradient(*a, weight);
    }
}
}

#[inline(always)]
fn sum_16(mut terms: [f32; HIDDEN]) -> f32 {
    for width in [8, 4, 2, 1] {
        for u in 0..width {
            terms[u] += terms[u + width];
        }
    }
    terms[0]
}

#[inline(always)]
pub(super) fn sigmoid(a: f32) -> f32 {
    1.0 / (1.0 + exp(-a))
}

/// eˣ, the same bits at every level and without a call: x = n ln 2 + r, and a polynomial of r (Cephes, by Moshier). Beyond the
/// range of `f32` it stays at the range's ends.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³: in a sum with it, the last bits are the nearest whole number
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4]; // the first has few bits, so that n times it is exact
    const TERMS: [f32; 6] = [1.987_569_1e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5];
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN_2[0] - n * LN_2[1];
    let polynomial = TERMS[1..].iter().fold(TERMS[0], |sum, &term| sum * r + term);
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    (polynomial * r * r + r + 1.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use labelsieve_numerics::level::Level;

    #[test]
    fn exp_is_within_three_units_of_its_last_place() {
        for i in -870_000..=880_000 {
            let x = i as f32 * 1e-4;
            let found = f64::from(exp(x));
            let exact = f64::from(x).exp();
            assert!((found / exact - 1.0).abs() < 3.0 * 1.2e-7, "e^{x}: {found} against {exact}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f32::NAN).is_nan());
        assert!(exp(1e9).is_finite() && exp(-1e9) > 0.0);
    }

    #[test]
    fn outputs_have_the_same_bits_at_every_level() {
        let a: Vec<f32> = (0..999).map(|i| 0.3 * (i as f32 - 500.0)).collect();
        let weights: Vec<f32> = (0..999).map(|i| [0.5, -0.1, -0.0][i % 3]).collect();
        let at = |level| {
            let mut p = a.clone();
            let mut gradients = vec![f32::NAN; a.len()];
            outputs(level, &mut p, &weights, &mut gradients);
            (p, gradients)
        };
        let plain = at(Level::PLAIN);
        assert!(Level::available().into_iter().all(|level| at(level) == plain));
        assert!(plain.0.iter().all(|p| (0.0..=1.0).contains(p)) && plain.1.iter().all(|g| g.is_finite()));
    }
}
