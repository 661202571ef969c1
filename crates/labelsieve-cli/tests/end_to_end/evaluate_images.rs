//! `evaluate --images`: how well a network names images.

use labelsieve_files::{NetworkFile, Precision};

use crate::common::{refuses, run};
use crate::embed::write;
use crate::networks::{PRETRAIN, base_folder, draw, picture};

const EVALUATE: &str = "evaluate --model N.safetensors --device cpu --images";

/// `N.safetensors` tells `columns` from `rows`; `worse.safetensors` has the names of its classes swapped.
fn trained() -> tempfile::TempDir {
    let folder = base_folder();
    let path = folder.path();
    run(path, &format!("{PRETRAIN} -o N.safetensors")).ok();
    let mut network = NetworkFile::load(path.join("N.safetensors")).expect("a network");
    network.metadata.as_mut().expect("metadata").classes.reverse();
    network.save(path.join("worse.safetensors"), Precision::F32).expect("disk space");
    folder
}

#[test]
fn a_network_is_measured_on_images_as_predict_names_them() {
    let folder = trained();
    let folder = folder.path();
    let predicted = run(folder, "predict --model N.safetensors --device cpu --images checked").ok();
    let lines: Vec<Vec<&str>> =
        predicted.out.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    let right = lines.iter().filter(|fields| fields[0].split('/').next() == Some(fields[2])).count();
    let line = format!("{EVALUATE} checked --baseline worse.safetensors");
    let found = run(folder, &format!("{line} --json")).ok().json();
    assert_eq!((&found["n_test"], lines.len()), (&serde_json::json!(20), 20));
    let top_1 = found["top_1"].as_f64().expect("a number");
    assert!((top_1 - right as f64 / 20.0).abs() < 1e-9, "{found} {right}");
    assert!((found["baseline"]["top_1"].as_f64().expect("a number") - (1.0 - top_1)).abs() < 1e-9, "{found}");
    assert_eq!(found["classes"][1]["class"], "rows");
    assert_eq!(found["classes"][1]["n"], 10);
    let table = run(folder, &line).ok().out;
    for part in ["20 test examples of 2 classes", "top-1 %", "baseline"] {
        assert!(table.contains(part), "{table}");
    }
}

#[test]
fn classes_may_be_a_column_and_unreadable_images_are_left_out() {
    let folder = trained();
    let folder = folder.path();
    for i in 0..4 {
        write(folder, &format!("flat/{i}.png"), &picture(if i < 2 { "rows" } else { "columns" }, 100 + i));
    }
    write(folder, "flat/4.png", b"junk");
    let metadata = b"file_name,kind,split\n0.png,rows,test\n1.png,rows,train\n2.png,columns,test\n3.png,columns,test\n4.png,rows,test\n";
    write(folder, "flat/metadata.csv", metadata);
    let done = run(folder, &format!("{EVALUATE} flat --label-column kind --where split=test --json")).ok();
    assert_eq!(done.json()["n_test"], 3, "{done:?}");
    assert!(done.err.contains("warning: skipped `4.png`: "), "{done:?}");
    // Several sources count together.
    let both = run(folder, &format!("{EVALUATE} checked base --json")).ok();
    assert_eq!(both.json()["n_test"], 44);
}

#[test]
fn images_without_a_class_of_the_network_are_refused_with_their_numbers() {
    let folder = trained();
    let folder = folder.path();
    write(folder, "loose/a.png", &picture("rows", 1));
    write(folder, "loose/rows/b.png", &picture("rows", 2));
    let parts = ["1 of 2 images have no class", "hint: put images in a folder per class", "--label-column"];
    refuses(folder, &format!("{EVALUATE} loose"), &parts);
    draw(folder, "other", &["checks"], 3, 0);
    draw(folder, "other", &["colums"], 2, 0);
    draw(folder, "other", &["rows"], 4, 0);
    let parts = [
        "5 of 9 images are of 2 classes that are not among the 2 of `N.safetensors`: `checks` (3), `colums` (2)",
        "hint: did you mean `columns` by `colums`?",
    ];
    refuses(folder, &format!("{EVALUATE} other"), &parts);
    refuses(folder, &format!("{EVALUATE} chekced"), &["cannot open `chekced`", "did you mean `checked`?"]);
    write(folder, "junk/rows/a.png", b"junk");
    refuses(
        folder,
        &format!("{EVALUATE} junk"),
        &["skipped `rows/a.png`", "error: no readable images", "hint: "],
    );
    let bare = "evaluate --images checked";
    refuses(folder, bare, &["nothing to evaluate", "hint: ", "--model NETWORK --images SOURCE"]);
    refuses(folder, &format!("{EVALUATE} checked --test T.npz"), &["cannot be used with"]);
}
