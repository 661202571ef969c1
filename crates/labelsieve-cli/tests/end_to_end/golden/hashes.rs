//! Files whose bits the project promises at every instruction level, by their SHA-256.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::files::Golden;
use crate::common::{bytes, listing, run};
use crate::embed::{png, write};
use crate::examples::{Examples, class_name};

/// The hash of a file. Its version of Labelsieve is replaced, so that a release changes no golden file.
pub fn hash_of_file(folder: &Path, name: &str) -> String {
    format!("{} {name}\n", sha256(&without_version(bytes(folder, name))))
}

/// One hash of the names and contents of all files below a folder.
pub fn hash_of_folder(folder: &Path, name: &str) -> String {
    let root = folder.join(name);
    let mut all = Vec::new();
    let mut n_files = 0;
    for file in listing(&root).iter().filter(|file| root.join(file).is_file()) {
        let contents = bytes(&root, file);
        all.extend_from_slice(format!("{file} {}\n", sha256(&contents)).as_bytes());
        n_files += 1;
    }
    format!("{} {name}/ ({n_files} files)\n", sha256(&all))
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn without_version(mut bytes: Vec<u8>) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    for key in ["labelsieve.version", "\"version\""] {
        let Some(at) = find(&bytes, key.as_bytes(), 0) else { continue };
        let Some(start) = find(&bytes, version, at) else { continue };
        bytes.splice(start..start + version.len(), *b"VERSION");
    }
    bytes
}

fn find(bytes: &[u8], what: &[u8], from: usize) -> Option<usize> {
    bytes[from..].windows(what.len()).position(|window| window == what).map(|at| from + at)
}

/// Features from integer arithmetic alone, since those of a C library may differ in a last bit: rows near the axis of
/// their class, and every third one near that of the next class.
fn exact(n_per_class: usize, seed: u64) -> Examples {
    const DIM: usize = 16;
    const N_CLASSES: usize = 4;
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u32 << 24) as f32 - 0.5
    };
    let mut features = Vec::new();
    let mut classes = Vec::new();
    for class in 0..N_CLASSES {
        for i in 0..n_per_class {
            let shown = if i % 3 == 2 { (class + 1) % N_CLASSES } else { class };
            features.extend((0..DIM).map(|column| draw() + f32::from(u8::from(column == shown))));
            classes.push(class);
        }
    }
    Examples::new(DIM, &features, &classes)
}

fn feature_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    exact(2, 1).parquet(folder.path().join("C.parquet"), "c");
    exact(40, 2).parquet(folder.path().join("N.parquet"), "n");
    exact(4, 3).parquet(folder.path().join("T.parquet"), "t");
    folder
}

const POOLS: &str = "--clean C.parquet --pool N.parquet --device cpu --seed 3 --threads 1";

#[test]
fn relevance_and_tables_keep_their_bytes() {
    let folder = feature_folder();
    let folder = folder.path();
    let mut golden = Golden::default();
    let mut hashes = String::new();
    let mut on_this_machine = String::new();
    for name in ["C.parquet", "N.parquet", "T.parquet"] {
        hashes += &hash_of_file(folder, name); // where the inputs differ, all else does
    }
    for method in ["gcn", "mlp", "label-propagation", "beta"] {
        for ending in ["parquet", "csv"] {
            run(folder, &format!("score {POOLS} --method {method} -o {method}.{ending}")).ok();
            hashes += &hash_of_file(folder, &format!("{method}.{ending}"));
        }
    }
    write(
        folder,
        "d.csv",
        b"id,class,decision\nn0,barn owl,accept\nn2,barn owl,reject\nn45,eagle owl,reject\n",
    );
    run(folder, &format!("score {POOLS} --method gcn --decisions d.csv -o decided.parquet")).ok();
    hashes += &hash_of_file(folder, "decided.parquet");
    if cfg!(all(target_arch = "x86_64", target_env = "gnu")) {
        // These call the exponential of the C library.
        let hashes = ["similarity", "linear", "mixture", "auto"].map(|method| {
            run(folder, &format!("score {POOLS} --method {method} -o {method}.parquet")).ok();
            hash_of_file(folder, &format!("{method}.parquet"))
        });
        golden.check("bytes/c-library.sha256", &hashes.concat());
    }
    for classifier in ["prototype", "cosine"] {
        let line = format!("train {POOLS} --relevance gcn.parquet --classifier {classifier}");
        run(folder, &format!("{line} -o {classifier}.safetensors")).ok();
        on_this_machine += &hash_of_file(folder, &format!("{classifier}.safetensors"));
    }
    run(folder, "predict --model cosine.safetensors --features T.parquet -o P.csv").ok();
    on_this_machine += &hash_of_file(folder, "P.csv");

    write_texts(folder);
    run(folder, "classes photos -o classes.toml").ok();
    run(folder, "match --classes classes.toml --text texts.csv --rule plural -o matched.parquet").ok();
    run(folder, "match --classes classes.toml --text texts.csv --rule any-word -o matched.csv").ok();
    for name in ["classes.toml", "matched.parquet", "matched.csv"] {
        hashes += &hash_of_file(folder, name);
    }
    run(folder, &format!("plan {POOLS} --method gcn --bins 2 -o plan.json").replace("--threads 1", "")).ok();
    let plan: serde_json::Value = serde_json::from_slice(&bytes(folder, "plan.json")).expect("JSON");
    let digest = format!("labelsieve {}: parts of a run carry {}", env!("CARGO_PKG_VERSION"), plan["run"]);
    golden.check("bytes/parts.txt", &digest);
    golden.check("bytes/tables.sha256", &hashes);
    golden.check_on_this_machine("tables.sha256", &on_this_machine);
    golden.finish();
}

fn write_texts(folder: &Path) {
    let mut texts = "id,caption\n".to_owned();
    for i in 0..40 {
        let class = class_name(i % 4);
        let last_word = class.split(' ').next_back().expect("a word");
        let caption = match i % 5 {
            0 => format!("two {class}s"),
            1 => format!("a {last_word} at night"),
            2 => "nothing of interest".to_owned(),
            _ => format!("the {class}; in a tree"),
        };
        texts += &format!("{i},{caption}\n");
    }
    write(folder, "texts.csv", texts.as_bytes());
    for class in 0..4 {
        write(folder, &format!("photos/{}/0.png", class_name(class)), &png(class as u32));
    }
}
