//! Candidates that cannot be scored, by class and cause.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::counted;
use crate::work::Monitor;
use crate::work::near_name::nearest;

/// Maximum number of classes in a message; the rest is counted.
const MAX_NAMED: usize = 10;

/// The numbers of skipped candidates, by class.
#[derive(Debug, Default)]
pub struct SkippedCandidates {
    /// Their class has no clean example.
    pub without_clean: BTreeMap<String, usize>,
    /// Their class has clean examples, but they have no features.
    pub without_features: BTreeMap<String, usize>,
    /// The first of those without features: its row in the candidate file and its id.
    pub first_without_features: BTreeMap<String, (usize, String)>,
}

impl SkippedCandidates {
    /// The number of all skipped candidates.
    pub fn n_candidates(&self) -> usize {
        self.without_clean.values().chain(self.without_features.values()).sum()
    }

    /// The first candidate in the file that has no features.
    pub fn example_without_features(&self) -> Option<&str> {
        self.first_without_features.values().min().map(|(_, id)| id.as_str())
    }

    /// Drops the counts of candidates without features of a class that another part of the run reports.
    pub fn forget_features_of(&mut self, class: &str) {
        self.without_features.remove(class);
        self.first_without_features.remove(class);
    }

    /// Warns about classes that lose candidates, with similar names among `known`, the classes with clean examples. `clean`
    /// and `features` are the files.
    pub fn warn(&self, known: &[&str], clean: &Path, features: &Path, monitor: &dyn Monitor) {
        let n: usize = self.without_clean.values().sum();
        if n > 0 {
            let classes = named(&self.without_clean, known);
            let clean = clean.display();
            monitor.warning(&format!(
                "skipping {} whose class has no clean example in `{clean}`: {classes}",
                counted(n, "candidate")
            ));
        }
        let n: usize = self.without_features.values().sum();
        if n > 0 {
            let example = self.example_without_features().unwrap_or("");
            let features = features.display();
            let classes = named(&self.without_features, &[]);
            monitor.warning(&format!(
                "skipping {} without features in `{features}` (e.g. `{example}`): of {classes}",
                counted(n, "candidate")
            ));
        }
    }
}

/// Classes with their counts, largest first, and similar known names.
pub fn named(counts: &BTreeMap<String, usize>, known: &[&str]) -> String {
    let mut classes: Vec<(&String, usize)> = counts.iter().map(|(name, n)| (name, *n)).collect();
    classes.sort_by_key(|(_, n)| std::cmp::Reverse(*n)); // stable: equal counts stay in alphabetical order
    let describe = |(name, n): &(&String, usize)| match nearest(name, known.iter().copied()) {
        Some(meant) => format!("`{name}` ({n}; did you mean `{meant}`?)"),
        None => format!("`{name}` ({n})"),
    };
    listed(classes.iter().map(describe).take(MAX_NAMED), classes.len())
}

/// The first of `n` names, and how many more there are.
pub fn listed(names: impl Iterator<Item = String>, n: usize) -> String {
    let names: Vec<String> = names.take(MAX_NAMED).collect();
    let more = n - names.len();
    let names = names.join(", ");
    if more > 0 { format!("{names} and {more} more") } else { names }
}

/// The number of occurrences of each name.
pub fn counts<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<String, usize> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    counts.into_iter().map(|(name, n)| (name.to_owned(), n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_losses_are_named_first_and_the_rest_is_counted() {
        let names = ["Caps", "hat", "Caps", "boot", "hat", "Caps"];
        let found = named(&counts(names.into_iter()), &["caps", "boots"]);
        assert_eq!(found, "`Caps` (3; did you mean `caps`?), `hat` (2), `boot` (1; did you mean `boots`?)");
        let many: Vec<String> = (0..12).map(|i| format!("class {i:02}")).collect();
        let found = named(&counts(many.iter().map(String::as_str)), &[]);
        assert!(found.starts_with("`class 00` (1), `class 01` (1), "), "{found}");
        assert!(found.ends_with("`class 09` (1) and 2 more"), "{found}");
    }
}
