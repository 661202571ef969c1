//! `labelsieve-bench photos` on a small set of photos made here: misleading titles, a pool with wrong candidates, and invalid inputs.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, BooleanArray, RecordBatch, StringArray};
use labelsieve::synthetic::Recipe;
use labelsieve_report::RunDirectory;
use parquet::arrow::ArrowWriter;

use crate::common::{bytes, listing, refuses, run};
use crate::examples::Examples;
use crate::pictures::{png, write_model};
use crate::product::product;

const NOVEL: [&str; 6] = ["barn owl", "black widow", "crane", "drum", "egret", "fork"];
const BASE: [&str; 7] = ["ant", "bell", "cup", "dish", "elk", "fan", "gate"];
const N_TRAIN: usize = 24;
const N_TEST: usize = 8;

pub const CONFIG: &str = r#"
title = "made here"
[photos]
files = ["photos.parquet"]
id = "key"
image = "picture"
class = "kind"
title = "caption"
role = "role"
base = "old"
novel = "new"
split = "part"
train = "learn"
test = "exam"
[candidates]
rules = ["phrase", "any-word"]
[protocol]
shots = [1, 3]
episodes = 2
trials = 12
trial_shots = [1]
ways = 3
queries = 4
"#;

fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let file = File::create(path).expect("a file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a writer");
    writer.write(&batch).expect("a batch");
    writer.close().expect("a whole file");
}

fn text(values: impl Iterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// `photos.parquet`, `features.npz` (in the order of the photos), `pool.parquet` and `c.toml`.
pub fn photo_folder() -> tempfile::TempDir {
    photo_folder_with(|_, _| b"not looked into".to_vec())
}

/// The same with pictures by class and number.
fn photo_folder_with(picture: impl Fn(usize, usize) -> Vec<u8>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let recipe = Recipe {
        dim: 16,
        n_classes: NOVEL.len() + BASE.len(),
        n_clean: N_TRAIN,
        largest_pool: 0,
        n_test: N_TEST,
        ..Recipe::default()
    };
    let task = recipe.generate(4);
    let names: Vec<&str> = NOVEL.into_iter().chain(BASE).collect();
    let mut rows = Vec::new();
    let mut features = Vec::new();
    let mut pictures = Vec::new();
    for (c, name) in names.iter().enumerate() {
        for i in 0..N_TRAIN + N_TEST {
            let (row, part) = match i.checked_sub(N_TRAIN) {
                None => (task.classes[c].clean.row(i), "learn"),
                Some(test) => (task.test.row(c * N_TEST + test), "exam"),
            };
            features.extend_from_slice(row);
            pictures.push(picture(c, i));
            // Every fifth photo of a base class carries the name of a novel one, and half of a novel name is enough for
            // the looser rule.
            let caption = match c.checked_sub(NOVEL.len()) {
                None => format!("my {name}"),
                Some(base) if i % 5 == 0 => format!("the {} inn", NOVEL[base % NOVEL.len()]),
                Some(_) if i % 7 == 0 => "a black umbrella in the barn".to_owned(),
                Some(_) => format!("a {name}"),
            };
            let role = if c < NOVEL.len() { "new" } else { "old" };
            rows.push((format!("{name}-{i}"), name.to_string(), role.to_owned(), part.to_owned(), caption));
        }
    }
    write(
        &folder.path().join("photos.parquet"),
        vec![
            ("key", text(rows.iter().map(|row| row.0.clone()))),
            ("kind", text(rows.iter().map(|row| row.1.clone()))),
            ("role", text(rows.iter().map(|row| row.2.clone()))),
            ("part", text(rows.iter().map(|row| row.3.clone()))),
            ("caption", text(rows.iter().map(|row| row.4.clone()))),
            ("picture", Arc::new(BinaryArray::from_iter_values(&pictures))),
        ],
    );
    Examples { dim: 16, features, classes: vec![0; rows.len()] }.npz(folder.path().join("features.npz"));
    write_pool(folder.path(), "crane", "learn");
    std::fs::write(folder.path().join("c.toml"), CONFIG).expect("a file");
    folder
}

/// A pool of a few right and wrong training photos per class; with other arguments, one that must be refused.
fn write_pool(folder: &Path, third_class: &str, part: &str) {
    let mut classes = Vec::new();
    let mut ids = Vec::new();
    let mut relevant = Vec::new();
    let shift = if part == "learn" { 0 } else { N_TRAIN - 8 };
    for (c, class) in NOVEL.iter().enumerate() {
        for i in 0..12 {
            let source = if i < 6 { class } else { &BASE[c] };
            classes.push(if c == 2 { third_class.to_owned() } else { class.to_string() });
            ids.push(format!("{source}-{}", 8 + i + shift));
            relevant.push(i < 6);
        }
    }
    write(
        &folder.join("pool.parquet"),
        vec![
            ("class", text(classes.into_iter())),
            ("id", text(ids.into_iter())),
            ("relevant", Arc::new(BooleanArray::from(relevant))),
        ],
    );
}

pub const BENCH: &str = "photos c.toml --features features.npz -o RUN";

#[test]
fn one_command_leads_from_photos_to_tables_and_figures_the_same_at_any_number_of_threads() {
    let folder = photo_folder();
    let folder = folder.path();
    let first = run(folder, &format!("{BENCH} --threads 1")).ok();
    assert!(first.out.contains("features, any-word ("), "{first:?}");
    for row in ["clean only, attention", "β*", "label propagation", "gcn, cosine", "oracle, cosine"] {
        assert!(first.out.lines().any(|line| line.starts_with(row)), "no row {row}: {first:?}");
    }
    assert!(!first.out.contains("simulated"), "{first:?}");
    for stage in ["attention training", "graphs", "gcn", "cosine"] {
        assert!(first.err.lines().any(|line| line.starts_with(stage)), "no time of {stage}: {first:?}");
    }
    run(folder, &format!("{} --threads 3", BENCH.replace("RUN", "AGAIN"))).ok();
    for file in ["results.json", "episodes.json", "relevance.parquet", "truth.parquet"] {
        let same = bytes(folder, &format!("RUN/{file}")) == bytes(folder, &format!("AGAIN/{file}"));
        assert!(same, "{file} depends on the number of threads");
    }
    let directory = RunDirectory::open(folder.join("RUN")).expect("a run directory");
    assert_eq!(directory.tables().expect("tables").len(), 2 * 6);
    assert_eq!(directory.figures().expect("figures").len(), 2 * 4);
    let results: serde_json::Value =
        serde_json::from_slice(&bytes(folder, "RUN/results.json")).expect("JSON");
    let top_1 = |name: &str| {
        let rows = results[1]["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no row {name}"));
        row["by_shot"][0][0]["novel_top_1"].as_f64().expect("a number")
    };
    assert!(top_1("oracle") >= top_1("β = 1"), "knowing the truth must not hurt");
    assert!(top_1("oracle") > 0.5, "{}", top_1("oracle"));
}

