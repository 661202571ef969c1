use labelsieve_numerics::random::Stream;

use super::*;
use crate::network::{Activation, Padding};

fn random(stream: Stream, shape: Shape, images: usize, border: usize) -> Tensor {
    let mut tensor = Tensor::zeros(images, shape, border);
    let mut position = 0;
    for image in 0..images {
        for y in 0..shape.height {
            let start = tensor.row_start(image, y);
            for value in &mut tensor.data[start..start + shape.width * shape.channels] {
                *value = stream.normal(position);
                position += 1;
            }
        }
    }
    tensor
}

fn get(tensor: &Tensor, image: usize, y: isize, x: isize, channel: usize) -> f64 {
    let inside = |v: isize, size: usize| v >= 0 && (v as usize) < size;
    if !inside(y, tensor.shape.height) || !inside(x, tensor.shape.width) {
        return 0.0;
    }
    f64::from(tensor.row(image, y as usize)[x as usize * tensor.shape.channels + channel])
}

/// The four lines of the module's page, once for each of the three products.
struct Naive {
    output: Vec<f64>,
    by_input: Vec<f64>,
    by_weights: Vec<f64>,
}

fn naive(input: &Tensor, weights: &[f32], by_output: &Tensor, geometry: Geometry) -> Naive {
    let Geometry { kernel, stride, padding } = geometry;
    let from = input.shape;
    let to = by_output.shape;
    let mut all = Naive {
        output: vec![0.0; input.images * to.len()],
        by_input: vec![0.0; input.images * from.len()],
        by_weights: vec![0.0; weights.len()],
    };
    for image in 0..input.images {
        for (y, x, o) in positions(to) {
            let at = ((image * to.height + y) * to.width + x) * to.channels + o;
            let gradient = get(by_output, image, y as isize, x as isize, o);
            for (r, c, i) in positions(Shape { channels: from.channels, height: kernel, width: kernel }) {
                let weight = ((o * from.channels + i) * kernel + r) * kernel + c;
                let iy = (y * stride + r) as isize - padding.top as isize;
                let ix = (x * stride + c) as isize - padding.left as isize;
                let value = get(input, image, iy, ix, i);
                all.output[at] += value * f64::from(weights[weight]);
                all.by_weights[weight] += value * gradient;
                if (0..from.height as isize).contains(&iy) && (0..from.width as isize).contains(&ix) {
                    let place =
                        ((image * from.height + iy as usize) * from.width + ix as usize) * from.channels + i;
                    all.by_input[place] += gradient * f64::from(weights[weight]);
                }
            }
        }
    }
    all
}

fn positions(shape: Shape) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..shape.height).flat_map(move |y| {
        (0..shape.width).flat_map(move |x| (0..shape.channels).map(move |channel| (y, x, channel)))
    })
}

fn assert_near(found: impl Iterator<Item = f32>, expected: &[f64], what: &str) {
    let mut count = 0;
    for (i, (found, &expected)) in found.zip(expected).enumerate() {
        assert!((f64::from(found) - expected).abs() < 1e-3, "{what} {i}: {found} instead of {expected}");
        count += 1;
    }
    assert_eq!(count, expected.len(), "{what}");
}

fn inner(tensor: &Tensor) -> impl Iterator<Item = f32> {
    (0..tensor.images).flat_map(move |image| {
        (0..tensor.shape.height).flat_map(move |y| tensor.row(image, y).iter().copied())
    })
}

/// A convolution with random input, weights and gradients by the output, and what the naive loops make of them.
struct Case {
    geometry: Geometry,
    input: Tensor,
    weights: Vec<f32>,
    by_output: Tensor,
    expected: Naive,
}

impl Case {
    fn new(
        seed: u64,
        images: usize,
        channels: (usize, usize),
        size: (usize, usize),
        geometry: Geometry,
    ) -> Case {
        let (height, width) = size;
        let Geometry { kernel, stride, padding: Padding { top: padding, .. } } = geometry;
        let stream = Stream::new(seed);
        let from = Shape { channels: channels.0, height, width };
        let out = |size: usize| (size + 2 * padding - kernel) / stride + 1;
        let to = Shape { channels: channels.1, height: out(height), width: out(width) };
        Case::of(stream, images, from, to, geometry)
    }

    fn of(stream: Stream, images: usize, from: Shape, to: Shape, geometry: Geometry) -> Case {
        let Geometry { kernel, padding, .. } = geometry;
        let input = random(stream.branch(0), from, images, padding.top.max(1));
        let by_output = random(stream.branch(1), to, images, 1);
        let weights: Vec<f32> = (0..to.channels * from.channels * kernel * kernel)
            .map(|i| stream.branch(2).normal(i as u64))
            .collect();
        let expected = naive(&input, &weights, &by_output, geometry);
        Case { geometry, input, weights, by_output, expected }
    }

    fn convolution(&self, level: Level) -> Convolution {
        let from = self.input.shape;
        let to = self.by_output.shape;
        let from = Layout::of(from, self.input.border);
        let to = Layout::of(to, self.by_output.border);
        Convolution::new(level, from, to, self.geometry)
    }

