//! Convolutions, forwards and backwards, as sweeps of one register tile over all pixels.
//!
//! The naive convolution is four lines:
//!
//! ```text
//! for each output pixel (y, x) and channel o:
//!     out[y, x, o] = Σ over kernel rows r, columns c and input channels i of
//!                    in[y·stride + r - padding, x·stride + c - padding, i] · weight[o, i, r, c]
//! ```
//!
//! Images have a border of zeros, so no index is ever outside. The sum over c and i runs over consecutive numbers of
//! both images and (packed) weights: a *run*. The gradient by the input is the same sweep with the weights turned round,
//! one sweep for each position of a pixel relative to the stride. The gradient by the weights sums over pixels instead.
#![expect(unsafe_code, reason = "tasks write to parts of one output that do not overlap")]

use labelsieve_numerics::level::Level;
use rayon::prelude::*;

use super::filter::{Accumulate, Filter, Finish};
use super::tensor::Tensor;
use super::tile::{BLOCK, NARROWEST, PIXELS, PixelTile, Run, WeightTile, pixel_tile, weight_tile};
use crate::network::{Geometry, Shape};

/// Pixels that a weight gradient sums over before it leaves its registers: their gradients fill half the first cache.
const CHUNK: usize = 112;

/// Tasks of a weight gradient, independent of the number of threads.
const GRADIENT_TASKS: usize = 16;

/// A convolution between tensors of known shape and border.
#[derive(Clone, Debug)]
pub(super) struct Convolution {
    level: Level,
    input: Shape,
    output: Shape,
    kernel: usize,
    forward: Sweep,
    /// By position of the input pixel relative to the stride.
    backward: Vec<BackwardSweep>,
}

/// The pixels of an output and what each reads. Offsets are those of a group of images, from the group's beginning.
#[derive(Clone, Debug)]
struct Sweep {
    runs: Vec<Run>,
    /// Images per group, enough to fill tiles.
    group: usize,
    /// Pixels per image.
    pixels: usize,
    input_at: Vec<u32>,
    output_at: Vec<u32>,
}

#[derive(Clone, Debug)]
struct BackwardSweep {
    sweep: Sweep,
    /// Kernel rows and columns that reach these pixels, last first.
    rows: Vec<usize>,
    columns: Vec<usize>,
}

/// Channels from `first` on that are computed together, up to 32.
#[derive(Clone, Copy)]
struct Block {
    first: usize,
    width: usize,
}

fn blocks(channels: usize) -> impl ExactSizeIterator<Item = Block> {
    (0..channels).step_by(BLOCK).map(move |first| Block { first, width: BLOCK.min(channels - first) })
}

/// The layout of a tensor without its numbers.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    shape: Shape,
    border: usize,
}

impl Layout {
    pub fn of(shape: Shape, border: usize) -> Layout {
        Layout { shape, border }
    }

    fn image_stride(self) -> usize {
        (self.shape.height + 2 * self.border) * self.row_stride()
    }

    fn row_stride(self) -> usize {
        (self.shape.width + 2 * self.border) * self.shape.channels
    }

    /// Where a pixel of an image starts; it may lie in the border.
    fn at(self, image: usize, y: isize, x: isize) -> u32 {
        let y = y + self.border as isize;
        let x = x + self.border as isize;
        let rows = self.shape.height + 2 * self.border;
        assert!(y >= 0 && x >= 0 && (y as usize) < rows, "a window leaves the border");
        (image * self.image_stride() + y as usize * self.row_stride() + x as usize * self.shape.channels)
            as u32
    }
}

impl Convolution {
    /// Plans a convolution from images laid out as `from` to outputs laid out as `to`; gradients have the border of `to`. The
    /// output channels are a multiple of 8, and so are the input channels where gradients by the input are asked for.
    pub fn new(level: Level, from: Layout, to: Layout, geometry: Geometry) -> Convolution {
        let Geometry { kernel, stride, padding } = geometry;
        let input = from.shape;
        let output = to.shape;
        assert!(output.channels.is_multiple_of(NARROWEST), "output channels come in blocks of {NARROWEST}");
        let runs = (0..kernel)
            .map(|row| Run { shift: row * from.row_stride(), depth: kernel * input.channels })
            .collect();
        let corner = |at: usize, padding: usize| (at * stride) as isize - padding as isize;
        let forward = Sweep::new(runs, from, to, output.height, output.width, |image, y, x| {
            let corner = from.at(image, corner(y, padding.top), corner(x, padding.left));
            (corner, to.at(image, y as isize, x as isize))
        });
        let back = Layout::of(input, to.border);
        let backward = (0..stride * stride)
            .map(|phase| BackwardSweep::new(phase / stride, phase % stride, to, back, geometry))
            .collect();
        Convolution { level, input, output, kernel, forward, backward }
    }