#[test]
fn the_systems_that_the_paper_compares_with_are_rows_the_same_at_any_number_of_threads() {
    let folder = photo_folder();
    let folder = folder.path();
    let line = format!("{BENCH} --compared --json");
    let results = run(folder, &format!("{line} --threads 1")).ok().json();
    let again = run(folder, &format!("{} --threads 3", line.replace("RUN", "AGAIN"))).ok().json();
    assert_eq!(results, again);
    let names = |result: &serde_json::Value| -> Vec<String> {
        let rows = result["rows"].as_array().expect("rows");
        rows.iter().map(|row| row["name"].as_str().expect("a name").to_owned()).collect()
    };
    for result in results["results"].as_array().expect("results") {
        for system in [
            "prototypical",
            "logistic with hallucination",
            "pmn with hallucination",
            "clean only, logistic",
            "diffusion",
            "diffusion, logistic",
            "diffusion by text",
            "diffusion by text, logistic",
        ] {
            let place = names(result).iter().position(|name| name == system);
            let place = place.unwrap_or_else(|| panic!("no row {system}: {:?}", names(result)));
            let cell = &result["rows"][place]["by_shot"][0][0];
            assert!(cell["novel_top_1"].as_f64().expect("a number") > 0.2, "{system}: {cell}");
            assert!(result["systems"].as_array().expect("settings").iter().any(|row| row[0] == system));
        }
    }
    refuses(folder, &format!("{BENCH} --compared --protocol 5way"), &["--compared", "hint: "]);
}

