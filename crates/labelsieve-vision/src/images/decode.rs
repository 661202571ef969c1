//! Bytes to pixels. The bytes come from the web: they may be anything.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

use super::jpeg::decode_jpeg;
use super::rgb::RgbImage;

/// How large an image may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Most pixels that a file may declare.
    pub pixels: u64,
    /// Most bytes that a decoder may hold at a time.
    pub bytes: u64,
}

/// Twice 2^30 / 12 pixels, beyond which Pillow refuses an image as a decompression bomb, and 2 GiB.
impl Default for DecodeLimits {
    fn default() -> DecodeLimits {
        DecodeLimits { pixels: 178_956_970, bytes: 2 << 30 }
    }
}

/// Why there are no pixels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No bytes at all.
    #[error("expected an image, found no bytes")]
    Empty,
    /// The first bytes are those of no format we read.
    #[error("expected JPEG, PNG, WebP, GIF, BMP or TIFF, found other bytes")]
    UnknownFormat,
    /// The file declares more than the limit.
    #[error("expected at most {limit}, found {width}×{height} pixels")]
    TooLarge {
        /// Declared width.
        width: u64,
        /// Declared height.
        height: u64,
        /// The limit, in words.
        limit: String,
    },
    /// The file ends before its image does.
    #[error("the file is cut short: {0}")]
    Truncated(String),
    /// The file breaks its format.
    #[error("damaged: {0}")]
    Damaged(String),
}

impl DecodeLimits {
    /// Refuses a size before anything is allocated for it; `bytes_per_pixel` is what the decoder will hold.
    pub(super) fn check(&self, width: u64, height: u64, bytes_per_pixel: u64) -> Result<(), DecodeError> {
        let too_large = |limit| Err(DecodeError::TooLarge { width, height, limit });
        if width == 0 || height == 0 {
            return Err(DecodeError::Damaged(format!("{width}×{height} pixels")));
        }
        match width.checked_mul(height) {
            Some(pixels) if pixels <= self.pixels => match pixels.saturating_mul(bytes_per_pixel) {
                bytes if bytes <= self.bytes => Ok(()),
                _ => too_large(format!("{} bytes while decoding", self.bytes)),
            },
            _ => too_large(format!("{} pixels", self.pixels)),
        }
    }
}

/// Decodes an image to RGB as a person would see it: turned as its EXIF data say, transparent parts on white, 16 bits
/// rounded to 8, palettes, grey and CMYK converted, and the first picture of an animation.
///
/// A JPEG without its end mark counts as cut short: the decoder cannot tell how much of the last rows is missing.
pub fn decode(bytes: &[u8], limits: &DecodeLimits) -> Result<RgbImage, DecodeError> {
    if bytes.is_empty() {
        return Err(DecodeError::Empty);
    }
    let format = image::guess_format(bytes).map_err(|_| DecodeError::UnknownFormat)?;
    // Unwind safety: nothing that a decoder touched outlives it.
    let decoded = catch_unwind(AssertUnwindSafe(|| match format {
        ImageFormat::Jpeg => decode_jpeg(bytes, limits),
        _ => decode_other(bytes, format, limits),
    }));
    decoded.unwrap_or_else(|_| Err(DecodeError::Damaged("its parts contradict each other".to_owned())))
}

fn decode_other(bytes: &[u8], format: ImageFormat, limits: &DecodeLimits) -> Result<RgbImage, DecodeError> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut allowed = Limits::default();
    allowed.max_alloc = Some(limits.bytes);
    reader.limits(allowed);
    let mut decoder = reader.into_decoder().map_err(failed)?;
    let (width, height) = decoder.dimensions();
    let per_pixel = u64::from(decoder.color_type().bytes_per_pixel());
    limits.check(width.into(), height.into(), per_pixel + 3)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let image = DynamicImage::from_decoder(decoder).map_err(failed)?;
    let rgb = if image.color().has_alpha() { on_white(&image.into_rgba8()) } else { image.into_rgb8() };
    turn(rgb, orientation)
}

/// An image the right way up.
pub(super) fn turn(rgb: image::RgbImage, orientation: Orientation) -> Result<RgbImage, DecodeError> {
    let rgb = match orientation {
        Orientation::NoTransforms => rgb,
        _ => {
            let mut image = DynamicImage::ImageRgb8(rgb);
            image.apply_orientation(orientation);
            image.into_rgb8()
        }
    };
    let (width, height) = rgb.dimensions();
    RgbImage::new(height as usize, width as usize, rgb.into_raw())
        .map_err(|error| DecodeError::Damaged(error.to_string()))
}

/// Lays a picture with transparent parts on a white sheet.
fn on_white(rgba: &image::RgbaImage) -> image::RgbImage {
    let mut rgb = image::RgbImage::new(rgba.width(), rgba.height());
    for (out, pixel) in rgb.pixels_mut().zip(rgba.pixels()) {
        let [red, green, blue, alpha] = pixel.0.map(u32::from);
        let mix = |channel| ((channel * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
        out.0 = [mix(red), mix(green), mix(blue)];
    }
    rgb
}

fn failed(error: image::ImageError) -> DecodeError {
    match &error {
        image::ImageError::IoError(cause) if cause.kind() == std::io::ErrorKind::UnexpectedEof => {
            DecodeError::Truncated(cause.to_string())
        }
        image::ImageError::Limits(limit) => DecodeError::Damaged(format!("too large: {limit}")),
        _ => DecodeError::Damaged(error.to_string()),
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
