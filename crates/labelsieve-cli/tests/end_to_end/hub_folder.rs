//! `embed --model FOLDER`: networks as people download them.

use std::path::Path;

use image::{ImageFormat, RgbImage};
use labelsieve_data::{NamedTensor, NetworkFile, Precision};
use serde_json::{Value, json};

use crate::common::{refuses, run};
use crate::embed::{encoded, table, write};

const EMBED: &str = "embed --model net --images photos --device cpu -o F.parquet";

/// Numbers in [-1, 1) by name, as `make_vit.py` of the golden features makes them.
fn uniform(name: &str, n: usize) -> impl Iterator<Item = f64> {
    let seed = name
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325u64, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
    (1..=n as u64).map(move |i| {
        let z = seed.wrapping_add(i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 40) as f64 / 8_388_608.0 - 1.0
    })
}

fn tensor(name: &str, shape: &[usize]) -> NamedTensor {
    let per_row: usize = shape.iter().skip(1).product();
    let (base, scale) = match () {
        () if shape.len() >= 2 && shape[0] > 1 && !name.contains("position") => {
            (0.0, (3.0 / per_row as f64).sqrt())
        }
        () if shape.len() == 1 && name.ends_with("weight") => (1.0, 0.2),
        () if name.contains("lambda") || name.contains("gamma") => (0.5, 0.25),
        () => (0.0, 0.4),
    };
    let values = uniform(name, shape.iter().product()).map(|u| (base + scale * u) as f32).collect();
    (name.to_owned(), shape.to_vec(), values)
}

/// One of the networks that `transformers` made features of, as a folder `net`, and its two images as `photos`.
struct Published {
    folder: tempfile::TempDir,
    tensors: Vec<NamedTensor>,
    features: Vec<Vec<f64>>,
}

impl Published {
    fn new(name: &str) -> Published {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../labelsieve-vision/tests/golden/vit_small.json");
        let golden: Value = serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON");
        let cases = golden["cases"].as_array().expect("cases");
        let case = cases.iter().find(|case| case["name"] == name).expect("the case");
        let (height, width): (u32, u32) = serde_json::from_value(case["size"].clone()).expect("a size");
        let folder = tempfile::tempdir().expect("a folder");
        let bytes = (height * width * 3) as usize;
        let pixels: Vec<u8> = uniform("pixels", 2 * bytes).map(|u| ((u + 1.0) * 128.0) as u8).collect();
        for (i, pixels) in pixels.chunks(bytes).enumerate() {
            let image = RgbImage::from_raw(width, height, pixels.to_vec()).expect("whole images");
            write(folder.path(), &format!("photos/{i}.png"), &encoded(&image.into(), ImageFormat::Png));
        }
        let preprocessor = json!({
            "image_processor_type": "ViTImageProcessor", "size": { "height": height, "width": width },
            "image_mean": golden["mean"], "image_std": golden["deviation"], "resample": 3,
        });
        write(folder.path(), "net/config.json", case["config"].to_string().as_bytes());
        write(folder.path(), "net/preprocessor_config.json", preprocessor.to_string().as_bytes());
        let shapes = case["tensors"].as_object().expect("shapes");
        let shape = |value: &Value| -> Vec<usize> { serde_json::from_value(value.clone()).expect("a shape") };
        let published = Published {
            tensors: shapes.iter().map(|(name, value)| tensor(name, &shape(value))).collect(),
            features: serde_json::from_value(case["features"].clone()).expect("features"),
            folder,
        };
        save(&published.tensors, &published.net("model.safetensors"), Precision::F32);
        published
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn net(&self, file: &str) -> std::path::PathBuf {
        self.path().join("net").join(file)
    }

    /// The largest difference of the features in a file from those of `transformers`, both of unit length.
    fn difference(&self, file: &str) -> f64 {
        let (_, _, found) = table(self.path(), file);
        let differences = found.iter().zip(&self.features).flat_map(|(found, expected)| {
            let length = expected.iter().map(|v| v * v).sum::<f64>().sqrt();
            found.iter().zip(expected).map(move |(a, b)| (f64::from(*a) - b / length).abs())
        });
        assert_eq!(found.len(), self.features.len());
        differences.fold(0.0, f64::max)
    }
}

fn save(tensors: &[NamedTensor], path: &Path, precision: Precision) {
    let file = NetworkFile { tensors: tensors.to_vec(), metadata: None };
    file.save(path, precision).expect("a written file");
}

#[test]
fn folders_give_the_features_of_their_library() {
    for name in ["clip, quick_gelu", "siglip", "dinov2 with registers", "dinov3", "vit, classifier", "deit"] {
        let published = Published::new(name);
        let done = run(published.path(), EMBED).ok();
        assert!(done.err.contains("2 images"), "{name}: {done:?}");
        let difference = published.difference("F.parquet");
        assert!(difference < 1e-5, "{name}: {difference}");
    }
}

#[test]
fn shards_and_16_bits_are_read_and_other_sizes_are_embedded() {
    let published = Published::new("dinov2");
    let (folder, tensors) = (published.path(), &published.tensors);
    run(folder, EMBED).ok();
    save(tensors, &published.net("model.safetensors"), Precision::F16);
    run(folder, &EMBED.replace("F.parquet", "H.parquet")).ok();
    assert!(published.difference("H.parquet") < 5e-3);

    std::fs::remove_file(published.net("model.safetensors")).expect("removed");
    let (first, second) = tensors.split_at(tensors.len() / 2);
    let map = |tensors: &[NamedTensor], file: &'static str| {
        tensors.iter().map(move |(name, _, _)| (name.clone(), json!(file))).collect::<Vec<_>>()
    };
    save(first, &published.net("model-1.safetensors"), Precision::F32);
    save(second, &published.net("model-2.safetensors"), Precision::F32);
    let names = [map(first, "model-1.safetensors"), map(second, "model-2.safetensors")].concat();
    let index = json!({ "weight_map": serde_json::Map::from_iter(names) });
    write(folder, "net/model.safetensors.index.json", index.to_string().as_bytes());
    run(folder, &EMBED.replace("F.parquet", "S.parquet")).ok();
    assert_eq!(table(folder, "S.parquet"), table(folder, "F.parquet"));
    run(folder, &format!("{} --image-size 40", EMBED.replace("F.parquet", "L.parquet"))).ok();
    assert!(published.difference("L.parquet") > 1e-3, "another size, other features");

