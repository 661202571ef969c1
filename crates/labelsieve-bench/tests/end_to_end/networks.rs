//! Features of two networks do not mix, with a generator of class weights either.

use labelsieve_data::{NETWORK_KEY, SavedClassifier, read_relevance};

use crate::common::run;
use crate::pictures::{png, write, write_model};
use crate::product::product;

/// What a message says about two files of different networks.
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
    product(folder, "clean --clean F.parquet --noisy F.npz --method similarity -o R.parquet");
    product(folder, "train --clean F.parquet --noisy F.npz --relevance R.parquet -o W.safetensors");
    let network =
        read_relevance(folder.join("R.parquet")).expect("what we wrote").metadata[NETWORK_KEY].clone();

    let attention = "train-attention --steps 3 --posing 1 --most-shots 1 -o A.safetensors";
    let refused = run(folder, &format!("{attention} --base G.parquet --base-classifier W.safetensors"))
        .fails_with(&MIXED);
    assert!(refused.err.contains("`W.safetensors`") && refused.err.contains("`G.parquet`"), "{refused:?}");
    run(folder, &format!("{attention} --base F.parquet --base-classifier W.safetensors")).ok();
    let saved = std::fs::read(folder.join("A.safetensors")).expect("what we wrote");
    assert!(String::from_utf8_lossy(&saved).contains(&network), "the generator names its network");

    let train = "train --clean G.parquet --noisy G.npz --relevance R.parquet -o V.safetensors --classifier attention \
                 --attention A.safetensors";
    run(folder, train).fails_with(&MIXED);
    run(folder, &format!("{train} --allow-mixed")).ok();
    let saved = SavedClassifier::load(folder.join("V.safetensors")).expect("a classifier");
    assert_eq!(saved.network, None, "of two");
}
