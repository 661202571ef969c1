//! JSON Lines: one object per line.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::keep::KeepName;
use super::rows::{BadRow, RowSink, Tally, numbered_lines};
use crate::names::TextEncoding;

/// The keys to read of each object.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) id: String,
    pub(super) texts: Vec<String>,
    pub(super) encoding: TextEncoding,
    pub(super) keep: Vec<Option<KeepName>>,
}

/// The keys of the first objects of a block, in order of appearance. Malformed lines are ignored.
pub(super) fn read_keys(block: &[u8]) -> Vec<String> {
    const MAX_LINES: usize = 100;
    let mut keys: Vec<String> = Vec::new();
    for (_, line) in numbered_lines(block).take(MAX_LINES) {
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(line).unwrap_or_default();
        for key in object.into_iter().map(|(key, _)| key) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    keys
}

/// Reads every line of `block`. A text may be a string, a list of strings (tags), or absent.
pub(super) fn read_block(block: &[u8], keys: &Keys, sink: &mut impl RowSink, tally: &mut Tally) {
    for (number, line) in numbered_lines(block) {
        let mut deserializer = serde_json::Deserializer::from_slice(line);
        let row = RowSeed(keys).deserialize(&mut deserializer);
        match row.and_then(|row| deserializer.end().map(|()| row)) {
            Ok(Row { id: Some(id), texts }) => {
                texts.iter().for_each(|(column, text)| sink.text(*column, text, keys.encoding));
                let object = OnceCell::new();
                sink.end_row(&id, &|column| {
                    let KeepName { name, encoding } = keys.keep[column].as_ref()?;
                    // Few rows are candidates, so only those are parsed a second time.
                    let object = object.get_or_init(|| {
                        serde_json::from_slice::<serde_json::Map<_, _>>(line).unwrap_or_default()
                    });
                    value_text(object.get(name)?).map(|text| encoding.decode(&text).into_owned())
                });
                tally.n_rows += 1;
            }
            Ok(Row { id: None, .. }) => {
                tally.add_bad(BadRow::new(number, format!("an id under `{}`", keys.id), "none"))
            }
            Err(_) if std::str::from_utf8(line).is_err() => {
                tally.add_bad(BadRow::in_other_encoding(number, line))
            }
            Err(error) => tally.add_bad(BadRow::new(number, "a JSON object", without_place(&error))),
        }
    }
}

/// A value to keep: a string as it reads, anything else as JSON.
fn value_text(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The message without the line number, since serde parses a single line.
fn without_place(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at byte ")
}

#[derive(Default)]
struct Row<'a> {
    id: Option<Cow<'a, str>>,
    texts: Vec<(usize, Cow<'a, str>)>,
}

/// Reads the chosen values of an object and skips the others without building them.
struct RowSeed<'k>(&'k Keys);

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = Row<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Row<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = Row<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row<'de>, A::Error> {
        let mut row = Row::default();
        while let Some(Key(key)) = map.next_key()? {
            let column = self.0.texts.iter().position(|text| *text == key);
            let is_id = key == self.0.id;
            if column.is_none() && !is_id {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let Texts(texts) = map.next_value()?;
            if is_id {
                row.id = texts.first().filter(|id| !id.is_empty()).cloned();
            }
            row.texts.extend(
                column.into_iter().flat_map(|column| texts.iter().map(move |text| (column, text.clone()))),
            );
        }
        Ok(row)
    }
}

#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// A value as texts: one for a string or an integer, several for a list, none for null.
struct Texts<'a>(Vec<Cow<'a, str>>);

impl<'de> Deserialize<'de> for Texts<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Texts<'de>, D::Error> {
        deserializer.deserialize_any(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("text or a list of texts")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Texts<'de>, E> {
        Ok(Texts(vec![Cow::Borrowed(text)]))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Texts<'de>, E> {
        Ok(Texts(vec![Cow::Owned(text.to_string())]))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Texts<'de>, E> {
        Ok(Texts(vec![Cow::Owned(number.to_string())]))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Texts<'de>, E> {
        Ok(Texts(vec![Cow::Owned(number.to_string())]))
    }

    fn visit_unit<E: Error>(self) -> Result<Texts<'de>, E> {
        Ok(Texts(Vec::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts<'de>, A::Error> {
        let mut texts = Vec::new();
        while let Some(Texts(more)) = list.next_element()? {
            texts.extend(more);
        }
        Ok(Texts(texts))
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Position;
    use super::super::rows::tests::Notes;
    use super::*;

    fn read(block: &[u8]) -> (Vec<String>, Tally) {
        let keys = Keys {
            id: "id".into(),
            texts: vec!["title".into(), "tags".into()],
            encoding: TextEncoding::Plain,
            keep: Vec::new(),
        };
        let mut notes = Notes::default();
        let mut tally = Tally::default();
        read_block(block, &keys, &mut notes, &mut tally);
        (notes.rows, tally)
    }

    #[test]
    fn texts_may_be_strings_lists_or_absent() {
        let (rows, _) = read(
            br#"{"title": "a \"b\" \u00e9", "other": {"id": 3}, "id": 7, "tags": ["x", "y z"]}
{"id": "k", "title": null}
"#,
        );
        assert_eq!(rows, ["7: 0=a \"b\" é 1=x 1=y z", "k:"]);
    }

    #[test]
    fn broken_lines_are_reported_with_the_byte() {
        let (rows, tally) =
            read(b"{\"id\": 1}\n\n{\"id\"\n[1]\n{\"title\": \"x\"}\n{\"id\":1}}\n{\"id\":1,\"tags\":{}}");
        assert_eq!(rows, ["1:"]);
        let line = |bad: &BadRow| match bad.position {
            Position::Line(line) => line,
            other => panic!("{other} of a text"),
        };
        let places: Vec<_> = tally.first_bad.iter().map(|bad| (line(bad), bad.found.as_str())).collect();
        assert_eq!(
            places,
            [
                (3, "EOF while parsing an object at byte 5"),
                (4, "invalid type: sequence, expected an object at byte 0"),
                (5, "none"),
                (6, "trailing characters at byte 9"),
                (7, "invalid type: map, expected text or a list of texts at byte 17"),
            ]
        );
    }

    #[test]
    fn a_line_in_another_encoding_is_distinguished_from_a_malformed_one() {
        let (rows, tally) = read(b"{\"id\": 1, \"title\": \"caf\xe9\"}\n");
        assert_eq!(rows, [""; 0]);
        assert_eq!(tally.first_bad[0].found, "what looks like ISO-8859-1");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_counted(bytes in proptest::collection::vec(
            proptest::sample::select(b"{}[]\"\":, id\n1a\\u\xff".to_vec()), 0..200)) {
            let (rows, tally) = read(&bytes);
            proptest::prop_assert_eq!(rows.len() as u64, tally.n_rows);
            proptest::prop_assert_eq!(tally.n_rows + tally.n_bad, numbered_lines(&bytes).count() as u64);
        }
    }
}
