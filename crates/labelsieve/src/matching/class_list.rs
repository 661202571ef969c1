//! The classes to look for and the names they go by.

use std::collections::HashSet;

/// One class: what it is called in results, what it is called in text.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ClassEntry {
    /// The key of the class in every file.
    pub id: String,
    /// The name people read.
    pub display_name: String,
    /// Names whose appearance in a text makes the example a candidate; the first ones win when several appear.
    pub names: Vec<String>,
    /// Names whose appearance makes the example no candidate, whatever else its text says.
    pub exclude: Vec<String>,
}

/// Classes in file order, each with its own id and at least one name. A class is known by its position here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassList(Vec<ClassEntry>);

/// Why a list of classes is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassListError {
    /// There is nothing to look for.
    #[error("expected at least one class, found none")]
    Empty,
    /// A class cannot be referred to.
    #[error("class number {position}: expected an id, found an empty one")]
    NoId {
        /// Counted from 1, in file order.
        position: usize,
    },
    /// Two classes cannot be told apart.
    #[error("class `{id}`: expected every id once, found it twice")]
    SameId {
        /// The id that two classes share.
        id: String,
    },
    /// A class can never be found.
    #[error("class `{id}`: expected at least one name, found none")]
    NoName {
        /// The class without names.
        id: String,
    },
}

impl ClassList {
    /// Checks that ids are distinct and every class has a name.
    pub fn new(classes: Vec<ClassEntry>) -> Result<ClassList, ClassListError> {
        if classes.is_empty() {
            return Err(ClassListError::Empty);
        }
        let mut ids = HashSet::new();
        for (index, class) in classes.iter().enumerate() {
            if class.id.is_empty() {
                return Err(ClassListError::NoId { position: index + 1 });
            }
            if !ids.insert(class.id.as_str()) {
                return Err(ClassListError::SameId { id: class.id.clone() });
            }
            if class.names.is_empty() {
                return Err(ClassListError::NoName { id: class.id.clone() });
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
        let check = |classes, expected| assert_eq!(ClassList::new(classes), Err(expected));
        check(vec![], ClassListError::Empty);
        check(vec![class("", &["cat"])], ClassListError::NoId { position: 1 });
        check(vec![class("a", &["x"]), class("a", &["y"])], ClassListError::SameId { id: "a".into() });
        check(vec![class("a", &[])], ClassListError::NoName { id: "a".into() });
    }
}
