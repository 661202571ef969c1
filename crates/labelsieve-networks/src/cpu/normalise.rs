//! Batch normalisation, with the addition and the ReLU that follow it: one sweep forwards, two backwards.

use labelsieve_numerics::for_this_machine;
use labelsieve_numerics::level::Level;
use rayon::prelude::*;

use super::filter::Accumulate;
use super::tensor::{CHANNELS, Tensor, for_each_row};
use super::tile::NARROWEST;
use crate::network::Activation;

/// Share of a new batch in the running statistics, as in PyTorch.
const RUNNING_SHARE: f32 = 0.1;

/// Mean and deviation of each channel of a batch.
#[derive(Clone, Debug)]
pub(super) struct Statistics {
    pub mean: Vec<f32>,
    /// 1 / √(variance + ε).
    pub inverse_deviation: Vec<f32>,
    variance: Vec<f64>,
    count: usize,
}

/// The parameters of a normalisation.
#[derive(Clone, Copy)]
pub(super) struct Affine<'a> {
    pub scale: &'a [f32],
    pub shift: &'a [f32],
}

impl Statistics {
    /// Measures a batch; `epsilon` is added to variances. Rows are summed in `f32`, rows and images in `f64`, in their order.
    pub fn of(level: Level, values: &Tensor, epsilon: f32) -> Statistics {
        let channels = values.shape.channels;
        let sums = sum_over_images(values, |image, sums| {
            for y in 0..values.shape.height {
                add_row_moments(level, values.row(image, y), channels, sums);
            }
        });
        let count = values.images * values.shape.height * values.shape.width;
        let (first, second) = sums.split_at(channels);
        let mean: Vec<f64> = first.iter().map(|sum| sum / count as f64).collect();
        let variance: Vec<f64> =
            second.iter().zip(&mean).map(|(sum, mean)| (sum / count as f64 - mean * mean).max(0.0)).collect();
        Statistics {
            inverse_deviation: variance.iter().map(|v| 1.0 / (*v as f32 + epsilon).sqrt()).collect(),
            mean: mean.into_iter().map(|mean| mean as f32).collect(),
            variance,
            count,
        }
    }

    /// Moves running statistics towards this batch; the variance is the unbiased one.
    pub fn update(&self, running_mean: &mut [f32], running_variance: &mut [f32]) {
        let unbiased = self.count as f64 / (self.count as f64 - 1.0).max(1.0);
        for (running, new) in running_mean.iter_mut().zip(&self.mean) {
            *running += RUNNING_SHARE * (new - *running);
        }
        for (running, new) in running_variance.iter_mut().zip(&self.variance) {
            *running += RUNNING_SHARE * ((new * unbiased) as f32 - *running);
        }
    }
}

/// Sums `2 × channels` numbers over images, each image separately, then in order.
fn sum_over_images(values: &Tensor, image_sums: impl Fn(usize, &mut [f64]) + Sync) -> Vec<f64> {
    let width = 2 * values.shape.channels;
    let mut sums = vec![0.0; values.images * width];
    sums.par_chunks_exact_mut(width).enumerate().for_each(|(image, sums)| image_sums(image, sums));
    let mut total = vec![0.0; width];
    for image in sums.chunks_exact(width) {
        total.iter_mut().zip(image).for_each(|(total, sum)| *total += sum);
    }
    total
}

for_this_machine! {
    /// Adds the sum of each channel and of its square.
    fn add_row_moments(row: &[f32], channels: usize, sums: &mut [f64]) {
        let whole = channels / CHANNELS * CHANNELS;
        for first in (0..whole).step_by(CHANNELS) {
            add_block_moments::<CHANNELS>(row, channels, first, sums);
        }
        for first in (whole..channels).step_by(NARROWEST) {
            add_block_moments::<NARROWEST>(row, channels, first, sums);
        }
    }
}

#[inline(always)]
fn add_block_moments<const N: usize>(row: &[f32], channels: usize, first: usize, sums: &mut [f64]) {
    let mut sum = [0.0f32; N];
    let mut square = [0.0f32; N];
    for pixel in row.chunks_exact(channels) {
        let pixel = block::<N>(pixel, first);
        for c in 0..N {
            sum[c] += pixel[c];
            square[c] += pixel[c] * pixel[c];
        }
    }
    for c in 0..N {
        sums[first + c] += f64::from(sum[c]);
        sums[channels + first + c] += f64::from(square[c]);
    }
}

