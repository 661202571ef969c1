//! A section of the page: tables of fields, and examples that fit them.

use serde_json::{Map, Value as Json};

use super::structs::{Definition, Field, Shape, Structs, Value};
use super::{Command, part};

/// The section about a command.
pub fn section(command: &Command, structs: &Structs) -> String {
    let mut section = format!("## {}\n", command.name);
    for answer in command.answers {
        if !answer.when.is_empty() {
            section += &format!("\n{}\n", answer.when);
        }
        let definition = structs.in_crate(answer.crate_name, answer.type_name);
        section += &tables(definition, structs);
        for name in answer.examples {
            section += &example(command.name, name, definition, structs);
        }
    }
    section
}

/// An object inside an answer, with the places where it stands.
struct Inner<'a> {
    definition: &'a Definition,
    /// `largest_class`, or `each of bins`.
    places: Vec<String>,
}

/// The table of the answer, then one for each object inside it.
fn tables<'a>(definition: &'a Definition, structs: &'a Structs) -> String {
    let mut objects = vec![Inner { definition, places: Vec::new() }];
    let mut text = String::new();
    let mut at = 0;
    while let Some(Inner { definition, places }) = objects.get(at) {
        let definition = *definition;
        let prefix = places.first().map_or(String::new(), |place| format!("{}.", path_of(place)));
        if !places.is_empty() {
            text += &format!("\n{}:\n", sentence(places));
        }
        text += "\n| field | type | meaning |\n|---|---|---|\n";
        for LabelledField { field, definition } in flat_fields(definition, structs) {
            let mark = if field.is_optional || matches!(field.value, Value::Nullable(_)) { "?" } else { "" };
            let kind = name_of(&field.value, definition, structs);
            text += &format!("| `{}` | {kind}{mark} | {} |\n", field.name, field.doc.replace('|', "\\|"));
            if let Some((inner, is_many)) = inner_object(&field.value, definition, structs) {
                let path = format!("`{prefix}{}`", field.name);
                let place = if is_many { format!("each of {path}") } else { path };
                match objects.iter_mut().find(|known| std::ptr::eq(known.definition, inner)) {
                    Some(known) => known.places.push(place),
                    None => objects.push(Inner { definition: inner, places: vec![place] }),
                }
            }
        }
        at += 1;
    }
    text
}

/// The path in a place: `bins` of ``each of `bins` ``.
fn path_of(place: &str) -> &str {
    place.split('`').nth(1).unwrap_or_default()
}

/// The places as the start of a sentence.
fn sentence(places: &[String]) -> String {
    let joined = places.join(" and ");
    match joined.strip_prefix("each") {
        Some(rest) => format!("Each{rest}"),
        None => joined,
    }
}

/// A field with the struct that declares it.
struct LabelledField<'a> {
    field: Field,
    definition: &'a Definition,
}

/// The fields as they stand in the JSON object: those of flattened fields in their place.
fn flat_fields<'a>(definition: &'a Definition, structs: &'a Structs) -> Vec<LabelledField<'a>> {
    let Shape::Object(fields) = &definition.shape else { panic!("an answer is an object") };
    let mut flat = Vec::new();
    for field in fields {
        if !field.is_flat {
            flat.push(LabelledField { field: field.clone(), definition });
            continue;
        }
        let (Value::Named(name), is_optional) = without_null(&field.value) else {
            panic!("`{}` is flattened but not a struct", field.name)
        };
        for mut inner in flat_fields(structs.seen_from(definition, name), structs) {
            inner.field.is_optional |= is_optional;
            flat.push(inner);
        }
    }
    flat
}

fn without_null(value: &Value) -> (&Value, bool) {
    if let Value::Nullable(inner) = value { (inner, true) } else { (value, false) }
}

