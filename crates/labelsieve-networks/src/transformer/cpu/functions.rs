//! Functions of rows: normalisation, softmax, activations. Ordinary loops in lanes that the compiler turns into vectors;
//! sums are added lane by lane in a fixed order, so all levels give the same bits.

use labelsieve_numerics::for_this_machine;

use crate::transformer::config::Activation;
use crate::transformer::tensors::Norm;

const LANES: usize = 16;

/// The sum of f over a row.
#[inline(always)]
fn sum_of(row: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0f32; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (sum, &value) in sums.iter_mut().zip(chunk) {
            *sum += f(value);
        }
    }
    for (sum, &value) in sums.iter_mut().zip(rest) {
        *sum += f(value);
    }
    sum_of_lanes(sums)
}

#[inline(always)]
fn sum_of_lanes(mut sums: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            sums[i] += sums[i + half];
        }
        half /= 2;
    }
    sums[0]
}

#[inline(always)]
fn mean_and_inverse_deviation(row: &[f32], eps: f32) -> (f32, f32) {
    let n = row.len() as f32;
    let mean = sum_of(row, |value| value) / n;
    let variance = sum_of(row, |value| (value - mean) * (value - mean)) / n;
    (mean, 1.0 / (variance + eps).sqrt())
}

/// eˣ to about one unit in the last place, for x up to 88; below -87 it is as good as zero.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // x = n ln 2 + r with |r| ≤ ln 2 / 2; adding 1.5·2²³ rounds to the integer n.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    // ln 2 in two parts, so that the difference keeps its digits.
    let r = (x - n * 0.693_359_4) - n * -2.121_944_4e-4;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let value = p * r * r + r + 1.0;
    // The low bits of `rounded` are n; shifted, they are an exponent.
    value * f32::from_bits((rounded.to_bits() << 23).wrapping_add(0x3f80_0000))
}

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The distribution function of the normal distribution to 10⁻⁷ (Abramowitz and Stegun 7.1.26).
#[inline(always)]
fn normal_distribution(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let p = 1.061_405_4;
    let p = p * t - 1.453_152;
    let p = p * t + 1.421_413_8;
    let p = p * t - 0.284_496_74;
    let p = p * t + 0.254_829_6;
    let tail = 0.5 * p * t * exp(-z * z);
    if x < 0.0 { tail } else { 1.0 - tail }
}

#[inline(always)]
fn gelu(x: f32) -> f32 {
    x * normal_distribution(x)
}

/// ½ x (1 + tanh u) = x σ(2 u), u = √(2/π) (x + 0.044715 x³).
#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    x * sigmoid(1.595_769 * (x + 0.044_715 * x * x * x))
}

for_this_machine! {
    /// Normalises a row.
    pub(super) fn normalise(row: &mut [f32], norm: &Norm) {
        let (mean, inverse) = mean_and_inverse_deviation(row, norm.eps);
        for ((value, weight), bias) in row.iter_mut().zip(&norm.weight).zip(&norm.bias) {
            *value = (*value - mean) * inverse * weight + bias;
        }
    }
}

for_this_machine! {
    /// A row, normalised.
    pub(super) fn normalise_into(row: &[f32], norm: &Norm, out: &mut [f32]) {
        let (mean, inverse) = mean_and_inverse_deviation(row, norm.eps);
        let affine = norm.weight.iter().zip(&norm.bias);
        for ((out, value), (weight, bias)) in out.iter_mut().zip(row).zip(affine) {
            *out = (value - mean) * inverse * weight + bias;
        }
    }
}

for_this_machine! {
    /// e^(x - largest) of a row, and their sum.
    pub(super) fn exponentials(row: &mut [f32], sum: &mut f32) {
        let mut largest = [f32::NEG_INFINITY; LANES];
        for chunk in row.chunks(LANES) {
            for (largest, &value) in largest.iter_mut().zip(chunk) {
                *largest = if value > *largest { value } else { *largest };
            }
        }
        let largest = largest.into_iter().fold(f32::NEG_INFINITY, f32::max);
        let mut sums = [0f32; LANES];
        for chunk in row.chunks_mut(LANES) {
            for (sum, value) in sums.iter_mut().zip(chunk) {
                *value = exp(*value - largest);
                *sum += *value;
            }
        }
        *sum = sum_of_lanes(sums);
    }
}

for_this_machine! {
    /// Every number times a factor.
    pub(super) fn scale(row: &mut [f32], factor: f32) {
        row.iter_mut().for_each(|value| *value *= factor);
    }
}

for_this_machine! {
    /// `out += row`.
    pub(super) fn add(out: &mut [f32], row: &[f32]) {
        out.iter_mut().zip(row).for_each(|(out, value)| *out += value);
    }
}

for_this_machine! {
    /// Rotates the two halves of a query or key as pairs; `rotation` has the cosines, then the sines.
    pub(super) fn rotate(row: &mut [f32], rotation: &[f32]) {
        let half = row.len() / 2;
        let (first, second) = row.split_at_mut(half);
        let (cosines, sines) = rotation.split_at(half);
        for i in 0..half {
            let a = first[i];
let b = second[i];
            first[i] = a * cosines[i] - b * sines[i];
            second[i] = b * cosines[i] + a * sines[i];
        }
    }
}

