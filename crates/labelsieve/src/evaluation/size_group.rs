//! Classes grouped by their numbers of candidates.

/// The classes whose number of candidates lies in a range.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SizeGroup {
    /// Smallest number of candidates in the group.
    pub from: u64,
    /// Largest number of candidates in the group.
    pub to: u64,
    /// How many classes fall into it.
    pub n_classes: usize,
}

impl SizeGroup {
    /// Groups classes by their numbers of candidates: none, 1 to 9, 10 to 99, … up to the largest class.
    pub fn by_digits(counts: &[u64]) -> Vec<SizeGroup> {
        let count = |from, to| counts.iter().filter(|&&n| (from..=to).contains(&n)).count();
        let mut groups = vec![SizeGroup { from: 0, to: 0, n_classes: count(0, 0) }];
        let largest = counts.iter().copied().max().unwrap_or(0);
        let starts = std::iter::successors(Some(1u64), |from| from.checked_mul(10));
        for from in starts.take_while(|&from| from <= largest) {
            let to = from.checked_mul(10).map_or(u64::MAX, |next| next - 1);
            groups.push(SizeGroup { from, to, n_classes: count(from, to) });
        }
        groups
    }

    /// Whether a class with `n_candidates` candidates belongs to the group.
    pub fn contains(&self, n_candidates: u64) -> bool {
        (self.from..=self.to).contains(&n_candidates)
    }

    /// The group's sizes for people: `0`, `1–9`, `10–99`, …
    pub fn range(&self) -> String {
        if self.from == self.to { self.from.to_string() } else { format!("{}–{}", self.from, self.to) }
    }
}
