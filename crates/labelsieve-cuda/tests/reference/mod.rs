//! A network learner as plain as it can be, in `f64`: what the GPU is compared with.

use labelsieve::random::Stream;
use labelsieve_vision::{
    Batch, Layer, Network, Node, Role, ScaleRule, Sgd, Shape, Snapshot, Tally, Targets, Value,
};

/// Random weights as the paper starts from, so that no channel is like another.
pub fn start(network: &Network, n_classes: usize, seed: u64) -> Snapshot {
    let mut values = Vec::new();
    for (number, parameter) in network.parameters(n_classes).iter().enumerate() {
        let stream = Stream::new(seed).branch(number as u64);
        let normal = |i: usize| stream.normal(i as u64);
        values.extend((0..parameter.len()).map(|i| match parameter.role {
            Role::Convolution => {
                normal(i) * (2.0 / (parameter.shape[2].pow(2) * parameter.shape[0]) as f32).sqrt()
            }
            Role::Scale | Role::RunningVariance => 1.0 + 0.1 * normal(i).abs(),
            Role::Shift | Role::RunningMean => 0.1 * normal(i),
            Role::ClassWeights => normal(i) * (2.0 / network.dim() as f32).sqrt(),
            Role::ClassScale => 10.0,
        }));
    }
    let momentum = vec![0.0; values.len()];
    Snapshot { n_classes, values, momentum }
}

/// Images of noise on slopes: neighbouring pixels are alike, as in photos.
pub fn images(n_images: usize, (height, width): (usize, usize), seed: u64) -> Batch {
    let stream = Stream::new(seed);
    let pixel = |i: usize| {
        let (image, row, column) = (i / (height * width * 3), i / (width * 3) % height, i / 3 % width);
        let tilt = stream.normal((1 << 40) + (image * 3 + i % 3) as u64);
        let wave = (tilt * row as f32 + column as f32 * 0.3).sin();
        (128.0 + 60.0 * wave + 25.0 * stream.normal(i as u64)).clamp(0.0, 255.0) as u8
    };
    Batch::new(height, width, (0..n_images * height * width * 3).map(pixel).collect()).unwrap()
}

/// Channel by channel, row by row: (image, channel, row, column).
type Tensor = Vec<f64>;

pub struct Reference {
    network: Network,
    n_classes: usize,
    /// One list per parameter.
    pub values: Vec<Vec<f64>>,
    pub momentum: Vec<Vec<f64>>,
    pub tally: Tally,
}

/// What the forward pass leaves for the way back.
struct Forward {
    pixels: Tensor,
    outputs: Vec<Tensor>,
    /// Of normalisations: x̂ and 1/σ per channel. Of max-pools: the winner of each window.
    normal: Vec<(Tensor, Vec<f64>)>,
    winners: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Statistics {
    Batch,
    Running,
}

impl Reference {
    pub fn new(network: &Network, snapshot: &Snapshot) -> Reference {
        let split = |values: &[f32]| {
            let mut start = 0;
            let lists = network.parameters(snapshot.n_classes).into_iter().map(|parameter| {
                start += parameter.len();
                values[start - parameter.len()..start].iter().map(|&v| f64::from(v)).collect()
            });
            lists.collect()
        };
        Reference {
            network: network.clone(),
            n_classes: snapshot.n_classes,
            values: split(&snapshot.values),
            momentum: split(&snapshot.momentum),
            tally: Tally::default(),
        }
    }

    fn parameter(&self, node: Option<usize>, role: Role) -> usize {
        let parameters = self.network.parameters(self.n_classes);
        parameters.iter().position(|p| p.node == node && p.role == role).unwrap()
    }

    pub fn features(&mut self, images: &Batch) -> Vec<f64> {
        self.forward(images, Statistics::Running).outputs.pop().unwrap()
    }

