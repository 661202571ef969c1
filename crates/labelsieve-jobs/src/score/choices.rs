//! What a method chose for the classes, counted: files and answers stay small whatever the number of classes.

use std::collections::BTreeMap;

use labelsieve_files::counted;
use serde::Serialize;

/// Different choices that are told in words; the rest is counted.
const MOST_TOLD: usize = 20;
/// Letters of a choice that are told.
const MOST_LETTERS: usize = 400;

/// A choice and for how many classes it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// What was chosen and why.
    pub choice: String,
    /// For how many classes.
    pub n_classes: usize,
}

/// The choices of classes, the most frequent first.
pub fn count<'a>(choices: impl Iterator<Item = &'a str>) -> Vec<Choice> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    choices.for_each(|choice| *counts.entry(choice).or_default() += 1);
    let mut told: Vec<(&str, usize)> = counts.into_iter().collect();
    told.sort_by_key(|(_, n)| std::cmp::Reverse(*n)); // stable: equal counts stay in alphabetical order
    let rest = told.split_off(told.len().min(MOST_TOLD));
    let mut choices: Vec<Choice> =
        told.into_iter().map(|(words, n_classes)| Choice { choice: shortened(words), n_classes }).collect();
    if !rest.is_empty() {
        let n_classes = rest.iter().map(|(_, n)| n).sum();
        choices.push(Choice { choice: counted(rest.len(), "other choice"), n_classes });
    }
    choices
}

fn shortened(words: &str) -> String {
    match words.char_indices().nth(MOST_LETTERS) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_choices_come_first_and_many_are_summed_up() {
        let found = count(["b", "a", "c", "b"].into_iter());
        let pairs: Vec<(&str, usize)> = found.iter().map(|c| (c.choice.as_str(), c.n_classes)).collect();
        assert_eq!(pairs, [("b", 2), ("a", 1), ("c", 1)]);
        let many: Vec<String> = (0..50).map(|i| format!("{i:02}")).collect();
        let found = count(many.iter().chain(&many[49..]).map(String::as_str));
        assert_eq!(found.len(), MOST_TOLD + 1);
        assert_eq!((found[0].choice.as_str(), found[0].n_classes), ("49", 2));
        assert_eq!(found[MOST_TOLD], Choice { choice: "30 other choices".to_owned(), n_classes: 30 });
        let long = "ä".repeat(MOST_LETTERS + 1);
        assert_eq!(count([long.as_str()].into_iter())[0].choice.chars().count(), MOST_LETTERS + 1);
        assert!(count([].into_iter()).is_empty());
    }
}
