//! Resizes images as Pillow and torchvision do: bilinear, antialiased when shrinking.

use fast_image_resize::images::{TypedCroppedImage, TypedImage, TypedImageRef};
use fast_image_resize::pixels::U8x3;
use fast_image_resize::{CpuExtensions, ResizeOptions, Resizer};
use labelsieve_numerics::level::Level;
use serde::{Deserialize, Serialize};

use super::processing::{Filter, Processing};
use super::rgb::RgbImage;
use crate::error::{Error, Result, Setting};

/// The part of an image that a network sees in evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// The whole image, scaled to the size: for images of about that size.
    #[default]
    Whole,
    /// The image at 8/7 of the size on its shorter side, then its centre: 256 and 224 for the usual photos.
    Centre,
    /// As the configuration of a published network specifies.
    Processing(Processing),
}

impl std::fmt::Display for View {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            View::Whole => "whole",
            View::Centre => "centre",
            View::Processing(_) => "as configured",
        })
    }
}

impl std::str::FromStr for View {
    type Err = Error;

    fn from_str(text: &str) -> Result<View> {
        [View::Whole, View::Centre].into_iter().find(|view| view.to_string() == text).ok_or_else(|| {
            Error::Setting {
                name: Setting::View,
                expected: "whole or centre".to_owned(),
                found: text.to_owned(),
            }
        })
    }
}

impl View {
    /// The view for images of this size: small ones are not cropped.
    pub fn for_images(height: usize, width: usize) -> View {
        if height.max(width) <= 96 { View::Whole } else { View::Centre }
    }

    /// The bytes of `height` × `width` pixels.
    pub fn apply(self, image: &RgbImage, size: (usize, usize), scaler: &mut Scaler) -> Result<Vec<u8>> {
        let (height, width) = size;
        let mut out = vec![0; 3 * height * width];
        match self {
            View::Processing(processing) => return processing.apply(image, (height, width), scaler),
            View::Whole => scaler.scale(image, whole(image), &mut out, (height, width))?,
            View::Centre => {
                let region = not_too_long((image.height(), image.width()), (height, width));
                let (tall, wide) = covering(&region, height * 8 / 7, width * 8 / 7);
                let mut larger = vec![0; 3 * tall * wide];
                scaler.scale(image, region, &mut larger, (tall, wide))?;
                let top = centre(tall, height);
                let left = centre(wide, width);
                for (row, out) in out.chunks_exact_mut(3 * width).enumerate() {
                    let start = 3 * ((top + row) * wide + left);
                    out.copy_from_slice(&larger[start..start + 3 * width]);
                }
            }
        }
        Ok(out)
    }

    /// The peak memory of [`View::apply`] for an image of this height and width, besides the image.
    pub(crate) fn bytes(self, image: (usize, usize), size: (usize, usize)) -> u64 {
        let out = 3 * size.0 as u64 * size.1 as u64;
        out + match self {
            View::Processing(processing) => return processing.bytes(image, size),
            View::Whole => scaling_bytes(image, size),
            View::Centre => {
                let region = not_too_long(image, size);
                let larger = covering(&region, size.0 * 8 / 7, size.1 * 8 / 7);
                let larger_bytes = 3 * larger.0 as u64 * larger.1 as u64;
                larger_bytes.saturating_add(scaling_bytes((region.height, region.width), larger))
            }
        }
    }
}

/// The peak memory of scaling a region, besides the image and the result: columns are scaled first, to the number of rows of
/// the result, and the weights of all pixels are kept, in 64 bits and again in 16.
pub(super) fn scaling_bytes(region: (usize, usize), size: (usize, usize)) -> u64 {
    scaling_bytes_of(1, region, size)
}

/// The same for a filter of this radius.
pub(super) fn scaling_bytes_of(radius: u64, region: (usize, usize), size: (usize, usize)) -> u64 {
    let weights = |from: usize, to: usize| {
        let window = (from as u64).div_ceil(to.max(1) as u64).max(1) * 2 * radius + 1;
        window.saturating_add(8).saturating_mul(10 * to as u64)
    };
    match (region.0 == size.0, region.1 == size.1) {
        (true, true) => 0,
        (true, false) => weights(region.1, size.1),
        (false, true) => weights(region.0, size.0),
        (false, false) => {
            let columns = (3 * region.1 as u64).saturating_mul(size.0 as u64);
            columns.saturating_add(weights(region.0, size.0)).saturating_add(weights(region.1, size.1))
        }
    }
}

/// An image of another size.
pub fn resize(image: &RgbImage, height: usize, width: usize) -> Result<RgbImage> {
    let mut out = vec![0; 3 * height * width];
    Scaler::default().scale(image, whole(image), &mut out, (height, width))?;
    RgbImage::new(height, width, out)
}

