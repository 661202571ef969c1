//! Features of exported models, beside those that PyTorch computes (`golden/make_models.py`). ONNX Runtime is needed for it,
//! and the tests say so when they skip.

#![cfg(feature = "onnx")]

use std::path::PathBuf;

use labelsieve_networks::onnx_runtime::{Element, Error, Layout, Model, load};
use labelsieve_networks::transformer::Normalisation;
use labelsieve_networks::{Batch, Embedder};

const IMAGENET: Normalisation =
    Normalisation { scale: 1.0 / 255.0, mean: [0.485, 0.456, 0.406], deviation: [0.229, 0.224, 0.225] };
const HALF: Normalisation = Normalisation { scale: 1.0 / 255.0, mean: [0.5; 3], deviation: [0.5; 3] };

fn has_library() -> bool {
    match load() {
        Ok(_) => true,
        Err(Error::NoLibrary { .. }) => {
            eprintln!(
                "skipped: ONNX Runtime is not installed (`pip install onnxruntime`, or name it in ORT_DYLIB_PATH)"
            );
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/onnx").join(name)
}

fn open(name: &str) -> Model {
    Model::open(&path(name)).unwrap()
}

/// The bytes of `make_models.py`.
fn images(n: usize, height: usize, width: usize) -> Batch {
    let byte = |i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8;
    Batch::new(height, width, (0..(n * height * width * 3) as u32).map(byte).collect()).unwrap()
}

fn expected(name: &str) -> Vec<f32> {
    let text = std::fs::read_to_string(path("features.json")).unwrap();
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows: Vec<Vec<f32>> = serde_json::from_value(all[name].clone()).unwrap();
    rows.concat()
}

fn assert_near(found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    let largest = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
    assert!(largest < tolerance, "the largest difference is {largest}");
}

#[test]
fn features_are_those_of_pytorch() {
    if !has_library() {
        return;
    }
    let photos = images(8, 24, 24);
    for name in ["cnn.onnx", "cnn-3-at-once.onnx", "cnn-bytes.onnx"] {
        let mut embedder = open(name).embedder((24, 24), IMAGENET, None).unwrap();
        assert_eq!((embedder.dim(), embedder.output()), (16, "features"), "{name}");
        assert_near(&embedder.features(&photos).unwrap(), &expected("cnn"), 1e-4);
    }
    let mut embedder = open("cnn.onnx").embedder((20, 32), HALF, None).unwrap();
    assert_near(&embedder.features(&images(8, 20, 32)).unwrap(), &expected("cnn_20x32_half"), 1e-4);
    let mut embedder = open("cnn-f16.onnx").embedder((24, 24), IMAGENET, None).unwrap();
    assert_near(&embedder.features(&photos).unwrap(), &expected("cnn_f16"), 2e-3);
}

#[test]
fn the_output_with_a_row_for_each_image_is_taken() {
    if !has_library() {
        return;
    }
    let mut embedder = open("vit.onnx").embedder((24, 24), IMAGENET, None).unwrap();
    assert_eq!(embedder.output(), "pooler_output");
    assert_near(&embedder.features(&images(8, 24, 24)).unwrap(), &expected("vit"), 1e-4);
    let refused = |name: &str, output: Option<&str>| {
        open(name).embedder((24, 24), IMAGENET, output).err().unwrap().to_string()
    };
    let error = refused("vit.onnx", Some("last_hidden_state"));
    let ending = "expected a row of numbers for each, 2×d, found `last_hidden_state` (f32, 2×10×16)";
    assert!(error.ends_with(ending), "{error}");
    let error = refused("vit.onnx", Some("pooled"));
    let ending =
        "has no output `pooled`: it has `last_hidden_state` (f32, 2×10×16), `pooler_output` (f32, 2×16)";
    assert!(error.ends_with(ending), "{error}");
    let error = refused("two-rows.onnx", None);
    assert!(error.ends_with("has several outputs: `mean` (f32, 2×3), `most` (f32, 2×3)"), "{error}");
    let mut embedder = open("two-rows.onnx").embedder((24, 24), IMAGENET, Some("most")).unwrap();
    assert_eq!(embedder.features(&images(1, 24, 24)).unwrap().len(), 3);
}

#[test]
fn a_file_says_what_it_takes() {
    if !has_library() {
        return;
    }
    let model = open("cnn.onnx");
    let input = model.input();
    assert_eq!((input.layout, input.element, input.batch), (Layout::Nchw, Element::F32, None));
    assert_eq!((input.height, input.width), (None, None));
    let model = open("cnn-bytes.onnx");
    let input = model.input();
    assert_eq!((input.layout, input.element), (Layout::Nhwc, Element::U8));
    assert_eq!((input.height, input.width), (Some(24), Some(24)));
    assert_eq!(open("cnn-3-at-once.onnx").input().batch, Some(3));
    assert_eq!(open("cnn-f16.onnx").input().element, Element::F16);
    let error = Model::open(&path("two-inputs.onnx")).err().unwrap().to_string();
    let ending =
        "inputs: expected one, a batch of images, found 2: `pixel_values` (f32, 1×3×24×24), `scale` (f32, 1)";
    assert!(error.ends_with(ending), "{error}");
}

#[test]
fn what_is_no_model_is_refused_by_name() {
    if !has_library() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(path("cnn.onnx")).unwrap();
    for (name, bytes) in
        [("text.onnx", &b"no model"[..]), ("empty.onnx", b""), ("cut.onnx", &whole[..whole.len() / 2])]
    {
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let error = Model::open(&file).err().unwrap().to_string();
        assert!(error.starts_with(&format!("`{}`: ", file.display())), "{error}");
    }
    let error = Model::open(&folder.path().join("missing.onnx")).err().unwrap().to_string();
    assert!(error.contains("missing.onnx"), "{error}");
    // Images of another size than the file's.
    let error = open("vit.onnx").embedder((32, 32), IMAGENET, None).err().unwrap().to_string();
    assert!(error.contains("vit.onnx") && error.contains("pixel_values"), "{error}");
    for side in [1 << 20, usize::MAX] {
        let error = open("cnn.onnx").embedder((side, side), IMAGENET, None).err().unwrap().to_string();
        assert!(error.contains("input `x`: expected at most 268435456 pixels at once, found 2×"), "{error}");
    }
}
