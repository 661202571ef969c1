//! The classes and ids of rows.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use crate::arrays::byte_source::ByteSource;
use crate::storage::encoding::utf8;
use crate::storage::input::read;
use crate::{ArrayFile, DataError, Result, read_ints};

/// A class for every row, stored as a code into the list of distinct names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// The distinct class names: ascending as numbers if all are integers, else alphabetically.
    pub names: Vec<String>,
    /// Per row, the position of its class in `names`.
    pub codes: Vec<u32>,
}

impl Labels {
    /// Labels whose names are integers.
    pub fn from_ints(values: &[i64]) -> Labels {
        let distinct: BTreeSet<i64> = values.iter().copied().collect();
        let code_of: HashMap<i64, u32> = distinct.iter().copied().zip(0..).collect();
        Labels {
            names: distinct.iter().map(i64::to_string).collect(),
            codes: values.iter().map(|value| code_of[value]).collect(),
        }
    }

    /// Reads a `.npy` of integers, or a text file with one label per line.
    pub fn open(path: impl AsRef<Path>) -> Result<Labels> {
        let path = path.as_ref();
        if path.extension().is_some_and(|extension| extension == "npy") {
            return Ok(Labels::from_ints(&read_ints(path)?));
        }
        let bytes = read(path)?;
        if bytes.starts_with(b"\x93NUMPY") {
            let array = ArrayFile::new(path.to_path_buf(), ByteSource::Memory(bytes))?;
            return Ok(Labels::from_ints(&array.read_ints()?));
        }
        let text = utf8(path, bytes)?;
        let mut builder = LabelsBuilder::default();
        for (line, label) in text.lines().enumerate() {
            let label = label.trim();
            if label.is_empty() {
                return Err(DataError::malformed(
                    path,
                    format!("line {}", line + 1),
                    "a label",
                    "an empty line",
                ));
            }
            builder.push(label);
        }
        Ok(builder.finish())
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The class name of a row.
    ///
    /// # Panics
    /// When the row does not exist.
    pub fn get(&self, row: usize) -> &str {
        &self.names[self.codes[row] as usize]
    }
}

impl<S: AsRef<str>> FromIterator<S> for Labels {
    fn from_iter<I: IntoIterator<Item = S>>(labels: I) -> Labels {
        let mut builder = LabelsBuilder::default();
        labels.into_iter().for_each(|label| builder.push(label.as_ref()));
        builder.finish()
    }
}

impl std::ops::Index<usize> for Labels {
    type Output = str;

    fn index(&self, row: usize) -> &str {
        self.get(row)
    }
}

/// Collects labels one by one; the names are sorted at the end.
#[derive(Default)]
pub struct LabelsBuilder {
    code_of: HashMap<String, u32>,
    codes: Vec<u32>,
}

impl LabelsBuilder {
    /// Adds the label of the next row.
    pub fn push(&mut self, label: &str) {
        let code = match self.code_of.get(label) {
            Some(&code) => code,
            None => {
                let code = self.code_of.len() as u32;
                self.code_of.insert(label.to_owned(), code);
                code
            }
        };
        self.codes.push(code);
    }

    /// The labels, with class names in order.
    pub fn finish(mut self) -> Labels {
        let mut seen: Vec<(String, u32)> = self.code_of.into_iter().collect();
        if seen.iter().all(|(name, _)| name.parse::<i64>().is_ok()) {
            seen.sort_by_cached_key(|(name, _)| (name.parse::<i64>().unwrap_or(0), name.clone()));
        } else {
            seen.sort();
        }
        let mut sorted_code = vec![0; seen.len()];
        for (new, (_, old)) in seen.iter().enumerate() {
            sorted_code[*old as usize] = new as u32;
        }
        self.codes.iter_mut().for_each(|code| *code = sorted_code[*code as usize]);
        Labels { codes: self.codes, names: seen.into_iter().map(|(name, _)| name).collect() }
    }
}

/// The ids of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// The file has no ids: that of row 7 is `7`. Contains the number of rows.
    RowNumbers(usize),
    /// The ids in the file.
    Given(Vec<String>),
    /// Row numbers, followed by texts of classes with ids.
    WithTexts {
        /// The number of rows without ids.
        numbers: usize,
        /// The ids of the rest.
        texts: Vec<String>,
    },
}

impl Ids {
    /// The id of a row.
    ///
    /// # Panics
    /// When the rows have ids of their own and the row does not exist.
    pub fn get(&self, row: usize) -> Cow<'_, str> {
        match self {
            Ids::RowNumbers(_) => Cow::Owned(row.to_string()),
            Ids::Given(ids) => Cow::Borrowed(&ids[row]),
            Ids::WithTexts { numbers, .. } if row < *numbers => Cow::Owned(row.to_string()),
            Ids::WithTexts { numbers, texts } => Cow::Borrowed(&texts[row - numbers]),
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Ids::RowNumbers(rows) => *rows,
            Ids::Given(ids) => ids.len(),
            Ids::WithTexts { numbers, texts } => numbers + texts.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(labels: &[&str], names: &[&str], codes: &[u32]) {
        let built: Labels = labels.iter().collect();
        assert_eq!(built.names, names);
        assert_eq!(built.codes, codes);
        assert_eq!((0..built.len()).map(|row| built.get(row)).collect::<Vec<_>>(), labels);
    }

    #[test]
    fn names_are_ordered_as_numbers_or_as_text() {
        check(&["10", "9", "-1", "9"], &["-1", "9", "10"], &[2, 1, 0, 1]);
        check(&["10", "9", "owl"], &["10", "9", "owl"], &[0, 1, 2]);
        check(&["7", "07"], &["07", "7"], &[1, 0]);
        check(&[], &[], &[]);
        let ints = Labels::from_ints(&[10, 9, -1, 9]);
        assert_eq!(ints, ["10", "9", "-1", "9"].iter().collect());
    }

    #[test]
    fn a_text_file_has_one_label_per_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "owl\r\ncat \nowl\n").unwrap();
        assert_eq!(Labels::open(file.path()).unwrap(), ["owl", "cat", "owl"].iter().collect());
        std::fs::write(file.path(), "owl\n\ncat\n").unwrap();
        let error = Labels::open(file.path()).unwrap_err().to_string();
        assert!(error.ends_with("line 2: expected a label, found an empty line"), "{error}");
    }

    #[test]
    fn rows_without_ids_have_their_number() {
        assert_eq!(Ids::RowNumbers(9).get(7), "7");
        assert_eq!(Ids::RowNumbers(9).len(), 9);
        assert_eq!(Ids::Given(vec!["a".into(), "b".into()]).get(1), "b");
    }
}
