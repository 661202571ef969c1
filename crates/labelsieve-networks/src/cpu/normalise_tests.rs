//! Normalisation against its definition in double precision, at every level.

use labelsieve_numerics::random::Stream;

use super::*;
use crate::network::Shape;

/// Two whole blocks of channels and one narrow one.
const SHAPE: Shape = Shape { channels: 72, height: 3, width: 5 };
const EPSILON: f32 = 1e-3;
const IMAGES: usize = 3;

fn random(seed: u64) -> Tensor {
    let mut tensor = Tensor::zeros(IMAGES, SHAPE, 1);
    let stream = Stream::new(seed);
    for_each_row(&mut tensor, |image, y, row| {
        for (i, value) in row.iter_mut().enumerate() {
            *value = 0.3 + stream.branch((image * SHAPE.height + y) as u64).normal(i as u64);
        }
    });
    tensor
}

/// The numbers inside the border, channel by channel.
fn channels(tensor: &Tensor) -> Vec<Vec<f64>> {
    let mut all = vec![Vec::new(); SHAPE.channels];
    for (image, y) in (0..IMAGES).flat_map(|image| (0..SHAPE.height).map(move |y| (image, y))) {
        for (i, value) in tensor.row(image, y).iter().enumerate() {
            all[i % SHAPE.channels].push(f64::from(*value));
        }
    }
    all
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

#[track_caller]
fn near(found: f64, expected: f64, what: &str) {
    assert!(
        (found - expected).abs() < 2e-5 * expected.abs().max(1.0),
        "{what}: {found} instead of {expected}"
    );
}

/// One channel of a batch and what the definition makes of it.
struct Naive {
    scale: f64,
    shift: f64,
    /// x̂
    unit: Vec<f64>,
    deviation: f64,
}

impl Naive {
    fn new(x: &[f64], scale: f32, shift: f32) -> Naive {
        let centre = mean(x.iter().copied());
        let variance = mean(x.iter().map(|x| (x - centre).powi(2)));
        let deviation = (variance + f64::from(EPSILON)).sqrt();
        let unit = x.iter().map(|x| (x - centre) / deviation).collect();
        Naive { scale: f64::from(scale), shift: f64::from(shift), unit, deviation }
    }
}

fn affine() -> (Vec<f32>, Vec<f32>) {
    let stream = Stream::new(50);
    let draw =
        |label: u64| (0..SHAPE.channels as u64).map(move |c| 1.0 + 0.5 * stream.branch(label).normal(c));
    (draw(0).collect(), draw(1).map(|shift| shift - 1.0).collect())
}

#[test]
fn outputs_are_those_of_the_definition_with_and_without_shortcut_and_relu() {
    let input = random(0);
    let add = random(1);
    let (scale, shift) = affine();
    let x = channels(&input);
    let added = channels(&add);
    for level in Level::available() {
        let statistics = Statistics::of(level, &input, EPSILON);
        for (shortcut, activation) in [
            (None, Activation::Linear),
            (None, Activation::Relu),
            (Some(&add), Activation::Linear),
            (Some(&add), Activation::Relu),
            (Some(&add), Activation::Relu6),
        ] {
            let mut output = Tensor::zeros(IMAGES, SHAPE, 1);
            let affine = Affine { scale: &scale, shift: &shift };
            forward(level, &input, &statistics, affine, shortcut, activation, &mut output);
            for (c, found) in channels(&output).iter().enumerate() {
                let naive = Naive::new(&x[c], scale[c], shift[c]);
                for (i, found) in found.iter().enumerate() {
                    let more = shortcut.map_or(0.0, |_| added[c][i]);
                    let value = naive.scale * naive.unit[i] + naive.shift + more;
                    let (floor, ceiling) = activation.range();
                    let expected = value.max(floor.into()).min(ceiling.into());
                    near(*found, expected, &format!("{level}, channel {c}"));
                }
            }
        }
    }
}

#[test]
fn gradients_are_those_of_the_definition_and_reach_the_shortcut() {
    let input = random(2);
    let mut output = random(3);
    let gradients = random(4);
    let there = random(5);
    output.data.iter_mut().for_each(|value| *value *= 4.0); // some above six
    let (scale, shift) = affine();
    let x = channels(&input);
    let g = channels(&gradients);
    let passed = channels(&output);
    let before = channels(&there);
    for level in Level::available() {
        let statistics = Statistics::of(level, &input, EPSILON);
        for (activation, accumulate) in [
            (Activation::Linear, Accumulate::Replace),
            (Activation::Relu, Accumulate::Replace),
            (Activation::Relu6, Accumulate::Add),
        ] {
            let affine = Affine { scale: &scale, shift: &shift };
            let saved =
                ForwardValues { input: &input, output: &output, activation, statistics: &statistics, affine };
            let mut by_input = gradients.clone();
            let mut by_shortcut = there.clone();
            let found = backward(level, &saved, &mut by_input, Some((&mut by_shortcut, accumulate)));
            let by_input = channels(&by_input);
            let by_shortcut = channels(&by_shortcut);
            for c in 0..SHAPE.channels {
                let what = format!("{level}, channel {c}");
                let naive = Naive::new(&x[c], scale[c], shift[c]);
                let g: Vec<f64> = g[c]
                    .iter()
                    .zip(&passed[c])
                    .map(|(g, passed)| match activation {
                        Activation::Relu if *passed <= 0.0 => 0.0,
                        Activation::Relu6 if *passed <= 0.0 || *passed >= 6.0 => 0.0,
                        _ => *g,
                    })
                    .collect();
                let along: Vec<f64> = g.iter().zip(&naive.unit).map(|(g, unit)| g * unit).collect();
                near(f64::from(found.shift[c]), g.iter().sum(), &what);
                near(f64::from(found.scale[c]), along.iter().sum(), &what);
                let mean_g = mean(g.iter().copied());
                let mean_along = mean(along.iter().copied());
                for i in 0..g.len() {
                    let expected =
                        naive.scale / naive.deviation * (g[i] - mean_g - naive.unit[i] * mean_along);
                    near(by_input[c][i], expected, &what);
                    let kept = if accumulate == Accumulate::Add { before[c][i] } else { 0.0 };
                    near(by_shortcut[c][i], kept + g[i], &what);
                }
            }
        }
    }
}

#[test]
fn every_level_gives_the_same_bits() {
    let input = random(6);
    let add = random(7);
    let gradients = random(8);
    let (scale, shift) = affine();
    let all = |level: Level| {
        let statistics = Statistics::of(level, &input, EPSILON);
        let affine = Affine { scale: &scale, shift: &shift };
        let mut output = Tensor::zeros(IMAGES, SHAPE, 1);
        let activation = Activation::Relu6;
        forward(level, &input, &statistics, affine, Some(&add), activation, &mut output);
        let saved =
            ForwardValues { input: &input, output: &output, activation, statistics: &statistics, affine };
        let mut by_input = gradients.clone();
        let mut by_shortcut = add.clone();
        let shortcut = Some((&mut by_shortcut, Accumulate::Add));
        let found = backward(level, &saved, &mut by_input, shortcut);
        (output.data, by_input.data, by_shortcut.data, found.scale, found.shift)
    };
    let plain = all(Level::PLAIN);
    assert!(Level::available().into_iter().all(|level| all(level) == plain));
}
