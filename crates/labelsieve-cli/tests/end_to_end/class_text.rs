//! `--class-text`: the name of a class as a clean example, beside photos or instead of them.

use std::path::Path;

use labelsieve_files::{
    FeatureLayout, FeatureRows, FeatureWriter, Precision, read_relevance, read_relevance_reasons,
};

#[cfg(feature = "text")]
use crate::common::{Finished, command};
use crate::common::{refuses, run};
use crate::embed::folder_of;
use crate::examples::{RECIPE, clean_of, task_folder};
use crate::json::check_answer;

/// Texts of the classes of [`task_folder`]: directions near those of their photos, as a text tower would give them.
pub fn write_texts(folder: &Path, name: &str, network: Option<&str>) {
    let task = RECIPE.generate(0);
    let clean = clean_of(&task);
    let mut values = vec![0f32; RECIPE.n_classes * clean.dim];
    for (row, &class) in clean.features.chunks(clean.dim).zip(&clean.classes) {
        values[class * clean.dim..].iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    let ids: Vec<String> = (0..RECIPE.n_classes).map(|class| format!("row {class}")).collect();
    let labels: Vec<Option<String>> = (0..RECIPE.n_classes).map(|class| Some(class.to_string())).collect();
    write_rows(&folder.join(name), FeatureRows { ids: &ids, labels: &labels, values: &values }, network);
}

fn write_rows(path: &Path, rows: FeatureRows, network: Option<&str>) {
    let n_rows = rows.ids.len();
    let layout = FeatureLayout {
        n_rows,
        n_with_class: rows.labels.iter().flatten().count(),
        dim: rows.values.len() / n_rows,
        precision: Precision::F32,
        network,
    };
    let mut writer = FeatureWriter::create(path, layout, "{}").expect("disk space");
    writer.add(rows).expect("disk space");
    writer.finish().expect("disk space");
}

#[test]
fn texts_alone_will_do() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    write_texts(folder, "text.parquet", None);
    let said = run(folder, "score --class-text text.parquet --pool N.npz --device cpu -o R.parquet").ok();
    let note = "the text of the name is a clean example of 6 classes, the only one of 6";
    assert!(said.err.contains(note), "{said:?}");
    let table = read_relevance(folder.join("R.parquet")).expect("a table");
    let clean: Vec<&str> =
        (0..table.ids.len()).filter(|&row| table.is_clean[row]).map(|row| &table.ids[row]).collect();
    assert_eq!(clean, ["text:0", "text:1", "text:2", "text:3", "text:4", "text:5"]);
    let candidates: Vec<usize> = (0..table.ids.len()).filter(|&row| !table.is_clean[row]).collect();
    let reasons = read_relevance_reasons(folder.join("R.parquet"), &candidates).expect("reasons");
    for (&row, reasons) in candidates.iter().zip(&reasons) {
        assert_eq!(reasons.best_clean.as_deref(), Some(&*format!("text:{}", table.classes.get(row))));
    }
    // What is learned from it recognises photos: 6 classes, so chance is 17 %.
    run(
        folder,
        "train --class-text text.parquet --pool N.npz --relevance R.parquet --device cpu -o M.safetensors",
    )
    .ok();
    let said = run(folder, "evaluate --model M.safetensors --test T.npz --json").ok();
    assert!(said.json()["top_1"].as_f64().expect("a number") > 0.5, "{said:?}");
    let said = run(folder, "score --class-text text.parquet --pool N.npz --dry-run --json").ok();
    assert_eq!(said.json()["n_classes"], 6, "{said:?}");
}

#[test]
fn texts_stand_beside_photos() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    write_texts(folder, "text.parquet", None);
    let line = "score --clean C.npz --class-text text.parquet --pool N.npz --device cpu -o R.csv --json";
    let said = run(folder, line).ok();
    check_answer(&said, "score");
    let said = said.json();
    assert_eq!(said["class_texts"], serde_json::json!({ "n_classes": 6, "n_text_only": 0 }));
    let rows = std::fs::read_to_string(folder.join("R.csv")).expect("rows");
    let clean: Vec<&str> = rows.lines().filter(|row| row.contains(",true,")).take(4).collect();
    assert!(clean[0].starts_with("0,0,") && clean[3].starts_with("text:0,0,"), "{clean:?}");
    // Without texts nothing is said of them.
    let said = run(folder, "score --clean C.npz --pool N.npz --device cpu -o R.csv --json").ok().json();
    assert!(said.get("class_texts").is_none(), "{said}");
}

