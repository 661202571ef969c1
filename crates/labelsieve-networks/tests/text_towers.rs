//! Text towers against `transformers` and open_clip: the folders of `tests/golden/towers` (`make_towers.py`).
#![cfg(feature = "text")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use labelsieve_files::work::Silent;
use labelsieve_files::{ExampleTable, Precision, TableColumns};
use labelsieve_networks::embed_text::{EmbedText, TextReader};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    templates: Vec<String>,
    texts: Vec<String>,
    towers: BTreeMap<String, Tower>,
}

#[derive(Deserialize)]
struct Tower {
    tokens: Vec<Vec<u32>>,
    features: Vec<Vec<f32>>,
    classes: BTreeMap<String, Vec<f32>>,
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/towers").join(name)
}

fn golden() -> Golden {
    serde_json::from_str(&std::fs::read_to_string(path("features.json")).unwrap()).unwrap()
}

fn farthest(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn tokens_and_features_are_those_of_the_libraries() {
    let golden = golden();
    for (name, expected) in &golden.towers {
        let mut reader = TextReader::open(&path(name)).unwrap();
        let (tokens, is_cut) = reader.tokens(&golden.texts).unwrap();
        for (text, (tokens, expected)) in golden.texts.iter().zip(tokens.iter().zip(&expected.tokens)) {
            assert_eq!(tokens, expected, "{name}: `{text}`");
        }
        for (text, is_cut) in golden.texts.iter().zip(is_cut) {
            let is_long = text.contains("very very");
            assert!(is_cut || !is_long, "{name}: `{text}`");
            assert!(!is_cut || text != "owl", "{name}: `{text}`");
        }
        let (features, _) = reader.features(&golden.texts).unwrap();
        let largest = farthest(&features, &expected.features.concat());
        println!("{name}: {} texts, largest difference {largest:e}", golden.texts.len());
        assert!(largest < 1e-4, "{name}: {largest}");
    }
}

#[test]
fn the_row_of_a_class_is_the_mean_of_its_texts() {
    let golden = golden();
    let folder = tempfile::tempdir().unwrap();
    for (name, expected) in &golden.towers {
        let output = folder.path().join("text.parquet");
        let job = EmbedText {
            model: path(name),
            classes: path("classes.toml"),
            templates: golden.templates.clone(),
            precision: Precision::F32,
            output: output.clone(),
        };
        let summary = job.run(&Silent::default()).unwrap();
        assert_eq!((summary.n_classes, summary.n_texts), (5, golden.texts.len()), "{name}");
        let table = ExampleTable::open(&output, &TableColumns::default()).unwrap();
        let labels = table.labels.as_ref().unwrap();
        for row in 0..table.len() {
            let mut found = vec![0.0; table.features.cols()];
            table.features.read_rows(&[row], &mut found).unwrap();
            assert!(farthest(&found, &expected.classes[labels.get(row)]) < 1e-4, "{name}, row {row}");
        }
    }
}

#[test]
fn what_is_missing_or_wrong_in_a_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "preprocessor_config.json", "model.safetensors", "tokenizer.json"] {
        std::fs::copy(path("clip").join(name), folder.path().join(name)).unwrap();
    }
    let open = || TextReader::open(folder.path()).err().map(|error| error.to_string()).unwrap_or_default();
    assert_eq!(open(), "");
    let config = std::fs::read_to_string(path("clip").join("config.json")).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(config.contains(from), "{from}");
        std::fs::write(folder.path().join("config.json"), config.replacen(from, to, 1)).unwrap();
    };
    changed("\"vocab_size\": 604", "\"vocab_size\": 600");
    assert!(open().contains("token_embedding.weight`: expected 600×16, found 604×16"), "{}", open());
    changed("\"model_type\": \"clip\"", "\"model_type\": \"dinov2\"");
    assert!(open().contains("expected one with a text tower: clip, siglip"), "{}", open());
    std::fs::write(folder.path().join("config.json"), &config).unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), "{").unwrap();
    assert!(open().contains("tokenizer.json` is not a usable tokenizer: "), "{}", open());
    std::fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    assert!(open().ends_with("has no tokenizer.json"), "{}", open());
}
