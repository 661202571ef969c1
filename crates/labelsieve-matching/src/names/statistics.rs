//! The number of candidates of each class: the paper's figure of noisy data statistics.

use std::fmt;

use labelsieve::evaluation::SizeGroup;

use super::{ClassEntry, ClassList};

/// The numbers of candidates of all classes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CandidateStatistics {
    /// All classes, most candidates first, ties in class order: panel (a) of the figure.
    pub classes: Vec<ClassCount>,
    /// Classes grouped by their number of candidates on a logarithmic scale: panel (b). The first group has none.
    pub groups: Vec<SizeGroup>,
    /// The number of pairs of an example and a class.
    pub n_candidates: u64,
    /// The number of candidates by the rule `plural`, if it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_candidates_plural: Option<u64>,
}

/// The number of candidates of one class.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ClassCount {
    /// The class.
    pub id: String,
    /// Its name for people.
    pub display_name: String,
    /// The number of its candidates.
    pub n_candidates: u64,
    /// The number of its candidates by the rule `plural`, if it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_candidates_plural: Option<u64>,
}

impl CandidateStatistics {
    /// `counts[c]` is the number of candidates of class `c`.
    pub fn new(classes: &ClassList, counts: &[u64]) -> CandidateStatistics {
        CandidateStatistics::compared(classes, counts, None)
    }

    /// As [`CandidateStatistics::new`], with the numbers of candidates by [`MatchRule::Plural`](super::MatchRule::Plural).
    pub fn compared(classes: &ClassList, counts: &[u64], plural: Option<&[u64]>) -> CandidateStatistics {
        let class_count = |(position, class): (usize, &ClassEntry)| ClassCount {
            id: class.id.clone(),
            display_name: class.display_name.clone(),
            n_candidates: counts[position],
            n_candidates_plural: plural.map(|plural| plural[position]),
        };
        let mut classes: Vec<ClassCount> = classes.classes().iter().enumerate().map(class_count).collect();
        classes.sort_by_key(|class| std::cmp::Reverse(class.n_candidates));
        CandidateStatistics {
            classes,
            groups: SizeGroup::by_digits(counts),
            n_candidates: counts.iter().sum(),
            n_candidates_plural: plural.map(|plural| plural.iter().sum()),
        }
    }

    /// The classes without candidates.
    pub fn without_candidates(&self) -> &[ClassCount] {
        &self.classes[self.classes.partition_point(|class| class.n_candidates > 0)..]
    }
}

/// The figure for a terminal: the sorted curve with logarithmic bars, then the groups with linear ones.
impl fmt::Display for CandidateStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_classes = self.classes.len();
        writeln!(f, "{} candidates for {n_classes} classes; bars are logarithmic", self.n_candidates)?;
        if let Some(n_plural) = self.n_candidates_plural {
            writeln!(f, "the rule `plural` would find {n_plural}{}", change(self.n_candidates, n_plural))?;
        }
        let largest = log_size(self.classes.first().map_or(0, |class| class.n_candidates));
        for rank in spread(n_classes) {
            let ClassCount { display_name, n_candidates, .. } = &self.classes[rank];
            let bar = bar(log_size(*n_candidates) / largest.max(1.0));
            writeln!(f, "{:>6}  {:<24} {n_candidates:>9}  {bar}", rank + 1, shortened(display_name))?;
        }
        writeln!(f, "\nclasses by number of candidates")?;
        let most = self.groups.iter().map(|group| group.n_classes).max().unwrap_or(0).max(1);
        for group in &self.groups {
            let range = group.range();
            let n_classes = group.n_classes;
            writeln!(f, "{range:>21}  {n_classes:>6}  {}", bar(n_classes as f64 / most as f64))?;
        }
        let none = self.without_candidates();
        if !none.is_empty() {
            let names: Vec<&str> = none.iter().take(10).map(|class| class.display_name.as_str()).collect();
            let more = if none.len() > names.len() { ", …" } else { "" };
            writeln!(f, "\nwithout candidates: {}{more}", names.join(", "))?;
        }
        Ok(())
    }
}

