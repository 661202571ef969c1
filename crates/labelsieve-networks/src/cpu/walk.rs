//! Runs a network's nodes: forwards for features, forwards and backwards for training.

use std::collections::HashMap;
use std::ops::Range;

use labelsieve_numerics::for_this_machine;
use labelsieve_numerics::level::Level;

use super::convolution::{Convolution, Layout};
use super::depthwise::Depthwise;
use super::filter::{Accumulate, Filter, Finish};
use super::normalise::{self, Affine, ForwardValues, Statistics};
use super::numbers::Numbers;
use super::pool::{self, Windows};
use super::tensor::{Tensor, for_each_row};
use crate::learner::Batch;
use crate::network::{Geometry, Layer, Network, Node, Padding, Parameter, Shape, Value};

/// The zeros around every tensor but the image: what 3×3 convolutions read, and depthwise ones of 5×5.
const BORDER: usize = 1;

pub(super) struct Walker {
    level: Level,
    network: Network,
    /// Position in the flat numbers of each node's tensors, in the order of `Network::parameters`.
    ranges: Vec<Vec<Range<usize>>>,
    n_numbers: usize,
    convolutions: HashMap<usize, Box<dyn Filter>>,
    image_border: usize,
    pool: TensorPool,
    /// Kept from the last forward pass for the backward pass.
    memory: Memory,
    /// Weights and biases of convolutions with the normalisation that follows folded in; made when features are asked for.
    folded: HashMap<usize, FoldedConvolution>,
}

#[derive(Default)]
struct Memory {
    image: Option<Tensor>,
    outputs: Vec<Option<Tensor>>,
    statistics: HashMap<usize, Statistics>,
    winners: HashMap<usize, Vec<u8>>,
}

struct FoldedConvolution {
    weights: Numbers,
    bias: Vec<f32>,
}

/// A pool of unused tensors: allocation is expensive.
#[derive(Default)]
struct TensorPool {
    free: HashMap<(usize, Shape), Vec<Tensor>>,
    /// The last two sizes of batches: a last batch is often smaller than the others.
    sizes: [usize; 2],
}

impl TensorPool {
    fn take(&mut self, images: usize, shape: Shape) -> Tensor {
        self.take_with(images, shape, BORDER)
    }

    /// One with another border; all tensors of a shape have the same.
    fn take_with(&mut self, images: usize, shape: Shape, border: usize) -> Tensor {
        let free = self.free.get_mut(&(images, shape)).and_then(Vec::pop);
        free.unwrap_or_else(|| Tensor::zeros(images, shape, border))
    }

    fn give(&mut self, tensor: Tensor) {
        self.free.entry((tensor.images, tensor.shape)).or_default().push(tensor);
    }

    /// Drops tensors for batch sizes other than this one and the last.
    fn keep_only(&mut self, images: usize) {
        if !self.sizes.contains(&images) {
            self.sizes = [images, self.sizes[0]];
            self.free.retain(|(n, _), _| self.sizes.contains(n));
        }
    }
}

impl Walker {
    pub fn new(level: Level, network: &Network, tensors: &[(Parameter, Range<usize>)]) -> Walker {
        let mut ranges = vec![Vec::new(); network.nodes().len()];
        for (parameter, range) in tensors {
            if let Some(node) = parameter.node {
                ranges[node].push(range.clone());
            }
        }
        let mut image_border = 0;
        let mut convolutions: HashMap<usize, Box<dyn Filter>> = HashMap::new();
        for (position, node) in network.nodes().iter().enumerate() {
            match node.layer {
                Layer::Convolution { kernel, stride, padding } => {
                    if node.input == Value::Image {
                        image_border = zeros_around(node, kernel, stride, padding);
                    }
                    let border = if node.input == Value::Image { image_border } else { BORDER };
                    let from = Layout::of(node.input_shape, border);
                    let to = Layout::of(node.shape, BORDER);
                    let geometry = Geometry { kernel, stride, padding };
                    let convolution = Convolution::new(level, from, to, geometry);
                    convolutions.insert(position, Box::new(convolution));
                }
                Layer::Depthwise { kernel, stride, padding } => {
                    let geometry = Geometry { kernel, stride, padding };
                    let convolution = Depthwise::new(level, node.shape.channels, geometry);
                    convolutions.insert(position, Box::new(convolution));
                }
                _ => (),
            }
        }
        Walker {
            level,
            network: network.clone(),
            ranges,
            n_numbers: tensors.iter().map(|(parameter, _)| parameter.len()).sum(),
            convolutions,
            image_border,
            pool: TensorPool::default(),
            memory: Memory::default(),
            folded: HashMap::new(),
        }
    }