/// Lists of three small parts, and a photo for every name on them.
pub fn mini_imagenet_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (part, classes) in [("train", 0..5u8), ("val", 5..7), ("test", 7..12)] {
        let mut list = "filename,label\n".to_owned();
        for class in classes {
            for number in 1..=12 {
                let name = format!("n{class:08}{number:08}.jpg");
                list += &format!("{name},n{class:08}\n");
                let image = image::RgbImage::from_pixel(16, 16, image::Rgb([class * 20, number, 100]));
                image.save(folder.path().join(&name)).expect("disk space");
            }
        }
        std::fs::write(folder.path().join(format!("{part}.csv")), list).expect("disk space");
    }
    folder
}

#[test]
fn mini_imagenet_becomes_a_photo_set_with_its_own_classes_to_tune_on() {
    let folder = mini_imagenet_folder();
    let folder = folder.path();
    let made = run(folder, "mini-imagenet --splits . --images . -o mini.parquet").ok();
    assert!(made.err.contains("144 photos of 5 base, 2 validation and 5 novel classes"), "{made:?}");
    assert!(made.err.contains("warning: base: 5 classes, but mini-ImageNet has 64"), "{made:?}");
    let config =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/mini-imagenet.toml"));
    let config = config.expect("the configuration of the repository");
    let config =
        config.replace("\"mini-imagenet.parquet\"", "\"mini.parquet\"").replace("trials = 600", "trials = 4");
    let config = config.replace("ways = 5", "ways = 2").replace("queries = 15", "queries = 3");
    std::fs::write(folder.join("mini.toml"), config).expect("disk space");
    let pretrain = "pretrain --images mini.parquet --where role=base --where split=train --label-column class \
                    --architecture convnet128 --size 16 --epochs 2 --batches 4 --batch-size 20 --device cpu";
    product(folder, &format!("{pretrain} -o mini-convnet128.safetensors"));
    let done = run(folder, "photos mini.toml --data . --protocol 5way --device cpu -o RUN --json").ok();
    let row = &done.json()["results"][0]["rows"][0];
    assert_eq!(row["name"], "clean only");
    let reached = row["top_1"][1]["mean"].as_f64().expect("a number");
    assert!(reached > 0.5, "photos of one colour: {reached}");
    std::fs::copy(folder.join("val.csv"), folder.join("test.csv")).expect("disk space");
    refuses(
        folder,
        "mini-imagenet --splits . --images . -o again.parquet",
        &["class `n00000005`: expected one part for each class, found validation and novel"],
    );
    let line = "mini-imagenet --splits . -o again.parquet";
    refuses(folder, line, &["has lists of photos, but the photos are missing", "hint: ", "--images"]);
    std::fs::write(folder.join("val.csv"), "filename,label\n").expect("disk space");
    let parts = ["val.csv`: expected photos of validation classes, found none", "hint: "];
    refuses(folder, &format!("{line} --images ."), &parts);
    assert!(!folder.join("again.parquet").exists());
}

#[test]
fn a_killed_run_resumes_and_starts_over_when_the_features_change() {
    let folder = photo_folder();
    let folder = folder.path();
    run(folder, BENCH).ok();
    let results = bytes(folder, "RUN/results.json");
    let journal = bytes(folder, "RUN/cells-features.journal");
    // As a kill would leave it: half of the work, the last record torn.
    std::fs::write(folder.join("RUN/cells-features.journal"), &journal[..journal.len() / 2]).expect("a file");
    std::fs::remove_file(folder.join("RUN/results.json")).expect("a file");
    let resumed = run(folder, BENCH).ok();
    assert!(resumed.err.contains("resuming: "), "{resumed:?}");
    assert_eq!(bytes(folder, "RUN/results.json"), results);
    std::fs::copy(folder.join("features.npz"), folder.join("copy.npz")).expect("a copy");
    std::fs::rename(folder.join("copy.npz"), folder.join("features.npz")).expect("a new time of change");
    let anew = run(folder, BENCH).ok();
    assert!(anew.err.contains("different settings or files; starting over"), "{anew:?}");
}

