//! `embed --model FOLDER`: networks as people download them.

use std::path::Path;

use image::{ImageFormat, RgbImage};
use labelsieve_files::{NamedTensor, NetworkFile, Precision};
use serde_json::{Value, json};

use crate::common::run;
use crate::embed::{encoded, table, write};

pub const EMBED: &str = "embed --model net --images photos --device cpu -o F.parquet";

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
pub struct Published {
    folder: tempfile::TempDir,
    pub tensors: Vec<NamedTensor>,
    features: Vec<Vec<f64>>,
}

impl Published {
    pub fn new(name: &str) -> Published {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../labelsieve-networks/tests/golden/vit_small.json");
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

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn net(&self, file: &str) -> std::path::PathBuf {
        self.path().join("net").join(file)
    }

    /// The largest difference of the features in a file from those of `transformers`, both of unit length.
    pub fn difference(&self, file: &str) -> f64 {
        let (_, _, found) = table(self.path(), file);
        let differences = found.iter().zip(&self.features).flat_map(|(found, expected)| {
            let length = expected.iter().map(|v| v * v).sum::<f64>().sqrt();
            found.iter().zip(expected).map(move |(a, b)| (f64::from(*a) - b / length).abs())
        });
        assert_eq!(found.len(), self.features.len());
        differences.fold(0.0, f64::max)
    }
}

pub fn save(tensors: &[NamedTensor], path: &Path, precision: Precision) {
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

/// `transformers` 5 saves no `preprocessor_config.json`.
#[test]
fn the_preparation_of_images_may_be_part_of_another_file() {
    let published = Published::new("clip, quick_gelu");
    let own = published.net("preprocessor_config.json");
    let images: Value = serde_json::from_slice(&std::fs::read(&own).expect("a file")).expect("JSON");
    std::fs::remove_file(own).expect("removed");
    let shared = |config: Value| {
        write(published.path(), "net/processor_config.json", config.to_string().as_bytes());
    };
    shared(json!({ "processor_class": "CLIPProcessor" }));
    let missing = "`net` has no file `preprocessor_config.json`";
    run(published.path(), EMBED).fails_with(&[missing, "hint: "]);
    shared(json!({ "image_processor": { "resample": 9 } }));
    run(published.path(), EMBED).fails_with(&["`net/processor_config.json`: `resample`", "hint: "]);
    shared(json!({ "image_processor": images, "processor_class": "CLIPProcessor" }));
    run(published.path(), EMBED).ok();
    let difference = published.difference("F.parquet");
    assert!(difference < 1e-5, "{difference}");
}

/// Splits the tensors into two shards and writes their index, instead of the one file.
pub fn write_shards(published: &Published) {
    let (first, second) = published.tensors.split_at(published.tensors.len() / 2);
    let map = |tensors: &[NamedTensor], file: &'static str| {
        tensors.iter().map(move |(name, _, _)| (name.clone(), json!(file))).collect::<Vec<_>>()
    };
    std::fs::remove_file(published.net("model.safetensors")).expect("removed");
    save(first, &published.net("model-1.safetensors"), Precision::F32);
    save(second, &published.net("model-2.safetensors"), Precision::F32);
    let names = [map(first, "model-1.safetensors"), map(second, "model-2.safetensors")].concat();
    let index = json!({ "weight_map": serde_json::Map::from_iter(names) });
    write(published.path(), "net/model.safetensors.index.json", index.to_string().as_bytes());
}

/// A safetensors file whose numbers have 16 bits, the upper ones of 32.
pub fn save_bf16(tensors: &[NamedTensor], path: &Path) {
    let (mut header, mut bytes) = (serde_json::Map::new(), Vec::new());
    for (name, shape, values) in tensors {
        let start = bytes.len();
        bytes.extend(values.iter().flat_map(|value| ((value.to_bits() >> 16) as u16).to_le_bytes()));
        let info = json!({ "dtype": "BF16", "shape": shape, "data_offsets": [start, bytes.len()] });
        header.insert(name.clone(), info);
    }
    let header = Value::Object(header).to_string();
    let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &bytes].concat();
    std::fs::write(path, file).expect("disk space");
}

#[test]
fn shards_and_16_bits_are_read_and_other_sizes_are_embedded() {
    let published = Published::new("dinov2");
    let folder = published.path();
    let tensors = &published.tensors;
    run(folder, EMBED).ok();
    save(tensors, &published.net("model.safetensors"), Precision::F16);
    run(folder, &EMBED.replace("F.parquet", "H.parquet")).ok();
    assert!(published.difference("H.parquet") < 1e-3);
    save_bf16(tensors, &published.net("model.safetensors"));
    run(folder, &EMBED.replace("F.parquet", "B.parquet")).ok();
    let difference = published.difference("B.parquet");
    assert!((1e-5..2e-2).contains(&difference), "three digits: {difference}");

    write_shards(&published);
    run(folder, &EMBED.replace("F.parquet", "S.parquet")).ok();
    assert_eq!(table(folder, "S.parquet"), table(folder, "F.parquet"));
    run(folder, &format!("{} --image-size 40", EMBED.replace("F.parquet", "L.parquet"))).ok();
    assert!(published.difference("L.parquet") > 1e-3, "another size, other features");
}
