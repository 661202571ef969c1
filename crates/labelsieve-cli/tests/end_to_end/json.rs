//! `--json`: one object on stdout, every field of which is on the page about them.

use std::path::Path;

pub use crate::json_page::{check_answer, check_answer_text};

use crate::common::run;
use crate::embed::write;
use crate::examples::{task_folder, write_truth};
use crate::json_page::{check, check_line, sections};
use crate::networks::{FINETUNE, PRETRAIN, base_folder, draw, novel_folder};
use crate::shell_files::{UNLISTED, listed_commands};

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
    let mut commands = commands_of(folder.path(), "");
    commands.extend(UNLISTED.map(str::to_owned));
    assert!(commands.contains(&"decisions import".to_owned()), "{commands:?}");
    for command in commands {
        let has_result = !UNLISTED.contains(&command.as_str());
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
    check_line(folder, "predict", "--model M.safetensors --features T.npz -o P.csv");
    check_line(
        folder,
        "evaluate",
        "--model M.safetensors --test T.npz --baseline M.safetensors --relevance R.parquet",
    );
    check_line(folder, "evaluate", "--relevance R.parquet --truth truth.parquet");
    check_line(folder, "report", "R.parquet -o R.html");
    check_line(folder, "report", "R.parquet --figures figures");
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