/// The numbers of one block of channels.
#[inline(always)]
fn block<const N: usize>(values: &[f32], first: usize) -> &[f32; N] {
    values[first..first + N].try_into().expect("channels come in blocks")
}

/// `output = activation((input - mean) * inverse_deviation * scale + shift + add)`, the addition where asked for.
pub(super) fn forward(
    level: Level,
    input: &Tensor,
    statistics: &Statistics,
    affine: Affine,
    add: Option<&Tensor>,
    activation: Activation,
    output: &mut Tensor,
) {
    let factor: Vec<f32> =
        affine.scale.iter().zip(&statistics.inverse_deviation).map(|(a, b)| a * b).collect();
    let offset: Vec<f32> =
        affine.shift.iter().zip(&statistics.mean).zip(&factor).map(|((b, mean), a)| b - mean * a).collect();
    for_each_row(output, |image, y, row| {
        let add = add.map(|add| add.row(image, y));
        scale_row(level, input.row(image, y), &factor, &offset, add, activation.range(), row);
    });
}

for_this_machine! {
    fn scale_row(input: &[f32], factor: &[f32], offset: &[f32], add: Option<&[f32]>, range: (f32, f32), output: &mut [f32]) {
        let channels = factor.len();
        let (floor, ceiling) = range;
        match add {
            Some(add) => {
                let pixels = output.chunks_exact_mut(channels).zip(input.chunks_exact(channels));
                for ((output, input), add) in pixels.zip(add.chunks_exact(channels)) {
                    for c in 0..channels {
                        output[c] = (input[c] * factor[c] + offset[c] + add[c]).max(floor).min(ceiling);
                    }
                }
            }
            None => {
                for (output, input) in output.chunks_exact_mut(channels).zip(input.chunks_exact(channels)) {
                    for c in 0..channels {
                        output[c] = (input[c] * factor[c] + offset[c]).max(floor).min(ceiling);
                    }
                }
            }
        }
    }
}

/// Values of the forward pass that the backward pass needs.
pub(super) struct ForwardValues<'a> {
    pub input: &'a Tensor,
    /// The output: where the activation clipped a value, the gradient is zero.
    pub output: &'a Tensor,
    pub activation: Activation,
    pub statistics: &'a Statistics,
    pub affine: Affine<'a>,
}

/// Gradients by scale and shift.
pub(super) struct AffineGradient {
    pub scale: Vec<f32>,
    pub shift: Vec<f32>,
}

/// Turns the gradient by the output into that by the input, in place, and passes the gradient before the activation to the
/// shortcut.
pub(super) fn backward(
    level: Level,
    saved: &ForwardValues,
    gradients: &mut Tensor,
    shortcut: Option<(&mut Tensor, Accumulate)>,
) -> AffineGradient {
    let channels = gradients.shape.channels;
    let Statistics { mean, inverse_deviation, count, .. } = saved.statistics;
    if saved.activation != Activation::Linear {
        mask(level, saved.output, saved.activation.range(), gradients);
    }
    if let Some((shortcut, accumulate)) = shortcut {
        pass_on(level, gradients, accumulate, shortcut);
    }
    let sums = sum_over_images(gradients, |image, sums| {
        for y in 0..gradients.shape.height {
            add_row_gradients(
                level,
                gradients.row(image, y),
                saved.input.row(image, y),
                mean,
                inverse_deviation,
                sums,
            );
        }
    });
    let (shift, scale) = sums.split_at(channels);
    // dx = scale · inverse_deviation · (g - mean(g) - x̂ mean(g x̂)) = a g + b x + c, channel by channel.
    let share = 1.0 / *count as f64;
    let mut factors = [vec![0.0; channels], vec![0.0; channels], vec![0.0; channels]];
    for c in 0..channels {
        let a = f64::from(saved.affine.scale[c]) * f64::from(inverse_deviation[c]);
        let b = -a * scale[c] * share * f64::from(inverse_deviation[c]);
        factors[0][c] = a as f32;
        factors[1][c] = b as f32;
        factors[2][c] = (-a * shift[c] * share - b * f64::from(mean[c])) as f32;
    }
    for_each_row(gradients, |image, y, row| combine_row(level, row, saved.input.row(image, y), &factors));
    let to_f32 = |sums: &[f64]| sums.iter().map(|g| *g as f32).collect();
    AffineGradient { scale: to_f32(scale), shift: to_f32(shift) }
}

