//! Vision transformers of the usual sizes with random weights.

use std::collections::HashMap;

use labelsieve_networks::Result;
use labelsieve_networks::transformer::families::describe;
use labelsieve_networks::transformer::{Cpu, Normalisation, Tensors, VisionTransformer};
use labelsieve_numerics::random::Stream;
use serde_json::json;

/// The one of this name; none if it is not a transformer's.
pub fn named(network: &str, size: usize) -> Option<VisionTransformer<Cpu>> {
    let (width, patch) = match network {
        "ViT-S/14" => (384, 14),
        "ViT-B/16" => (768, 16),
        _ => return None,
    };
    let config = json!({
        "model_type": "vit", "hidden_size": width, "num_attention_heads": width / 64,
        "intermediate_size": 4 * width, "image_size": size, "patch_size": patch,
    });
    let tensors = Random::new(width, patch, size);
    let described = describe(&config, &tensors).expect("a usual network");
    let parts = (&described.vit, &described.names);
    let normalisation = Normalisation::default();
    let transformer = VisionTransformer::read(Cpu::default(), parts, &tensors, (size, size), &normalisation);
    Some(transformer.expect("all of its tensors"))
}

/// Random weights of a ViT: their names and shapes.
struct Random(HashMap<String, Vec<usize>>);

impl Random {
    fn new(width: usize, patch: usize, size: usize) -> Random {
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
        let patches = (size / patch) * (size / patch);
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