    fn check_forward(&self, level: Level) {
        let convolution = self.convolution(level);
        let to = self.by_output.shape;
        let stream = Stream::new(9);
        let packed = convolution.pack(&self.weights);
        assert_eq!(convolution.unpack(&packed), self.weights);
        let mut output = random(stream.branch(0), to, self.input.images, 1); // to be overwritten
        convolution.forward(&self.input, &packed, Finish::PLAIN, &mut output);
        assert_near(inner(&output), &self.expected.output, &format!("{level}: output"));

        let bias: Vec<f32> = (0..to.channels).map(|c| stream.branch(1).normal(c as u64)).collect();
        let add = random(stream.branch(2), to, self.input.images, 1);
        let finish = Finish { bias: Some(&bias), add: Some(&add), activation: Activation::Relu };
        convolution.forward(&self.input, &packed, finish, &mut output);
        let finished = self.expected.output.iter().zip(inner(&add)).enumerate();
        let finished: Vec<f64> = finished
            .map(|(i, (sum, add))| (sum + f64::from(bias[i % to.channels]) + f64::from(add)).max(0.0))
            .collect();
        assert_near(inner(&output), &finished, &format!("{level}: output with bias, shortcut and ReLU"));
        assert_border_is_zero(&output);
    }

    fn check_weight_gradient(&self, level: Level) {
        let convolution = self.convolution(level);
        let mut gradient = vec![f32::NAN; self.weights.len()];
        convolution.weight_gradient(&self.input, &self.by_output, &mut gradient);
        let gradient = convolution.unpack(&gradient).into_iter();
        assert_near(gradient, &self.expected.by_weights, &format!("{level}: weight gradient"));
    }

    fn check_input_gradient(&self, level: Level) {
        let convolution = self.convolution(level);
        let from = self.input.shape;
        let packed = convolution.pack(&self.weights);
        let there = random(Stream::new(8), from, self.input.images, 1);
        let mut gradient = there.clone();
        convolution.backward(&self.by_output, &packed, Accumulate::Replace, &mut gradient);
        assert_near(inner(&gradient), &self.expected.by_input, &format!("{level}: input gradient"));
        let mut gradient = there.clone();
        convolution.backward(&self.by_output, &packed, Accumulate::Add, &mut gradient);
        let sum: Vec<f64> =
            self.expected.by_input.iter().zip(inner(&there)).map(|(g, there)| g + f64::from(there)).collect();
        assert_near(inner(&gradient), &sum, &format!("{level}: input gradient, added"));
        assert_border_is_zero(&gradient);
    }
}

fn assert_border_is_zero(tensor: &Tensor) {
    let inside: f64 = inner(tensor).map(|value| f64::from(value.abs())).sum();
    let all: f64 = tensor.data.iter().map(|value| f64::from(value.abs())).sum();
    assert!((all - inside).abs() <= 1e-9 * all, "something was written to the border");
}

#[test]
fn sweeps_equal_the_naive_convolution_and_its_gradients_at_every_level() {
    for (seed, (images, channels, size, (kernel, stride, padding))) in [
        (2, (3, 32), (9, 11), (7, 2, 3)),
        (3, (32, 64), (8, 8), (3, 1, 1)),
        (5, (32, 32), (2, 3), (3, 1, 1)),
        (2, (64, 32), (7, 10), (3, 2, 1)),
        (2, (64, 32), (8, 6), (3, 2, 1)),
        (2, (32, 64), (7, 8), (1, 2, 0)),
        (1, (32, 32), (5, 5), (1, 1, 0)),
        (2, (8, 40), (5, 7), (3, 1, 1)),
        (2, (24, 16), (5, 4), (3, 2, 1)),
        (3, (112, 24), (6, 5), (1, 1, 0)),
    ]
    .into_iter()
    .enumerate()
    {
        let geometry = Geometry::new(kernel, stride, padding);
        let case = Case::new(seed as u64, images, channels, size, geometry);
        for level in Level::available() {
            case.check_forward(level);
            case.check_weight_gradient(level);
            if channels.0.is_multiple_of(NARROWEST) {
                case.check_input_gradient(level);
            }
        }
    }
}

#[test]
fn zeros_may_stand_behind_the_image_only() {
    let from = Shape { channels: 16, height: 8, width: 6 };
    let to = Shape { channels: 48, height: 4, width: 3 };
    let case = Case::of(Stream::new(5), 2, from, to, Geometry::new(3, 2, 0));
    for level in Level::available() {
        case.check_forward(level);
        case.check_weight_gradient(level);
        case.check_input_gradient(level);
    }
}

#[test]
fn a_last_tile_of_any_length_adds_each_pixel_once_at_every_level() {
    for width in 1..=2 * PIXELS + 1 {
        let case = Case::new(width as u64, 1, (32, 32), (1, width), Geometry::new(1, 1, 0));
        for level in Level::available() {
            case.check_forward(level);
            case.check_weight_gradient(level);
            case.check_input_gradient(level);
        }
    }
}

#[test]
fn levels_with_fused_instructions_give_the_same_bits() {
    let case = Case::new(77, 3, (32, 64), (7, 9), Geometry::new(3, 2, 1));
    let all = |level: Level| {
        let convolution = case.convolution(level);
        let packed = convolution.pack(&case.weights);
        let mut output = Tensor::zeros(3, case.by_output.shape, 1);
        convolution.forward(&case.input, &packed, Finish::PLAIN, &mut output);
        let mut by_input = Tensor::zeros(3, case.input.shape, 1);
        convolution.backward(&case.by_output, &packed, Accumulate::Replace, &mut by_input);
        let mut by_weights = vec![0.0; packed.len()];
        convolution.weight_gradient(&case.input, &case.by_output, &mut by_weights);
        (output.data, by_input.data, by_weights)
    };
    let fused = Level::available().into_iter().filter(|&level| level > Level::PLAIN);
    let found: Vec<_> = fused.map(all).collect();
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
}
