//! Decodes JPEG with its decoder directly: `image` would let it fill in the missing parts of a damaged file, and a network
//! would learn grey rectangles.

use image::metadata::Orientation;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::budget::MemoryLease;
use super::decode::{DecodeError, ImageHeader, MemoryPlan, turn};
use super::rgb::RgbImage;

/// Rows of blocks at work, in up to four channels: coefficients of 16 bits, samples, and samples of the next row.
const BYTES_PER_COLUMN: u64 = 512;

pub(super) fn decode_jpeg(
    bytes: &[u8],
    plan: &MemoryPlan<'_>,
) -> Result<(RgbImage, MemoryLease), DecodeError> {
    let Some(layout) = layout(bytes) else {
        return Err(DecodeError::Truncated("a JPEG without an end marker".to_owned()));
    };
    let damaged = |error: zune_jpeg::errors::DecodeErrors| DecodeError::Damaged(format!("{error:?}"));
    // Stray bytes between the segments of the head do no harm; anything odd in the picture itself does.
    let lenient = DecoderOptions::default()
        .set_max_width(usize::MAX)
        .set_max_height(usize::MAX)
        .jpeg_set_out_colorspace(ColorSpace::RGB)
        .set_strict_mode(false);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), lenient);
    decoder.decode_headers().map_err(damaged)?;
    let (width, height) = decoder.dimensions().ok_or_else(|| DecodeError::Damaged("no size".to_owned()))?;
    let orientation = decoder.exif().and_then(|exif| Orientation::from_exif_chunk(exif));
    let orientation = orientation.unwrap_or(Orientation::NoTransforms);
    let taken = plan.reserve(&ImageHeader {
        width: width as u64,
        height: height as u64,
        per_pixel: 3 + layout.coefficients(width as u64, height as u64),
        per_column: BYTES_PER_COLUMN,
        orientation,
    })?;
    decoder.set_options(lenient.set_strict_mode(true));
    let pixels = decoder.decode().map_err(damaged)?;
    drop(decoder);
    let rgb = image::RgbImage::from_raw(width as u32, height as u32, pixels);
    let rgb = rgb.ok_or_else(|| DecodeError::Damaged("fewer pixels than declared".to_owned()))?;
    Ok((turn(rgb, orientation)?, taken))
}

/// How the image is stored.
#[derive(Clone, Copy, Debug, Default)]
struct Layout {
    is_progressive: bool,
    /// Channels of the picture.
    n_channels: u64,
    /// Channels of its first scan.
    n_in_scan: u64,
}

impl Layout {
    /// Bytes per pixel for the coefficients of the whole picture, which are kept when a scan does not have all of a
    /// pixel: 16 bits in each channel, of a picture padded to whole blocks.
    fn coefficients(self, width: u64, height: u64) -> u64 {
        if !self.is_progressive && self.n_in_scan == self.n_channels {
            return 0;
        }
        let padded = width.next_multiple_of(32) * height.next_multiple_of(32);
        (2 * self.n_channels.clamp(1, 4) * padded).div_ceil((width * height).max(1))
    }
}

/// The layout in the header, if the end marker (`FF D9`) follows the first scan. The two bytes cannot occur inside a scan; an
/// embedded preview, which has an end marker of its own, is skipped.
fn layout(bytes: &[u8]) -> Option<Layout> {
    let mut at = 2;
    let mut layout = Layout::default();
    loop {
        let &[mark, kind] = bytes.get(at..at + 2)? else { return None };
        if mark != 0xff {
            at += 1; // a stray byte
            continue;
        }
        match kind {
            0xff => at += 1,                      // padding
            0x00 | 0x01 | 0xd0..=0xd8 => at += 2, // marks without a length
            0xd9 => return Some(layout),
            0xda => {
                layout.n_in_scan = u64::from(*bytes.get(at + 4)?);
                let has_end = bytes[at..].windows(2).rev().any(|pair| pair == [0xff, 0xd9]);
                return has_end.then_some(layout);
            }
            _ => {
                if matches!(kind, 0xc0..=0xc3) {
                    layout.is_progressive = kind == 0xc2;
                    layout.n_channels = u64::from(*bytes.get(at + 9)?);
                }
                let &[high, low] = bytes.get(at + 2..at + 4)? else { return None };
                at += 2 + usize::from(u16::from_be_bytes([high, low]));
            }
        }
    }
}