    std::fs::write(published.net("model-2.safetensors"), {
        let whole = std::fs::read(published.net("model-2.safetensors")).expect("a shard");
        whole[..whole.len() - 9].to_vec()
    })
    .expect("a cut shard");
    refuses(folder, &EMBED.replace("F.parquet", "C.parquet"), &["model-2.safetensors", "cut short"]);
}

#[test]
fn what_a_folder_lacks_is_named() {
    for file in ["config.json", "preprocessor_config.json", "model.safetensors"] {
        let published = Published::new("vit");
        std::fs::remove_file(published.net(file)).expect("removed");
        let has_no = format!("`net` has no file `{file}`");
        refuses(published.path(), EMBED, &[&has_no, "hint: a folder needs `config.json`"]);
    }
    let published = Published::new("vit");
    let folder = published.path();
    write(folder, "net/config.json", br#"{"model_type": "swin"}"#);
    refuses(folder, EMBED, &["net/config.json", "expected clip, siglip", "found swin"]);
    write(
        folder,
        "net/config.json",
        br#"{"model_type": "vit", "hidden_size": 48, "num_attention_heads": 2}"#,
    );
    refuses(
        folder,
        EMBED,
        &["net/model.safetensors", "tensor `embeddings.", "expected 48×3×16×16, found 24×3×8×8"],
    );
    write(folder, "net/config.json", b"{");
    refuses(folder, EMBED, &["net/config.json"]);
    let published = Published::new("vit");
    write(published.path(), "net/preprocessor_config.json", br#"{"resample": 7}"#);
    refuses(
        published.path(),
        EMBED,
        &["net/preprocessor_config.json", "`resample`: expected a filter of Pillow"],
    );
    refuses(
        published.path(),
        &EMBED.replace("cpu", "cuda"),
        &["do not run on a GPU yet", "hint: use --device cpu"],
    );
}
