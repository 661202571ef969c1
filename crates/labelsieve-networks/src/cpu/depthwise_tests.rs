//! Depthwise convolutions against their definition in double precision, at every level.

use labelsieve_numerics::random::Stream;

use super::*;
use crate::cpu::tensor::for_each_row;
use crate::network::{Activation, Shape};

const IMAGES: usize = 2;

fn random(seed: u64, shape: Shape) -> Tensor {
    let mut tensor = Tensor::zeros(IMAGES, shape, 1);
    let stream = Stream::new(seed);
    for_each_row(&mut tensor, |image, y, row| {
        for (i, value) in row.iter_mut().enumerate() {
            *value = stream.branch((image * shape.height + y) as u64).normal(i as u64);
        }
    });
    tensor
}

fn get(tensor: &Tensor, image: usize, y: isize, x: isize, channel: usize) -> f64 {
    let inside = |v: isize, size: usize| v >= 0 && (v as usize) < size;
    if inside(y, tensor.shape.height) && inside(x, tensor.shape.width) {
        f64::from(tensor.row(image, y as usize)[x as usize * tensor.shape.channels + channel])
    } else {
        0.0
    }
}

/// Calls `each` with image, output pixel, channel, position of the weight and input pixel of every product.
fn for_each_product(
    to: Shape,
    geometry: Geometry,
    mut each: impl FnMut(usize, (usize, usize), usize, usize, (isize, isize)),
) {
    let Geometry { kernel, stride, padding } = geometry;
    for (image, y, x) in (0..IMAGES * to.height * to.width)
        .map(|i| (i / to.width / to.height, i / to.width % to.height, i % to.width))
    {
        for (c, r, k) in
            (0..to.channels * kernel * kernel).map(|i| (i / kernel / kernel, i / kernel % kernel, i % kernel))
        {
            let weight = (c * kernel + r) * kernel + k;
            let from = (
                (y * stride + r) as isize - padding.top as isize,
                (x * stride + k) as isize - padding.left as isize,
            );
            each(image, (y, x), c, weight, from);
        }
    }
}

#[track_caller]
fn near(found: f32, expected: f64, what: &str) {
    assert!((f64::from(found) - expected).abs() < 1e-4, "{what}: {found} instead of {expected}");
}

fn check(channels: usize, size: (usize, usize), geometry: Geometry) {
    let (height, width) = size;
    let Geometry { kernel, stride, .. } = geometry;
    let from = Shape { channels, height, width };
    let to = Shape { channels, height: height.div_ceil(stride), width: width.div_ceil(stride) };
    let stream = Stream::new(3);
    let weights: Vec<f32> = (0..channels * kernel * kernel).map(|i| stream.normal(i as u64)).collect();
    let bias: Vec<f32> = (0..channels).map(|i| stream.branch(1).normal(i as u64)).collect();
    let input = random(1, from);
    let add = random(2, to);
    let gradients = random(3, to);
    let there = random(4, from);
    let place = |shape: Shape, image: usize, y: usize, x: usize, c: usize| {
        ((image * shape.height + y) * shape.width + x) * shape.channels + c
    };
    let mut output = vec![0.0; IMAGES * to.len()];
    let mut by_input = vec![0.0; IMAGES * from.len()];
    let mut by_weights = vec![0.0; weights.len()];
    for_each_product(to, geometry, |image, (y, x), c, weight, (iy, ix)| {
        let value = get(&input, image, iy, ix, c);
        let gradient = get(&gradients, image, y as isize, x as isize, c);
        output[place(to, image, y, x, c)] += value * f64::from(weights[weight]);
        by_weights[weight] += value * gradient;
        if (0..height as isize).contains(&iy) && (0..width as isize).contains(&ix) {
            by_input[place(from, image, iy as usize, ix as usize, c)] +=
                gradient * f64::from(weights[weight]);
        }
    });
    for level in Level::available() {
        let what =
            format!("{level}: {channels} channels, {height}×{width}, kernel {kernel}, stride {stride}");
        let filter = Depthwise::new(level, channels, geometry);
        let packed = filter.pack(&weights);
        assert_eq!(filter.unpack(&packed), weights);
        let mut found = random(5, to); // to be overwritten
        filter.forward(&input, &packed, Finish::PLAIN, &mut found);
        for (found, expected) in inner(&found).zip(&output) {
            near(found, *expected, &what);
        }
        let finish = Finish { bias: Some(&bias), add: Some(&add), activation: Activation::Relu6 };
        filter.forward(&input, &packed, finish, &mut found);
        for (i, ((found, expected), add)) in inner(&found).zip(&output).zip(inner(&add)).enumerate() {
            let expected = expected + f64::from(bias[i % channels]) + f64::from(add);
            near(found, expected.clamp(0.0, 6.0), &what);
        }
        assert_border_is_zero(&found);
        for accumulate in [Accumulate::Replace, Accumulate::Add] {
            let mut found = there.clone();
            filter.backward(&gradients, &packed, accumulate, &mut found);
            for ((found, expected), there) in inner(&found).zip(&by_input).zip(inner(&there)) {
                let there = if accumulate == Accumulate::Add { f64::from(there) } else { 0.0 };
                near(found, expected + there, &what);
            }
            assert_border_is_zero(&found);
        }
        let mut found = vec![f32::NAN; weights.len()];
        filter.weight_gradient(&input, &gradients, &mut found);
        for (found, expected) in filter.unpack(&found).into_iter().zip(&by_weights) {
            near(found, *expected, &what);
        }
    }
}

fn inner(tensor: &Tensor) -> impl Iterator<Item = f32> {
    let rows = (0..tensor.images).flat_map(move |image| (0..tensor.shape.height).map(move |y| (image, y)));
    rows.flat_map(move |(image, y)| tensor.row(image, y).iter().copied())
}

fn assert_border_is_zero(tensor: &Tensor) {
    let count = |values: &mut dyn Iterator<Item = f32>| values.filter(|value| *value != 0.0).count();
    let all = count(&mut tensor.data.iter().copied());
    assert_eq!(count(&mut inner(tensor)), all, "something was written to the border");
}

#[test]
fn outputs_and_gradients_are_those_of_the_definition_at_every_level() {
    for (kernel, stride) in [(3, 1), (3, 2), (5, 1), (5, 2)] {
        // Every remainder of a tile of pixels, and registers that are not full; one pixel, and one row.
        for (channels, size) in [(8, (1, 1)), (16, (1, 9)), (24, (6, 17)), (40, (5, 8)), (32, (7, 15))] {
            let before =
                |size: usize| ((size.div_ceil(stride) - 1) * stride + kernel).saturating_sub(size) / 2;
            let padding = Padding { top: before(size.0), left: before(size.1) };
            check(channels, size, Geometry { kernel, stride, padding });
        }
    }
}

#[test]
fn levels_with_fused_instructions_give_the_same_bits() {
    let shape = Shape { channels: 24, height: 6, width: 9 };
    let input = random(7, shape);
    let stream = Stream::new(8);
    let weights: Vec<f32> = (0..24 * 25).map(|i| stream.normal(i)).collect();
    let outputs = |level: Level| {
        let filter = Depthwise::new(level, 24, Geometry::new(5, 1, 2));
        let mut output = Tensor::zeros(IMAGES, shape, 1);
        filter.forward(&input, &filter.pack(&weights), Finish::PLAIN, &mut output);
        output.data
    };
    let fused: Vec<_> =
        Level::available().into_iter().filter(|&level| level > Level::PLAIN).map(outputs).collect();
    assert!(fused.windows(2).all(|pair| pair[0] == pair[1]));
}
