//! `--json`: one object on stdout, every field of which is on the page about them.

use std::collections::BTreeSet;
use std::path::Path;

use labelsieve_files::NpzWriter;
use serde_json::Value;

use crate::common::{Finished, run};
use crate::embed::write;
use crate::examples::{task_folder, write_truth};
use crate::networks::{FINETUNE, PRETRAIN, base_folder, draw, novel_folder};
use crate::shell_files::listed_commands;
use crate::{bench_photos, release};

/// Objects whose keys are names of classes and methods.
const BY_NAME: [&str; 2] = ["classes", "auc"];
/// Settings of methods, which are not listed on the page.
const SETTINGS: [&str; 3] = ["methods", "source", "systems"];

/// The sections of `docs/json.md`: what comes before the first, then each with its heading.
fn sections() -> Vec<(String, String)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    let page = std::fs::read_to_string(path).expect("a page");
    let mut sections = page.split("\n## ");
    let opening = (String::new(), sections.next().unwrap_or_default().to_owned());
    let titled = sections.map(|section| section.split_once('\n').expect("a heading"));
    std::iter::once(opening).chain(titled.map(|(title, text)| (title.to_owned(), text.to_owned()))).collect()
}

/// What stands between backticks where a command's fields are listed: in its section and in those for all commands.
fn documented(command: &str) -> BTreeSet<String> {
    let sections = sections();
    assert!(sections.iter().any(|(title, _)| title == command), "no section `{command}` in docs/json.md");
    let ours = sections.iter().filter(|(title, _)| ["", "Shared objects", command].contains(&title.as_str()));
    let names = ours.flat_map(|(_, text)| {
        let fences = text.split("```").step_by(2); // examples are between the others
        fences.flat_map(|text| text.split('`').skip(1).step_by(2)).map(str::to_owned).collect::<Vec<_>>()
    });
    names.collect()
}

fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        Value::Object(object) => {
            for (name, value) in object {
                found.insert(name.clone());
                match value {
                    _ if SETTINGS.contains(&name.as_str()) => {}
                    Value::Object(by_name) if BY_NAME.contains(&name.as_str()) => {
                        by_name.values().for_each(|value| fields(value, found));
                    }
                    value => fields(value, found),
                }
            }
        }
        _ => {}
    }
}

/// The answer must be one object with the envelope, and all of its fields on the page.
#[track_caller]
fn check(answer: &Value, command: &str) {
    assert_eq!(answer["command"], command, "{answer}");
    assert!(answer["version"].is_string(), "{answer}");
    let mut found = BTreeSet::new();
    fields(answer, &mut found);
    assert!(found.len() > 2, "no field of its own: {answer}");
    let documented = documented(command);
    let missing: Vec<&String> = found.difference(&documented).collect();
    assert!(missing.is_empty(), "docs/json.md does not list {missing:?} of `{command}`: {answer}");
}

/// What a finished command with `--json` printed must be such an answer.
#[track_caller]
pub fn check_answer(done: &Finished, command: &str) {
    check(&done.json(), command);
    assert_eq!(done.json()["version"], env!("CARGO_PKG_VERSION"), "{done:?}");
}

/// The same of a command that goes on.
#[track_caller]
pub fn check_answer_text(text: &str, command: &str) {
    check(&serde_json::from_str(text).expect("one object"), command);
}

#[track_caller]
fn check_line(folder: &Path, command: &str, options: &str) -> Value {
    let done = run(folder, &format!("{command} {options} --json")).ok();
    check_answer(&done, command);
    done.json()
}

#[test]
fn the_page_shows_an_answer_of_every_command() {
    let sections = sections();
    for (title, text) in
        sections.iter().filter(|(title, _)| !["", "Shared objects"].contains(&title.as_str()))
    {
        let examples: Vec<&str> = text.split("```json\n").skip(1).collect();
        assert!(!examples.is_empty(), "no example of `{title}`");
        for example in examples {
            let json = example.split("```").next().unwrap_or_default();
            let answer = serde_json::from_str(json).unwrap_or_else(|error| panic!("{title}: {error}"));
            check(&answer, title);
        }
    }
}

/// The commands that `labelsieve COMMAND --help` lists.
fn commands_of(folder: &Path, command: &str) -> Vec<String> {
    let help = run(folder, &format!("{command} --help")).ok().out;
    let names = listed_commands(&help);
    if names.is_empty() {
        return vec![command.to_owned()];
    }
    names.iter().flat_map(|name| commands_of(folder, format!("{command} {name}").trim())).collect()
}

