//! Random brightness, contrast and saturation.

use labelsieve_numerics::random::Stream;
use serde::{Deserialize, Serialize};

/// Colour jitter: each factor is drawn from 1 - strength to 1 + strength, and applied in this order.
///
/// The order is fixed, as in the recipes of the few-shot literature: brightness and contrast are then one table of 256
/// entries, and the whole is two passes over the pixels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// Every channel times a factor.
    pub brightness: f32,
    /// The distance to the image's mean grey times a factor.
    pub contrast: f32,
    /// The distance to the pixel's own grey times a factor.
    pub saturation: f32,
}

/// The strength that is usual for photos.
impl Default for Jitter {
    fn default() -> Jitter {
        Jitter { brightness: 0.4, contrast: 0.4, saturation: 0.4 }
    }
}

impl Jitter {
    /// Colours stay as they are.
    pub const NONE: Jitter = Jitter { brightness: 0.0, contrast: 0.0, saturation: 0.0 };

    /// Draws three factors from `stream` and changes the pixels.
    pub(super) fn apply(&self, pixels: &mut [u8], stream: Stream) {
        if *self == Jitter::NONE {
            return;
        }
        let factor =
            |position, strength: f32| (1.0 + strength * (2.0 * stream.uniform(position) - 1.0)).max(0.0);
        let brightness = factor(0, self.brightness);
        let contrast = factor(1, self.contrast);
        let bright: [u8; 256] = std::array::from_fn(|value| to_byte(value as f32 * brightness));
        let mean = mean_grey(pixels, &bright);
        let table = bright.map(|value| to_byte(mean + contrast * (f32::from(value) - mean)));
        saturate(pixels, &table, factor(2, self.saturation));
    }
}

/// Grey as television and Pillow weigh the channels, in units of 1/65536.
fn grey(red: u8, green: u8, blue: u8) -> u32 {
    19_595 * u32::from(red) + 38_470 * u32::from(green) + 7_471 * u32::from(blue)
}

fn mean_grey(pixels: &[u8], table: &[u8; 256]) -> f32 {
    let (pixels, _) = pixels.as_chunks::<3>();
    let look = |value: u8| table[usize::from(value)];
    let sum: u64 = pixels
        .iter()
        .map(|&[red, green, blue]| u64::from((grey(look(red), look(green), look(blue)) + 0x8000) >> 16))
        .sum();
    (sum as f64 / pixels.len().max(1) as f64) as f32
}

/// Looks every channel up in `table`, then moves it away from or towards the pixel's grey.
fn saturate(pixels: &mut [u8], table: &[u8; 256], factor: f32) {
    let factor = (factor * 65_536.0).round() as i32; // exact sums: the same bytes on every machine
    let (pixels, _) = pixels.as_chunks_mut::<3>();
    for pixel in pixels {
        let [red, green, blue] = pixel.map(|value| table[usize::from(value)]);
        let grey = ((grey(red, green, blue) + 0x8000) >> 16) as i32;
        let mix = |value: u8| {
            let mixed = (grey << 16) + factor * (i32::from(value) - grey) + 0x8000;
            (mixed >> 16).clamp(0, 255) as u8
        };
        *pixel = [mix(red), mix(green), mix(blue)];
    }
}

fn to_byte(value: f32) -> u8 {
    (value + 0.5).clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_table_of_one_pixel_can_be_followed_by_hand() {
        // Factor 2 away from grey 100: 100 + 2 (90 - 100) = 80 and so on; the grey of (90, 105, 99) is 99.8.
        let mut pixel = [90, 105, 99];
        saturate(&mut pixel, &std::array::from_fn(|value| value as u8), 2.0);
        assert_eq!(pixel, [80, 110, 98]);
    }

    #[test]
    fn contrast_keeps_the_mean_and_brightness_moves_it() {
        let mut pixels: Vec<u8> = (0..60).flat_map(|i| [60 + i; 3]).collect();
        let identity = std::array::from_fn(|value| value as u8);
        let before = mean_grey(&pixels, &identity);
        Jitter { contrast: 0.5, ..Jitter::NONE }.apply(&mut pixels, Stream::new(3));
        assert!((mean_grey(&pixels, &identity) - before).abs() < 1.0);
        Jitter { brightness: 0.5, ..Jitter::NONE }.apply(&mut pixels, Stream::new(3));
        assert!((mean_grey(&pixels, &identity) - before).abs() > 5.0);
    }

    proptest! {
        #[test]
        fn zero_strength_changes_nothing(before in proptest::collection::vec(any::<[u8; 3]>(), 1..50), seed: u64) {
            let before = before.concat();
            let mut after = before.clone();
            let nearly_none = Jitter { brightness: f32::MIN_POSITIVE, ..Jitter::NONE }; // not the short way out
            nearly_none.apply(&mut after, Stream::new(seed));
            prop_assert_eq!(after, before);
        }

        #[test]
        fn any_strength_is_survived(strength in 0f32..30.0, pixels in proptest::collection::vec(any::<[u8; 3]>(), 1..50), seed: u64) {
            let mut pixels = pixels.concat();
            Jitter { brightness: strength, contrast: strength, saturation: strength }.apply(&mut pixels, Stream::new(seed));
        }
    }
}