/// The relative change, e.g. ` (+120 %)`; empty for a change from 0.
fn change(from: u64, to: u64) -> String {
    match from {
        0 => String::new(),
        _ => format!(" ({:+.0} %)", 100.0 * (to as f64 - from as f64) / from as f64),
    }
}

/// At most 20 ranks, evenly spread, with the first and the last among them.
fn spread(n_classes: usize) -> impl Iterator<Item = usize> {
    const MAX_LINES: usize = 20;
    let n_lines = n_classes.min(MAX_LINES);
    (0..n_lines).map(move |line| if n_lines < 2 { 0 } else { line * (n_classes - 1) / (n_lines - 1) })
}

fn log_size(n: u64) -> f64 {
    (n as f64 + 1.0).log10()
}

/// A bar of up to 40 cells in steps of an eighth.
fn bar(fraction: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let n_eighths = (fraction * 320.0).round() as usize;
    "█".repeat(n_eighths / 8) + EIGHTHS[n_eighths % 8]
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= 24 { name.to_string() } else { name.chars().take(23).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::ClassEntry;

    fn statistics(counts: &[u64]) -> CandidateStatistics {
        let class = |i: usize| ClassEntry {
            id: format!("c{i}"),
            display_name: format!("class {i}"),
            names: vec!["x".into()],
            exclude: vec![],
        };
        CandidateStatistics::new(&ClassList::new((0..counts.len()).map(class).collect()).unwrap(), counts)
    }

    #[test]
    fn classes_come_largest_first_and_fall_into_decades() {
        let statistics = statistics(&[0, 12, 9, 10, 100, 0]);
        let sorted: Vec<&str> = statistics.classes.iter().map(|class| class.id.as_str()).collect();
        assert_eq!(sorted, ["c4", "c1", "c3", "c2", "c0", "c5"]);
        let sizes: Vec<_> = statistics.groups.iter().map(|g| (g.from, g.to, g.n_classes)).collect();
        assert_eq!(sizes, [(0, 0, 2), (1, 9, 1), (10, 99, 2), (100, 999, 1)]);
        assert_eq!(statistics.n_candidates, 131);
        assert_eq!(statistics.without_candidates().len(), 2);
    }

    #[test]
    fn the_terminal_shows_both_panels_and_the_classes_without() {
        let text = statistics(&[99, 9, 0]).to_string();
        let expected = "\
108 candidates for 3 classes; bars are logarithmic
     1  class 0                         99  ████████████████████████████████████████
     2  class 1                          9  ████████████████████
     3  class 2                          0  \n
classes by number of candidates
                    0       1  ████████████████████████████████████████
                  1–9       1  ████████████████████████████████████████
                10–99       1  ████████████████████████████████████████

without candidates: class 2
";
        assert_eq!(text, expected);
    }

    #[test]
    fn counts_of_the_plural_are_in_the_text_and_in_json() {
        let class = |id: &str| ClassEntry {
            id: id.into(),
            display_name: id.into(),
            names: vec!["x".into()],
            exclude: vec![],
        };
        let classes = ClassList::new(vec![class("a"), class("b")]).unwrap();
        let statistics = CandidateStatistics::compared(&classes, &[0, 10], Some(&[2, 20]));
        let text = statistics.to_string();
        assert!(text.contains("\nthe rule `plural` would find 22 (+120 %)\n"), "{text}");
        let json = serde_json::to_value(&statistics).unwrap();
        assert_eq!(json["n_candidates_plural"], 22);
        assert_eq!(json["classes"][1]["n_candidates_plural"], 2);
        let json = serde_json::to_value(CandidateStatistics::new(&classes, &[0, 10])).unwrap();
        assert_eq!(json.get("n_candidates_plural"), None);
    }

    #[test]
    fn a_long_list_shows_twenty_ranks_with_both_ends() {
        let ranks: Vec<usize> = spread(1000).collect();
        assert_eq!((ranks.len(), ranks[0], ranks[19]), (20, 0, 999));
        assert_eq!(spread(1).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn the_largest_possible_count_does_not_overflow() {
        assert_eq!(statistics(&[u64::MAX]).groups.last().unwrap().n_classes, 1);
    }
}
