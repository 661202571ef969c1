//! Depthwise convolutions, forwards and backwards.
//!
//! ```text
//! for each output pixel (y, x) and channel c:
//!     out[y, x, c] = Σ over kernel rows r and columns k of in[y·stride + r - top, x·stride + k - left, c] · weight[c, r, k]
//! ```
//!
//! Channels stand side by side, so that registers hold channels, and every sum is one chain in one register. Kernel rows
//! outside the image are left out. Columns outside it are zeros: two of them to each side, since the border of one zero
//! around an image is followed by that of the next row.

use std::ops::Range;

use labelsieve_numerics::for_this_machine;
use labelsieve_numerics::level::Level;
use rayon::prelude::*;

use super::depthwise_row::{Row, depthwise_row};
use super::filter::{Accumulate, Filter, Finish};
use super::tensor::Tensor;
use super::tile::NARROWEST;
use crate::network::{Geometry, Padding};

/// A depthwise convolution. Weights are packed row by row, column by column, channel by channel.
#[derive(Clone, Debug)]
pub(super) struct Depthwise {
    level: Level,
    channels: usize,
    kernel: usize,
    stride: usize,
    padding: Padding,
}

impl Depthwise {
    /// A kernel of 3×3 or 5×5 with a stride of 1 or 2, on a multiple of 8 channels; windows start at most two pixels outside
    /// the image and end at most two outside it.
    pub fn new(level: Level, channels: usize, geometry: Geometry) -> Depthwise {
        let Geometry { kernel, stride, padding } = geometry;
        assert!(channels.is_multiple_of(NARROWEST), "channels come in blocks of {NARROWEST}");
        assert!(matches!((kernel, stride), (3 | 5, 1 | 2)), "a kernel of {kernel} with stride {stride}");
        assert!(padding.top.max(padding.left) <= 2, "a window leaves the border");
        Depthwise { level, channels, kernel, stride, padding }
    }

    /// The taps at output place `at` that lie inside an image of `size`.
    fn inside(&self, at: usize, padding: usize, size: usize) -> Range<usize> {
        let corner = at * self.stride;
        padding.saturating_sub(corner)..self.kernel.min((size + padding).saturating_sub(corner))
    }

    /// The weights of one tap.
    fn tap<'a>(&self, weights: &'a [f32], row: usize, column: usize) -> &'a [f32] {
        &weights[(row * self.kernel + column) * self.channels..][..self.channels]
    }

    /// The outputs that a column of the kernel takes from inside an image of width `from`.
    fn outputs_of(&self, column: usize, from: usize, width: usize) -> Range<usize> {
        let first = self.padding.left.saturating_sub(column).div_ceil(self.stride);
        let end = (from + self.padding.left).saturating_sub(column).div_ceil(self.stride);
        first.min(width)..end.min(width)
    }

    /// Adds Σ input · gradient of every tap of one image, row by row.
    fn add_weight_gradient(&self, input: &Tensor, by_output: &Tensor, image: usize, sums: &mut [f64]) {
        let from = input.shape;
        let to = by_output.shape;
        let channels = self.channels;
        for y in 0..to.height {
            let gradients = by_output.row(image, y);
            for row in self.inside(y, self.padding.top, from.height) {
                let values = input.row(image, y * self.stride + row - self.padding.top);
                for column in 0..self.kernel {
                    let x = self.outputs_of(column, from.width, to.width);
                    if x.is_empty() {
                        continue;
                    }
                    let first = x.start * self.stride + column - self.padding.left;
                    let sums = &mut sums[(row * self.kernel + column) * channels..][..channels];
                    let gradients = &gradients[x.start * channels..x.end * channels];
                    add_row_products(self.level, &values[first * channels..], self.stride, gradients, sums);
                }
            }
        }
    }
}

impl Filter for Depthwise {
    fn pack(&self, weights: &[f32]) -> Vec<f32> {
        let taps = self.kernel * self.kernel;
        (0..weights.len()).map(|i| weights[i % self.channels * taps + i / self.channels]).collect()
    }

    fn unpack(&self, packed: &[f32]) -> Vec<f32> {
        let taps = self.kernel * self.kernel;
        (0..packed.len()).map(|i| packed[i % taps * self.channels + i / taps]).collect()
    }

