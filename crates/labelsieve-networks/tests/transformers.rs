//! Features of vision transformers against those of `transformers`, timm and open_clip (`tests/golden/make_vit.py`).
//!
//! `cargo test -p labelsieve-networks --test transformers -- --nocapture` prints the largest difference of each.

use std::collections::BTreeMap;

use labelsieve_networks::transformer::families::describe;
use labelsieve_networks::transformer::{Cpu, Normalisation, VisionTransformer};
use labelsieve_networks::{Batch, Embedder};

#[path = "golden/vit.rs"]
mod vit;

use vit::{Case, Formula, Golden, Shapes, images};

fn open(case: &Case, golden: &Golden) -> VisionTransformer<Cpu> {
    let tensors = Formula(case.tensors.clone());
    let described = describe(&case.config, &tensors).unwrap();
    let normalisation = golden.normalisation();
    let parts = (&described.vit, &described.names);
    VisionTransformer::read(Cpu::default(), parts, &tensors, case.size, &normalisation).unwrap()
}

#[track_caller]
fn check(golden: &Golden) {
    let mut bad = Vec::new();
    for case in &golden.cases {
        let mut network = open(case, golden);
        let n = case.features.len();
        let features = network.features(&images(n, case.size)).unwrap();
        let expected: Vec<f64> = case.features.concat();
        assert_eq!((features.len(), network.dim()), (expected.len(), expected.len() / n), "{}", case.name);
        let pairs = features.iter().zip(&expected);
        let worst = pairs.map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
        let largest = expected.iter().fold(0f64, |largest, v| largest.max(v.abs()));
        println!("{}: at most {worst:.1e} off, of numbers up to {largest:.1}", case.name);
        if worst.is_nan() || worst > 1e-4 {
            bad.push(&case.name);
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn features_of_small_networks_of_every_family_agree_with_their_libraries() {
    check(&vit::small());
}

#[test]
fn features_at_published_sizes_agree_with_their_libraries() {
    check(&vit::published());
}

#[test]
fn features_do_not_depend_on_the_batch_or_the_number_of_threads() {
    let golden = vit::small();
    for case in golden.cases.iter().filter(|case| ["clip, gelu", "siglip"].contains(&case.name.as_str())) {
        let mut network = open(case, &golden);
        let all = network.features(&images(5, case.size)).unwrap();
        let pixels = images(5, case.size).pixels().to_vec();
        let (height, width) = case.size;
        for (image, expected) in pixels.chunks(3 * height * width).zip(all.chunks(network.dim())) {
            let alone = network.features(&Batch::new(height, width, image.to_vec()).unwrap()).unwrap();
            assert_eq!(alone, expected, "{}", case.name);
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        assert_eq!(pool.install(|| network.features(&images(5, case.size)).unwrap()), all, "{}", case.name);
    }
}

#[test]
fn tensors_that_disagree_with_the_configuration_are_named() {
    let golden = vit::small();
    let case = golden.cases.iter().find(|case| case.name == "dinov2").unwrap();
    let message = |change: &dyn Fn(&mut Shapes)| {
        let mut tensors = Formula(case.tensors.clone());
        change(&mut tensors.0);
        let described = describe(&case.config, &tensors).unwrap();
        let parts = (&described.vit, &described.names);
        let read =
            VisionTransformer::read(Cpu::default(), parts, &tensors, case.size, &Normalisation::default());
        read.err().unwrap().to_string()
    };
    assert_eq!(
        message(&|tensors| drop(tensors.remove("layernorm.bias"))),
        "tensor `layernorm.bias`: expected 24 numbers, found none"
    );
    let name = "encoder.layer.1.mlp.fc1.weight";
    assert_eq!(
        message(&|tensors| drop(tensors.insert(name.to_owned(), vec![96, 20]))),
        format!("tensor `{name}`: expected 96×24, found 96×20")
    );
    assert_eq!(
        message(&|tensors| drop(tensors.insert("embeddings.position_embeddings".to_owned(), vec![1, 5, 24]))),
        "tensor `embeddings.position_embeddings`: expected 10×24, found 1×5×24"
    );
}

#[test]
fn unknown_architectures_and_wrong_settings_are_named() {
    let message = |config| describe(&config, &Formula(BTreeMap::new())).err().unwrap().to_string();
    let unknown = message(serde_json::json!({ "model_type": "swin" }));
    assert!(unknown.starts_with("architecture: expected clip, siglip"), "{unknown}");
    assert!(unknown.ends_with("found swin"), "{unknown}");
    let timm = message(serde_json::json!({ "architecture": "convnext_tiny" }));
    assert!(timm.ends_with("found convnext_tiny"), "{timm}");
    assert_eq!(
        message(
            serde_json::json!({ "architecture": "vit_tiny_patch16_224", "model_args": { "qk_norm": true } })
        ),
        "`model_args` in the configuration: expected nothing but img_size, num_classes, dynamic_img_size, drop_rate, \
         drop_path_rate, found {\"qk_norm\":true}"
    );
    assert_eq!(
        message(serde_json::json!({ "model_type": "vit", "hidden_size": -3 })),
        "`hidden_size` in the configuration: expected an integer from 1 to 1048576, found -3"
    );
    assert_eq!(
        message(serde_json::json!({ "model_type": "vit", "num_attention_heads": 7 })),
        "attention heads in the configuration: expected a divisor of the width 768, found 7"
    );
    assert_eq!(
        message(serde_json::json!({ "model_type": "vit", "hidden_act": "relu" })),
        "`hidden_act` in the configuration: expected gelu, gelu_pytorch_tanh, quick_gelu or silu, found \"relu\""
    );
}
