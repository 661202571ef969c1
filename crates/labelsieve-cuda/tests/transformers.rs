//! Transformers on the GPU against `transformers`, timm and open_clip, and its attention against the CPU's. Every test skips
//! with a message without a GPU, cuDNN or cuBLASLt.
//!
//! `cargo test -p labelsieve-cuda --test transformers -- --nocapture` prints the differences.

use labelsieve_cuda::{ActivationPrecision, Cuda, CudaOperations};
use labelsieve_networks::transformer::families::describe;
use labelsieve_networks::transformer::{Attention, Cpu, Mask, Operations, VisionTransformer};
use labelsieve_networks::{Batch, Embedder};
use labelsieve_numerics::random::Stream;

#[path = "golden/vit.rs"]
mod vit;

use vit::{Case, Formula, Golden, images};

fn operations(precision: ActivationPrecision) -> Option<CudaOperations> {
    match Cuda::open(0).and_then(|cuda| cuda.transformer_operations(precision)) {
        Ok(operations) => Some(operations),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

macro_rules! operations_or_skip {
    ($precision:expr) => {
        match operations($precision) {
            Some(operations) => operations,
            None => return,
        }
    };
}

fn open<O: Operations>(case: &Case, golden: &Golden, operations: O) -> VisionTransformer<O> {
    let tensors = Formula(case.tensors.clone());
    let described = describe(&case.config, &tensors).unwrap();
    let parts = (&described.vit, &described.names);
    VisionTransformer::read(operations, parts, &tensors, case.size, &golden.normalisation()).unwrap()
}

/// The largest difference of any number, and the smallest cosine of any feature.
fn distance(found: &[f32], expected: &[Vec<f64>]) -> (f64, f64) {
    let mut worst = 0f64;
    let mut cosine = 1f64;
    for (found, expected) in found.chunks(expected[0].len()).zip(expected) {
        let pairs = || found.iter().map(|&a| f64::from(a)).zip(expected.iter().copied());
        worst = pairs().map(|(a, b)| (a - b).abs()).fold(worst, f64::max);
        let sum = |of: &dyn Fn((f64, f64)) -> f64| pairs().map(of).sum::<f64>();
        let lengths = sum(&|(a, _)| a * a).sqrt() * sum(&|(_, b)| b * b).sqrt();
        cosine = cosine.min(sum(&|(a, b)| a * b) / lengths);
    }
    (worst, cosine)
}

#[test]
fn features_agree_with_those_of_the_libraries() {
    for precision in [ActivationPrecision::F32, ActivationPrecision::Bf16] {
        let mut bad = Vec::new();
        for golden in [vit::small(), vit::published()] {
            for case in &golden.cases {
                let mut network = open(case, &golden, operations_or_skip!(precision));
                let found = network.features(&images(case.features.len(), case.size)).unwrap();
                let (worst, cosine) = distance(&found, &case.features);
                println!(
                    "{precision:?}, {}: at most {worst:.1e} off, cosine at least {cosine:.5}",
                    case.name
                );
                let is_good = match precision {
                    ActivationPrecision::F32 => worst <= 1e-4,
                    ActivationPrecision::Bf16 => cosine >= 0.9998,
                };
                if !is_good {
                    bad.push(case.name.clone());
                }
            }
        }
        assert!(bad.is_empty(), "{precision:?}: {bad:?}");
    }
}

#[test]
fn the_same_images_give_the_same_bits() {
    let golden = vit::published();
    let case = golden.cases.iter().find(|case| case.name == "dinov2-small").unwrap();
    let batch = images(9, case.size);
    let features = |operations| open(case, &golden, operations).features(&batch).unwrap();
    let first = features(operations_or_skip!(ActivationPrecision::Bf16));
    assert_eq!(features(operations_or_skip!(ActivationPrecision::Bf16)), first);
    // Alone, an image may be multiplied another way: nearly the same.
    let (height, width) = case.size;
    let mut network = open(case, &golden, operations_or_skip!(ActivationPrecision::Bf16));
    let one = Batch::new(height, width, batch.pixels()[..3 * height * width].to_vec()).unwrap();
    let alone: Vec<f64> = network.features(&one).unwrap().into_iter().map(f64::from).collect();
    let (_, cosine) = distance(&first[..network.dim()], &[alone]);
    assert!(cosine > 0.9999, "{cosine}");
}

/// Rows of attention of random queries, keys and values, two sequences.
fn attended<O: Operations>(
    operations: &mut O,
    (tokens, queries): (usize, usize),
    (heads, head): (usize, usize),
    mask: Mask,
) -> Vec<f32> {
    let width = heads * head;
    let stream = Stream::new(tokens as u64);
    let scale = (head as f32).powf(-0.25); // scores of about 1
    let values: Vec<f32> = (0..2 * tokens * 3 * width).map(|i| scale * stream.normal(i as u64)).collect();
    let mut qkv = O::Rows::default();
    let mut out = O::Rows::default();
    operations.upload(&values, 3 * width, &mut qkv).unwrap();
    let attention = Attention { tokens, queries, heads, mask, rotation: None };
    operations.attention(&attention, &mut qkv, &mut out).unwrap();
    operations.download(&out).unwrap()
}

#[test]
fn attention_agrees_with_the_cpu() {
    for (precision, bound) in [(ActivationPrecision::F32, 2e-5), (ActivationPrecision::Bf16, 0.02)] {
        let mut operations = operations_or_skip!(precision);
        for (tokens, queries, heads, head) in [
            (1, 1, 1, 8),
            (5, 5, 2, 12),
            (197, 197, 3, 64),
            (257, 1, 2, 64),
            (40, 40, 2, 128),
            (65, 33, 1, 72),
        ] {
            for mask in [Mask::None, Mask::Causal] {
                let shapes = ((tokens, queries), (heads, head));
                let found = attended(&mut operations, shapes.0, shapes.1, mask);
                let expected = attended(&mut Cpu::default(), shapes.0, shapes.1, mask);
                let pairs = found.iter().zip(&expected);
                let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
                println!("{precision:?}, {shapes:?}, {mask:?}: at most {worst:.1e} off");
                assert_eq!(found.len(), expected.len());
                assert!(worst <= bound, "{precision:?}, {shapes:?}, {mask:?}: {worst}");
            }
        }
    }
}
