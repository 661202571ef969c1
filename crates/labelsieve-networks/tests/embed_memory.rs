//! `embed` writes as it goes: more images take no more memory, however wide their features are.
//!
//! One test in a program of its own: it counts every allocation of the process.
#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use labelsieve_files::work::Silent;
use labelsieve_networks::devices::CpuDevices;
use labelsieve_networks::embed::{Embed, Reduction};
use labelsieve_networks::image_files::ImageColumns;
use labelsieve_networks::images::OnDamage;
use labelsieve_networks::opening::image_input::ImageFiles;
use labelsieve_numerics::Device;

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
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A bitmap of 4×4 pixels.
fn bitmap(seed: usize) -> Vec<u8> {
    let mut bytes = b"BM".to_vec();
    for number in [54 + 48, 0, 54, 40, 4, 4, 1 | 24 << 16, 0, 48, 0, 0, 0, 0] {
        bytes.extend(u32::to_le_bytes(number));
    }
    bytes.extend((0..48).map(|i| (i * 5 + seed * 13) as u8));
    bytes
}

/// The peak memory of embedding `n` images; the features are 5,120 bytes per image.
fn most(folder: &Path, n: usize, output: &str, reduction: Reduction) -> usize {
    let images = folder.join(format!("images-{n}"));
    if !images.exists() {
        std::fs::create_dir(&images).unwrap();
        (0..n).for_each(|i| std::fs::write(images.join(format!("{i:05}.bmp")), bitmap(i)).unwrap());
    }
    let images =
        ImageFiles { sources: vec![images], columns: ImageColumns::default(), on_damage: OnDamage::Stop };
    let embed = Embed {
        image_size: Some((8, 8)),
        reduction,
        ..Embed::new(Path::new("efficientnet-lite0"), images, Device::Cpu, &folder.join(output))
    };
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    assert_eq!(embed.run(&CpuDevices, &Silent::default()).unwrap().n_images, n);
    MOST.load(Ordering::Relaxed) - before
}

#[test]
fn memory_does_not_grow_with_the_number_of_images() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let pca = || Reduction::Fit { width: 16.try_into().unwrap(), output: folder.join("pca.safetensors") };
    most(folder, 64, "warm.npy", Reduction::default()); // what is made once
    for (what, output, reduction) in
        [("plain", "f.npy", Reduction::default()), ("with a PCA", "f.parquet", pca())]
    {
        let few = most(folder, 2000, output, reduction.clone());
        let many = most(folder, 6000, output, reduction);
        println!("{what}: 2,000 images take {few} bytes, 6,000 take {many}");
        // 4,000 features would be 20 MB. Names of files and ids stay, and threads meet at other moments.
        assert!(many < few + 12_000_000, "{what}: {few} bytes for 2,000 images, {many} for 6,000");
    }
}
