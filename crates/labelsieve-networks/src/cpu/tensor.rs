//! Activations with a border of zeros that convolutions may read.

use rayon::prelude::*;

use super::numbers::Numbers;
use crate::network::Shape;

/// Channels that kernels take at a time; max-pools need a multiple of it.
pub(super) const CHANNELS: usize = 32;

/// The values of one layer for a batch: image by image, row by row, pixel by pixel, channel by channel.
///
/// Every image has a border of zeros, so that a window that leaves the image reads zeros instead of asking where it
/// is. Nothing ever writes to the border.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub images: usize,
    pub shape: Shape,
    pub border: usize,
    pub data: Numbers,
}

impl Tensor {
    pub fn zeros(images: usize, shape: Shape, border: usize) -> Tensor {
        let height = shape.height + 2 * border;
        let width = shape.width + 2 * border;
        Tensor { images, shape, border, data: Numbers::zeros(images * height * width * shape.channels) }
    }

    /// Numbers from one row of pixels to the next.
    pub fn row_stride(&self) -> usize {
        (self.shape.width + 2 * self.border) * self.shape.channels
    }

    /// Numbers from one image to the next.
    pub fn image_stride(&self) -> usize {
        (self.shape.height + 2 * self.border) * self.row_stride()
    }

    /// Where pixel (0, 0) of an image starts, counted from the image's own beginning.
    pub fn origin(&self) -> usize {
        self.border * (self.row_stride() + self.shape.channels)
    }

    /// Where row `y` of image `image` starts.
    pub fn row_start(&self, image: usize, y: usize) -> usize {
        image * self.image_stride() + self.origin() + y * self.row_stride()
    }

    /// Row `y` of image `image`: width × channels numbers.
    pub fn row(&self, image: usize, y: usize) -> &[f32] {
        let start = self.row_start(image, y);
        &self.data[start..start + self.shape.width * self.shape.channels]
    }
}

/// Calls `fill` with image, row number and row, images in parallel.
pub(super) fn for_each_row(tensor: &mut Tensor, fill: impl Fn(usize, usize, &mut [f32]) + Sync) {
    let origin = tensor.origin();
    let stride = tensor.row_stride();
    let image_stride = tensor.image_stride();
    let height = tensor.shape.height;
    let row_len = tensor.shape.width * tensor.shape.channels;
    tensor.data.par_chunks_exact_mut(image_stride).enumerate().for_each(|(image, data)| {
        for y in 0..height {
            fill(image, y, &mut data[origin + y * stride..][..row_len]);
        }
    });
}
