//! Prepares images as the configuration of a published network specifies.

use fast_image_resize::{FilterType, ResizeAlg};
use serde::{Deserialize, Serialize};

use super::resize::{Region, Scaler, not_too_long, scaling_bytes_of, whole};
use super::rgb::RgbImage;
use crate::error::Result;

/// How an image is scaled and cropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Processing {
    /// The size before the crop.
    pub scaled: ScaledSize,
    /// The filter.
    pub filter: Filter,
    /// The position of a crop with an odd margin.
    pub margins: Margins,
}

/// The size of an image before its centre is cropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScaledSize {
    /// This height and width, whatever its shape.
    To(usize, usize),
    /// So many pixels on its shorter side, keeping its shape.
    ShorterSide(usize),
}

/// The position of a crop with an odd margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Margins {
    /// The smaller margin comes first (`transformers`).
    SmallerFirst,
    /// Halves go to the even side (torchvision: timm and OpenCLIP).
    HalfToEven,
}

/// A resampling filter as in Pillow, which antialiases when shrinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filter {
    /// The nearest pixel.
    Nearest,
    /// All pixels in a box.
    Box,
    /// Linear in both directions.
    Bilinear,
    /// A raised cosine.
    Hamming,
    /// Cubic, with a = -0.5.
    Bicubic,
    /// Lanczos with three lobes.
    Lanczos,
}

impl Filter {
    /// The one with this number in Pillow.
    pub fn of_pillow(number: u64) -> Option<Filter> {
        use Filter::{Bicubic, Bilinear, Box, Hamming, Lanczos, Nearest};
        [Nearest, Lanczos, Bilinear, Bicubic, Box, Hamming].get(usize::try_from(number).ok()?).copied()
    }

    pub(super) fn algorithm(self) -> ResizeAlg {
        ResizeAlg::Convolution(match self {
            Filter::Nearest => return ResizeAlg::Nearest,
            Filter::Box => FilterType::Box,
            Filter::Bilinear => FilterType::Bilinear,
            Filter::Hamming => FilterType::Hamming,
            Filter::Bicubic => FilterType::CatmullRom,
            Filter::Lanczos => FilterType::Lanczos3,
        })
    }

    /// Source pixels on each side that a pixel is made of, at the same size.
    fn radius(self) -> u64 {
        match self {
            Filter::Nearest | Filter::Box | Filter::Bilinear | Filter::Hamming => 1,
            Filter::Bicubic => 2,
            Filter::Lanczos => 3,
        }
    }
}

impl Processing {
    /// The bytes of `height` × `width` pixels; a scaled image that is smaller is shown as far as it reaches, on black.
    pub(super) fn apply(
        &self,
        image: &RgbImage,
        size: (usize, usize),
        scaler: &mut Scaler,
    ) -> Result<Vec<u8>> {
        let (height, width) = size;
        let (region, (tall, wide)) = self.plan((image.height(), image.width()), (height, width));
        let scaled = self.scale(image, region, (tall, wide), scaler)?;
        if (tall, wide) == (height, width) {
            return Ok(scaled);
        }
        let mut out = vec![0; 3 * height * width];
        let (from_top, to_top) = self.starts(tall, height);
        let (from_left, to_left) = self.starts(wide, width);
        let n = wide.min(width);
        for row in 0..tall.min(height) {
            let from = 3 * ((from_top + row) * wide + from_left);
            let to = 3 * ((to_top + row) * width + to_left);
            out[to..to + 3 * n].copy_from_slice(&scaled[from..from + 3 * n]);
        }
        Ok(out)
    }

    /// Rows first, then columns, each rounded to a level, as Pillow does it (from version 13 on, not for all shapes): filters
    /// that overshoot are cut off at black and white in between.
    fn scale(
        &self,
        image: &RgbImage,
        region: Region,
        size: (usize, usize),
        scaler: &mut Scaler,
    ) -> Result<Vec<u8>> {
        let (tall, wide) = size;
        let mut narrow = vec![0; 3 * region.height * wide];
        scaler.scale_by(self.filter, image, region, &mut narrow, (region.height, wide))?;
        if region.height == tall {
            return Ok(narrow);
        }
        let narrow = RgbImage::new(region.height, wide, narrow)?;
        let mut scaled = vec![0; 3 * tall * wide];
        scaler.scale_by(self.filter, &narrow, whole(&narrow), &mut scaled, (tall, wide))?;
        Ok(scaled)
    }

    /// The region to scale, and its height and width afterwards.
    fn plan(&self, image: (usize, usize), size: (usize, usize)) -> (Region, (usize, usize)) {
        match self.scaled {
            ScaledSize::To(height, width) => {
                (Region { top: 0, left: 0, height: image.0, width: image.1 }, (height, width))
            }
            ScaledSize::ShorterSide(side) => {
                let region = not_too_long(image, size);
                let longer = |long: usize, short: usize| (side * long / short).max(1);
                let scaled = if region.height <= region.width {
                    (side, longer(region.width, region.height))
                } else {
                    (longer(region.height, region.width), side)
                };
                (region, scaled)
            }
        }
    }

