//! Pooling against its definition, at every level.

use labelsieve_numerics::random::Stream;

use super::*;
use crate::network::Shape;

fn random(seed: u64, images: usize, shape: Shape) -> Tensor {
    let mut tensor = Tensor::zeros(images, shape, 1);
    let stream = Stream::new(seed);
    for_each_row(&mut tensor, |image, y, row| {
        for (i, value) in row.iter_mut().enumerate() {
            // Few different numbers: windows have several largest ones. Many negative: the border must not win.
            *value = (3.0 * stream.branch((image * shape.height + y) as u64).normal(i as u64)).round() - 4.0;
        }
    });
    tensor
}

fn at(tensor: &Tensor, image: usize, place: (usize, usize), channel: usize) -> f32 {
    let (y, x) = place;
    tensor.row(image, y)[x * tensor.shape.channels + channel]
}

#[test]
fn the_largest_of_each_window_comes_out_and_gets_the_gradient_at_every_level() {
    for (i, (height, width, kernel, stride, padding)) in
        [(7, 9, 3, 2, 1), (8, 6, 2, 2, 0), (5, 5, 3, 1, 1), (2, 3, 3, 2, 1)].into_iter().enumerate()
    {
        let windows = Windows { kernel, stride, padding };
        let out = |size: usize| (size + 2 * padding - kernel) / stride + 1;
        let from = Shape { channels: 64, height, width };
        let to = Shape { channels: 64, height: out(height), width: out(width) };
        let input = random(i as u64, 2, from);
        let by_output = random(90 + i as u64, 2, to);
        let mut expected = Tensor::zeros(2, to, 1);
        let mut by_input = Tensor::zeros(2, from, 1);
        for_each_row(&mut expected, |image, y, row| {
            for (i, value) in row.iter_mut().enumerate() {
                let place = first_largest(&input, image, (y, i / 64), windows, i % 64);
                *value = at(&input, image, place, i % 64);
            }
        });
        for (image, y) in (0..2).flat_map(|image| (0..to.height).map(move |y| (image, y))) {
            for (i, gradient) in by_output.row(image, y).iter().enumerate() {
                let (row, column) = first_largest(&input, image, (y, i / 64), windows, i % 64);
                let place = by_input.row_start(image, row) + column * 64 + i % 64;
                by_input.data[place] += gradient;
            }
        }
        for level in Level::available() {
            let mut output = random(7, 2, to);
            let mut winners = Vec::new();
            max_forward(level, &input, windows, &mut output, &mut winners);
            assert_eq!(output.data, expected.data, "{level}");
            let mut found = random(8, 2, from); // to be overwritten
            max_backward(level, &by_output, &winners, windows, &mut found);
            assert_eq!(found.data, by_input.data, "{level}");
        }
    }
}

/// Where the first of the largest numbers of a window stands.
fn first_largest(
    input: &Tensor,
    image: usize,
    window: (usize, usize),
    windows: Windows,
    channel: usize,
) -> (usize, usize) {
    let (y, x) = window;
    let inside = |corner: usize, size: usize| {
        (0..windows.kernel).filter_map(move |tap| {
            let place = (corner * windows.stride + tap).checked_sub(windows.padding)?;
            (place < size).then_some(place)
        })
    };
    let mut best: Option<(usize, usize)> = None;
    for row in inside(y, input.shape.height) {
        for column in inside(x, input.shape.width) {
            let value = at(input, image, (row, column), channel);
            if best.is_none_or(|best| value > at(input, image, best, channel)) {
                best = Some((row, column));
            }
        }
    }
    best.expect("a window reaches into the image")
}