    fn forward(&mut self, images: &Batch, statistics: Statistics) -> Forward {
        let n = images.len();
        let network = self.network.clone();
        let shape = network.input();
        let mut pixels = vec![0.0; n * shape.len()];
        for (i, pixel) in pixels.iter_mut().enumerate() {
            let (image, c, place) =
                (i / shape.len(), i / (shape.height * shape.width) % 3, i % (shape.height * shape.width));
            let byte = images.pixels()[(image * shape.height * shape.width + place) * 3 + c];
            *pixel = (f64::from(byte) / 255.0 - f64::from(network.mean[c])) / f64::from(network.deviation[c]);
        }
        let mut forward = Forward { pixels, outputs: Vec::new(), normal: Vec::new(), winners: Vec::new() };
        for (position, node) in network.nodes().iter().enumerate() {
            let input = forward.value(node.input).clone();
            let (mut normal, mut winners) = Default::default();
            let output = match node.layer {
                Layer::Convolution { .. } => {
                    let weights = &self.values[self.parameter(Some(position), Role::Convolution)];
                    let mut output = vec![0.0; n * node.shape.len()];
                    each_product(n, node, |x, w, y| output[y] += input[x] * weights[w]);
                    output
                }
                Layer::Normalise { add, relu } => {
                    let (mut output, kept) = self.normalise(position, node, &input, n, statistics);
                    normal = kept;
                    if let Some(add) = add {
                        output.iter_mut().zip(forward.value(add)).for_each(|(y, add)| *y += add);
                    }
                    if relu {
                        output.iter_mut().for_each(|y| *y = y.max(0.0));
                    }
                    output
                }
                Layer::MaxPool { .. } => {
                    let (best, places) = max_pool(n, node, &input);
                    winners = places;
                    best
                }
                Layer::MeanPool => {
                    let places = node.input_shape.height * node.input_shape.width;
                    input.chunks(places).map(|c| c.iter().sum::<f64>() / places as f64).collect()
                }
                Layer::Flatten => input,
            };
            forward.outputs.push(output);
            forward.normal.push(normal);
            forward.winners.push(winners);
        }
        forward
    }

    fn normalise(
        &mut self,
        position: usize,
        node: &Node,
        input: &Tensor,
        n: usize,
        statistics: Statistics,
    ) -> (Tensor, (Tensor, Vec<f64>)) {
        let (channels, places) = (node.shape.channels, node.shape.height * node.shape.width);
        let of = |role| self.parameter(Some(position), role);
        let (scale, shift) = (of(Role::Scale), of(Role::Shift));
        let (running_mean, running_variance) = (of(Role::RunningMean), of(Role::RunningVariance));
        let (mut output, mut hat, mut inverses) = (input.clone(), input.clone(), vec![0.0; channels]);
        let count = (n * places) as f64;
        for (c, inverse) in inverses.iter_mut().enumerate() {
            let at = |i: usize| (i / places * channels + c) * places + i % places;
            let (mut mean, mut variance) = (self.values[running_mean][c], self.values[running_variance][c]);
            if statistics == Statistics::Batch {
                let batch_mean = (0..n * places).map(|i| input[at(i)]).sum::<f64>() / count;
                let batch = (0..n * places).map(|i| (input[at(i)] - batch_mean).powi(2)).sum::<f64>() / count;
                self.values[running_mean][c] = 0.9 * mean + 0.1 * batch_mean;
                self.values[running_variance][c] = 0.9 * variance + 0.1 * batch * count / (count - 1.0);
                (mean, variance) = (batch_mean, batch);
            }
            *inverse = 1.0 / (variance + 1e-5).sqrt();
            for i in 0..n * places {
                hat[at(i)] = (input[at(i)] - mean) * *inverse;
                output[at(i)] = hat[at(i)] * self.values[scale][c] + self.values[shift][c];
            }
        }
        (output, (hat, inverses))
    }