    fn scale_outputs(&self, packed: &mut [f32], factors: &[f32]) {
        for row in packed.chunks_exact_mut(self.channels) {
            row.iter_mut().zip(factors).for_each(|(weight, factor)| *weight *= factor);
        }
    }

    fn forward(&self, input: &Tensor, weights: &[f32], finish: Finish, output: &mut Tensor) {
        /// Rows that a thread takes at least: less is not worth waking it.
        const ROWS: usize = 4;
        let from = input.shape;
        let to = output.shape;
        assert_eq!((input.images, from.channels, to.channels), (output.images, self.channels, self.channels));
        let origin = output.origin();
        let row_stride = output.row_stride();
        let image_stride = output.image_stride();
        let images = output.data.par_chunks_exact_mut(image_stride).enumerate();
        images.for_each(|(image, data)| {
            let rows = data[origin..].par_chunks_mut(row_stride).enumerate().take(to.height);
            rows.with_min_len(ROWS).for_each(|(y, output)| {
                let rows = self.inside(y, self.padding.top, from.height);
                let first = y * self.stride + rows.start - self.padding.top;
                let corner = input.row_start(image, first) - self.padding.left * self.channels;
                let row = Row {
                    input: &input.data[corner..],
                    input_stride: input.row_stride(),
                    channels: self.channels,
                    weights: &weights[rows.start * self.kernel * self.channels..],
                    n_rows: rows.len(),
                    bias: finish.bias,
                    add: finish.add.map(|add| add.row(image, y)),
                    activation: finish.activation,
                };
                let output = &mut output[..to.width * self.channels];
                depthwise_row(self.level, self.kernel, self.stride, &row, output);
            });
        });
    }

    fn backward(&self, by_output: &Tensor, weights: &[f32], add: Accumulate, by_input: &mut Tensor) {
        let to = by_output.shape;
        let from = by_input.shape;
        let channels = self.channels;
        let origin = by_input.origin();
        let stride = by_input.row_stride();
        let image_stride = by_input.image_stride();
        by_input.data.par_chunks_exact_mut(image_stride).enumerate().for_each(|(image, data)| {
            if add == Accumulate::Replace {
                data.fill(0.0);
            }
            for y in 0..to.height {
                let gradients = by_output.row(image, y);
                for row in self.inside(y, self.padding.top, from.height) {
                    let at = origin + (y * self.stride + row - self.padding.top) * stride;
                    let into = &mut data[at..at + from.width * channels];
                    for column in 0..self.kernel {
                        let weights = self.tap(weights, row, column);
                        for x in self.outputs_of(column, from.width, to.width) {
                            let at = (x * self.stride + column - self.padding.left) * channels;
                            let gradients = &gradients[x * channels..][..channels];
                            add_products(self.level, gradients, weights, &mut into[at..at + channels]);
                        }
                    }
                }
            }
        });
    }

    fn weight_gradient(&self, input: &Tensor, by_output: &Tensor, gradient: &mut [f32]) {
        // Cut by images, so that sums do not depend on the number of threads.
        let images: Vec<Vec<f64>> = (0..input.images)
            .into_par_iter()
            .map(|image| {
                let mut sums = vec![0.0; gradient.len()];
                self.add_weight_gradient(input, by_output, image, &mut sums);
                sums
            })
            .collect();
        for (i, gradient) in gradient.iter_mut().enumerate() {
            *gradient = images.iter().map(|sums| sums[i]).sum::<f64>() as f32;
        }
    }
}

for_this_machine! {
    fn add_products(a: &[f32], b: &[f32], sums: &mut [f32]) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
}

for_this_machine! {
    /// Adds Σ value · gradient of each channel; the value of the next gradient is `stride` pixels further on.
    fn add_row_products(values: &[f32], stride: usize, gradients: &[f32], sums: &mut [f64]) {
        let channels = sums.len();
        for first in (0..channels).step_by(NARROWEST) {
            let mut row = [0.0f32; NARROWEST];
            for (x, gradients) in gradients.chunks_exact(channels).enumerate() {
                let values = &values[x * stride * channels + first..][..NARROWEST];
                let gradients = &gradients[first..first + NARROWEST];
                for c in 0..NARROWEST {
                    row[c] += values[c] * gradients[c];
                }
            }
            sums[first..first + NARROWEST].iter_mut().zip(row).for_each(|(sum, row)| *sum += f64::from(row));
        }
    }
}

#[cfg(test)]
#[path = "depthwise_tests.rs"]
mod tests;
