//! Networks that learn from episodes, and features of two networks, which do not mix.

use labelsieve_files::{NETWORK_KEY, NetworkFile, SavedClassifier, read_relevance};

use crate::common::{bytes, refuses, run};
use crate::pictures::{base_folder, png, write, write_model};
use crate::product::product;

/// The parts of the message about two files of different networks.
const MIXED: [&str; 5] =
    ["was made with network convnet128 ", "but `", "with convnet128 ", "hint: ", "--allow-mixed"];

#[test]
fn a_generator_keeps_its_network_and_refuses_features_of_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for i in 0..8 {
        let class = if i % 2 == 0 { "cat" } else { "owl" };
        write(folder, &format!("photos/{class}/{i:03}.png"), &png(i));
    }
    for (seed, name) in [(0, "F"), (1, "G")] {
        write_model(&folder.join(format!("{name}.safetensors")), seed);
        for ending in ["parquet", "npz"] {
            product(
                folder,
                &format!("embed --model {name}.safetensors --device cpu --images photos -o {name}.{ending}"),
            );
        }
    }
    product(folder, "score --clean F.parquet --pool F.npz --method similarity -o R.parquet");
    product(folder, "train --clean F.parquet --pool F.npz --relevance R.parquet -o W.safetensors");
    let network = read_relevance(folder.join("R.parquet")).expect("the file just written").metadata
        [NETWORK_KEY]
        .clone();

    let attention = "train-attention --steps 3 --posing 1 --most-shots 1 -o A.safetensors";
    let refused = run(folder, &format!("{attention} --base G.parquet --base-classifier W.safetensors"))
        .fails_with(&MIXED);
    assert!(refused.err.contains("`W.safetensors`") && refused.err.contains("`G.parquet`"), "{refused:?}");
    run(folder, &format!("{attention} --base F.parquet --base-classifier W.safetensors")).ok();
    let saved = std::fs::read(folder.join("A.safetensors")).expect("the file just written");
    assert!(String::from_utf8_lossy(&saved).contains(&network), "the generator names its network");

    let train = "train --clean G.parquet --pool G.npz --relevance R.parquet -o V.safetensors --classifier attention \
                 --attention A.safetensors";
    run(folder, train).fails_with(&MIXED);
    run(folder, &format!("{train} --allow-mixed")).ok();
    let saved = SavedClassifier::load(folder.join("V.safetensors")).expect("a classifier");
    assert_eq!(saved.network, None, "the two files differ");
}

#[test]
fn a_network_learns_from_episodes_and_has_no_classifier() {
    let folder = base_folder();
    let folder = folder.path();
    let line = "pretrain --images base --validation checked --architecture convnet128 --size 16 --epochs 4 --batches 4 \
                --ways 2 --shots 2 --queries 4 --rate 0.01 --device cpu";
    for distance in ["euclidean", "cosine"] {
        let line = format!("{line} --distance {distance}");
        let done = run(folder, &format!("{line} --threads 1 -o N.safetensors")).ok();
        assert!(done.err.contains("4 epochs of 4 batches of 12"), "{done:?}");
        assert!(done.err.contains("% validation accuracy"), "{done:?}");
        let found = NetworkFile::load(folder.join("N.safetensors")).expect("a network");
        assert!(found.tensors.iter().all(|(name, _, _)| !name.starts_with("classifier.")));
        assert!(found.metadata.expect("metadata").classes.is_empty());
        run(folder, &format!("{line} --threads 3 -o M.safetensors")).ok();
        assert_eq!(bytes(folder, "N.safetensors"), bytes(folder, "M.safetensors"), "{distance}");
        product(folder, "embed --model N.safetensors --images checked --device cpu -o E.npz");
    }
    for (options, parts) in [
        ("--ways 3", &["an episode takes 3 classes, but there are 2", "hint: lower --ways"][..]),
        ("--queries 40", &["class `columns` has 12 images, but an episode takes 42 of a class", "hint: "]),
        ("--shots 0", &["shots: expected at least 1, found 0", "hint: ", "--shots"]),
        ("--batch-size 8", &["unexpected argument '--batch-size'"]),
    ] {
        let base = line.replace(" --shots 2", "").replace(" --queries 4", "").replace(" --ways 2", "");
        let rest = [("--ways", "2"), ("--shots", "2"), ("--queries", "4")];
        let rest: String = rest
            .iter()
            .filter(|(name, _)| !options.starts_with(name))
            .map(|(name, value)| format!(" {name} {value}"))
            .collect();
        refuses(folder, &format!("{base}{rest} {options} -o X.safetensors"), parts);
    }
}
