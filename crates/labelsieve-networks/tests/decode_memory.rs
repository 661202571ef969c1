//! The memory that an image declares is the memory that decoding and scaling take, format by format.
//!
//! One test in a program of its own: it counts every allocation of the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Cursor;
use std::sync::atomic::{AtomicUsize, Ordering};

use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageFormat};
use labelsieve_networks::images::{DecodeLimits, Encoded, View};
use labelsieve_networks::{Preparation, prepare};

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let held = HELD.fetch_add(size, Ordering::Relaxed) + size - layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// The memory that the image declares, and the peak that was measured, unless it is refused.
fn need_and_most(bytes: &[u8], view: View, size: (usize, usize)) -> (usize, usize) {
    let run = |limits: DecodeLimits| {
        let source = vec![Encoded { id: "x".to_owned(), label: None, bytes: Ok(bytes.to_vec()) }];
        MOST.store(HELD.load(Ordering::Relaxed), Ordering::Relaxed);
        let before = HELD.load(Ordering::Relaxed);
        let preparation = Preparation { size, view, limits, batch: 1 };
        let prepared = prepare(source.into_iter(), preparation).unwrap().next().unwrap().unwrap();
        (prepared, MOST.load(Ordering::Relaxed) - before)
    };
    let (refused, _) = run(DecodeLimits { bytes: 1 << 20, ..DecodeLimits::default() });
    let reason = &refused.skipped[0].reason;
    let need = reason.split("which need ").nth(1).unwrap_or_else(|| panic!("{reason}")).parse().unwrap();
    let (prepared, most) = run(DecodeLimits::default());
    assert_eq!(prepared.ids, ["x"], "{:?}", prepared.skipped);
    (need, most)
}

#[test]
fn no_decoder_and_no_scaling_takes_more_than_was_asked_for() {
    // Each has a few megabytes for tables, threads and the batch itself.
    const BESIDES: usize = 6 << 20;
    let width = 2000;
    let height = 1400;
    let picture = DynamicImage::from(image::RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([(x * 7 + y * 3) as u8, (x / 3) as u8, (y ^ x) as u8])
    }));
    let mut jpeg = Vec::new();
    picture.write_with_encoder(JpegEncoder::new_with_quality(&mut jpeg, 90)).unwrap();
    let sixteen = DynamicImage::from(picture.to_rgba16());
    let cases = [
        ("jpeg", jpeg),
        ("png", encoded(&picture, ImageFormat::Png)),
        ("png with transparency", encoded(&picture.to_rgba8().into(), ImageFormat::Png)),
        ("png of 16 bits", encoded(&sixteen, ImageFormat::Png)),
        ("grey png", encoded(&picture.to_luma8().into(), ImageFormat::Png)),
        ("bmp", encoded(&picture, ImageFormat::Bmp)),
        ("tiff", encoded(&picture, ImageFormat::Tiff)),
        ("tiff of 16 bits", encoded(&sixteen, ImageFormat::Tiff)),
        ("gif", encoded(&picture, ImageFormat::Gif)),
        ("webp", encoded(&picture, ImageFormat::WebP)),
        ("a strip", encoded(&image::GrayImage::new(200_000, 1).into(), ImageFormat::Png)),
        ("a tall strip", encoded(&image::GrayImage::new(1, 200_000).into(), ImageFormat::Png)),
    ];
    for (name, bytes) in cases {
        for (view, size) in [(View::Whole, (224, 224)), (View::Centre, (224, 224)), (View::Whole, (900, 700))]
        {
            let (need, most) = need_and_most(&bytes, view, size);
            assert!(most <= need + 2 * bytes.len() + BESIDES, "{name}, {view}: {most} of {need} bytes");
        }
    }
}