/// `array of string`, as the page calls it; optional ones get their mark from the caller.
fn name_of(value: &Value, user: &Definition, structs: &Structs) -> String {
    match value {
        Value::Plain(name) => (*name).to_owned(),
        Value::Nullable(inner) => name_of(inner, user, structs),
        Value::Array(inner) => {
            let mark = if matches!(**inner, Value::Nullable(_)) { "?" } else { "" };
            format!("array of {}{mark}", name_of(inner, user, structs))
        }
        Value::Unknown(what) => panic!("no JSON type is known for a field: {what}"),
        Value::ByName(inner) => format!("object of {} by name", name_of(inner, user, structs)),
        Value::Named(name) => match &structs.seen_from(user, name).shape {
            Shape::Object(_) => "object".to_owned(),
            Shape::OneOf(variants) => {
                let quoted = variants.iter().map(|variant| format!("`{variant}`"));
                format!("string: {}", quoted.collect::<Vec<_>>().join(", "))
            }
        },
    }
}

/// The struct in a field, and whether the field holds several of it.
fn inner_object<'a>(
    value: &Value,
    user: &Definition,
    structs: &'a Structs,
) -> Option<(&'a Definition, bool)> {
    match value {
        Value::Plain(_) | Value::Unknown(_) => None,
        Value::Nullable(inner) => inner_object(inner, user, structs),
        Value::Array(inner) | Value::ByName(inner) => {
            inner_object(inner, user, structs).map(|(found, _)| (found, true))
        }
        Value::Named(name) => {
            let found = structs.seen_from(user, name);
            matches!(found.shape, Shape::Object(_)).then_some((found, false))
        }
    }
}

/// An example of an answer with the fields that all answers have. It must fit the struct.
fn example(command: &str, name: &str, definition: &Definition, structs: &Structs) -> String {
    let text = part(&format!("examples/{name}.json"));
    let json: Map<String, Json> =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}.json: {error}"));
    let mut check = ExampleCheck { structs, misfits: Vec::new() };
    check.object(&json, definition, "");
    assert!(check.misfits.is_empty(), "{name}.json does not fit its struct: {:#?}", check.misfits);
    let fields = text.trim().strip_prefix("{\n").expect("a line break after the bracket");
    let version = env!("CARGO_PKG_VERSION");
    format!("\n```json\n{{\n  \"command\": \"{command}\",\n  \"version\": \"{version}\",\n{fields}\n```\n")
}

/// Compares an example with the structs.
struct ExampleCheck<'a> {
    structs: &'a Structs,
    /// The fields that do not fit, by path.
    misfits: Vec<String>,
}

impl ExampleCheck<'_> {
    fn object(&mut self, json: &Map<String, Json>, definition: &Definition, path: &str) {
        let fields = flat_fields(definition, self.structs);
        for name in json.keys().filter(|name| fields.iter().all(|known| known.field.name != **name)) {
            self.misfits.push(format!("{path}{name} is unknown"));
        }
        for LabelledField { field, definition } in fields {
            let path = format!("{path}{}", field.name);
            match json.get(&field.name) {
                Some(json) => self.value(json, &field.value, definition, &path),
                None if field.is_optional => {}
                None => self.misfits.push(format!("{path} is missing")),
            }
        }
    }

    /// `user` is the struct with the field.
    fn value(&mut self, json: &Json, value: &Value, user: &Definition, path: &str) {
        match (value, json) {
            (Value::Plain("integer"), Json::Number(number)) if !number.is_f64() => {}
            (Value::Plain("number"), Json::Number(_)) => {}
            (Value::Plain("string"), Json::String(_)) | (Value::Plain("boolean"), Json::Bool(_)) => {}
            (Value::Nullable(_), Json::Null) => {}
            (Value::Nullable(inner), json) => self.value(json, inner, user, path),
            (Value::Array(inner), Json::Array(items)) => {
                items.iter().for_each(|item| self.value(item, inner, user, path));
            }
            (Value::ByName(inner), Json::Object(by_name)) => {
                by_name.values().for_each(|json| self.value(json, inner, user, path));
            }
            (Value::Named(name), json) => {
                let found = self.structs.seen_from(user, name);
                match (&found.shape, json) {
                    (Shape::Object(_), Json::Object(json)) => self.object(json, found, &format!("{path}.")),
                    (Shape::OneOf(variants), Json::String(text)) if variants.contains(text) => {}
                    _ => self.misfits.push(format!("{path} is {json}")),
                }
            }
            _ => self.misfits.push(format!("{path} is {json}")),
        }
    }
}
