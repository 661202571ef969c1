//! Through the network, forwards and backwards.
#![expect(unsafe_code, reason = "queues kernels; the macro says what makes it sound")]

use cudarc::driver::{CudaSlice, DeviceRepr, LaunchConfig};
use labelsieve_networks::{Activation, Shape};

use super::buffers::{Backward, Winners};
use super::queue::{Arena, Convolutions, Queue, threads};
use super::schedule::{Channels, Convolution, Feature, Normalise, Pool, Schedule, Work};
use crate::cudnn::convolution::Direction;
use crate::error::Result;
use crate::gpu::{at, blocks, launch};

/// How pixels × channels are spread over threads. Laid out as in `element.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    n_pixels: u32,
    channels: u32,
    lanes: u32,
    chunk: u32,
}

// SAFETY: `repr(C)`, and the kernels declare the same fields.
unsafe impl DeviceRepr for Spread {}

const THREADS: usize = 256;

/// Blocks of a launch: eight for each of 132 multiprocessors. More would only make more partial sums.
const MAX_BLOCKS: usize = 1056;

impl Spread {
    fn new(n_images: usize, shape: Shape) -> Spread {
        let n_pixels = n_images * shape.height * shape.width;
        let groups = shape.channels / 8;
        let lanes = (1 << groups.trailing_zeros()).min(32);
        let at_once = THREADS / lanes;
        let n_blocks = (MAX_BLOCKS / (groups / lanes)).max(1);
        let chunk = n_pixels.div_ceil(n_blocks).next_multiple_of(at_once).max(4 * at_once);
        let [n_pixels, channels, lanes, chunk] = [n_pixels, shape.channels, lanes, chunk].map(|n| n as u32);
        Spread { n_pixels, channels, lanes, chunk }
    }

    fn n_chunks(self) -> u32 {
        self.n_pixels.div_ceil(self.chunk)
    }

    fn launch(self) -> LaunchConfig {
        let slabs = self.channels / 8 / self.lanes;
        LaunchConfig { grid_dim: (self.n_chunks(), slabs, 1), ..blocks(1, THREADS) }
    }
}

/// Images and the windows of a max-pool. Laid out as in `normalise.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Windows {
    n_images: u32,
    height: u32,
    width: u32,
    channels: u32,
    out_height: u32,
    out_width: u32,
    kernel: u32,
    stride: u32,
    padding: u32,
}

// SAFETY: `repr(C)`, and the kernels declare the same fields.
unsafe impl DeviceRepr for Windows {}

impl Windows {
    fn new(n_images: usize, from: Shape, to: Shape, pool: Pool) -> Windows {
        Windows {
            n_images: n_images as u32,
            height: from.height as u32,
            width: from.width as u32,
            channels: from.channels as u32,
            out_height: to.height as u32,
            out_width: to.width as u32,
            kernel: pool.kernel as u32,
            stride: pool.stride as u32,
            padding: pool.padding as u32,
        }
    }
}

/// A convolution of each channel by itself. Laid out as in `depthwise.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Depthwise {
    n_images: u32,
    height: u32,
    width: u32,
    channels: u32,
    out_height: u32,
    out_width: u32,
    kernel: u32,
    stride: u32,
    top: u32,
    left: u32,
}

// SAFETY: `repr(C)`, and the kernels declare the same fields.
unsafe impl DeviceRepr for Depthwise {}

impl Depthwise {
    fn new(n_images: usize, convolution: &Convolution) -> Depthwise {
        let &Convolution { from, to, kernel, stride, padding, .. } = convolution;
        Depthwise {
            n_images: n_images as u32,
            height: from.height as u32,
            width: from.width as u32,
            channels: from.channels as u32,
            out_height: to.height as u32,
            out_width: to.width as u32,
            kernel: kernel as u32,
            stride: stride as u32,
            top: padding.top as u32,
            left: padding.left as u32,
        }
    }
}

/// Numbers on the device that belong to a network.
pub(super) struct Parameters {
    /// In the order of [`Layout`](super::layout::Layout).
    pub values: CudaSlice<f32>,
    pub momenta: CudaSlice<f32>,
    pub gradients: CudaSlice<f32>,
    /// The weights of convolutions in the numbers of images, and their gradients.
    pub weights: CudaSlice<u8>,
    pub weight_gradients: CudaSlice<u8>,
}

impl Parameters {
    fn value(&self, start: usize) -> u64 {
        at(&self.values) + 4 * start as u64
    }

