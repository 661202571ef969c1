//! Decodes images. The bytes are untrusted.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

use super::budget::{Budget, MAX_IMAGE_BYTES, MemoryLease};
use super::jpeg::decode_jpeg;
use super::rgb::RgbImage;

/// How large an image may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Maximum number of pixels that a file may declare.
    pub pixels: u64,
    /// Maximum memory for decoding and scaling.
    pub bytes: u64,
}

/// Twice 2^30 / 12 pixels, beyond which Pillow refuses an image as a decompression bomb, and 1 GiB.
impl Default for DecodeLimits {
    fn default() -> DecodeLimits {
        DecodeLimits { pixels: 178_956_970, bytes: MAX_IMAGE_BYTES }
    }
}

/// Why an image could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No bytes at all.
    #[error("expected an image, found no bytes")]
    Empty,
    /// The format is not supported.
    #[error("expected JPEG, PNG, WebP, GIF, BMP or TIFF, found other bytes")]
    UnknownFormat,
    /// The file declares more than the limit.
    #[error("expected at most {limit}, found {width}×{height} pixels")]
    TooLarge {
        /// ImageHeader width.
        width: u64,
        /// ImageHeader height.
        height: u64,
        /// The limit, in words.
        limit: String,
    },
    /// Decoding needs more memory than the limit.
    #[error(
        "expected at most {limit} bytes for decoding and scaling, found {width}×{height} pixels, which need {bytes}"
    )]
    NeedsTooMuch {
        /// ImageHeader width.
        width: u64,
        /// ImageHeader height.
        height: u64,
        /// The memory it needs.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The file ends before its image does.
    #[error("file is truncated: {0}")]
    Truncated(String),
    /// The file breaks its format.
    #[error("damaged: {0}")]
    Damaged(String),
}

/// The declared properties of an image, and the memory to decode it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImageHeader {
    pub(super) width: u64,
    pub(super) height: u64,
    /// Bytes per pixel while decoding and converting, at most.
    pub(super) per_pixel: u64,
    /// Bytes per pixel of a row, for rows that are held besides.
    pub(super) per_column: u64,
    /// The orientation of the image.
    pub(super) orientation: Orientation,
}

/// The memory that preparing an image takes.
pub(super) struct MemoryPlan<'a> {
    pub(super) limits: &'a DecodeLimits,
    /// Memory for processing an image of this height and width, besides the image.
    pub(super) afterwards: &'a dyn Fn(usize, usize) -> u64,
}

impl MemoryPlan<'_> {
    /// Checks the declared size before any allocation, and waits for the memory it needs.
    pub(super) fn reserve(&self, declared: &ImageHeader) -> Result<MemoryLease, DecodeError> {
        let ImageHeader { width, height, per_pixel, per_column, orientation } = *declared;
        if width == 0 || height == 0 {
            return Err(DecodeError::Damaged(format!("{width}×{height} pixels")));
        }
        let pixels = width.checked_mul(height).filter(|&pixels| pixels <= self.limits.pixels);
        let Some(pixels) = pixels else {
            let limit = format!("{} pixels", self.limits.pixels);
            return Err(DecodeError::TooLarge { width, height, limit });
        };
        let is_turned = orientation != Orientation::NoTransforms;
        let (tall, wide) = if is_on_its_side(orientation) { (width, height) } else { (height, width) };
        let decoding = pixels.saturating_mul(per_pixel).saturating_add(width.saturating_mul(per_column));
        let turning = if is_turned { 6 * pixels } else { 0 };
        let scaling = (self.afterwards)(tall as usize, wide as usize).saturating_add(3 * pixels);
        let bytes = decoding.max(turning).max(scaling);
        if bytes > self.limits.bytes {
            return Err(DecodeError::NeedsTooMuch { width, height, bytes, limit: self.limits.bytes });
        }
        Ok(Budget::shared().take(bytes))
    }
}

