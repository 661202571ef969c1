//! A small copy of the paper's release: 16 classes of 16 numbers, in the release's own layout.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use labelsieve::synthetic::{Noise, Recipe, SyntheticTask};
use labelsieve_files::write_npy_i64;
use serde_json::json;

use crate::examples::{clean_of, noisy_of, test_of};

pub const BASE: Range<usize> = 0..4;
pub const NOVEL_VAL: Range<usize> = 4..10;
pub const NOVEL_TEST: Range<usize> = 10..16;
/// Labelled photos per class.
pub const TRAIN: usize = 24;

pub const RECIPE: Recipe = Recipe {
    dim: 16,
    n_classes: 16,
    n_clean: TRAIN,
    largest_pool: 80,
    noise_ratio: 0.5,
    noise: Noise::Clusters(2),
    n_test: 6,
};

/// The files of both data sets; the two share their features.
pub fn write(folder: &Path) -> SyntheticTask {
    let task = RECIPE.generate(3);
    for dataset in ["imagenet", "places365"] {
        clean_of(&task).npz(folder.join(format!("{dataset}_train_resnet10.npz")));
        test_of(&task).npz(folder.join(format!("{dataset}_val_resnet10.npz")));
        for (phase, novel) in [("val", NOVEL_VAL), ("test", NOVEL_TEST)] {
            let pools = noisy_of(&task).only(|class| novel.contains(&class));
            pools.npz(folder.join(format!("yfcc_{dataset}_resnet10_{phase}.npz")));
            let ids: Vec<i64> = novel.map(|class| class as i64).collect();
            write_ints(
                &folder.join(format!("places365_novel_classes_{phase}_phase.npy")),
                &[ids.len()],
                &ids,
            );
        }
    }
    let splits = json!({
        "base_classes": BASE.collect::<Vec<_>>(),
        "base_classes_1": [0, 1],
        "base_classes_2": [2, 3],
        "novel_classes_1": NOVEL_VAL.collect::<Vec<_>>(),
        "novel_classes_2": NOVEL_TEST.collect::<Vec<_>>(),
    });
    std::fs::write(folder.join("imagenet_lowshot_category_splits.json"), splits.to_string())
        .expect("disk space");
    for episode in 1..=5 {
        write_episode(folder, episode, |class, i| clean_row(episode, class, i));
    }
    task
}

/// Our choice of rows for `mapped_splits_{episode}.npy`: never simply the first ones.
pub fn clean_row(episode: usize, class: usize, i: usize) -> usize {
    class * TRAIN + (5 * i + 7 * episode + class) % TRAIN
}

pub fn write_episode(folder: &Path, episode: usize, row: impl Fn(usize, usize) -> usize) {
    let rows: Vec<i64> =
        (0..16).flat_map(|class| (0..20).map(move |i| (class, i))).map(|(c, i)| row(c, i) as i64).collect();
    write_ints(&folder.join(format!("mapped_splits_{episode}.npy")), &[16, 20], &rows);
}

fn write_ints(path: &Path, shape: &[usize], values: &[i64]) {
    write_npy_i64(File::create(path).expect("a writable folder"), shape, values).expect("disk space");
}
