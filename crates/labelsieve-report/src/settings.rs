//! The settings that a relevance file carries, as a readable list.

use std::collections::{BTreeMap, BTreeSet};

use labelsieve::Method;
use labelsieve::relevance::paper_lambda;
use labelsieve_files::{RelevanceTable, counted};
use serde_json::Value;

use crate::RunInfo;

/// The metadata key of the settings of a scoring run.
const KEY: &str = "labelsieve";
/// The name on the page of the weight of the noisy examples in the loss.
const LAMBDA: &str = "λ";

/// Adds all settings of the run that wrote `table`.
pub(crate) fn add_all(mut info: RunInfo, table: &RelevanceTable) -> RunInfo {
    info = add_spelled_out(info, table);
    for (key, value) in &table.metadata {
        match serde_json::from_str::<Value>(value) {
            Ok(settings @ Value::Object(_)) => info = with_settings(info, "", &settings),
            _ => info = info.setting(key, value),
        }
    }
    info
}

/// The method that scored the relevance, where the file has one that we know.
pub(crate) fn method(table: &RelevanceTable) -> Option<Method> {
    serde_json::from_value(of_file(table)?.get_mut("method")?.take()).ok()
}

fn of_file(table: &RelevanceTable) -> Option<Value> {
    serde_json::from_str(table.metadata.get(KEY)?).ok()
}

/// Adds λ and the choices of the method, which are spelled out.
pub(crate) fn add_spelled_out(info: RunInfo, table: &RelevanceTable) -> RunInfo {
    add_choices(add_lambda(info, table), table)
}

/// Adds the choices of the method with their reasons and numbers of classes.
fn add_choices(info: RunInfo, table: &RelevanceTable) -> RunInfo {
    let settings = of_file(table).unwrap_or_default();
    let choices = settings["choices"].as_array().map_or(&[][..], Vec::as_slice);
    choices.iter().fold(info, |info, choice| {
        match (choice["choice"].as_str(), choice["n_classes"].as_u64()) {
            (Some(words), Some(n)) => {
                info.setting(format!("chosen for {}", counted(n as usize, "class")), words)
            }
            _ => info, // a file of another program
        }
    })
}

/// Adds λ, in force or by default, unless the list has one.
fn add_lambda(info: RunInfo, table: &RelevanceTable) -> RunInfo {
    let is_listed = info.settings.iter().any(|setting| [LAMBDA, "lambda"].contains(&setting.name.as_str()));
    let settings = of_file(table);
    let lambda = settings.as_ref().and_then(|settings| settings.get("method")?.get("lambda"));
    match lambda {
        Some(_) if is_listed => info,
        Some(Value::Number(number)) => info.setting(LAMBDA, number.as_f64().unwrap_or_default() as f32),
        Some(Value::Null) => info.setting(LAMBDA, default_lambda(table)),
        _ => info, // a method without it, or a file of another program
    }
}

/// `by the number of clean examples: 0.01 for 1, 0.05 for 2 or more`
fn default_lambda(table: &RelevanceTable) -> String {
    /// Of more, the first and the last are listed.
    const MAX_LISTED: usize = 5;
    let mut n_clean: BTreeMap<&str, usize> = BTreeMap::new();
    for row in 0..table.ids.len() {
        *n_clean.entry(table.classes.get(row)).or_default() += usize::from(table.is_clean[row]);
    }
    let counts: BTreeSet<usize> = n_clean.into_values().collect();
    let all: Vec<String> = counts.iter().map(|&k| format!("{} for {k}", rounded(paper_lambda(k)))).collect();
    let listed = match &all[..] {
        [first, .., last] if all.len() > MAX_LISTED => format!("{first} to {last}"),
        _ => all.join(", "),
    };
    format!("default, by the number of clean examples: {listed}")
}

/// Two digits that count: 0.05, 0.13, 1, 5.
fn rounded(value: f32) -> f32 {
    let digits = format!("{value:.1e}");
    digits.parse().unwrap_or(value)
}