/// Zeroes the gradient where the activation clipped a value.
fn mask(level: Level, output: &Tensor, range: (f32, f32), gradients: &mut Tensor) {
    let stride = gradients.image_stride();
    let images = gradients.data.par_chunks_exact_mut(stride).zip(output.data.par_chunks_exact(stride));
    images.for_each(|(gradients, output)| mask_values(level, gradients, output, range));
}

/// Gives the gradient to the shortcut.
fn pass_on(level: Level, gradients: &Tensor, accumulate: Accumulate, shortcut: &mut Tensor) {
    let stride = gradients.image_stride();
    let images = shortcut.data.par_chunks_exact_mut(stride).zip(gradients.data.par_chunks_exact(stride));
    images.for_each(|(shortcut, gradients)| match accumulate {
        Accumulate::Replace => shortcut.copy_from_slice(gradients),
        Accumulate::Add => add_values(level, shortcut, gradients),
    });
}

for_this_machine! {
    fn mask_values(gradients: &mut [f32], output: &[f32], range: (f32, f32)) {
        let (floor, ceiling) = range;
        for (gradient, output) in gradients.iter_mut().zip(output) {
            *gradient = if *output > floor && *output < ceiling { *gradient } else { 0.0 };
        }
    }
}

for_this_machine! {
    fn add_values(sums: &mut [f32], values: &[f32]) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
    }
}

for_this_machine! {
    /// Adds Σ g and Σ g x̂ of each channel.
    fn add_row_gradients(gradients: &[f32], input: &[f32], mean: &[f32], inverse_deviation: &[f32], sums: &mut [f64]) {
        let channels = mean.len();
        let whole = channels / CHANNELS * CHANNELS;
        for first in (0..whole).step_by(CHANNELS) {
            add_block_gradients::<CHANNELS>(gradients, input, mean, inverse_deviation, first, sums);
        }
        for first in (whole..channels).step_by(NARROWEST) {
            add_block_gradients::<NARROWEST>(gradients, input, mean, inverse_deviation, first, sums);
        }
    }
}

#[inline(always)]
fn add_block_gradients<const N: usize>(
    gradients: &[f32],
    input: &[f32],
    mean: &[f32],
    inverse_deviation: &[f32],
    first: usize,
    sums: &mut [f64],
) {
    let channels = mean.len();
    let mean = block::<N>(mean, first);
    let inverse_deviation = block::<N>(inverse_deviation, first);
    let mut plain = [0.0f32; N];
    let mut by_input = [0.0f32; N];
    for (gradient, input) in gradients.chunks_exact(channels).zip(input.chunks_exact(channels)) {
        let gradient = block::<N>(gradient, first);
        let input = block::<N>(input, first);
        for c in 0..N {
            plain[c] += gradient[c];
            by_input[c] += gradient[c] * (input[c] - mean[c]) * inverse_deviation[c];
        }
    }
    for c in 0..N {
        sums[first + c] += f64::from(plain[c]);
        sums[channels + first + c] += f64::from(by_input[c]);
    }
}

for_this_machine! {
    fn combine_row(gradients: &mut [f32], input: &[f32], factors: &[Vec<f32>; 3]) {
        let [a, b, c] = factors;
        let channels = a.len();
        for (gradient, input) in gradients.chunks_exact_mut(channels).zip(input.chunks_exact(channels)) {
            for i in 0..channels {
                gradient[i] = a[i] * gradient[i] + b[i] * input[i] + c[i];
            }
        }
    }
}

#[cfg(test)]
#[path = "normalise_tests.rs"]
mod tests;
