//! The classes to search for, and their names.

use std::collections::HashSet;

use super::error::{NamesError, Result};

/// A class: its id and display name in results, and its names in texts.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ClassEntry {
    /// The id of the class in every file.
    pub id: String,
    /// The name for people.
    pub display_name: String,
    /// Names that make an example whose text contains one a candidate; of several, the first is reported.
    pub names: Vec<String>,
    /// Names that exclude an example whose text contains one.
    pub exclude: Vec<String>,
}

/// Classes in file order, with distinct ids and at least one name each. The position of a class here is its index elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassList(Vec<ClassEntry>);

impl ClassList {
    /// Checks that ids are distinct and every class has a name.
    pub fn new(classes: Vec<ClassEntry>) -> Result<ClassList> {
        let refuse = |place: String, expected, found| Err(NamesError::Class { place, expected, found });
        if classes.is_empty() {
            return refuse("classes".into(), "at least one", "none");
        }
        let mut ids = HashSet::new();
        for (index, ClassEntry { id, names, .. }) in classes.iter().enumerate() {
            if id.is_empty() {
                return refuse(format!("class number {}", index + 1), "an id", "an empty one");
            }
            if !ids.insert(id) {
                return refuse(format!("class `{id}`"), "a unique id", "a duplicate");
            }
            if names.is_empty() {
                return refuse(format!("class `{id}`"), "at least one name", "none");
            }
        }
        Ok(ClassList(classes))
    }

    /// The classes in file order.
    pub fn classes(&self) -> &[ClassEntry] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(id: &str, names: &[&str]) -> ClassEntry {
        ClassEntry {
            id: id.into(),
            display_name: id.into(),
            names: names.iter().map(|name| name.to_string()).collect(),
            exclude: Vec::new(),
        }
    }

    #[test]
    fn a_list_that_could_not_be_searched_is_refused() {
        let check =
            |classes, expected| assert_eq!(ClassList::new(classes).unwrap_err().to_string(), expected);
        check(vec![], "classes: expected at least one, found none");
        check(vec![class("", &["cat"])], "class number 1: expected an id, found an empty one");
        check(
            vec![class("a", &["x"]), class("a", &["y"])],
            "class `a`: expected a unique id, found a duplicate",
        );
        check(vec![class("a", &[])], "class `a`: expected at least one name, found none");
    }
}