    /// Where the shown part begins in a scaled side and in the result.
    fn starts(&self, scaled: usize, shown: usize) -> (usize, usize) {
        let margin = scaled.abs_diff(shown);
        let start = match self.margins {
            Margins::SmallerFirst => margin / 2,
            Margins::HalfToEven if margin.is_multiple_of(2) => margin / 2,
            Margins::HalfToEven => margin / 2 + (margin / 2) % 2,
        };
        // A margin around a smaller image is padding: torchvision and transformers both begin it with the smaller half.
        if scaled >= shown { (start, 0) } else { (0, margin / 2) }
    }

    /// The peak memory for an image of this height and width, besides the image.
    pub(super) fn bytes(&self, image: (usize, usize), size: (usize, usize)) -> u64 {
        let (region, scaled) = self.plan(image, size);
        let pixels = |size: (usize, usize)| 3 * size.0 as u64 * size.1 as u64;
        let narrow = (region.height, scaled.1);
        let passes = [((region.height, region.width), narrow), (narrow, scaled)];
        let weights = passes.map(|(from, to)| scaling_bytes_of(self.filter.radius(), from, to));
        [pixels(narrow), pixels(scaled), pixels(size)].into_iter().chain(weights).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::View;

    fn pattern(height: usize, width: usize) -> RgbImage {
        let mut pixels = Vec::new();
        for (y, x, c) in
            (0..height).flat_map(|y| (0..width).flat_map(move |x| (0..3).map(move |c| (y, x, c))))
        {
            let edge = if x > width / 2 { 90 } else { 0 };
            pixels.push(((y * 7 + x * 5 * (c + 1) + edge + c * 40) % 256) as u8);
        }
        RgbImage::new(height, width, pixels).unwrap()
    }

    /// `tests/golden/make_processed.py`: image processors of `transformers` with Pillow, and torchvision's transforms.
    #[test]
    fn pixels_agree_with_transformers_and_torchvision() {
        let path = format!("{}/tests/golden/images/processed.json", env!("CARGO_MANIFEST_DIR"));
        let cases: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for case in cases.as_array().unwrap() {
            let sides =
                |name: &str| -> (usize, usize) { serde_json::from_value(case[name].clone()).unwrap() };
            let scaled = match case["shorter"].as_u64() {
                Some(side) => ScaledSize::ShorterSide(side as usize),
                None => ScaledSize::To(sides("to").0, sides("to").1),
            };
            let filter = Filter::of_pillow(case["resample"].as_u64().unwrap()).unwrap();
            let margins = match case["by"].as_str().unwrap() {
                "transformers" => Margins::SmallerFirst,
                _ => Margins::HalfToEven,
            };
            let (h, w) = sides("source");
            let size = sides("size");
            let view = View::Processing(Processing { scaled, filter, margins });
            let found = view.apply(&pattern(h, w), size, &mut Scaler::default()).unwrap();
            let expected: Vec<u8> = serde_json::from_value(case["pixels"].clone()).unwrap();
            assert_eq!(found.len(), expected.len());
            let worst = found.iter().zip(&expected).map(|(a, b)| a.abs_diff(*b)).max();
            // Our weights have 16 bits, Pillow's 22, so the first pass rounds some pixels to the other level; Lanczos then
            // weighs them by more than one in all.
            let near = if filter == Filter::Lanczos { 2 } else { 1 };
            assert!(worst <= Some(near), "{h}×{w}, {view:?}: {worst:?}");
        }
    }

    #[test]
    fn a_smaller_image_is_shown_on_black() {
        let processing = Processing {
            scaled: ScaledSize::To(1, 3),
            filter: Filter::Bilinear,
            margins: Margins::SmallerFirst,
        };
        let image = RgbImage::new(1, 3, vec![9; 9]).unwrap();
        let pixels = processing.apply(&image, (2, 2), &mut Scaler::default()).unwrap();
        assert_eq!(pixels, [9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_strip_needs_no_gigabytes() {
        let processing = Processing {
            scaled: ScaledSize::ShorterSide(256),
            filter: Filter::Bicubic,
            margins: Margins::SmallerFirst,
        };
        let image = RgbImage::new(1, 200_000, vec![9; 600_000]).unwrap();
        let pixels = processing.apply(&image, (224, 224), &mut Scaler::default()).unwrap();
        assert!(pixels.iter().all(|&value| value == 9));
        assert!(processing.bytes((1, 200_000), (224, 224)) < 64 << 20);
    }
}