    pub fn convolution(&self, node: usize) -> &dyn Filter {
        self.convolutions[&node].as_ref()
    }

    /// Drops the folded weights, after a change of the weights.
    pub fn forget(&mut self) {
        self.folded.clear();
    }

    /// The feature of each image with batch statistics, which also move the running ones in `values`.
    pub fn forward(&mut self, images: &Batch, values: &mut [f32]) -> Vec<f32> {
        let n = images.len();
        self.pool.keep_only(n);
        let mut memory = Memory { image: Some(self.image(images)), ..Memory::default() };
        let network = self.network.clone();
        let mut features = Vec::new();
        for (position, node) in network.nodes().iter().enumerate() {
            let mut output = match node.layer {
                Layer::MeanPool | Layer::Flatten => None,
                _ => Some(self.pool.take(n, node.shape)),
            };
            let input = memory.value(node.input);
            match (node.layer, &mut output) {
                (Layer::Convolution { .. } | Layer::Depthwise { .. }, Some(output)) => {
                    let weights = &values[self.ranges[position][0].clone()];
                    self.convolutions[&position].forward(input, weights, Finish::PLAIN, output);
                }
                (Layer::Normalise { add, activation }, Some(output)) => {
                    let statistics = Statistics::of(self.level, input, self.network.epsilon);
                    let [scale, shift, mean, variance] = self.four(position);
                    let affine = Affine { scale: &values[scale], shift: &values[shift] };
                    let add = add.map(|value| memory.value(value));
                    normalise::forward(self.level, input, &statistics, affine, add, activation, output);
                    let (mean, variance) = neighbours_mut(values, mean, variance);
                    statistics.update(mean, variance);
                    memory.statistics.insert(position, statistics);
                }
                (Layer::MaxPool { kernel, stride, padding }, Some(output)) => {
                    let mut winners = Vec::new();
                    let windows = Windows { kernel, stride, padding };
                    pool::max_forward(self.level, input, windows, output, &mut winners);
                    memory.winners.insert(position, winners);
                }
                (Layer::MeanPool, _) => features = pool::mean_forward(input),
                (Layer::Flatten, _) => features = pool::flatten(input),
                (_, None) => unreachable!("every other layer has an output"),
            }
            memory.outputs.push(output);
        }
        self.memory = memory;
        features
    }

    /// The gradient by all numbers (zero for the classifier's) from that by the features of the last forward pass.
    pub fn backward(&mut self, by_features: &[f32], values: &[f32]) -> Vec<f32> {
        let mut memory = std::mem::take(&mut self.memory);
        let mut gradient = vec![0.0; self.n_numbers];
        let network = self.network.clone();
        let n = memory.image.as_ref().map_or(0, |image| image.images);
        let mut by_output: Vec<Option<Tensor>> = network.nodes().iter().map(|_| None).collect();
        for (position, node) in network.nodes().iter().enumerate().rev() {
            let own = by_output[position].take();
            match (node.layer, own, node.input) {
                (Layer::MeanPool, _, Value::Node(input)) => {
                    let mut by_input = self.pool.take(n, node.input_shape);
                    pool::mean_backward(by_features, &mut by_input);
                    by_output[input] = Some(by_input);
                }
                (Layer::Flatten, _, Value::Node(input)) => {
                    let mut by_input = self.pool.take(n, node.input_shape);
                    pool::unflatten(by_features, &mut by_input);
                    by_output[input] = Some(by_input);
                }
                (Layer::MaxPool { kernel, stride, padding }, Some(own), Value::Node(input)) => {
                    let mut by_input = self.pool.take(n, node.input_shape);
                    let windows = Windows { kernel, stride, padding };
                    pool::max_backward(self.level, &own, &memory.winners[&position], windows, &mut by_input);
                    self.pool.give(own);
                    by_output[input] = Some(by_input);
                }
                (Layer::Normalise { add, activation }, Some(mut own), Value::Node(input)) => {
                    let [scale, shift, ..] = self.four(position);
                    let saved = ForwardValues {
                        input: memory.value(node.input),
                        output: memory.value(Value::Node(position)),
                        activation,
                        statistics: &memory.statistics[&position],
                        affine: Affine { scale: &values[scale.clone()], shift: &values[shift.clone()] },
                    };
                    let mut shortcut = match add {
                        Some(Value::Node(from)) => {
                            let (there, how) = self.accumulator(&mut by_output[from], n, node.shape);
                            Some((from, there, how))
                        }
                        _ => None,
                    };
                    let affine = normalise::backward(
                        self.level,
                        &saved,
                        &mut own,
                        shortcut.as_mut().map(|(_, tensor, how)| (tensor, *how)),
                    );
                    if let Some((from, tensor, _)) = shortcut {
                        by_output[from] = Some(tensor);
                    }
                    gradient[scale].copy_from_slice(&affine.scale);
                    gradient[shift].copy_from_slice(&affine.shift);
                    by_output[input] = Some(own);
                }
                (Layer::Convolution { .. } | Layer::Depthwise { .. }, Some(own), input) => {
                    let convolution = &self.convolutions[&position];
                    let range = self.ranges[position][0].clone();
                    convolution.weight_gradient(memory.value(input), &own, &mut gradient[range.clone()]);
                    if let Value::Node(from) = input {
                        let (mut by_input, how) = self.accumulator(&mut by_output[from], n, node.input_shape);
                        self.convolutions[&position].backward(&own, &values[range], how, &mut by_input);
                        by_output[from] = Some(by_input);
                    }
                    self.pool.give(own);
                }
                _ => (), // nothing that counts reads this node, or it reads the image
            }
            if let Some(tensor) =
                memory.outputs[position].take_if(|_| !matches!(node.layer, Layer::Normalise { .. }))
            {
                self.pool.give(tensor);
            }
        }
        for tensor in memory.outputs.into_iter().chain([memory.image]).flatten() {
            self.pool.give(tensor);
        }
        gradient
    }