    /// Weights of one output channel.
    fn depth(&self) -> usize {
        self.kernel * self.kernel * self.input.channels
    }

    fn for_each_weight(&self, mut pair: impl FnMut(usize, usize)) {
        let kernel = self.kernel;
        let depth = self.input.channels;
        let mut plain = 0;
        for output in 0..self.output.channels {
            let first = output / BLOCK * BLOCK;
            let lane = output % BLOCK;
            let width = BLOCK.min(self.output.channels - first);
            for input in 0..depth {
                for tap in 0..kernel * kernel {
                    pair(plain, first * self.depth() + (tap * depth + input) * width + lane);
                    plain += 1;
                }
            }
        }
    }

    /// Weights as a backward sweep reads them: block of 32 inputs, row, column, out, in.
    fn turn(&self, weights: &[f32], phase: &BackwardSweep) -> Vec<f32> {
        let inputs = self.input.channels;
        let outputs = self.output.channels;
        let depth = phase.rows.len() * phase.columns.len() * outputs;
        let mut turned = vec![0.0; inputs * depth];
        if depth == 0 {
            return turned;
        }
        turned.par_chunks_mut(depth * BLOCK).zip(blocks(inputs).collect::<Vec<_>>()).for_each(
            |(turned, block)| {
                let taps =
                    phase.rows.iter().flat_map(|row| phase.columns.iter().map(move |column| (row, column)));
                for (tap, (row, column)) in taps.enumerate() {
                    for output in 0..outputs {
                        let first = output / BLOCK * BLOCK;
                        let width = BLOCK.min(outputs - first);
                        let from = first * self.depth()
                            + ((row * self.kernel + column) * inputs + block.first) * width
                            + output % BLOCK;
                        let to = (tap * outputs + output) * block.width;
                        for lane in 0..block.width {
                            turned[to + lane] = weights[from + lane * width];
                        }
                    }
                }
            },
        );
        turned
    }

    /// Adds the share of one group of images in one block of weights.
    fn add_weight_gradient(
        &self,
        input: &Tensor,
        by_output: &Tensor,
        group: usize,
        Block { first: channel, width }: Block,
        sums: &mut [f32],
    ) {
        let sweep = &self.forward;
        let images = sweep.group.min(input.images - group * sweep.group);
        let first = group * sweep.group;
        let input = &input.data[first * input.image_stride()..];
        let by_output = &by_output.data[first * by_output.image_stride()..];
        let mut rows = [0.0; CHUNK * BLOCK];
        let pixels = images * sweep.pixels;
        for start in (0..pixels).step_by(CHUNK) {
            let range = start..(start + CHUNK).min(pixels);
            for (row, &at) in rows.chunks_exact_mut(width).zip(&sweep.output_at[range.clone()]) {
                let at = at as usize + channel;
                row.copy_from_slice(&by_output[at..at + width]);
            }
            let input_at = &sweep.input_at[range];
            let mut done = 0;
            for run in &sweep.runs {
                let last = input_at.iter().max().map_or(0, |&at| at as usize + run.shift + run.depth);
                assert!(last <= input.len() && sums.len() >= (done + run.depth) * width);
                let tile = WeightTile {
                    // SAFETY: offsets and runs lie inside the input and the sums, as just checked.
                    input: unsafe { input.as_ptr().add(run.shift) },
                    input_at,
                    width,
                    by_output: rows.as_ptr(),
                    sums: sums[done * width..].as_mut_ptr(),
                    depth: run.depth,
                };
                // SAFETY: as above.
                unsafe { weight_tile(self.level, &tile) };
                done += run.depth;
            }
        }
    }
}

impl Filter for Convolution {
    /// Weights out × in × row × column, packed as the sweeps read them: block of 32 outputs, row, column, in, out.
    fn pack(&self, weights: &[f32]) -> Vec<f32> {
        let mut packed = vec![0.0; weights.len()];
        self.for_each_weight(|plain, place| packed[place] = weights[plain]);
        packed
    }

