//! `--class-text`: the name of a class as a clean example, beside photos or instead of them.

use std::path::Path;

use labelsieve_data::{FeatureFile, Precision, read_relevance, read_relevance_reasons};

use crate::common::{refuses, run};
use crate::examples::{RECIPE, clean_of, task_folder};

/// Texts of the classes of [`task_folder`]: directions near those of their photos, as a text tower would give them.
fn write_texts(folder: &Path, name: &str, network: Option<&str>) {
    let task = RECIPE.generate(0);
    let clean = clean_of(&task);
    let mut values = vec![0f32; RECIPE.n_classes * clean.dim];
    for (row, &class) in clean.features.chunks(clean.dim).zip(&clean.classes) {
        values[class * clean.dim..].iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    let ids: Vec<String> = (0..RECIPE.n_classes).map(|class| format!("row {class}")).collect();
    let labels: Vec<Option<String>> = (0..RECIPE.n_classes).map(|class| Some(class.to_string())).collect();
    let file = FeatureFile {
        ids: &ids,
        labels: &labels,
        dim: clean.dim,
        values: &values,
        precision: Precision::F32,
        network,
    };
    file.write(&folder.join(name), "{}").expect("disk space");
}

#[test]
fn texts_alone_will_do() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    write_texts(folder, "text.parquet", None);
    let said = run(folder, "clean --class-text text.parquet --noisy N.npz --device cpu -o R.parquet").ok();
    let note = "the text of the name is a clean example of 6 classes, the only one of 6";
    assert!(said.err.contains(note), "{said:?}");
    let table = read_relevance(folder.join("R.parquet")).expect("a table");
    let clean: Vec<&str> =
        (0..table.ids.len()).filter(|&row| table.is_clean[row]).map(|row| &table.ids[row]).collect();
    assert_eq!(clean, ["text:0", "text:1", "text:2", "text:3", "text:4", "text:5"]);
    let candidates: Vec<usize> = (0..table.ids.len()).filter(|&row| !table.is_clean[row]).collect();
    let reasons = read_relevance_reasons(&folder.join("R.parquet"), &candidates).expect("reasons");
    for (&row, reasons) in candidates.iter().zip(&reasons) {
        assert_eq!(reasons.best_clean.as_deref(), Some(&*format!("text:{}", table.classes.get(row))));
    }
    // What is learned from it recognises photos: 6 classes, so chance is 17 %.
    run(
        folder,
        "train --class-text text.parquet --noisy N.npz --relevance R.parquet --device cpu -o M.safetensors",
    )
    .ok();
    let said = run(folder, "evaluate --model M.safetensors --test T.npz --json").ok();
    assert!(said.json()["top1"].as_f64().expect("a number") > 0.5, "{said:?}");
    let said = run(folder, "clean --class-text text.parquet --noisy N.npz --dry-run --json").ok();
    assert_eq!(said.json()["n_clean"], 6, "{said:?}");
}

#[test]
fn texts_stand_beside_photos() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    write_texts(folder, "text.parquet", None);
    let line = "clean --clean C.npz --class-text text.parquet --noisy N.npz --device cpu -o R.csv --json";
    let said = run(folder, line).ok().json();
    assert_eq!(said["class_texts"], serde_json::json!({ "n_classes": 6, "n_text_only": 0 }));
    let rows = std::fs::read_to_string(folder.join("R.csv")).expect("rows");
    let clean: Vec<&str> = rows.lines().filter(|row| row.contains(",true,")).take(4).collect();
    assert!(clean[0].starts_with("0,0,") && clean[3].starts_with("text:0,0,"), "{clean:?}");
    // Without texts nothing is said of them.
    let said = run(folder, "clean --clean C.npz --noisy N.npz --device cpu -o R.csv --json").ok().json();
    assert!(said.get("class_texts").is_none(), "{said}");
}

#[test]
fn texts_that_do_not_fit_are_refused() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    write_texts(folder, "text.parquet", Some("clip 0123456789abcdef"));
    let clean = |options: &str| format!("clean --noisy N.npz --device cpu -o R.csv {options}");
    refuses(folder, &clean(""), &["--clean <FILE>"]);
    refuses(folder, &clean("--class-text T.npy"), &["T.npy"]);
    refuses(folder, &clean("--class-text text.parquet --clean-labels y.txt"), &["--clean <FILE>"]);

    let short = FeatureFile {
        ids: &["a".to_owned()],
        labels: &[Some("0".to_owned())],
        dim: 3,
        values: &[1.0, 2.0, 3.0],
        precision: Precision::F32,
        network: None,
    };
    short.write(&folder.join("short.parquet"), "{}").expect("disk space");
    let columns = "the texts in `short.parquet` have 3 columns, but the clean examples in `C.npz` have 16";
    refuses(folder, &clean("--clean C.npz --class-text short.parquet"), &[columns, "hint: ", "two towers"]);
    FeatureFile { labels: &[None], ..short }.write(&folder.join("bare.parquet"), "{}").expect("disk space");
    let bare = "the --class-text file `bare.parquet` contains no classes";
    refuses(folder, &clean("--class-text bare.parquet"), &[bare, "embed-text"]);
    FeatureFile {
        labels: &[Some("0".to_owned()), Some("0".to_owned())],
        ids: &["a".to_owned(), "b".to_owned()],
        values: &[1.0; 6],
        ..short
    }
    .write(&folder.join("twice.parquet"), "{}")
    .expect("disk space");
    refuses(
        folder,
        &clean("--class-text twice.parquet"),
        &["`twice.parquet`: row 1: expected a unique id, found `text:0`"],
    );

    write_texts(folder, "other.parquet", Some("clip fedcba9876543210"));
    let line = "clean --clean text.parquet --class-text other.parquet --noisy N.npz --device cpu -o R.csv";
    refuses(
        folder,
        line,
        &["`other.parquet` was made with network clip fedc", "but `text.parquet` with clip 0123"],
    );
    run(folder, &format!("{line} --allow-mixed")).ok();
}
