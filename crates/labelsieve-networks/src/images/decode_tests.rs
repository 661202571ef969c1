use proptest::prelude::*;

use super::*;

fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/golden/images/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

fn decoded(bytes: &[u8]) -> Result<RgbImage, DecodeError> {
    decode(bytes, &DecodeLimits::default())
}

/// The colours in the middle of the four quarters: upper left, upper right, lower left, lower right.
fn quarters(image: &RgbImage) -> [[u8; 3]; 4] {
    let at = |y: usize, x: usize| {
        let start = 3 * (y * image.height() / 4 * image.width() + x * image.width() / 4);
        std::array::from_fn(|c| image.pixels()[start + c])
    };
    [at(1, 1), at(1, 3), at(3, 1), at(3, 3)]
}

#[track_caller]
fn check(name: &str, size: (usize, usize), expected: [[u8; 3]; 4], tolerance: u8) {
    let image = decoded(&golden(name)).unwrap();
    assert_eq!((image.height(), image.width()), size, "{name}");
    for (found, expected) in quarters(&image).iter().flatten().zip(expected.as_flattened()) {
        assert!(found.abs_diff(*expected) <= tolerance, "{name}: {:?}", quarters(&image));
    }
}

const RED: [u8; 3] = [220, 20, 20];
const GREEN: [u8; 3] = [20, 200, 20];
const BLUE: [u8; 3] = [20, 20, 220];
const WHITE: [u8; 3] = [255; 3];

#[test]
fn every_format_gives_the_same_picture() {
    for name in ["rgb.bmp", "rgb.tiff", "palette.png"] {
        check(name, (16, 24), [RED, GREEN, BLUE, WHITE], 0);
    }
    for name in ["rgb.jpg", "progressive.jpg", "preview.jpg", "lossy.webp"] {
        check(name, (16, 24), [RED, GREEN, BLUE, WHITE], 6);
    }
}

#[test]
fn cmyk_becomes_rgb() {
    check("cmyk.jpg", (16, 24), [RED, GREEN, BLUE, WHITE], 6);
    check("cmyk.tiff", (16, 24), [RED, GREEN, BLUE, WHITE], 1);
}

#[test]
fn grey_becomes_three_equal_channels() {
    // Pillow: round(0.299 R + 0.587 G + 0.114 B) of the four colours.
    check("grey.jpg", (16, 24), [[80; 3], [126; 3], [43; 3], [255; 3]], 3);
}

#[test]
fn an_animation_is_its_first_picture() {
    for name in ["animated.gif", "animated.webp", "animated.png"] {
        check(name, (16, 24), [RED, GREEN, BLUE, WHITE], 0);
    }
}

#[test]
fn transparent_parts_lie_on_white() {
    // Upper right is fully transparent, lower left half: 20 → 20 · 128/255 + 255 · 127/255 = 137.
    check("alpha.png", (16, 24), [RED, WHITE, [137, 137, 237], WHITE], 0);
}

#[test]
fn sixteen_bits_are_scaled_and_not_cut_off() {
    let image = decoded(&golden("grey16.png")).unwrap();
    for (i, pixel) in image.pixels().chunks(3).enumerate() {
        let expected = (i as f64 * 171.0 / 257.0).round();
        assert!(pixel.iter().all(|&value| (f64::from(value) - expected).abs() <= 1.0), "{i}: {pixel:?}");
    }
}

#[test]
fn a_photo_is_turned_as_its_exif_data_say() {
    check("orientation-3.jpg", (16, 24), [WHITE, BLUE, GREEN, RED], 6); // upside down
    check("orientation-6.jpg", (24, 16), [BLUE, RED, WHITE, GREEN], 6); // a quarter turn clockwise
}

#[test]
fn a_jpeg_cut_anywhere_is_an_error_and_not_half_grey() {
    for name in ["rgb.jpg", "progressive.jpg", "preview.jpg", "cmyk.jpg", "grey.jpg"] {
        let bytes = golden(name);
        for cut in [1, 2, 10, 50, bytes.len() / 2, bytes.len() - 3] {
            let error = decoded(&bytes[..bytes.len() - cut]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated("a JPEG without an end marker".into()), "{name} -{cut}");
        }
    }
}

#[test]
fn other_formats_cut_in_half_are_errors() {
    for name in
        ["rgb.bmp", "rgb.tiff", "palette.png", "grey16.png", "animated.gif", "lossy.webp", "animated.webp"]
    {
        let bytes = golden(name);
        assert!(decoded(&bytes[..bytes.len() / 2]).is_err(), "{name}");
    }
}

#[test]
fn sizes_that_only_a_bomb_declares_are_refused_before_anything_is_allocated() {
    let mut jpeg = golden("rgb.jpg");
    let frame = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 9].fill(0xff);
    let expected = "expected at most 178956970 pixels, found 65535×65535 pixels";
    assert_eq!(decoded(&jpeg).unwrap_err().to_string(), expected);
    let mut png = golden("palette.png");
    png[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]); // 65536 × 65536; the checksum is made to match
    let checksum = crc32(&png[12..29]);
    png[29..33].copy_from_slice(&checksum.to_be_bytes());
    let expected = "expected at most 178956970 pixels, found 65536×65536 pixels";
    assert_eq!(decoded(&png).unwrap_err().to_string(), expected);
    let mut bmp = golden("rgb.bmp");
    bmp[18..26].copy_from_slice(&[0, 0, 1, 0, 0, 0, 1, 0]);
    assert!(decoded(&bmp).is_err());
    let mut gif = golden("animated.gif");
    gif[6..10].fill(0xff);
    assert!(decoded(&gif).is_err());
}

#[test]
fn a_limit_on_memory_counts_what_the_decoder_needs() {
    // The result, a few rows, and for a progressive image the coefficients of three channels, padded to 32×32.
    for (name, need) in [("rgb.jpg", 16 * 24 * 3 + 24 * 512), ("progressive.jpg", 16 * 24 * 19 + 24 * 512)] {
        let limits = DecodeLimits { bytes: need - 1, ..DecodeLimits::default() };
        let error = decode(&golden(name), &limits).unwrap_err().to_string();
        let expected = format!(
            "expected at most {} bytes for decoding and scaling, found 24×16 pixels, which need {need}",
            need - 1
        );
        assert_eq!(error, expected, "{name}");
        decode(&golden(name), &DecodeLimits { pixels: 16 * 24, bytes: need }).unwrap();
    }
}

#[test]
fn nothing_and_garbage_are_named() {
    assert_eq!(decoded(b"").unwrap_err(), DecodeError::Empty);
    assert_eq!(decoded(b"<html>404</html>").unwrap_err(), DecodeError::UnknownFormat);
    assert!(decoded(b"\xff\xd8\xff").is_err());
}

/// The checksum of a PNG chunk, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

proptest! {
    #[test]
    fn damage_anywhere_is_survived(
        which in 0usize..9,
        hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let names = ["rgb.jpg", "progressive.jpg", "cmyk.jpg", "alpha.png", "animated.gif", "animated.webp",
            "lossy.webp", "rgb.tiff", "rgb.bmp"];
        let mut bytes = golden(names[which]);
        for (place, value) in hits {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let limits = DecodeLimits { pixels: 1 << 20, bytes: 64 << 20 };
        if let Ok(image) = decode(&bytes, &limits) {
            prop_assert_eq!(image.pixels().len(), 3 * image.height() * image.width());
        }
    }
}
