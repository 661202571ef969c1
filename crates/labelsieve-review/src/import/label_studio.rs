//! Label Studio's export as JSON: a task per example, each with the answers of one or several people.
//!
//! Tasks are those of the Python package's `to_label_studio`: `data` has `id` and `class`, and the answer is one of all
//! classes or "None of these". Answers that are words for decisions are understood too.

use std::collections::HashSet;
use std::path::Path;

use labelsieve::Decision;
use labelsieve_files::{DataError, DecisionRow, Result};
use serde_json::Value;

use super::moment::{is_moment, normalised};
use super::words::Answer;
use super::{ImportOptions, ImportedDecisions, text_of};

/// What `to_label_studio` offers besides the classes.
const NONE_OF_THESE: &str = "None of these";

pub(super) fn read(path: &Path, value: &Value, options: &ImportOptions) -> Result<ImportedDecisions> {
    let Value::Array(tasks) = value else {
        return Err(DataError::malformed(path, "start", "a list of tasks", "something else"));
    };
    let (id_field, class_field) =
        (options.id.as_deref().unwrap_or("id"), options.class.as_deref().unwrap_or("class"));
    let about = |task: &Value, field: &str| task.get("data").and_then(|data| text_of(data.get(field)?));
    let classes: HashSet<String> = tasks.iter().filter_map(|task| about(task, class_field)).collect();
    let mut found = ImportedDecisions::default();
    for (position, task) in tasks.iter().enumerate() {
        let (Some(id), Some(class)) = (about(task, id_field), about(task, class_field)) else {
            let lacks = format!("task {position}: no `data.{id_field}` or no `data.{class_field}`");
            found.not_understood.push(lacks);
            continue;
        };
        let none = Vec::new();
        let answers = task.get("annotations").and_then(Value::as_array).unwrap_or(&none);
        let is_cancelled = |answer: &&Value| answer.get("was_cancelled") == Some(&Value::Bool(true));
        found.n_cancelled += answers.iter().filter(is_cancelled).count();
        // The latest answer counts; of equals, or where not all times are known, the last.
        let given: Vec<&Value> = answers.iter().filter(|answer| !is_cancelled(answer)).collect();
        let have_times = given.iter().all(|answer| is_moment(&moment(answer)));
        let latest = given.into_iter().max_by_key(|answer| have_times.then(|| moment(answer)));
        let Some(latest) = latest else {
            found.n_undecided += 1;
            continue;
        };
        let said = match choice(latest, options.decision.as_deref()) {
            Choice::Nothing => Answer::Nothing,
            Choice::Several => Answer::Unknown,
            Choice::One(word) if word == class => Answer::Decided(Decision::Accept),
            Choice::One(word) => match options.words.meaning(word) {
                Answer::Unknown if word == NONE_OF_THESE || classes.contains(word) => {
                    Answer::Decided(Decision::Reject)
                }
                said => said,
            },
        };
        match said {
            Answer::Nothing => found.n_undecided += 1,
            Answer::Unknown => {
                let answer = latest.get("result").map(Value::to_string).unwrap_or_default();
                let answer: String = answer.chars().take(80).collect();
                found.not_understood.push(format!("task {position} (`{id}` of `{class}`): {answer}"));
            }
            Answer::Withdrawn | Answer::Decided(_) => {
                let decision = said.decision();
                found.push(DecisionRow { id, class, decision, by: author(latest), at: moment(latest) });
            }
        }
    }
    Ok(found)
}

enum Choice<'a> {
    Nothing,
    One(&'a str),
    Several,
}

/// The choice of one person; with `control`, only that of the control of this name.
fn choice<'a>(answer: &'a Value, control: Option<&str>) -> Choice<'a> {
    let results = answer.get("result").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_asked = |result: &&Value| match control {
        Some(name) => result.get("from_name").and_then(Value::as_str) == Some(name),
        None => true,
    };
    let choices =
        results.iter().filter(is_asked).filter_map(|result| result.get("value")?.get("choices")?.as_array());
    let mut choices = choices.flatten().filter_map(Value::as_str);
    match (choices.next(), choices.next()) {
        (None, _) => Choice::Nothing,
        (Some(only), None) => Choice::One(only),
        _ => Choice::Several,
    }
}

fn moment(answer: &Value) -> String {
    let time = ["updated_at", "created_at"].iter().find_map(|field| answer.get(*field)?.as_str());
    time.map(normalised).unwrap_or_default()
}

/// Who answered: a number, or a person with an address.
fn author(answer: &Value) -> String {
    let by = answer.get("completed_by").unwrap_or(&Value::Null);
    let named = ["email", "username", "id"].iter().find_map(|field| text_of(by.get(*field)?));
    text_of(by).or(named).unwrap_or_default()
}
