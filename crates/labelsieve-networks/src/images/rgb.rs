//! A decoded image.

use crate::error::{Error, Result};

/// 8 bits per channel: row by row, pixel by pixel, red green blue. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RgbImage {
    height: usize,
    width: usize,
    pixels: Vec<u8>,
}

impl RgbImage {
    /// Wraps `pixels`, `height` × `width` × 3 of them.
    pub fn new(height: usize, width: usize, pixels: Vec<u8>) -> Result<RgbImage> {
        let expected = height.checked_mul(width).and_then(|n| n.checked_mul(3));
        if expected != Some(pixels.len()) || pixels.is_empty() {
            return Err(Error::Shape {
                what: "bytes of an image".to_owned(),
                expected: format!("{height}×{width}×3, at least one pixel"),
                found: pixels.len().to_string(),
            });
        }
        Ok(RgbImage { height, width, pixels })
    }

    /// Rows of pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Pixels per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All bytes.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// All bytes, without the size.
    pub fn into_pixels(self) -> Vec<u8> {
        self.pixels
    }
}

/// Mirrors each row of `width` pixels.
pub(super) fn flip_rows(pixels: &mut [u8], width: usize) {
    for row in pixels.chunks_exact_mut(3 * width) {
        let (pixels, _) = row.as_chunks_mut::<3>();
        pixels.reverse();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        assert!(RgbImage::new(1, 2, vec![0; 6]).is_ok());
        for (height, width, len) in [(1, 2, 5), (0, 2, 0), (usize::MAX, 2, 6)] {
            assert!(RgbImage::new(height, width, vec![0; len]).is_err());
        }
    }

    #[test]
    fn a_flip_swaps_pixels_and_keeps_their_channels() {
        let mut pixels = [1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16];
        flip_rows(&mut pixels, 2);
        assert_eq!(pixels, [4, 5, 6, 1, 2, 3, 14, 15, 16, 11, 12, 13]);
    }

    proptest! {
        #[test]
        fn two_flips_are_none(height in 1usize..9, width in 1usize..9, seed: u64) {
            let stream = labelsieve_numerics::random::Stream::new(seed);
            let before: Vec<u8> = (0..3 * height * width).map(|i| stream.bits(i as u64) as u8).collect();
            let mut pixels = before.clone();
            flip_rows(&mut pixels, width);
            flip_rows(&mut pixels, width);
            prop_assert_eq!(pixels, before);
        }
    }
}