    fn gradient(&self, start: usize) -> u64 {
        at(&self.gradients) + 4 * start as u64
    }
}

/// Tables of the normalisations, see `normalise.cu`, and the sums they are made from.
pub(super) struct Tables {
    pub batch: CudaSlice<f32>,
    pub running: CudaSlice<f32>,
    gradients: CudaSlice<f32>,
    partial: CudaSlice<f32>,
}

impl Tables {
    pub fn new(queue: &Queue, schedule: &Schedule) -> Result<Tables> {
        let table = || queue.zeros(schedule.table_len);
        let widest = schedule.images.iter().map(|image| image.channels).max().unwrap_or(0);
        let partial = queue.zeros(2 * (MAX_BLOCKS * 256 + widest))?;
        Ok(Tables { batch: table()?, running: table()?, gradients: table()?, partial })
    }
}

/// A pass of `n_images` through the network.
pub(super) struct Pass<'a> {
    pub queue: &'a Queue,
    pub schedule: &'a Schedule,
    pub convolutions: &'a mut Convolutions,
    pub parameters: &'a Parameters,
    pub tables: &'a Tables,
    pub arena: &'a Arena,
    /// The buffer of each image.
    pub images: &'a [usize],
    pub n_images: usize,
}

impl Pass<'_> {
    fn image(&self, number: usize) -> u64 {
        self.arena.buffer(self.images[number])
    }

    fn weights(&self, of: &CudaSlice<u8>, start: usize) -> u64 {
        at(of) + (start * self.queue.precision.size()) as u64
    }

    /// From the normalised pixels to the last image, with the statistics of the batch if there are winners to remember,
    /// else with the running ones.
    pub fn forward(&mut self, winners: Option<&[Option<Winners>]>) -> Result<()> {
        let schedule = self.schedule;
        for (number, work) in schedule.work.iter().enumerate() {
            match work {
                Work::Convolution(convolution) if convolution.channels == Channels::Own => {
                    self.depthwise(convolution)?;
                }
                Work::Convolution(convolution) => {
                    let operands = [
                        self.image(convolution.input),
                        self.weights(&self.parameters.weights, convolution.weights),
                        self.image(convolution.output),
                    ];
                    let queue = self.queue;
                    let n = self.n_images;
                    let direction = Direction::Forward;
                    self.convolutions.run(queue, number, convolution, n, direction, operands)?;
                }
                Work::Normalise(normalise) => match winners {
                    None => self.normalise(normalise, at(&self.tables.running), None)?,
                    Some(winners) => {
                        self.measure(normalise)?;
                        self.normalise(normalise, at(&self.tables.batch), winners[number])?;
                    }
                },
            }
        }
        Ok(())
    }

    fn depthwise(&self, convolution: &Convolution) -> Result<()> {
        let Queue { stream, kernels, .. } = self.queue;
        let geometry = Depthwise::new(self.n_images, convolution);
        let shape = threads(self.n_images * convolution.to.len() / 8);
        let input = self.image(convolution.input);
        let output = self.image(convolution.output);
        let weights = self.parameters.value(convolution.weights);
        launch!(stream, kernels.depthwise, shape, geometry, input, weights, output);
        Ok(())
    }

    /// Gradients of the weights, two taps at a time, and of the input.
    fn depthwise_back(&self, convolution: &Convolution, gradients: u64, by_input: Option<u64>) -> Result<()> {
        let Queue { stream, kernels, .. } = self.queue;
        let geometry = Depthwise::new(self.n_images, convolution);
        let input = self.image(convolution.input);
        let partial = at(&self.tables.partial);
        let spread = Spread::new(self.n_images, convolution.to);
        let channels = convolution.to.channels;
        let taps = convolution.kernel * convolution.kernel;
        for tap in (0..taps).step_by(2) {
            launch!(
                stream,
                kernels.depthwise_tap_sums,
                spread.launch(),
                spread,
                geometry,
                tap as u32,
                gradients,
                input,
                partial
            );
            launch!(
                stream,
                kernels.depthwise_tap_totals,
                blocks(channels / 8, THREADS),
                partial,
                spread.n_chunks(),
                spread.channels,
                u32::from(tap + 1 < taps),
                self.parameters.gradient(convolution.weights + tap * channels),
            );
        }
        if let Some(by_input) = by_input {
            let shape = threads(self.n_images * convolution.from.len() / 8);
            let weights = self.parameters.value(convolution.weights);
            launch!(stream, kernels.depthwise_input_gradients, shape, geometry, gradients, weights, by_input);
        }
        Ok(())
    }

    /// The table of this batch; running statistics follow.
    fn measure(&self, normalise: &Normalise) -> Result<()> {
        let Queue { stream, kernels, .. } = self.queue;
        let parameters = self.parameters;
        let spread = Spread::new(self.n_images, normalise.from);
        let partial = at(&self.tables.partial);
        launch!(stream, kernels.value_sums, spread.launch(), spread, self.image(normalise.input), partial);
        launch!(
            stream,
            kernels.batch_table,
            blocks(normalise.from.channels / 8, THREADS),
            partial,
            spread.n_chunks(),
            spread.channels,
            spread.n_pixels,
            self.schedule.epsilon,
            parameters.value(normalise.scale),
            parameters.value(normalise.shift),
            parameters.value(normalise.running_mean),
            parameters.value(normalise.running_variance),
            at(&self.tables.batch) + 4 * normalise.table as u64,
        );
        Ok(())
    }

    fn normalise(&self, normalise: &Normalise, tables: u64, winners: Option<Winners>) -> Result<()> {
        let Queue { stream, kernels, .. } = self.queue;
        let table = tables + 4 * normalise.table as u64;
        let input = self.image(normalise.input);
        let output = self.image(normalise.output);
        let (low, high) = normalise.activation.range();
        let Some(pool) = normalise.pool else {
            let spread = Spread::new(self.n_images, normalise.from);
            let add = normalise.add.map_or(0, |add| self.image(add));
            launch!(stream, kernels.normalise, spread.launch(), spread, input, table, add, low, high, output);
            return Ok(());
        };
        let windows = Windows::new(self.n_images, normalise.from, normalise.to, pool);
        let (places, values) =
            winners.map_or((0, 0), |w| (self.arena.buffer(w.places), self.arena.buffer(w.values)));
        let shape = threads(self.n_images * normalise.to.len() / 8);
        let kernel = &kernels.normalise_pool;
        launch!(stream, kernel, shape, windows, input, table, low, high, output, places, values);
        Ok(())
    }

    /// The tables of the running statistics, as long as these stay as they are.
    pub fn running_tables(&self) -> Result<()> {
        for work in &self.schedule.work {
            let Work::Normalise(normalise) = work else { continue };
            launch!(
                self.queue.stream,
                self.queue.kernels.running_table,
                threads(normalise.from.channels),
                normalise.from.channels as u32,
                self.schedule.epsilon,
                self.parameters.value(normalise.scale),
                self.parameters.value(normalise.shift),
                self.parameters.value(normalise.running_mean),
                self.parameters.value(normalise.running_variance),
                at(&self.tables.running) + 4 * normalise.table as u64,
            );
        }
        Ok(())
    }

    /// Rows of features out of the last image.
    pub fn read_features(&self, features: u64) -> Result<()> {
        let Queue { stream, kernels, .. } = self.queue;
        let image = self.image(self.schedule.last);
        let shape = self.schedule.images[self.schedule.last];
        let n = self.n_images as u32;
        let places = (shape.height * shape.width) as u32;
        let channels = shape.channels as u32;
        let (kernel, items) = match self.schedule.feature {
            Feature::Mean => (&kernels.mean_features, self.n_images * shape.channels / 8),
            Feature::Flatten => (&kernels.flatten_features, self.n_images * shape.len()),
        };
        launch!(stream, kernel, threads(items), image, n, places, channels, features);
        Ok(())
    }

    /// Gradients of the last image, into buffer `to`.
    pub fn spread_gradients(&self, feature_gradients: u64, to: usize) -> Result<()> {
        let Queue { stream, kernels, .. } = self.queue;
        let shape = self.schedule.images[self.schedule.last];
        let n = self.n_images as u32;
        let places = (shape.height * shape.width) as u32;
        let channels = shape.channels as u32;
        let (kernel, items) = match self.schedule.feature {
            Feature::Mean => (&kernels.spread_mean_gradients, self.n_images * shape.len() / 8),
            Feature::Flatten => (&kernels.unflatten_gradients, self.n_images * shape.len()),
        };
        launch!(
            stream,
            kernel,
            threads(items),
            feature_gradients,
            n,
            places,
            channels,
            self.arena.buffer(to)
        );
        Ok(())
    }

    /// Gradients of all parameters from those of the last image.
    pub fn backward(&mut self, plan: &[Backward], winners: &[Option<Winners>]) -> Result<()> {
        let schedule = self.schedule;
        for (number, (work, back)) in schedule.work.iter().zip(plan).enumerate().rev() {
            match (work, back) {
                (Work::Convolution(convolution), &Backward::Convolution { gradients, input })
                    if convolution.channels == Channels::Own =>
                {
                    let input = input.map(|input| self.arena.buffer(input));
                    self.depthwise_back(convolution, self.arena.buffer(gradients), input)?;
                }
                (Work::Convolution(convolution), &Backward::Convolution { gradients, input }) => {
                    let queue = self.queue;
                    let n = self.n_images;
                    let gradients = self.arena.buffer(gradients);
                    let weight_gradients =
                        self.weights(&self.parameters.weight_gradients, convolution.weights);
                    let operands = [self.image(convolution.input), weight_gradients, gradients];
                    self.convolutions.run(queue, number, convolution, n, Direction::Weights, operands)?;
                    if let Some(input) = input {
                        let weights = self.weights(&self.parameters.weights, convolution.weights);
                        let operands = [self.arena.buffer(input), weights, gradients];
                        self.convolutions.run(queue, number, convolution, n, Direction::Input, operands)?;
                    }
                }
                (Work::Normalise(normalise), back @ Backward::Normalise { .. }) => {
                    self.normalise_back(normalise, back, winners[number])?;
                }
                _ => unreachable!("the plan was made for this schedule"),
            }
        }
        Ok(())
    }

    fn normalise_back(&self, normalise: &Normalise, back: &Backward, winners: Option<Winners>) -> Result<()> {
        let &Backward::Normalise { gradients, second, keep, input } = back else { return Ok(()) };
        let Queue { stream, kernels, .. } = self.queue;
        let arena = self.arena;
        let (low, high) = normalise.activation.range();
        let table = at(&self.tables.batch) + 4 * normalise.table as u64;
        let gradient_table = at(&self.tables.gradients) + 4 * normalise.table as u64;
        let partial = at(&self.tables.partial);
        let x = self.image(normalise.input);
        let gradients = arena.buffer(gradients);
        let second = second.map_or(0, |second| arena.buffer(second));
        // Behind a max-pool only winners have gradients, and what they were is remembered.
        let summed = Spread::new(self.n_images, normalise.to);
        let summed_x = winners.map_or(x, |winners| arena.buffer(winners.values));
        let mask = if normalise.add.is_some() { self.image(normalise.output) } else { 0 };
        launch!(
            stream,
            kernels.gradient_sums,
            summed.launch(),
            summed,
            gradients,
            second,
            summed_x,
            mask,
            table,
            low,
            high,
            u32::from(keep),
            partial,
        );
        let spread = Spread::new(self.n_images, normalise.from);
        launch!(
            stream,
            kernels.gradient_table,
            blocks(normalise.from.channels / 8, THREADS),
            partial,
            summed.n_chunks(),
            spread.channels,
            spread.n_pixels,
            table,
            self.parameters.gradient(normalise.scale),
            self.parameters.gradient(normalise.shift),
            gradient_table,
        );
        let out = arena.buffer(input);
        match (normalise.pool, winners) {
            (Some(pool), Some(winners)) => {
                let windows = Windows::new(self.n_images, normalise.from, normalise.to, pool);
                let shape = threads(self.n_images * normalise.from.len() / 8);
                let places = arena.buffer(winners.places);
                launch!(
                    stream,
                    kernels.pool_input_gradients,
                    shape,
                    windows,
                    gradients,
                    places,
                    x,
                    table,
                    gradient_table,
                    out
                );
            }
            _ => {
                // What was kept is masked already.
                let (low, high) = if keep { Activation::Linear.range() } else { (low, high) };
                launch!(
                    stream,
                    kernels.input_gradients,
                    spread.launch(),
                    spread,
                    gradients,
                    x,
                    table,
                    gradient_table,
                    low,
                    high,
                    out
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_is_covered_and_partial_sums_fit() {
        for channels in [64, 128, 192, 256, 512, 2048] {
            for (n_images, side) in [(1, 1), (1, 7), (3, 5), (128, 112), (256, 84), (4096, 224)] {
                let spread = Spread::new(n_images, Shape { channels, height: side, width: side });
                assert!(spread.n_chunks() * spread.chunk >= spread.n_pixels);
                assert!((spread.n_chunks() - 1) * spread.chunk < spread.n_pixels);
                assert!(spread.n_chunks() as usize * channels <= MAX_BLOCKS * 256 + channels);
                assert_eq!(channels as u32 / 8 % spread.lanes, 0);
            }
        }
    }
}