/// A part of an image, in whole pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First row.
    pub top: usize,
    /// First column.
    pub left: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

/// Larger buffers are freed after an image: every thread has its own.
const KEPT_BYTES: usize = 8 << 20;

/// Keeps the buffers of one size for the next image.
#[derive(Debug)]
pub struct Scaler {
    resizer: Resizer,
}

impl Default for Scaler {
    fn default() -> Scaler {
        Scaler::at(Level::current())
    }
}

impl Scaler {
    /// A scaler that uses the instructions of `level`; all levels give the same bytes.
    fn at(level: Level) -> Scaler {
        let mut resizer = Resizer::new();
        if level == Level::PLAIN {
            #[expect(
                unsafe_code,
                reason = "choosing fewer extensions than the machine has is unsafe in the library"
            )]
            // SAFETY: every machine can do without extensions.
            unsafe {
                resizer.set_cpu_extensions(CpuExtensions::None);
            }
        }
        Scaler { resizer }
    }

    /// Scales a region of `image` into `out`, `height` × `width` pixels. Pixels outside the region have no influence.
    pub(super) fn scale(
        &mut self,
        image: &RgbImage,
        region: Region,
        out: &mut [u8],
        size: (usize, usize),
    ) -> Result<()> {
        self.scale_by(Filter::Bilinear, image, region, out, size)
    }

    /// The same with any filter.
    pub(super) fn scale_by(
        &mut self,
        filter: Filter,
        image: &RgbImage,
        region: Region,
        out: &mut [u8],
        size: (usize, usize),
    ) -> Result<()> {
        let (height, width) = size;
        let failed = |what: String| Error::Shape {
            what: "scaling".to_owned(),
            expected: format!(
                "{height}×{width} pixels from a region of {}×{}",
                image.height(),
                image.width()
            ),
            found: what,
        };
        if (region.height, region.width) == (height, width) {
            copy(image, region, out);
            return Ok(());
        }
        let size = |n: usize| u32::try_from(n).map_err(|_| failed(format!("{n} pixels on a side")));
        let view =
            TypedImageRef::<U8x3>::from_buffer(size(image.width())?, size(image.height())?, image.pixels())
                .map_err(|error| failed(format!("{error:?}")))?;
        let view = TypedCroppedImage::from_ref(
            &view,
            size(region.left)?,
            size(region.top)?,
            size(region.width)?,
            size(region.height)?,
        )
        .map_err(|error| failed(format!("{error:?}")))?;
        let mut target = TypedImage::<U8x3>::from_buffer(size(width)?, size(height)?, out)
            .map_err(|error| failed(format!("{error:?}")))?;
        let options = ResizeOptions::new().resize_alg(filter.algorithm());
        let scaled = self.resizer.resize_typed(&view, &mut target, &options);
        if self.resizer.size_of_internal_buffers() > KEPT_BYTES {
            self.resizer.reset_internal_buffers();
        }
        scaled.map_err(|error| failed(format!("{error:?}")))
    }
}

pub(super) fn whole(image: &RgbImage) -> Region {
    Region { top: 0, left: 0, height: image.height(), width: image.width() }
}

fn copy(image: &RgbImage, region: Region, out: &mut [u8]) {
    for (row, out) in out.chunks_exact_mut(3 * region.width).enumerate() {
        let start = 3 * ((region.top + row) * image.width() + region.left);
        out.copy_from_slice(&image.pixels()[start..start + 3 * region.width]);
    }
}

/// The size of a region scaled so that it just covers `height` × `width`; the longer side is cut down to whole pixels,
/// as torchvision does.
fn covering(region: &Region, height: usize, width: usize) -> (usize, usize) {
    if region.height * width <= region.width * height {
        (height, (region.width * height / region.height).max(width))
    } else {
        ((region.height * width / region.width).max(height), width)
    }
}

/// The centre of an image that is more than four times as long as the view: the view shows none of the rest, and a
/// strip of 1×100,000 pixels would be scaled to gigabytes.
pub(super) fn not_too_long(image: (usize, usize), size: (usize, usize)) -> Region {
    let (tall, wide) = image;
    let (height, width) = size;
    let max_height = (4 * wide * height).div_ceil(width).clamp(1, tall);
    let max_width = (4 * tall * width).div_ceil(height).clamp(1, wide);
    Region {
        top: centre(tall, max_height),
        left: centre(wide, max_width),
        height: max_height,
        width: max_width,
    }
}

/// Where a piece begins that lies in the middle; halves go to the even side, as in torchvision.
fn centre(whole: usize, piece: usize) -> usize {
    let margin = whole.saturating_sub(piece);
    match margin % 2 {
        0 => margin / 2,
        _ => margin / 2 + (margin / 2) % 2,
    }
}

#[cfg(test)]
#[path = "resize_tests.rs"]
mod tests;