    fn unpack(&self, packed: &[f32]) -> Vec<f32> {
        let mut weights = vec![0.0; packed.len()];
        self.for_each_weight(|plain, place| weights[plain] = packed[place]);
        weights
    }

    fn scale_outputs(&self, packed: &mut [f32], factors: &[f32]) {
        let blocks = packed.chunks_mut(self.depth() * BLOCK).zip(factors.chunks(BLOCK));
        for (block, factors) in blocks {
            for row in block.chunks_exact_mut(factors.len()) {
                row.iter_mut().zip(factors).for_each(|(weight, factor)| *weight *= factor);
            }
        }
    }

    fn forward(&self, input: &Tensor, weights: &[f32], finish: Finish, output: &mut Tensor) {
        self.forward.run_into(self.level, input, weights, finish, Accumulate::Replace, output);
    }

    fn backward(&self, by_output: &Tensor, weights: &[f32], add: Accumulate, by_input: &mut Tensor) {
        for phase in &self.backward {
            if phase.sweep.runs.is_empty() && add == Accumulate::Add {
                continue;
            }
            let turned = self.turn(weights, phase);
            phase.sweep.run_into(self.level, by_output, &turned, Finish::PLAIN, add, by_input);
        }
    }

    fn weight_gradient(&self, input: &Tensor, by_output: &Tensor, gradient: &mut [f32]) {
        let blocks = blocks(self.output.channels);
        let groups = input.images.div_ceil(self.forward.group);
        // Parts depend on sizes alone, so that sums do not depend on the number of threads.
        let parts = (GRADIENT_TASKS / blocks.len()).clamp(1, groups.max(1));
        let per_part = groups.div_ceil(parts);
        let mut partial = vec![0.0; (parts - 1) * gradient.len()];
        gradient.fill(0.0);
        let len = gradient.len();
        let block_len = self.depth() * BLOCK;
        let tasks: Vec<(usize, Block, &mut [f32])> = std::iter::once(&mut *gradient)
            .chain(partial.chunks_exact_mut(len))
            .enumerate()
            .flat_map(|(part, sums)| {
                let blocks = self::blocks(self.output.channels);
                blocks.zip(sums.chunks_mut(block_len)).map(move |(block, sums)| (part, block, sums))
            })
            .collect();
        tasks.into_par_iter().for_each(|(part, block, sums)| {
            for group in part * per_part..((part + 1) * per_part).min(groups) {
                self.add_weight_gradient(input, by_output, group, block, sums);
            }
        });
        for partial in partial.chunks_exact(gradient.len().max(1)) {
            gradient.par_chunks_mut(1 << 14).zip(partial.par_chunks(1 << 14)).for_each(|(sum, part)| {
                sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            });
        }
    }
}

impl BackwardSweep {
    /// The input pixels at (`y0`, `x0`) relative to the stride, in `back`, from the gradients in `to`.
    fn new(y0: usize, x0: usize, to: Layout, back: Layout, geometry: Geometry) -> BackwardSweep {
        let Geometry { kernel, stride, padding } = geometry;
        // Kernel positions that take input position p to an output: those with p + padding - tap divisible by the stride.
        let reaching = |p: usize, padding: usize| -> Vec<usize> {
            let reaches = |tap: &usize| (p + padding + kernel * stride - tap).is_multiple_of(stride);
            (0..kernel).rev().filter(reaches).collect()
        };
        let rows = reaching(y0, padding.top);
        let columns = reaching(x0, padding.left);
        let depth = columns.len() * to.shape.channels;
        let n_runs = if columns.is_empty() { 0 } else { rows.len() };
        let runs = (0..n_runs).map(|row| Run { shift: row * to.row_stride(), depth }).collect();
        // The output that the last of the taps takes input position p to; -1 lies in the border.
        let first = |p: usize, taps: &[usize]| p as isize - taps[0] as isize;
        let count = |size: usize, phase: usize| (size + stride - 1 - phase) / stride;
        let height = count(back.shape.height, y0);
        let width = count(back.shape.width, x0);
        let sweep = Sweep::new(runs, to, back, height, width, |image, y, x| {
            let y = y * stride + y0;
            let x = x * stride + x0;
            let start = match n_runs {
                0 => 0, // nothing is read
                _ => to.at(
                    image,
                    first(y + padding.top, &rows).div_euclid(stride as isize),
                    first(x + padding.left, &columns).div_euclid(stride as isize),
                ),
            };
            (start, back.at(image, y as isize, x as isize))
        });
        BackwardSweep { sweep, rows, columns }
    }
}

