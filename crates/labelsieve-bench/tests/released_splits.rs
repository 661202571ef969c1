//! The split files of the paper's release, if available: in `$LABELSIEVE_DATA` or `../shared/data`.

use std::path::{Path, PathBuf};

use labelsieve_bench::{CategorySplits, EpisodeSplits, read_class_ids};

fn splits_folder() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let data = std::env::var_os("LABELSIEVE_DATA").map_or(workspace.join("../shared/data"), PathBuf::from);
    let folder = data.join("lowshot-imagenet-splits");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no folder `{}`; set LABELSIEVE_DATA", folder.display());
    None
}

#[test]
fn the_category_splits_have_their_published_sizes() {
    let Some(folder) = splits_folder() else { return };
    let splits = CategorySplits::load(folder.join("imagenet_lowshot_category_splits.json")).unwrap();
    assert_eq!(splits.base_classes.len(), 389);
    assert_eq!((splits.base_classes_1.len(), splits.base_classes_2.len()), (193, 196));
    assert_eq!((splits.novel_classes_1.len(), splits.novel_classes_2.len()), (300, 311));
    assert_eq!(splits.novel_classes_2[..3], [0, 5, 6]);
}

#[test]
fn the_five_episodes_give_twenty_rows_for_each_of_a_thousand_classes() {
    let Some(folder) = splits_folder() else { return };
    for (episode, (smallest, largest)) in
        [(13, 1281054), (102, 1281162), (24, 1281044), (24, 1281135), (3, 1281052)].into_iter().enumerate()
    {
        // >>> a = np.load(f'mapped_splits_{episode}.npy'); a.shape, a.min(), a.max()
        let splits = EpisodeSplits::load_episode(&folder, episode + 1).unwrap();
        assert_eq!((splits.n_classes(), splits.n_per_class()), (1000, 20));
        let rows: Vec<usize> =
            (0..1000).flat_map(|class| splits.clean_rows(class, 20).unwrap()).copied().collect();
        assert_eq!((rows.iter().min(), rows.iter().max()), (Some(&smallest), Some(&largest)));
    }
}

#[test]
fn the_novel_classes_of_places_are_read_for_both_phases() {
    let Some(folder) = splits_folder() else { return };
    let of =
        |phase| read_class_ids(folder.join(format!("places365_novel_classes_{phase}_phase.npy"))).unwrap();
    let validation = of("val");
    let test = of("test");
    assert_eq!((validation.len(), test.len()), (182, 183));
    assert!(validation.iter().all(|class| !test.contains(class)));
}