#[test]
fn texts_that_do_not_fit_are_refused() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    write_texts(folder, "text.parquet", Some("clip 0123456789abcdef"));
    let clean = |options: &str| format!("score --pool N.npz --device cpu -o R.csv {options}");
    refuses(folder, &clean(""), &["--clean <FILE>"]);
    refuses(folder, &clean("--class-text T.npy"), &["T.npy"]);
    refuses(folder, &clean("--class-text text.parquet --clean-labels y.txt"), &["--clean <FILE>"]);

    let short =
        FeatureRows { ids: &["a".to_owned()], labels: &[Some("0".to_owned())], values: &[1.0, 2.0, 3.0] };
    write_rows(&folder.join("short.parquet"), short, None);
    let columns = "the texts in `short.parquet` have 3 columns, but the clean examples in `C.npz` have 16";
    refuses(folder, &clean("--clean C.npz --class-text short.parquet"), &[columns, "hint: ", "two towers"]);
    write_rows(&folder.join("bare.parquet"), FeatureRows { labels: &[None], ..short }, None);
    let bare = "the --class-text file `bare.parquet` contains no classes";
    refuses(folder, &clean("--class-text bare.parquet"), &[bare, "embed-text"]);
    let twice = FeatureRows {
        ids: &["a".to_owned(), "b".to_owned()],
        labels: &[Some("0".to_owned()), Some("0".to_owned())],
        values: &[1.0; 6],
    };
    write_rows(&folder.join("twice.parquet"), twice, None);
    refuses(
        folder,
        &clean("--class-text twice.parquet"),
        &["`twice.parquet`: row 1: expected a unique id, found `text:0`"],
    );

    write_texts(folder, "other.parquet", Some("clip fedcba9876543210"));
    let line = "score --clean text.parquet --class-text other.parquet --pool N.npz --device cpu -o R.csv";
    refuses(
        folder,
        line,
        &["`other.parquet` was made with network clip fedc", "but `text.parquet` with clip 0123"],
    );
    run(folder, &format!("{line} --allow-mixed")).ok();
}

/// A model with two towers (`labelsieve-networks/tests/golden/towers`) in a folder with photos of cats and owls.
fn towers(models: &[&str]) -> tempfile::TempDir {
    let folder = folder_of(12);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../labelsieve-networks/tests/golden/towers");
    for model in models {
        std::fs::create_dir(folder.path().join(model)).expect("disk space");
        for entry in std::fs::read_dir(golden.join(model)).expect("a folder") {
            let path = entry.expect("a file").path();
            let name = path.file_name().expect("a name");
            std::fs::copy(&path, folder.path().join(model).join(name)).expect("disk space");
        }
    }
    let classes = "[[class]]\nid = \"cat\"\nnames = [\"cat\", \"tabby cat\"]\n[[class]]\nid = \"owl\"\nnames = [\"owl\"]\n";
    std::fs::write(folder.path().join("classes.toml"), classes).expect("disk space");
    folder
}

#[cfg(not(feature = "text"))]
#[test]
fn a_build_without_tokenizers_says_which_one_has_them() {
    let folder = towers(&["clip"]);
    refuses(
        folder.path(),
        "embed-text --model clip --classes classes.toml -o T.parquet",
        &["`clip`: this build of labelsieve does not support text towers", "hint: ", "--features text"],
    );
}

#[cfg(feature = "text")]
#[test]
fn names_and_photos_of_one_model_go_together() {
    let folder = towers(&["clip", "siglip"]);
    let folder = folder.path();
    run(folder, "embed --model clip --images photos --device cpu -o photos.parquet").ok();
    let said = run(folder, "embed-text --model clip --classes classes.toml -o T.parquet").ok();
    assert!(
        said.err.contains("2 classes from 3 texts, 12 features each, written to `T.parquet`"),
        "{said:?}"
    );
    let line = "score --pool photos.parquet --device cpu -o R.csv --class-text";
    let said = run(folder, &format!("{line} T.parquet")).ok();
    assert!(said.err.contains("12 candidates of 2 classes"), "{said:?}");
    assert!(std::fs::read_to_string(folder.join("R.csv")).expect("rows").contains("text:owl,owl,"));

    let embed = "embed-text --model siglip --classes classes.toml --template";
    let mut command = command(folder, embed);
    command.args(["a {name}", "--template", "the {name}", "-o", "S.npz", "--json"]);
    let said = Finished::from(command.output().expect("the binary starts")).ok();
    check_answer(&said, "embed-text");
    assert_eq!((&said.json()["n_texts"], &said.json()["ids_table"]), (&6.into(), &"S.npz.ids.csv".into()));
    refuses(folder, &format!("{line} S.npz"), &["was made with network", "but", "with"]);

    let embed =
        |options: &str| format!("embed-text --model clip --classes classes.toml -o U.parquet {options}");
    refuses(
        folder,
        &embed("--template photo"),
        &["--template: expected a text with {name} in it, found `photo`"],
    );
    refuses(
        folder,
        "embed-text --model M.safetensors --classes classes.toml -o U.parquet",
        &["M.safetensors"],
    );
    refuses(folder, "embed-text --model none --classes classes.toml -o U.parquet", &["none"]);
    refuses(folder, &embed("").replace("U.parquet", "classes.toml"), &["classes.toml"]);
    std::fs::remove_file(folder.join("clip/tokenizer.json")).expect("a file");
    refuses(folder, &embed(""), &["`clip` has no tokenizer.json", "hint: ", "save_pretrained"]);
}
