//! Images per second of vision transformers on the CPU: one line of JSON per network.
//!
//! `benches/vision/run-transformers` compares them with PyTorch.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use labelsieve::random::Stream;
use labelsieve_vision::transformer::families::describe;
use labelsieve_vision::transformer::{Cpu, Normalisation, Tensors, VisionTransformer};
use labelsieve_vision::{Batch, Embedder, Result};
use serde_json::json;

const SIZE: usize = 224;

/// Random weights of a ViT.
struct Random(HashMap<String, Vec<usize>>);

impl Random {
    fn new(width: usize, patch: usize) -> Random {
        let mut shapes = HashMap::new();
        let mut add = |name: &str, shape: &[usize]| drop(shapes.insert(name.to_owned(), shape.to_vec()));
        let mut layer = |name: &str, inputs: usize, outputs: usize| {
            add(&format!("{name}.weight"), &[outputs, inputs]);
            add(&format!("{name}.bias"), &[outputs]);
        };
        for at in (0..12).map(|layer| format!("encoder.layer.{layer}")) {
            for name in ["attention.query", "attention.key", "attention.value", "output.dense"] {
                layer(&format!("{at}.attention.{name}"), width, width);
            }
            layer(&format!("{at}.intermediate.dense"), width, 4 * width);
            layer(&format!("{at}.output.dense"), 4 * width, width);
        }
        let norms = (0..12).flat_map(|layer| ["before", "after"].map(|which| (layer, which)));
        let norms = norms.map(|(layer, which)| format!("encoder.layer.{layer}.layernorm_{which}"));
        for name in norms.chain(["layernorm".to_owned()]) {
            add(&format!("{name}.weight"), &[width]);
            add(&format!("{name}.bias"), &[width]);
        }
        let patches = (SIZE / patch) * (SIZE / patch);
        add("embeddings.cls_token", &[1, 1, width]);
        add("embeddings.position_embeddings", &[1, patches + 1, width]);
        add("embeddings.patch_embeddings.projection.weight", &[width, 3, patch, patch]);
        add("embeddings.patch_embeddings.projection.bias", &[width]);
        Random(shapes)
    }
}

impl Tensors for Random {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.0.get(name).cloned()
    }

    fn values(&self, name: &str) -> Result<Vec<f32>> {
        let stream = Stream::new(name.len() as u64);
        let n = self.0[name].iter().product::<usize>() as u64;
        Ok((0..n).map(|i| 0.02 * (stream.bits(i) as f32 / u64::MAX as f32 - 0.5)).collect())
    }
}

fn main() {
    for (network, width, patch, images) in [("ViT-S/14", 384, 14, 8), ("ViT-B/16", 768, 16, 8)] {
        let config = json!({
            "model_type": "vit", "hidden_size": width, "num_attention_heads": width / 64,
            "intermediate_size": 4 * width, "image_size": SIZE, "patch_size": patch,
        });
        let tensors = Random::new(width, patch);
        let described = describe(&config, &tensors).expect("a usual network");
        let parts = (&described.vit, &described.names);
        let (size, normalisation) = ((SIZE, SIZE), Normalisation::default());
        let transformer = VisionTransformer::read(Cpu::default(), parts, &tensors, size, &normalisation);
        let mut transformer = transformer.expect("all of its tensors");
        let pixels = (0..images * SIZE * SIZE * 3).map(|i| ((i * 2_654_435_761) >> 7) as u8).collect();
        let batch = Batch::new(SIZE, SIZE, pixels).expect("whole images");
        let embed = per_second(images, || drop(transformer.features(&batch).expect("features")));
        println!(r#"{{"network": "{network}", "size": {SIZE}, "batch": {images}, "embed": {embed:.2}}}"#);
    }
}

/// Images per second of the best of five stretches of two seconds, after one call to warm up.
fn per_second(images: usize, mut work: impl FnMut()) -> f64 {
    work();
    let stretch = |work: &mut dyn FnMut()| {
        let (start, mut calls) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_secs(2) {
            work();
            calls += 1;
        }
        (calls * images) as f64 / start.elapsed().as_secs_f64()
    };
    (0..5).map(|_| stretch(&mut work)).fold(0.0, f64::max)
}