for_this_machine! {
    /// An activation of all numbers.
    pub(super) fn activate(values: &mut [f32], activation: Activation) {
        match activation {
            Activation::Gelu => values.iter_mut().for_each(|x| *x = gelu(*x)),
            Activation::GeluTanh => values.iter_mut().for_each(|x| *x = gelu_tanh(*x)),
            Activation::QuickGelu => values.iter_mut().for_each(|x| *x *= sigmoid(1.702 * *x)),
            Activation::Silu => values.iter_mut().for_each(|x| *x *= sigmoid(*x)),
        }
    }
}

for_this_machine! {
    fn multiply(out: &mut [f32], by: &[f32]) {
        out.iter_mut().zip(by).for_each(|(out, by)| *out *= by);
    }
}

/// Gates times what comes behind them: rows of 2 × `width` numbers become rows of `width`, moved together to the front.
pub(super) fn gate(
    level: labelsieve_numerics::level::Level,
    activation: Activation,
    values: &mut [f32],
    width: usize,
) {
    for row in 0..values.len() / (2 * width) {
        let (gates, others) = values[2 * row * width..][..2 * width].split_at_mut(width);
        activate(level, gates, activation);
        multiply(level, gates, others);
        let from = 2 * row * width;
        values.copy_within(from..from + width, row * width);
    }
}

#[cfg(test)]
mod tests {
    use labelsieve_numerics::level::Level;

    use super::*;

    fn numbers() -> Vec<f32> {
        (-3000..=3000).map(|i| i as f32 * 0.01).collect()
    }

    /// erf in double precision by its series, or its continued fraction far out.
    fn phi(x: f64) -> f64 {
        let z = x.abs() / std::f64::consts::SQRT_2;
        let erf = if z < 3.0 {
            let mut term = z;
            let mut sum = z;
            for n in 1..200 {
                term *= -z * z / f64::from(n);
                sum += term / f64::from(2 * n + 1);
            }
            sum * 2.0 / std::f64::consts::PI.sqrt()
        } else {
            let fraction = (1..60).rev().fold(0.0, |f, k| f64::from(k) / 2.0 / (z + f));
            1.0 - (-z * z).exp() / std::f64::consts::PI.sqrt() / (z + fraction)
        };
        0.5 * (1.0 + erf.copysign(x))
    }

    #[test]
    fn activations_are_those_of_the_definitions_at_every_level() {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let tanh = |x: f64| {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
        };
        let exact = |activation, x: f64| match activation {
            Activation::Gelu => x * phi(x),
            Activation::GeluTanh => tanh(x),
            Activation::QuickGelu => x * sigmoid(1.702 * x),
            Activation::Silu => x * sigmoid(x),
        };
        for activation in [Activation::Gelu, Activation::GeluTanh, Activation::QuickGelu, Activation::Silu] {
            for level in Level::available() {
                let mut found = numbers();
                activate(level, &mut found, activation);
                for (x, found) in numbers().into_iter().zip(found) {
                    let expected = exact(activation, f64::from(x));
                    let near = 3e-7 * f64::from(x).abs().max(1.0);
                    assert!(
                        (f64::from(found) - expected).abs() < near,
                        "{activation:?}({x}) = {found} at {level}, not {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn gates_multiply_what_comes_behind_them() {
        for level in Level::available() {
            let mut values = vec![1.0, 0.0, 5.0, 7.0, -1.0, 2.0, 3.0, 4.0];
            gate(level, Activation::Silu, &mut values, 2);
            let silu = |x: f32| x / (1.0 + (-x).exp());
            let expected = [5.0 * silu(1.0), 0.0, 3.0 * silu(-1.0), 4.0 * silu(2.0)];
            for (found, expected) in values.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-6, "{level}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn softmax_and_normalisation_have_the_same_bits_at_every_level() {
        for n in [1, 5, 16, 33, 100] {
            let row: Vec<f32> = (0..n).map(|i| ((i * 37) % 50) as f32 * 0.3 - 4.0).collect();
            let norm = Norm { weight: vec![1.5; n], bias: vec![0.25; n], eps: 1e-6 };
            let work = |level| {
                let mut soft = row.clone();
                let mut normal = row.clone();
                let mut sum = 0.0;
                exponentials(level, &mut soft, &mut sum);
                normalise(level, &mut normal, &norm);
                (soft, sum, normal)
            };
            let (soft, sum, normal) = work(Level::PLAIN);
            for level in Level::available() {
                assert_eq!(work(level), (soft.clone(), sum, normal.clone()), "{level}");
            }
            let largest = row.iter().copied().fold(f32::MIN, f32::max);
            let exact: Vec<f64> = row.iter().map(|v| f64::from(v - largest).exp()).collect();
            assert!((f64::from(sum) - exact.iter().sum::<f64>()).abs() < 1e-5);
            assert!(soft.iter().zip(&exact).all(|(a, b)| (f64::from(*a) - b).abs() < 2e-7));
            let mean = row.iter().map(|&v| f64::from(v)).sum::<f64>() / n as f64;
            let variance = row.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n as f64;
            for (found, &value) in normal.iter().zip(&row) {
                let expected = (f64::from(value) - mean) / (variance + 1e-6).sqrt() * 1.5 + 0.25;
                assert!((f64::from(*found) - expected).abs() < 1e-4, "{found}, not {expected}");
            }
        }
    }
}
