use proptest::prelude::*;

use super::*;

fn noise(height: usize, width: usize) -> RgbImage {
    let stream = Stream::new(1);
    RgbImage::new(height, width, (0..3 * height * width).map(|i| stream.bits(i as u64) as u8).collect())
        .unwrap()
}

fn view(augmentation: &Augmentation, image: &RgbImage, seed: u64) -> Vec<u8> {
    let mut out = vec![0; 3 * augmentation.size.0 * augmentation.size.1];
    augmentation.apply(image, Stream::new(seed), &mut out, &mut Scaler::default()).unwrap();
    out
}

#[test]
fn without_variation_an_image_of_the_size_stays_as_it_is() {
    let image = noise(12, 10);
    assert_eq!(view(&Augmentation::none(12, 10), &image, 0), image.pixels());
}

#[test]
fn half_of_the_images_are_mirrored() {
    let image = noise(4, 4);
    let augmentation = Augmentation { flip: 0.5, ..Augmentation::none(4, 4) };
    let same = (0..2000).filter(|&seed| view(&augmentation, &image, seed) == image.pixels()).count();
    assert!((900..1100).contains(&same), "{same}");
}

#[test]
fn pieces_cover_the_areas_and_ratios_evenly() {
    let crop = RandomCrop::default();
    let mut areas = 0.0;
    let mut wide = 0;
    for seed in 0..4000 {
        let region = crop.draw(100, 100, Stream::new(seed));
        areas += (region.height * region.width) as f64 / 1e4;
        wide += usize::from(region.width > region.height);
    }
    // The mean of 0.08 … 1 is 0.54; tries that do not fit are repeated, which favours smaller pieces: 0.482 by the same
    // algorithm in Python.
    assert!((areas / 4000.0 - 0.482).abs() < 0.02, "{areas}");
    assert!((wide as f64 / 4000.0 - 0.5).abs() < 0.04, "{wide}");
}

#[test]
fn an_image_that_no_piece_fits_is_shown_from_its_middle() {
    let region = RandomCrop { area: (1.0, 1.0), ..RandomCrop::default() }.draw(10, 100, Stream::new(0));
    assert_eq!(region, Region { top: 0, left: 43, height: 10, width: 13 });
}

proptest! {
    #[test]
    fn pieces_lie_inside_the_image(height in 1usize..200, width in 1usize..200, seed: u64, least in 0f32..1.0) {
        let crop = RandomCrop { area: (least, 1.0), ..RandomCrop::default() };
        let region = crop.draw(height, width, Stream::new(seed));
        prop_assert!(region.height >= 1 && region.top + region.height <= height);
        prop_assert!(region.width >= 1 && region.left + region.width <= width);
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes(height in 1usize..60, width in 1usize..60, seed: u64) {
        let image = noise(height, width);
let augmentation = Augmentation::usual(16, 20);
        prop_assert_eq!(view(&augmentation, &image, seed), view(&augmentation, &image, seed));
    }
}