impl Sweep {
    /// A sweep over `height` × `width` pixels per image; `at` gives what pixel (image, y, x) reads and where it is written.
    fn new(
        runs: Vec<Run>,
        from: Layout,
        to: Layout,
        height: usize,
        width: usize,
        at: impl Fn(usize, usize, usize) -> (u32, u32),
    ) -> Sweep {
        let pixels = height * width;
        let group = CHUNK.div_ceil(pixels.max(1));
        assert!(
            group * from.image_stride().max(to.image_stride()) < u32::MAX as usize,
            "images of this size"
        );
        let (input_at, output_at) = (0..group)
            .flat_map(|image| (0..height).flat_map(move |y| (0..width).map(move |x| (image, y, x))))
            .map(|(image, y, x)| at(image, y, x))
            .unzip();
        Sweep { runs, group, pixels, input_at, output_at }
    }

    fn depth(&self) -> usize {
        self.runs.iter().map(|run| run.depth).sum()
    }

    fn run_into(
        &self,
        level: Level,
        input: &Tensor,
        weights: &[f32],
        finish: Finish,
        add: Accumulate,
        output: &mut Tensor,
    ) {
        let depth = self.depth();
        let channels = output.shape.channels;
        let n_blocks = blocks(channels).len();
        assert_eq!(weights.len(), channels * depth);
        assert!(finish.bias.is_none_or(|bias| bias.len() == channels));
        assert_eq!(input.images, output.images);
        assert!(finish.add.is_none_or(|add| add.data.len() == output.data.len()));
        let input_stride = input.image_stride();
        let output_stride = output.image_stride();
        let groups = output.images.div_ceil(self.group);
        let images = output.images;
        let target = Target(output.data.as_mut_ptr());
        let extent = self.runs.iter().map(|run| run.shift + run.depth).max().unwrap_or(0);
        (0..groups * n_blocks).into_par_iter().for_each(|task| {
            let group = task / n_blocks;
            let channel = task % n_blocks * BLOCK;
            let width = BLOCK.min(channels - channel);
            let first = group * self.group;
            let pixels = self.group.min(images - first) * self.pixels;
            let input = &input.data[first * input_stride..];
            let furthest = self.input_at[..pixels].iter().max().map_or(0, |&at| at as usize);
            assert!(pixels == 0 || furthest + extent <= input.len(), "a window leaves the image");
            let offset = first * output_stride + channel;
            // SAFETY: tasks write to different images or different channels of `output`, at offsets that `Layout::at`
            // placed inside an image; `weights` has a block of this length.
            unsafe {
                let output = target.at(offset);
                let add = match (add, finish.add) {
                    (Accumulate::Add, _) => output.cast_const(),
                    (Accumulate::Replace, Some(add)) => add.data.as_ptr().add(offset),
                    (Accumulate::Replace, None) => std::ptr::null(),
                };
                for start in (0..pixels).step_by(PIXELS) {
                    // The last tile has as many pixels as are left: one that is computed twice would be added twice.
                    let tile = start..(start + PIXELS).min(pixels);
                    pixel_tile(
                        level,
                        &PixelTile {
                            input: input.as_ptr(),
                            input_at: &self.input_at[tile.clone()],
                            runs: &self.runs,
                            width,
                            weights: weights.as_ptr().add(channel * depth),
                            bias: finish.bias.map_or(std::ptr::null(), |bias| bias[channel..].as_ptr()),
                            add,
                            activation: finish.activation,
                            output,
                            output_at: &self.output_at[tile],
                        },
                    );
                }
            }
        });
    }
}

/// An output that several tasks write to, each in its own places.
#[derive(Clone, Copy)]
struct Target(*mut f32);

// SAFETY: see `Sweep::run_into`: places do not overlap.
unsafe impl Send for Target {}
// SAFETY: as above.
unsafe impl Sync for Target {}

impl Target {
    /// # Safety
    /// `offset` lies inside the output.
    unsafe fn at(self, offset: usize) -> *mut f32 {
        // SAFETY: as the caller guarantees.
        unsafe { self.0.add(offset) }
    }
}

#[cfg(test)]
#[path = "convolution_tests.rs"]
mod tests;
