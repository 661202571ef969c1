use proptest::prelude::*;

use super::*;

/// The picture that `tests/golden/make_images.py` draws.
fn pattern(height: usize, width: usize) -> RgbImage {
    let mut pixels = Vec::new();
    for (y, x, c) in (0..height).flat_map(|y| (0..width).flat_map(move |x| (0..3).map(move |c| (y, x, c)))) {
        let edge = if x > width / 2 { 90 } else { 0 };
        pixels.push(((y * 7 + x * 5 * (c + 1) + edge + c * 40) % 256) as u8);
    }
    RgbImage::new(height, width, pixels).unwrap()
}

#[test]
fn sizes_agree_with_pillow_to_one_level() {
    let path = format!("{}/tests/golden/images/resized.json", env!("CARGO_MANIFEST_DIR"));
    let cases: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let number = |value: &serde_json::Value| value.as_u64().unwrap() as usize;
    for case in cases.as_array().unwrap() {
        let size = |name: &str| (number(&case[name][0]), number(&case[name][1]));
        let (h, w) = size("source");
        let (height, width) = size("target");
        let found = resize(&pattern(h, w), height, width).unwrap();
        let expected: Vec<u8> = case["pixels"].as_array().unwrap().iter().map(|v| number(v) as u8).collect();
        assert_eq!(found.pixels().len(), expected.len());
        let worst = found.pixels().iter().zip(&expected).map(|(&a, &b)| a.abs_diff(b)).max();
        assert!(worst <= Some(1), "{h}×{w} to {height}×{width}: {worst:?}");
    }
}

#[test]
fn the_centre_is_the_middle_of_the_image_at_eight_sevenths() {
    // 16 × 32 to 7 × 7: at 8 × 16, from row 0 and column 4 on (margins 1 and 9; halves to the even side).
    let image = pattern(16, 32);
    let larger = resize(&image, 8, 16).unwrap();
    let view = View::Centre.apply(&image, (7, 7), &mut Scaler::default()).unwrap();
    for row in 0..7 {
        assert_eq!(view[21 * row..21 * (row + 1)], larger.pixels()[48 * row + 12..48 * row + 33]);
    }
}

#[test]
fn the_margins_of_torchvision() {
    // [int(round(m / 2.0)) for m in range(8)] in Python
    assert_eq!((0..8).map(|margin| centre(100 + margin, 100)).collect::<Vec<_>>(), [0, 0, 1, 2, 2, 2, 3, 4]);
}

#[test]
fn a_strip_needs_no_gigabytes() {
    for (height, width) in [(1, 200_000), (200_000, 1)] {
        let image = RgbImage::new(height, width, vec![9; 3 * height * width]).unwrap();
        for view in [View::Whole, View::Centre] {
            let pixels = view.apply(&image, (224, 224), &mut Scaler::default()).unwrap();
            assert!(pixels.iter().all(|&value| value == 9));
        }
    }
}

#[test]
fn the_same_size_is_the_same_picture() {
    let image = pattern(9, 11);
    assert_eq!(resize(&image, 9, 11).unwrap(), image);
}

proptest! {
    #[test]
    fn any_size_to_any_size_stays_within_the_colours_of_the_source(
        (h, w, height, width) in (1usize..40, 1usize..40, 1usize..40, 1usize..40),
        view in prop::sample::select(vec![View::Whole, View::Centre]),
    ) {
        let image = RgbImage::new(h, w, (0..3 * h * w).map(|i| 50 + (i % 90) as u8).collect()).unwrap();
        let pixels = view.apply(&image, (height, width), &mut Scaler::default()).unwrap();
        prop_assert_eq!(pixels.len(), 3 * height * width);
        prop_assert!(pixels.iter().all(|&value| (49..=140).contains(&value)));
    }
}

#[test]
fn every_level_gives_the_same_bytes() {
    for ((height, width), size) in
        [((40, 61), (17, 23)), ((9, 7), (30, 50)), ((300, 200), (64, 64)), ((5, 129), (5, 32))]
    {
        let image = pattern(height, width);
        let scaled = |level| {
            let mut out = vec![0; 3 * size.0 * size.1];
            Scaler::at(level).scale(&image, whole(&image), &mut out, size).unwrap();
            out
        };
        let plain = scaled(Level::PLAIN);
        for level in Level::available() {
            assert_eq!(scaled(level), plain, "{level}, {height}×{width}");
        }
    }
}