    /// The gradient that is there already, to be added to, or a new one, to be filled.
    fn accumulator(&mut self, there: &mut Option<Tensor>, n: usize, shape: Shape) -> (Tensor, Accumulate) {
        match there.take() {
            Some(tensor) => (tensor, Accumulate::Add),
            None => (self.pool.take(n, shape), Accumulate::Replace),
        }
    }

    /// The feature of each image with running statistics.
    pub fn features(&mut self, images: &Batch, values: &[f32]) -> Vec<f32> {
        let n = images.len();
        if n == 0 {
            return Vec::new();
        }
        self.pool.keep_only(n);
        self.fold(values);
        let network = self.network.clone();
        let mut memory = Memory { image: Some(self.image(images)), ..Memory::default() };
        let mut last_use = vec![0; network.nodes().len()];
        for (position, node) in network.nodes().iter().enumerate() {
            let (input, _) = self.folded_input(position);
            let shortcut = match node.layer {
                Layer::Normalise { add, .. } => add,
                _ => None,
            };
            for value in [Some(input), shortcut].into_iter().flatten() {
                if let Value::Node(node) = value {
                    last_use[node] = position;
                }
            }
        }
        let mut features = Vec::new();
        for (position, node) in network.nodes().iter().enumerate() {
            let (from, convolution) = self.folded_input(position);
            let mut output = match node.layer {
                Layer::Normalise { .. } | Layer::MaxPool { .. } => Some(self.pool.take(n, node.shape)),
                _ => None,
            };
            match (node.layer, &mut output) {
                (Layer::Normalise { add, activation }, Some(output)) => {
                    let FoldedConvolution { weights, bias } = &self.folded[&convolution];
                    let add = add.map(|value| memory.value(value));
                    let finish = Finish { bias: Some(bias), add, activation };
                    self.convolutions[&convolution].forward(memory.value(from), weights, finish, output);
                }
                (Layer::MaxPool { kernel, stride, padding }, Some(output)) => {
                    let mut winners = Vec::new();
                    pool::max_forward(
                        self.level,
                        memory.value(from),
                        Windows { kernel, stride, padding },
                        output,
                        &mut winners,
                    );
                }
                (Layer::MeanPool, _) => features = pool::mean_forward(memory.value(from)),
                (Layer::Flatten, _) => features = pool::flatten(memory.value(from)),
                _ => (), // a convolution: done together with its normalisation
            }
            memory.outputs.push(output);
            for (earlier, &last) in last_use.iter().enumerate().take(position) {
                if last == position
                    && let Some(tensor) = memory.outputs[earlier].take()
                {
                    self.pool.give(tensor);
                }
            }
        }
        if let Some(image) = memory.image.take() {
            self.pool.give(image);
        }
        features
    }

