//! Encoded images for browsers: thumbnails and whole images.

use image::ImageFormat;
use image::codecs::jpeg::JpegEncoder;

use super::decode::{DecodeError, DecodeLimits, decode_for};
use super::resize::resize;
use super::rgb::RgbImage;

/// Files up to this size are not re-encoded if their dimensions are small enough too.
const SMALL_FILE: usize = 12 << 10;
const QUALITY: u8 = 82;

/// An image that a browser can show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserImage {
    /// `image/jpeg` and the like.
    pub media_type: &'static str,
    /// Encoded.
    pub bytes: Vec<u8>,
}

impl BrowserImage {
    /// A thumbnail of at most `side` pixels per side; a file that is small enough is returned unchanged.
    pub fn thumbnail(bytes: Vec<u8>, side: usize) -> Result<BrowserImage, DecodeError> {
        let (image, _memory) =
            decode_for(&bytes, &DecodeLimits::default(), &|_, _| (side * side * 6) as u64)?;
        let longest = image.height().max(image.width());
        if longest <= side
            && bytes.len() <= SMALL_FILE
            && let Some(media_type) = shown_by_browsers(&bytes)
        {
            return Ok(BrowserImage { media_type, bytes });
        }
        let scaled = |length: usize| (length * side).div_ceil(longest).max(1);
        let small = if longest > side {
            resize(&image, scaled(image.height()), scaled(image.width()))
                .map_err(|error| DecodeError::Damaged(error.to_string()))?
        } else {
            image
        };
        jpeg(&small)
    }

    /// The whole image: unchanged if browsers support its format, otherwise as JPEG. It is decoded in both cases, to detect
    /// damage.
    pub fn whole(bytes: Vec<u8>) -> Result<BrowserImage, DecodeError> {
        let (image, _memory) = decode_for(&bytes, &DecodeLimits::default(), &|height, width| {
            (height * width * 3) as u64 // no file of ours is larger than its pixels
        })?;
        match shown_by_browsers(&bytes) {
            Some(media_type) => Ok(BrowserImage { media_type, bytes }),
            None => jpeg(&image),
        }
    }
}

/// The media type of formats that every browser shows.
fn shown_by_browsers(bytes: &[u8]) -> Option<&'static str> {
    match image::guess_format(bytes).ok()? {
        ImageFormat::Jpeg => Some("image/jpeg"),
        ImageFormat::Png => Some("image/png"),
        ImageFormat::WebP => Some("image/webp"),
        ImageFormat::Gif => Some("image/gif"),
        ImageFormat::Bmp => Some("image/bmp"),
        _ => None,
    }
}

fn jpeg(image: &RgbImage) -> Result<BrowserImage, DecodeError> {
    let mut bytes = Vec::new();
    let width = image.width() as u32;
    let height = image.height() as u32;
    JpegEncoder::new_with_quality(&mut bytes, QUALITY)
        .encode(image.pixels(), width, height, image::ExtendedColorType::Rgb8)
        .map_err(|error| DecodeError::Damaged(error.to_string()))?;
    Ok(BrowserImage { media_type: "image/jpeg", bytes })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn encoded(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let noise =
            |x: u32, y: u32| image::Rgb([(x * 37 % 256) as u8, (y * 91 % 256) as u8, (x * y % 256) as u8]);
        image::RgbImage::from_fn(width, height, noise).write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn size(picture: &BrowserImage) -> (u32, u32) {
        let image = image::load_from_memory(&picture.bytes).unwrap();
        (image.width(), image.height())
    }

    #[test]
    fn a_thumbnail_keeps_the_shape_and_fits_the_side() {
        for (width, height, expected) in [(800, 400, (192, 96)), (100, 2000, (10, 192)), (3000, 1, (192, 1))]
        {
            let small = BrowserImage::thumbnail(encoded(width, height, ImageFormat::Png), 192).unwrap();
            assert_eq!((small.media_type, size(&small)), ("image/jpeg", expected));
        }
    }

    #[test]
    fn what_is_small_stays_as_it_is_unless_browsers_do_not_know_it() {
        let png = encoded(40, 30, ImageFormat::Png);
        let kept = BrowserImage::thumbnail(png.clone(), 192).unwrap();
        assert_eq!((kept.media_type, kept.bytes), ("image/png", png));
        let tiff = BrowserImage::thumbnail(encoded(40, 30, ImageFormat::Tiff), 192).unwrap();
        assert_eq!((tiff.media_type, size(&tiff)), ("image/jpeg", (40, 30)));
    }

    #[test]
    fn a_whole_image_keeps_its_bytes_or_becomes_jpeg() {
        let png = encoded(500, 300, ImageFormat::Png);
        let whole = BrowserImage::whole(png.clone()).unwrap();
        assert_eq!((whole.media_type, whole.bytes), ("image/png", png));
        let tiff = BrowserImage::whole(encoded(500, 300, ImageFormat::Tiff)).unwrap();
        assert_eq!((tiff.media_type, size(&tiff)), ("image/jpeg", (500, 300)));
    }

    #[test]
    fn what_is_no_image_is_refused_in_both_sizes() {
        for bytes in [b"<script>alert(1)</script>".to_vec(), b"\x89PNG\r\n\x1a\nnothing".to_vec(), Vec::new()]
        {
            assert!(BrowserImage::thumbnail(bytes.clone(), 192).is_err());
            assert!(BrowserImage::whole(bytes).is_err());
        }
    }
}
