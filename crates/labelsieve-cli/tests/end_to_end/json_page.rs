//! Answers of `--json` against the page that lists their fields.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::common::{Finished, run};

/// Objects whose keys are names of classes and methods.
const BY_NAME: [&str; 2] = ["classes", "auc"];
/// Settings of methods, which are not listed on the page.
const SETTINGS: [&str; 3] = ["methods", "source", "systems"];

/// The sections of `docs/json.md`: what comes before the first, then each with its heading.
pub fn sections() -> Vec<(String, String)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    let page = std::fs::read_to_string(path).expect("a page");
    let mut sections = page.split("\n## ");
    let opening = (String::new(), sections.next().unwrap_or_default().to_owned());
    let titled = sections.map(|section| section.split_once('\n').expect("a heading"));
    std::iter::once(opening).chain(titled.map(|(title, text)| (title.to_owned(), text.to_owned()))).collect()
}

/// The names in backticks where a command's fields are listed: in its section and in those for all commands.
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
pub fn check(answer: &Value, command: &str) {
    assert_eq!(answer["command"], command, "{answer}");
    assert!(answer["version"].is_string(), "{answer}");
    let mut found = BTreeSet::new();
    fields(answer, &mut found);
    assert!(found.len() > 2, "no field of its own: {answer}");
    let documented = documented(command);
    let missing: Vec<&String> = found.difference(&documented).collect();
    assert!(missing.is_empty(), "docs/json.md does not list {missing:?} of `{command}`: {answer}");
}

/// Checks that a finished command with `--json` printed such an answer.
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
pub fn check_line(folder: &Path, command: &str, options: &str) -> Value {
    let done = run(folder, &format!("{command} {options} --json")).ok();
    check_answer(&done, command);
    done.json()
}