    pub fn step(&mut self, images: &Batch, targets: Targets, sgd: &Sgd) {
        let n = images.len();
        let forward = self.forward(images, Statistics::Batch);
        let mut slopes: Vec<Vec<f64>> = self.values.iter().map(|values| vec![0.0; values.len()]).collect();
        let feature_slopes = self.head(forward.outputs.last().unwrap(), targets, &mut slopes);
        let network = self.network.clone();
        let mut of: Vec<Tensor> =
            network.nodes().iter().map(|node| vec![0.0; n * node.shape.len()]).collect();
        *of.last_mut().unwrap() = feature_slopes;
        for (position, node) in network.nodes().iter().enumerate().rev() {
            let mut mine = std::mem::take(&mut of[position]);
            let mut back = vec![0.0; n * node.input_shape.len()];
            match node.layer {
                Layer::Convolution { .. } => {
                    let number = self.parameter(Some(position), Role::Convolution);
                    let (weights, input) = (&self.values[number], forward.value(node.input));
                    each_product(n, node, |x, w, y| {
                        back[x] += weights[w] * mine[y];
                        slopes[number][w] += input[x] * mine[y];
                    });
                }
                Layer::Normalise { add, relu } => {
                    if relu {
                        let masked = mine.iter_mut().zip(&forward.outputs[position]);
                        masked.filter(|(_, y)| **y <= 0.0).for_each(|(slope, _)| *slope = 0.0);
                    }
                    if let Some(Value::Node(add)) = add {
                        of[add].iter_mut().zip(&mine).for_each(|(to, slope)| *to += slope);
                    }
                    self.normalise_back(
                        position,
                        node,
                        &forward.normal[position],
                        &mine,
                        &mut back,
                        &mut slopes,
                    );
                }
                Layer::MaxPool { .. } => {
                    forward.winners[position].iter().zip(&mine).for_each(|(&at, slope)| back[at] += slope);
                }
                Layer::MeanPool => {
                    let places = node.input_shape.height * node.input_shape.width;
                    back.iter_mut().enumerate().for_each(|(i, to)| *to = mine[i / places] / places as f64);
                }
                Layer::Flatten => back = mine,
            }
            if let Value::Node(input) = node.input {
                of[input].iter_mut().zip(&back).for_each(|(to, slope)| *to += slope);
            }
        }
        self.descend(&slopes, sgd);
    }

    fn normalise_back(
        &self,
        position: usize,
        node: &Node,
        (hat, inverses): &(Tensor, Vec<f64>),
        mine: &Tensor,
        back: &mut Tensor,
        slopes: &mut [Vec<f64>],
    ) {
        let (channels, places) = (node.shape.channels, node.shape.height * node.shape.width);
        let of = |role| self.parameter(Some(position), role);
        let total = mine.len() / channels;
        for c in 0..channels {
            let at = |i: usize| (i / places * channels + c) * places + i % places;
            let sum: f64 = (0..total).map(|i| mine[at(i)]).sum();
            let along: f64 = (0..total).map(|i| mine[at(i)] * hat[at(i)]).sum();
            slopes[of(Role::Shift)][c] = sum;
            slopes[of(Role::Scale)][c] = along;
            let factor = self.values[of(Role::Scale)][c] * inverses[c];
            for i in 0..total {
                back[at(i)] = factor * (mine[at(i)] - (sum + hat[at(i)] * along) / total as f64);
            }
        }
    }

    /// Slopes of the features; those of W and s go to their places.
    fn head(&mut self, features: &Tensor, targets: Targets, slopes: &mut [Vec<f64>]) -> Tensor {
        let (dim, k) = (self.network.dim(), self.n_classes);
        let (w, s) = (self.parameter(None, Role::ClassWeights), self.parameter(None, Role::ClassScale));
        let scale = self.values[s][0];
        let unit = |row: &[f64]| {
            let length = row.iter().map(|v| v * v).sum::<f64>().sqrt();
            (row.iter().map(|v| v / length).collect::<Vec<f64>>(), length)
        };
        let rows: Vec<_> = self.values[w].chunks(dim).map(unit).collect();
        let mut row_slopes = vec![vec![0.0; dim]; k];
        let mut out = Vec::new();
        for ((feature, &class), &weight) in features.chunks(dim).zip(targets.classes).zip(targets.weights) {
            let (class, (feature, length)) = (class as usize, unit(feature));
            let rivals = if class < targets.split { 0..targets.split } else { targets.split..k };
            let cosines: Vec<f64> =
                rows.iter().map(|(row, _)| row.iter().zip(&feature).map(|(a, b)| a * b).sum()).collect();
            let total: f64 = rivals.clone().map(|c| (scale * cosines[c]).exp()).sum();
            self.tally.loss -= f64::from(weight) * ((scale * cosines[class]).exp() / total).ln();
            self.tally.correct += u64::from(rivals.clone().all(|c| cosines[c] <= cosines[class]));
            self.tally.images += 1;
            let mut slope = vec![0.0; dim];
            for c in rivals {
                let target = if c == class { 1.0 } else { 0.0 };
                let error = f64::from(weight) * ((scale * cosines[c]).exp() / total - target);
                slopes[s][0] += error * cosines[c];
                for i in 0..dim {
                    slope[i] += scale * error * rows[c].0[i];
                    row_slopes[c][i] += scale * error * feature[i];
                }
            }
            out.extend(through_length(&slope, &feature, length));
        }
        self.tally.steps += 1;
        slopes[w] = row_slopes.iter().zip(&rows).flat_map(|(s, (u, l))| through_length(s, u, *l)).collect();
        out
    }