    /// The input of a node once convolutions are folded into their normalisations, and that convolution.
    fn folded_input(&self, position: usize) -> (Value, usize) {
        let node = &self.network.nodes()[position];
        match (node.layer, node.input) {
            (Layer::Normalise { .. }, Value::Node(convolution)) => {
                (self.network.nodes()[convolution].input, convolution)
            }
            _ => (node.input, position),
        }
    }

    /// (input * W - mean) · scale / deviation + shift = input * (W · a) + b.
    fn fold(&mut self, values: &[f32]) {
        if !self.folded.is_empty() {
            return;
        }
        for (position, node) in self.network.nodes().iter().enumerate() {
            if let (Layer::Normalise { .. }, Value::Node(convolution)) = (node.layer, node.input) {
                let [scale, shift, mean, variance] = self.four(position).map(|range| &values[range]);
                let a: Vec<f32> = scale
                    .iter()
                    .zip(variance)
                    .map(|(scale, v)| scale / (v + self.network.epsilon).sqrt())
                    .collect();
                let bias =
                    shift.iter().zip(mean).zip(&a).map(|((shift, mean), a)| shift - mean * a).collect();
                let mut weights = Numbers::from(&values[self.ranges[convolution][0].clone()]);
                self.convolutions[&convolution].scale_outputs(&mut weights, &a);
                self.folded.insert(convolution, FoldedConvolution { weights, bias });
            }
        }
    }

    /// The four tensors of a normalisation.
    fn four(&self, node: usize) -> [Range<usize>; 4] {
        std::array::from_fn(|i| self.ranges[node][i].clone())
    }

    /// Bytes to numbers of mean 0 and deviation 1.
    fn image(&mut self, images: &Batch) -> Tensor {
        let shape = self.network.input();
        let mut tensor = self.pool.take_with(images.len(), shape, self.image_border);
        let level = self.level;
        let row_len = shape.width * 3;
        let mean = self.network.mean;
        let deviation = self.network.deviation;
        let factor = deviation.map(|deviation| 1.0 / (255.0 * deviation));
        let offset: [f32; 3] = std::array::from_fn(|c| -mean[c] / deviation[c]);
        for_each_row(&mut tensor, |image, y, row| {
            let bytes = &images.pixels()[(image * shape.height + y) * row_len..][..row_len];
            scale_bytes(level, bytes, factor, offset, row);
        });
        tensor
    }
}

for_this_machine! {
    /// Pixels of three bytes, each times its factor plus its offset.
    fn scale_bytes(bytes: &[u8], factor: [f32; 3], offset: [f32; 3], out: &mut [f32]) {
        const SOME: usize = 48; // whole pixels and whole registers
        let factors: [f32; SOME] = std::array::from_fn(|i| factor[i % 3]);
let offsets: [f32; SOME] = std::array::from_fn(|i| offset[i % 3]);
        for (out, bytes) in out.chunks_mut(SOME).zip(bytes.chunks(SOME)) {
            let numbers = out.iter_mut().zip(bytes);
            for ((out, byte), (factor, offset)) in numbers.zip(factors.iter().zip(&offsets)) {
                *out = f32::from(*byte) * factor + offset;
            }
        }
    }
}

impl Memory {
    fn value(&self, value: Value) -> &Tensor {
        let tensor = match value {
            Value::Image => &self.image,
            Value::Node(node) => &self.outputs[node],
        };
        tensor.as_ref().expect("nodes come after those they read")
    }
}

/// Zeros that a convolution reads on any side of its input.
fn zeros_around(node: &Node, kernel: usize, stride: usize, padding: Padding) -> usize {
    let behind = |size: usize, n_windows: usize, before: usize| {
        ((n_windows - 1) * stride + kernel).saturating_sub(size + before)
    };
    let below = behind(node.input_shape.height, node.shape.height, padding.top);
    let right = behind(node.input_shape.width, node.shape.width, padding.left);
    padding.top.max(padding.left).max(below).max(right)
}

/// Two ranges of the same numbers, the second right behind the first.
fn neighbours_mut(values: &mut [f32], a: Range<usize>, b: Range<usize>) -> (&mut [f32], &mut [f32]) {
    values[a.start..b.end].split_at_mut(a.len())
}