fn is_on_its_side(orientation: Orientation) -> bool {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    matches!(orientation, Rotate90 | Rotate270 | Rotate90FlipH | Rotate270FlipH)
}

/// Decodes an image to RGB as a person would see it: turned as its EXIF data say, transparent parts on white, 16 bits
/// rounded to 8, palettes, grey and CMYK converted, and the first picture of an animation.
///
/// A JPEG without its end mark counts as truncated: the decoder cannot tell how much of the last rows is missing.
///
/// Threads that decode at the same time wait for each other when their images are too large to be in memory together.
pub fn decode(bytes: &[u8], limits: &DecodeLimits) -> Result<RgbImage, DecodeError> {
    Ok(decode_for(bytes, limits, &|_, _| 0)?.0)
}

/// The same for an image that is processed further, which takes memory too: `afterwards` says how much for a height and
/// width. That memory is there until what comes with the image is dropped.
pub(crate) fn decode_for(
    bytes: &[u8],
    limits: &DecodeLimits,
    afterwards: &dyn Fn(usize, usize) -> u64,
) -> Result<(RgbImage, MemoryLease), DecodeError> {
    if bytes.is_empty() {
        return Err(DecodeError::Empty);
    }
    let format = image::guess_format(bytes).map_err(|_| DecodeError::UnknownFormat)?;
    let plan = MemoryPlan { limits, afterwards };
    // Unwind safety: nothing that a decoder touched outlives it.
    let decoded = catch_unwind(AssertUnwindSafe(|| match format {
        ImageFormat::Jpeg => decode_jpeg(bytes, &plan),
        _ => decode_other(bytes, format, &plan),
    }));
    decoded.unwrap_or_else(|_| Err(DecodeError::Damaged("file is corrupt".to_owned())))
}

fn decode_other(
    bytes: &[u8],
    format: ImageFormat,
    plan: &MemoryPlan<'_>,
) -> Result<(RgbImage, MemoryLease), DecodeError> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(at_most(plan.limits.bytes));
    let mut decoder = reader.into_decoder().map_err(failed)?;
    let (width, height) = decoder.dimensions();
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let stored = u64::from(decoder.color_type().bytes_per_pixel());
    let per_pixel = while_decoding(format, stored);
    let per_column = 6 * stored; // the row at work, the one before, and their unpacked forms
    let declared =
        ImageHeader { width: width.into(), height: height.into(), per_pixel, per_column, orientation };
    let taken = plan.reserve(&declared)?;
    // What a frame of an animation or a strip of a TIFF declares for itself must stay within what was taken.
    let pixels = u64::from(width) * u64::from(height);
    decoder.set_limits(at_most(pixels * per_pixel + SMALL)).map_err(failed)?;
    let image = DynamicImage::from_decoder(decoder).map_err(failed)?;
    let rgb = if image.color().has_alpha() { on_white(&image.into_rgba8()) } else { image.into_rgb8() };
    Ok((turn(rgb, orientation)?, taken))
}

/// Small buffers of any decoder.
const SMALL: u64 = 4 << 20;

/// The most bytes per pixel that the decoder of a format and the conversion to RGB hold at a time, where `stored` come
/// out of the decoder.
fn while_decoding(format: ImageFormat, stored: u64) -> u64 {
    // A decoder's result, and beside it one in 8 bits with transparency; or that one, and beside it RGB.
    let converting = (stored + 4).max(7);
    let decoding = match format {
        ImageFormat::Gif => 2 * stored + 1,  // a frame, laid on the canvas
        ImageFormat::WebP => stored + 10,    // a frame, a canvas, and the planes of a lossy one
        ImageFormat::Tiff => 3 * stored + 4, // a strip, the picture as it is stored (CMYK, say), and the result
        _ => stored,
    };
    converting.max(decoding)
}

fn at_most(bytes: u64) -> Limits {
    let mut limits = Limits::default();
    limits.max_alloc = Some(bytes);
    limits
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
