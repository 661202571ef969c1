//! JPEG, by far the most common format of photos, through its decoder directly: `image` asks it to fill in whatever is
//! missing of a damaged file, which would teach a network grey rectangles.

use image::metadata::Orientation;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::decode::{DecodeError, DecodeLimits, turn};
use super::rgb::RgbImage;

/// What a progressive image may need at a time: coefficients of 16 bits in up to four channels, padded, and the result.
const BYTES_PER_PIXEL: u64 = 12;

pub(super) fn decode_jpeg(bytes: &[u8], limits: &DecodeLimits) -> Result<RgbImage, DecodeError> {
    if !has_end(bytes) {
        return Err(DecodeError::Truncated("a JPEG without its end mark".to_owned()));
    }
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
    limits.check(width as u64, height as u64, BYTES_PER_PIXEL)?;
    decoder.set_options(lenient.set_strict_mode(true));
    let orientation = decoder.exif().and_then(|exif| Orientation::from_exif_chunk(exif));
    let pixels = decoder.decode().map_err(damaged)?;
    let rgb = image::RgbImage::from_raw(width as u32, height as u32, pixels);
    let rgb = rgb.ok_or_else(|| DecodeError::Damaged("fewer pixels than declared".to_owned()))?;
    turn(rgb, orientation.unwrap_or(Orientation::NoTransforms))
}

/// Whether the end mark (`FF D9`) follows the first scan. Inside a scan the two bytes cannot stand together; a preview
/// in the head, which has an end mark of its own, is stepped over.
fn has_end(bytes: &[u8]) -> bool {
    let mut at = 2;
    loop {
        let Some(&[mark, kind]) = bytes.get(at..at + 2) else { return false };
        if mark != 0xff {
            at += 1; // a stray byte
            continue;
        }
        match kind {
            0xff => at += 1,                      // padding
            0x00 | 0x01 | 0xd0..=0xd8 => at += 2, // marks without a length
            0xd9 => return true,
            0xda => return bytes[at..].windows(2).rev().any(|pair| pair == [0xff, 0xd9]),
            _ => {
                let Some(&[high, low]) = bytes.get(at + 2..at + 4) else { return false };
                at += 2 + usize::from(u16::from_be_bytes([high, low]));
            }
        }
    }
}
