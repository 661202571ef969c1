//! FiftyOne's exports as JSON: `samples.json` of a `FiftyOneDataset`, or `labels.json` of an image classification dataset.
//!
//! Labels are those of the Python package's `to_fiftyone`, whose attribute `example` is the id. A decision is a tag of the
//! label, of the sample where it has one label only, or the value of a field `decision` of either.

use std::path::Path;

use labelsieve_files::{DataError, DecisionRow, Result};
use serde_json::{Map, Value};

use super::words::Answer;
use super::{ImportOptions, ImportedDecisions, text_of};

pub(super) fn read(path: &Path, value: &Value, options: &ImportOptions) -> Result<ImportedDecisions> {
    let import = Import {
        id: options.id.as_deref().unwrap_or("example"),
        class: options.class.as_deref(),
        decision: options.decision.as_deref().unwrap_or("decision"),
        options,
    };
    let mut found = ImportedDecisions::default();
    if let Some(samples) = value.get("samples").and_then(Value::as_array) {
        for (position, sample) in samples.iter().enumerate() {
            import.sample(&format!("sample {position}"), sample, &mut found);
        }
        return Ok(found);
    }
    let Some(labels) = value.get("labels").and_then(Value::as_object) else {
        return Err(DataError::malformed(path, "start", "`samples` or `labels`", "neither"));
    };
    for (key, labels) in labels {
        let labels: Vec<&Value> = match labels {
            Value::Array(several) => several.iter().collect(),
            one => vec![one],
        };
        for label in labels {
            import.label(&format!("label `{key}`"), label, &[], None, &mut found);
        }
    }
    Ok(found)
}

struct Import<'a> {
    id: &'a str,
    /// The field of labels, if not all.
    class: Option<&'a str>,
    decision: &'a str,
    options: &'a ImportOptions,
}

impl Import<'_> {
    fn sample(&self, place: &str, sample: &Value, found: &mut ImportedDecisions) {
        let Some(fields) = sample.as_object() else {
            found.not_understood.push(format!("{place}: no object"));
            return;
        };
        let labels: Vec<&Value> = fields
            .iter()
            .filter(|(name, _)| self.class.map_or(*name != self.decision, |class| *name == class))
            .flat_map(|(_, field)| labels_of(field))
            .collect();
        if labels.is_empty() {
            found.not_understood.push(format!("{place}: no classification"));
        }
        // A tag of a sample with several labels does not say which of them it is about.
        let tags = if labels.len() == 1 { tags_of(fields) } else { Vec::new() };
        let id = fields.get(self.id).and_then(text_of);
        let mut only = fields.get(self.decision).filter(|_| labels.len() == 1).map(decision_text);
        for label in labels {
            let shared = only.take().flatten();
            let tags: Vec<&str> = tags.iter().copied().chain(shared.as_deref()).collect();
            self.label(place, label, &tags, id.as_deref(), found);
        }
    }

    /// `tags` are those of the sample.
    fn label(
        &self,
        place: &str,
        label: &Value,
        tags: &[&str],
        id: Option<&str>,
        found: &mut ImportedDecisions,
    ) {
        let none = Map::new();
        let fields = label.as_object().unwrap_or(&none);
        let attributes = fields.get("attributes").and_then(Value::as_object).unwrap_or(&none);
        let field = |name: &str| fields.get(name).or_else(|| attributes.get(name));
        let id = field(self.id).and_then(text_of).or_else(|| id.map(str::to_owned));
        let class = fields.get("label").and_then(text_of);
        let (Some(id), Some(class)) = (id, class) else {
            found.not_understood.push(format!("{place}: no `{}` or no `label`", self.id));
            return;
        };
        let own = field(self.decision).and_then(decision_text);
        let said = tags_of(fields).into_iter().chain(own.as_deref()).chain(tags.iter().copied());
        match self.options.words.of_tags(said) {
            Answer::Nothing => found.n_undecided += 1,
            Answer::Unknown => {
                found
                    .not_understood
                    .push(format!("{place} (`{id}` of `{class}`): tags contradict each other"));
            }
            said @ (Answer::Withdrawn | Answer::Decided(_)) => {
                let (by, at) = (String::new(), String::new());
                found.push(DecisionRow { id, class, decision: said.decision(), by, at });
            }
        }
    }
}

/// The classifications in a field of a sample.
fn labels_of(field: &Value) -> Vec<&Value> {
    let several = field.get("classifications").and_then(Value::as_array);
    match field.get("_cls").and_then(Value::as_str) {
        Some("Classification") => vec![field],
        Some("Classifications") => several.map_or(Vec::new(), |several| several.iter().collect()),
        _ => Vec::new(),
    }
}

fn tags_of(fields: &Map<String, Value>) -> Vec<&str> {
    let tags = fields.get("tags").and_then(Value::as_array);
    tags.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A text, or a classification of its own.
fn decision_text(field: &Value) -> Option<String> {
    text_of(field).or_else(|| text_of(field.get("label")?))
}
