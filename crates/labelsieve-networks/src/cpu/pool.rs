//! Max-pooling, mean-pooling and flattening.

use labelsieve_numerics::for_this_machine;
use labelsieve_numerics::level::Level;
use rayon::prelude::*;

use super::tensor::{CHANNELS, Tensor, for_each_row};

/// The windows of a max-pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    pub kernel: usize,
    pub stride: usize,
    pub padding: usize,
}

impl Windows {
    /// The kernel positions at output place `at` that lie inside an image of `size`.
    fn inside(self, at: usize, size: usize) -> std::ops::Range<usize> {
        let corner = at * self.stride;
        self.padding.saturating_sub(corner)..self.kernel.min(size + self.padding - corner)
    }
}

/// The largest number of each window and its position (row × kernel + column), the first of equals.
pub(super) fn max_forward(
    level: Level,
    input: &Tensor,
    windows: Windows,
    output: &mut Tensor,
    winners: &mut Vec<u8>,
) {
    let shape = output.shape;
    let channels = output.shape.channels;
    winners.resize(output.images * shape.len(), 0);
    let origin = output.origin();
    let stride = output.row_stride();
    let image_stride = output.image_stride();
    let images =
        output.data.par_chunks_exact_mut(image_stride).zip(winners.par_chunks_exact_mut(shape.len()));
    images.enumerate().for_each(|(image, (output, winners))| {
        for y in 0..shape.height {
            let rows = windows.inside(y, input.shape.height);
            for x in 0..shape.width {
                let columns = windows.inside(x, input.shape.width);
                let output = &mut output[origin + y * stride + x * channels..][..channels];
                let winners = &mut winners[(y * shape.width + x) * channels..][..channels];
                let first = input.row_start(image, y * windows.stride + rows.start - windows.padding)
                    + (x * windows.stride + columns.start - windows.padding) * channels;
                let window = Window {
                    rows: rows.clone(),
                    columns,
                    kernel: windows.kernel,
                    stride: input.row_stride(),
                };
                largest(level, &input.data[first..], &window, output, winners);
            }
        }
    });
}

/// The part of a window that lies inside the image.
struct Window {
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
    kernel: usize,
    /// Numbers from one row of the image to the next.
    stride: usize,
}

for_this_machine! {
    fn largest(input: &[f32], window: &Window, output: &mut [f32], winners: &mut [u8]) {
        let channels = output.len();
        for first in (0..channels).step_by(CHANNELS) {
            let mut best = [f32::NEG_INFINITY; CHANNELS];
let mut winner = [0i32; CHANNELS];
            for (row, r) in window.rows.clone().enumerate() {
                for (column, c) in window.columns.clone().enumerate() {
                    let at = row * window.stride + column * channels + first;
                    let values: &[f32; CHANNELS] = input[at..at + CHANNELS].try_into().expect("a block");
                    let tap = (r * window.kernel + c) as i32;
                    for i in 0..CHANNELS {
                        let better = values[i] > best[i];
                        best[i] = if better { values[i] } else { best[i] };
                        winner[i] = if better { tap } else { winner[i] };
                    }
                }
            }
            output[first..first + CHANNELS].copy_from_slice(&best);
            for (to, winner) in winners[first..first + CHANNELS].iter_mut().zip(winner) {
                *to = winner as u8;
            }
        }
    }
}

/// Adds each gradient to the input with the largest number.
pub(super) fn max_backward(
    level: Level,
    by_output: &Tensor,
    winners: &[u8],
    windows: Windows,
    by_input: &mut Tensor,
) {
    let shape = by_output.shape;
    let channels = by_output.shape.channels;
    let from = by_input.shape;
    let origin = by_input.origin();
    let stride = by_input.row_stride();
    let image_stride = by_input.image_stride();
    by_input.data.par_chunks_exact_mut(image_stride).enumerate().for_each(|(image, by_input)| {
        by_input.fill(0.0);
        for y in 0..shape.height {
            for x in 0..shape.width {
                let by_output = &by_output.row(image, y)[x * channels..][..channels];
                let winners =
                    &winners[((image * shape.height + y) * shape.width + x) * channels..][..channels];
                for row in windows.inside(y, from.height) {
                    for column in windows.inside(x, from.width) {
                        let at = origin
                            + (y * windows.stride + row - windows.padding) * stride
                            + (x * windows.stride + column - windows.padding) * channels;
                        let tap = (row * windows.kernel + column) as u8;
                        add_where(level, by_output, winners, tap, &mut by_input[at..][..channels]);
                    }
                }
            }
        }
    });
}

for_this_machine! {
    fn add_where(by_output: &[f32], winners: &[u8], tap: u8, by_input: &mut [f32]) {
        for ((by_input, by_output), winner) in by_input.iter_mut().zip(by_output).zip(winners) {
            *by_input += if *winner == tap { *by_output } else { 0.0 };
        }
    }
}

/// The mean over all pixels of each image: images × channels numbers.
pub(super) fn mean_forward(input: &Tensor) -> Vec<f32> {
    let channels = input.shape.channels;
    let pixels = input.shape.height * input.shape.width;
    let mut means = vec![0.0; input.images * channels];
    means.par_chunks_exact_mut(channels).enumerate().for_each(|(image, means)| {
        for y in 0..input.shape.height {
            for pixel in input.row(image, y).chunks_exact(channels) {
                means.iter_mut().zip(pixel).for_each(|(mean, value)| *mean += value);
            }
        }
        means.iter_mut().for_each(|mean| *mean /= pixels as f32);
    });
    means
}

/// Every pixel gets its share of the gradient.
pub(super) fn mean_backward(by_output: &[f32], by_input: &mut Tensor) {
    let channels = by_input.shape.channels;
    let share = 1.0 / (by_input.shape.height * by_input.shape.width) as f32;
    for_each_row(by_input, |image, _, row| {
        let by_output = &by_output[image * channels..][..channels];
        for pixel in row.chunks_exact_mut(channels) {
            pixel.iter_mut().zip(by_output).for_each(|(by_input, by_output)| *by_input = by_output * share);
        }
    });
}

/// All numbers of each image in the order channel, row, column.
pub(super) fn flatten(input: &Tensor) -> Vec<f32> {
    let shape = input.shape;
    let mut flat = vec![0.0; input.images * shape.len()];
    flat.par_chunks_exact_mut(shape.len()).enumerate().for_each(|(image, flat)| {
        for y in 0..shape.height {
            for (x, pixel) in input.row(image, y).chunks_exact(shape.channels).enumerate() {
                for (channel, value) in pixel.iter().enumerate() {
                    flat[(channel * shape.height + y) * shape.width + x] = *value;
                }
            }
        }
    });
    flat
}

/// The inverse of [`flatten`].
pub(super) fn unflatten(flat: &[f32], tensor: &mut Tensor) {
    let shape = tensor.shape;
    for_each_row(tensor, |image, y, row| {
        let flat = &flat[image * shape.len()..][..shape.len()];
        for (x, pixel) in row.chunks_exact_mut(shape.channels).enumerate() {
            for (channel, value) in pixel.iter_mut().enumerate() {
                *value = flat[(channel * shape.height + y) * shape.width + x];
            }
        }
    });
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