#[test]
fn a_pool_file_gives_candidates_and_simulated_noise_is_called_so() {
    let folder = photo_folder();
    let folder = folder.path();
    let config =
        CONFIG.replace(r#"rules = ["phrase", "any-word"]"#, "pool = \"pool.parquet\"\nsimulated = true");
    std::fs::write(folder.join("c.toml"), format!("{config}\n[clean]\nfirst = 8\n")).expect("a file");
    let done = run(folder, BENCH).ok();
    assert!(done.err.contains("pool: 72 candidates of 6 classes, 50.0 % simulated noise"), "{done:?}");
    assert!(done.out.contains("features, pool (50.0 % simulated noise): top-1 on novel classes"), "{done:?}");
    assert!(RunDirectory::open(folder.join("RUN")).expect("a run directory").info().simulated_noise);

    write_pool(folder, "ant", "learn");
    refuses(
        folder,
        &BENCH.replace("RUN", "NEW"),
        &["pool.parquet`: column `class`, row 24: expected a novel class, found `ant`"],
    );
    write_pool(folder, "crane", "exam");
    refuses(
        folder,
        &BENCH.replace("RUN", "NEW"),
        &["column `id`, row ", "expected a training photo, found "],
    );
}

#[test]
fn few_way_trials_have_rows_and_intervals() {
    let folder = photo_folder();
    let done = run(folder.path(), &format!("{BENCH} --protocol 5way --json")).ok();
    let results = &done.json()["results"];
    assert_eq!((results[0]["ways"].as_u64(), results[0]["trials"].as_u64()), (Some(3), Some(12)));
    for row in results[0]["rows"].as_array().expect("rows") {
        let top_1 = row["top_1"][0]["mean"].as_f64().expect("a number");
        assert!((0.3..=1.0).contains(&top_1), "{row}");
    }
    let again = run(folder.path(), &format!("{BENCH} --protocol 5way --json")).ok();
    assert_eq!(again.out, done.out, "results from the journal differ from measured ones");
}

#[test]
fn a_set_of_another_layout_is_refused_by_the_place_that_does_not_fit() {
    let folder = photo_folder();
    let folder = folder.path();
    let with = |from: &str, to: &str| {
        assert!(CONFIG.contains(from), "{from}");
        std::fs::write(folder.join("c.toml"), CONFIG.replacen(from, to, 1)).expect("a file");
    };
    for (from, to, parts) in [
        ("class = \"kind\"", "class = \"species\"", ["photos.parquet`: columns: expected `species`", "kind"]),
        (
            "train = \"learn\"",
            "train = \"teach\"",
            ["column `part`, row 0: expected `teach` or `exam`", "`learn`"],
        ),
        (
            "novel = \"new\"",
            "novel = \"newer\"",
            ["column `role`: expected at least 4 classes of role `newer`", "0"],
        ),
        ("files = [\"photos.parquet\"]", "files = [\"other.parquet\"]", ["cannot open", "other.parquet"]),
        (
            "shots = [1, 3]",
            "shots = [1, 25]",
            ["has 24 photos to draw clean examples from", "hint: lower `protocol.shots`"],
        ),
        (
            "episodes = 2",
            "epochs = 2",
            ["c.toml` is not a photo benchmark configuration", "unknown field `epochs`"],
        ),
    ] {
        with(from, to);
        refuses(folder, BENCH, &parts);
    }
    with("title = \"made here\"", "title = \"made here\"");
    refuses(folder, "photos c.toml -o RUN", &["`c.toml` names no backbones", "hint: ", "--features"]);
    Examples { dim: 2, features: vec![1.0; 6], classes: vec![0; 3] }.npz(folder.join("short.npz"));
    refuses(folder, &BENCH.replace("features.npz", "short.npz"), &["has 3 rows without ids for 416 photos"]);
    assert!(!listing(folder).contains(&"RUN".to_owned()));
}

#[test]
fn a_network_embeds_the_photos_once_and_is_fine_tuned() {
    // Pictures of a class look alike; one cannot be read.
    let unreadable = (NOVEL.len(), 3);
    let folder = photo_folder_with(|class, i| match (class, i) {
        place if place == unreadable => b"torn".to_vec(),
        _ => png((class * 40 + i % 4) as u32),
    });
    let folder = folder.path();
    write_model(&folder.join("M.safetensors"), 0);
    let config = CONFIG.replace(r#"["phrase", "any-word"]"#, r#"["phrase"]"#).replace("[1, 3]", "[1]");
    let backbone = "[[backbone]]\nname = \"net\"\nnetwork = \"M.safetensors\"\nnote = \"not trained\"\n";
    std::fs::write(folder.join("c.toml"), format!("{config}{backbone}")).expect("a file");
    let bench = "photos c.toml -o RUN --fine-tune 1 --device cpu";
    let done = run(folder, bench).ok();
    assert!(done.err.contains("warning: 1 photos have no features and are not used"), "{done:?}");
    let tables = |row: &str| done.out.lines().filter(|line| line.starts_with(&format!("{row}  "))).count();
    assert_eq!(tables("gcn, fine-tuned"), 2, "top-1 and top-5 on novel classes: {done:?}");
    for row in ["gcn, fine-tuned with base", "gcn, fine-tuned with base, one softmax"] {
        assert_eq!(tables(row), 4, "on all classes too: {done:?}");
    }
    for stage in ["embedding", "fine-tuning"] {
        assert!(done.err.lines().any(|line| line.starts_with(stage)), "no time of {stage}: {done:?}");
    }
    let again = run(folder, &format!("{bench} -v")).ok();
    assert!(
        again.err.contains("`RUN/features-net.parquet` holds the features of an earlier run"),
        "{again:?}"
    );
    assert_eq!(again.out, done.out);
    assert_eq!(RunDirectory::open(folder.join("RUN")).expect("a run").info().notes, ["net: not trained"]);
}

#[test]
fn without_tuning_all_novel_classes_are_reported_and_missing_backbones_are_named() {
    let folder = photo_folder();
    let folder = folder.path();
    let made = "[[backbone]]\nname = \"made\"\nfeatures = \"features.npz\"\n";
    let unmade = "[[backbone]]\nname = \"later\"\nfeatures = \"later.npz\"\nmade_by = \"make later\"\n";
    std::fs::write(folder.join("c.toml"), format!("{CONFIG}{made}{unmade}")).expect("a file");
    let line = "photos c.toml -o RUN --untuned --device cpu --json";
    let done = run(folder, line).ok();
    assert!(
        done.err.contains("backbone later is skipped: no features at `later.npz`; `make later` makes them")
    );
    let results = &done.json()["results"];
    assert!(results[0]["chosen"].is_null());
    assert_eq!(results[0]["methods"]["gcn"][0]["lambda"], 0.01f32, "the paper's at k = 1");
    let draws = String::from_utf8(bytes(folder, "RUN/episodes.json")).expect("text");
    assert!(!draws.contains("tune"), "all classes are reported: {draws}");
    let cell = &results[0]["rows"][0]["by_shot"][0][0];
    assert_eq!(cell["class_top_1"].as_array().map(Vec::len), Some(NOVEL.len()), "{cell}");
    let asked = "photos c.toml -o OTHER --backbones later";
    refuses(folder, asked, &["backbone `later` has no features at `later.npz`", "hint: `make later`"]);
    let both = "photos c.toml -o OTHER --untuned --protocol 5way";
    refuses(folder, both, &["the 5way protocol is always tuned", "hint: "]);
    let bare = "photos c.toml -o OTHER --fine-tune 1";
    refuses(folder, bare, &["backbone `made` has no network to fine-tune", "hint: "]);
    std::fs::write(folder.join("c.toml"), format!("{CONFIG}{unmade}")).expect("a file");
    let none = "photos c.toml -o OTHER";
    refuses(
        folder,
        none,
        &["no backbone of `c.toml` has features yet, e.g. `later.npz`", "hint: `make later`"],
    );
    assert!(!listing(folder).contains(&"OTHER".to_owned()));
}

#[test]
fn counts_of_a_configuration_are_refused_with_their_range() {
    let folder = photo_folder();
    let folder = folder.path();
    for (from, name, range) in [
        ("episodes = 2", "episodes", "1 to 1000"),
        ("trials = 12", "trials", "1 to 1000000"),
        ("ways = 3", "ways", "2 to 1000000"),
        ("queries = 4", "queries", "1 to 1000000"),
    ] {
        for number in ["0", "4294967296", "9223372036854775807"] {
            let config = CONFIG.replace(from, &format!("{name} = {number}"));
            std::fs::write(folder.join("c.toml"), config).expect("a file");
            let message = format!("`protocol.{name}`: expected {range}, found {number}");
            refuses(folder, BENCH, &[&message]);
        }
        for number in ["-1", "18446744073709551616"] {
            let config = CONFIG.replace(from, &format!("{name} = {number}"));
            std::fs::write(folder.join("c.toml"), config).expect("a file");
            refuses(folder, BENCH, &["`c.toml` is not a photo benchmark configuration"]);
        }
    }
    std::fs::write(folder.join("c.toml"), CONFIG).expect("a file");
    let more = format!("{BENCH} --fine-tune 18446744073709551615");
    refuses(folder, &more, &["has no network to fine-tune"]);
}