/// Adds the values of a JSON object under their dotted names, as a scoring run stores them.
fn with_settings(info: RunInfo, prefix: &str, value: &Value) -> RunInfo {
    match value {
        Value::Object(parts) => parts.iter().fold(info, |info, (name, part)| {
            let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            let is_spelled_out = ["method.lambda", "choices"].contains(&name.as_str());
            if is_spelled_out { info } else { with_settings(info, &name, part) }
        }),
        Value::Null => info,
        Value::String(text) => info.setting(prefix, text),
        // They were single precision: 0.1, not 0.10000000149011612.
        Value::Number(number) if number.is_f64() => {
            info.setting(prefix, number.as_f64().unwrap_or_default() as f32)
        }
        other => info.setting(prefix, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(n_clean: &[usize], settings: &str) -> RelevanceTable {
        let rows = || n_clean.iter().enumerate().flat_map(|(class, &n)| (0..=n).map(move |row| (class, row)));
        RelevanceTable {
            path: "r.parquet".into(),
            ids: rows().map(|(class, row)| format!("{class}-{row}")).collect(),
            classes: rows().map(|(class, _)| class.to_string()).collect(),
            relevance: rows().map(|(_, row)| if row == 0 { 0.5 } else { 1.0 }).collect(),
            probability: None,
            is_clean: rows().map(|(_, row)| row > 0).collect(),
            decisions: None,
            metadata: BTreeMap::from([(KEY.to_owned(), settings.to_owned())]),
        }
    }

    fn lambda(n_clean: &[usize], settings: &str) -> Option<String> {
        let info = add_all(RunInfo::new("t"), &table(n_clean, settings));
        assert!(!info.settings.iter().any(|setting| setting.name == "method.lambda"), "once is enough");
        info.settings.into_iter().find(|setting| setting.name == LAMBDA).map(|setting| setting.value)
    }

    #[test]
    fn lambda_is_told_whether_it_was_given_or_not() {
        let given = r#"{"method": {"method": "gcn", "lambda": 0.10000000149011612}}"#;
        assert_eq!(lambda(&[2], given).unwrap(), "0.1");
        let default = r#"{"method": {"method": "gcn", "lambda": null}}"#;
        let told = "default, by the number of clean examples: 0.01 for 1, 0.05 for 2";
        assert_eq!(lambda(&[2, 1, 2], default).unwrap(), told);
        let told = "default, by the number of clean examples: 0.01 for 1 to 0.6 for 6";
        assert_eq!(lambda(&[1, 2, 3, 4, 5, 6], default).unwrap(), told);
        assert_eq!(lambda(&[1], r#"{"method": {"method": "similarity"}}"#), None);
        assert_eq!(lambda(&[1], "no JSON"), None);
    }

    #[test]
    fn what_was_chosen_is_told_in_words() {
        let chosen =
            r#"{"method": {"method": "gcn"}, "choices": [{"choice": "gcn: k is 5", "n_classes": 3}, 7]}"#;
        let info = add_all(RunInfo::new("t"), &table(&[1], chosen));
        let told: Vec<(&str, &str)> =
            info.settings.iter().map(|setting| (setting.name.as_str(), setting.value.as_str())).collect();
        assert!(told.contains(&("chosen for 3 classes", "gcn: k is 5")), "{told:?}");
        assert!(!told.iter().any(|(name, _)| *name == "choices"), "{told:?}");
        assert_eq!(method(&table(&[1], chosen)), Some(Method::gcn()));
        assert_eq!(method(&table(&[1], "no JSON")), None);
    }

    #[test]
    fn a_run_that_names_its_lambda_keeps_it() {
        let default = r#"{"method": {"method": "gcn", "lambda": null}}"#;
        let info = add_lambda(RunInfo::new("t").setting("λ", "tuned"), &table(&[1], default));
        assert_eq!(info.settings.len(), 1);
    }
}
