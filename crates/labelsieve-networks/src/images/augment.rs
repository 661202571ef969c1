//! Random views of an image for training: a crop, perhaps mirrored, with colour jitter.

use labelsieve_numerics::random::Stream;
use serde::{Deserialize, Serialize};

use super::jitter::Jitter;
use super::resize::{Region, Scaler, whole};
use super::rgb::{RgbImage, flip_rows};
use crate::error::Result;

/// How images are varied in training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Augmentation {
    /// Height and width of the network's input.
    pub size: (usize, usize),
    /// The crop.
    pub crop: Crop,
    /// The probability of mirroring an image.
    pub flip: f32,
    /// The colour jitter.
    pub jitter: Jitter,
}

/// The part of an image that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Crop {
    /// All of it.
    Whole,
    /// A random one.
    Random(RandomCrop),
}

/// A random crop: its share of the area is uniform in `area`, and its aspect ratio is log-uniform in `ratio`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RandomCrop {
    /// Minimum and maximum share of the area.
    pub area: (f32, f32),
    /// Minimum and maximum width over height.
    pub ratio: (f32, f32),
}

/// The usual crop for photos: 8 % to 100 % of the area.
impl Default for RandomCrop {
    fn default() -> RandomCrop {
        RandomCrop { area: (0.08, 1.0), ratio: (3.0 / 4.0, 4.0 / 3.0) }
    }
}

impl Augmentation {
    /// The usual recipe for images of this size.
    pub fn usual(height: usize, width: usize) -> Augmentation {
        let crop = Crop::Random(RandomCrop::default());
        Augmentation { size: (height, width), crop, flip: 0.5, jitter: Jitter::default() }
    }

    /// For small images, of which 8 % show nothing: crops of at least 35 % of the area.
    pub fn gentle(height: usize, width: usize) -> Augmentation {
        let crop = Crop::Random(RandomCrop { area: (0.35, 1.0), ..RandomCrop::default() });
        Augmentation { crop, ..Augmentation::usual(height, width) }
    }

    /// No variation at all.
    pub fn none(height: usize, width: usize) -> Augmentation {
        Augmentation { size: (height, width), crop: Crop::Whole, flip: 0.0, jitter: Jitter::NONE }
    }

    /// Writes a view of `image` to `out`. What is drawn depends on `stream` alone: give each image of each epoch its own.
    pub fn apply(&self, image: &RgbImage, stream: Stream, out: &mut [u8], scaler: &mut Scaler) -> Result<()> {
        let region = match self.crop {
            Crop::Whole => whole(image),
            Crop::Random(crop) => crop.draw(image.height(), image.width(), stream.branch(0)),
        };
        scaler.scale(image, region, out, self.size)?;
        if stream.branch(1).uniform(0) < self.flip {
            flip_rows(out, self.size.1);
        }
        self.jitter.apply(out, stream.branch(2));
        Ok(())
    }
}

impl RandomCrop {
    /// Ten tries to fit a piece inside; then the largest piece in the middle with an allowed ratio, as torchvision does.
    pub fn draw(&self, height: usize, width: usize, stream: Stream) -> Region {
        let between = |position, range: (f32, f32)| {
            let (low, high) = range;
            f64::from(low) + f64::from(high - low) * f64::from(stream.uniform(position))
        };
        let area = (height * width) as f64;
        for attempt in 0..10u64 {
            let target = area * between(4 * attempt, self.area);
            let logarithm = between(4 * attempt + 1, (self.ratio.0.ln(), self.ratio.1.ln()));
            let ratio = logarithm.exp();
            let wide = (target * ratio).sqrt().round() as usize;
            let tall = (target / ratio).sqrt().round() as usize;
            if (1..=width).contains(&wide) && (1..=height).contains(&tall) {
                let top = stream.below(4 * attempt + 2, height - tall + 1);
                let left = stream.below(4 * attempt + 3, width - wide + 1);
                return Region { top, left, height: tall, width: wide };
            }
        }
        let ratio = width as f64 / height as f64;
        let least = f64::from(self.ratio.0);
        let most = f64::from(self.ratio.1);
        let (tall, wide) = if ratio < least {
            ((width as f64 / least).round() as usize, width)
        } else if ratio > most {
            (height, (height as f64 * most).round() as usize)
        } else {
            (height, width)
        };
        let tall = tall.clamp(1, height);
        let wide = wide.clamp(1, width);
        Region { top: (height - tall) / 2, left: (width - wide) / 2, height: tall, width: wide }
    }
}

#[cfg(test)]
#[path = "augment_tests.rs"]
mod tests;