#[test]
fn every_command_with_a_result_takes_json_among_the_common_options_at_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let sections = sections();
    let commands = commands_of(folder.path(), "");
    assert!(commands.contains(&"bench sanity".to_owned()), "{commands:?}");
    for command in commands {
        let has_result = !["completions", "man"].contains(&command.as_str());
        assert_eq!(
            sections.iter().any(|(title, _)| *title == command),
            has_result,
            "`{command}` in docs/json.md"
        );
        let help = run(folder.path(), &format!("{command} --help")).ok().out;
        let (_, common) = help.split_once("\nCommon options:\n").expect("common options");
        let is_option = |line: &&str| line.starts_with(' ') || line.is_empty();
        assert!(common.lines().all(|line| is_option(&line)), "no other heading comes after: {help}");
        let place = |option: &str| common.find(&format!(" --{option}"));
        assert_eq!(place("json").is_some(), has_result, "{help}");
        let places: Vec<usize> = ["device", "seed", "json", "threads", "quiet", "verbose", "help", "version"]
            .into_iter()
            .filter_map(place)
            .collect();
        assert!(places.is_sorted() && places.len() >= 5, "{help}");
    }
}

#[test]
fn answers_about_features_are_documented() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    write_truth(&task, folder.join("truth.parquet"));
    let pools = "--clean C.npz --pool N.npz";
    check_line(folder, "score", &format!("{pools} --dry-run"));
    check_line(folder, "score", &format!("{pools} -o R.parquet"));
    check_line(folder, "train", &format!("{pools} --relevance R.parquet -o M.safetensors"));
    check_line(folder, "train-attention", "--base C.npz --steps 4 --posing 2 -o A.safetensors");
    let episodes = "--base C.npz --system hallucination --ways 4 --steps 4 -o E.safetensors";
    check_line(folder, "train-episodes", episodes);
    check_line(folder, "predict", "--model M.safetensors --features T.npz -o P.csv");
    check_line(
        folder,
        "evaluate",
        "--model M.safetensors --test T.npz --baseline M.safetensors --relevance R.parquet",
    );
    check_line(folder, "evaluate", "--relevance R.parquet --truth truth.parquet");
    check_line(folder, "report", "R.parquet -o R.html");
    check_line(folder, "report", "R.parquet --figures figures");
    let class = &task.classes[0];
    let writer = NpzWriter::create(folder.join("class.npz")).expect("a folder");
    let writer = writer.f32("clean", &[3, 16], class.clean.block(0..3)).expect("disk space");
    let n = class.noisy.len();
    writer.f32("noisy", &[n, 16], class.noisy.block(0..n)).expect("disk space").finish().expect("disk space");
    check_line(folder, "bench class", "class.npz --repeats 1");
}

#[test]
fn answers_about_texts_and_images_are_documented() {
    let folder = novel_folder();
    let folder = folder.path();
    check_line(folder, "classes", "base -o classes.toml");
    write(folder, "texts.csv", b"id,caption\n1,long rows\n2,two columns\n3,nothing\n");
    check_line(folder, "match", "--classes classes.toml --text texts.csv -o M.parquet");
    check_line(folder, "pretrain", &format!("{} -o E.safetensors", PRETRAIN.replace("pretrain ", "")));
    check_line(folder, "embed", "--model N.safetensors --images base --device cpu -o E.npz");
    check_line(folder, "finetune", &format!("{} -o F.safetensors", FINETUNE.replace("finetune ", "")));
}

#[test]
fn a_run_answers_with_one_object_though_its_steps_print() {
    let folder = base_folder();
    let folder = folder.path();
    draw(folder, "pool", &["columns", "rows"], 4, 200);
    let mut captions = "file_name,caption\n".to_owned();
    for class in ["columns", "rows"] {
        (200..204).for_each(|i| captions += &format!("{class}/{i:03}.png,some {class}\n"));
    }
    write(folder, "pool/metadata.csv", captions.as_bytes());
    let answer = check_line(folder, "run", "--clean base --pool pool --device cpu -o RUN");
    assert_eq!(answer["commands"].as_array().map(Vec::len), Some(6), "{answer}");
    let resumed = run(folder, "run --clean base --pool pool --device cpu -o RUN --json").ok();
    assert_eq!(resumed.json(), answer);
}

#[test]
fn answers_of_benchmarks_are_documented() {
    let photos = bench_photos::photo_folder();
    let options = bench_photos::BENCH.replace("bench photos ", "");
    check_line(photos.path(), "bench photos", &options);
    check_line(photos.path(), "bench photos", &format!("{} --protocol 5way", options.replace("RUN", "5WAY")));
    let compared = format!("{} --compared --untuned", options.replace("RUN", "COMPARED"));
    check_line(photos.path(), "bench photos", &compared);
    let lists = bench_photos::mini_imagenet_folder();
    check_line(lists.path(), "bench mini-imagenet", "--splits . --images . -o mini.parquet");
    check_line(photos.path(), "bench sanity", "--shots 1");
    let paper = tempfile::tempdir().expect("a folder");
    release::write(paper.path());
    let options = "--features . --splits . --run run --shots 1 --episodes 1";
    check_line(paper.path(), "bench paper", &format!("{options} --no-cosine"));
    check_line(paper.path(), "bench paper", &format!("{options} --tune"));
    check_line(paper.path(), "bench paper", &format!("{options} --dry-run"));
}