    fn descend(&mut self, slopes: &[Vec<f64>], sgd: &Sgd) {
        let (rate, momentum) = (f64::from(sgd.rate), f64::from(sgd.momentum));
        for (number, parameter) in self.network.parameters(self.n_classes).iter().enumerate() {
            let fixed = parameter.role == Role::ClassScale && sgd.scale == ScaleRule::Fixed;
            if fixed || !parameter.role.is_learned() {
                continue;
            }
            let decay = if parameter.role == Role::ClassScale { 0.0 } else { f64::from(sgd.decay) };
            let all = self.values[number].iter_mut().zip(&mut self.momentum[number]).zip(&slopes[number]);
            for ((value, speed), slope) in all {
                let g = slope + decay * *value;
                *speed = momentum * *speed + g;
                *value -= rate * (g + momentum * *speed);
            }
        }
    }
}

impl Forward {
    fn value(&self, value: Value) -> &Tensor {
        match value {
            Value::Image => &self.pixels,
            Value::Node(node) => &self.outputs[node],
        }
    }
}

fn through_length(slope: &[f64], unit: &[f64], length: f64) -> Vec<f64> {
    let along: f64 = slope.iter().zip(unit).map(|(s, u)| s * u).sum();
    slope.iter().zip(unit).map(|(s, u)| (s - along * u) / length).collect()
}

/// Calls `at(input, weight, output)` for every product of a convolution of `n` images.
fn each_product(n: usize, node: &Node, mut at: impl FnMut(usize, usize, usize)) {
    let Layer::Convolution { kernel, stride, padding } = node.layer else { panic!("no convolution") };
    let (from, to): (Shape, Shape) = (node.input_shape, node.shape);
    for (image, out) in (0..n).flat_map(|image| (0..to.channels).map(move |out| (image, out))) {
        for (c, ky) in (0..from.channels).flat_map(|c| (0..kernel).map(move |ky| (c, ky))) {
            for (kx, oy) in (0..kernel).flat_map(|kx| (0..to.height).map(move |oy| (kx, oy))) {
                let Some(iy) = (oy * stride + ky).checked_sub(padding).filter(|iy| *iy < from.height) else {
                    continue;
                };
                let weight = ((out * from.channels + c) * kernel + ky) * kernel + kx;
                let (x, y) = (
                    ((image * from.channels + c) * from.height + iy) * from.width,
                    ((image * to.channels + out) * to.height + oy) * to.width,
                );
                for ox in 0..to.width {
                    if let Some(ix) = (ox * stride + kx).checked_sub(padding).filter(|ix| *ix < from.width) {
                        at(x + ix, weight, y + ox);
                    }
                }
            }
        }
    }
}

/// The largest value of each window, and where it stands.
fn max_pool(n: usize, node: &Node, input: &Tensor) -> (Tensor, Vec<usize>) {
    let Layer::MaxPool { kernel, stride, padding } = node.layer else { panic!("no max-pool") };
    let (from, to) = (node.input_shape, node.shape);
    let window = |y: usize| {
        let (ox, oy, plane) = (y % to.width, y / to.width % to.height, y / (to.width * to.height));
        let inside =
            |o: usize, k: usize, size: usize| (o * stride + k).checked_sub(padding).filter(|i| *i < size);
        let mut best = None;
        for (ky, kx) in (0..kernel).flat_map(|ky| (0..kernel).map(move |kx| (ky, kx))) {
            if let (Some(iy), Some(ix)) = (inside(oy, ky, from.height), inside(ox, kx, from.width)) {
                let at = (plane * from.height + iy) * from.width + ix;
                if best.is_none_or(|best: usize| input[at] > input[best]) {
                    best = Some(at);
                }
            }
        }
        best.expect("a window with a pixel in it")
    };
    let winners: Vec<usize> = (0..n * to.len()).map(window).collect();
    (winners.iter().map(|&at| input[at]).collect(), winners)
}
