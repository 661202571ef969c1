//! The relevance of every class as it is now.

use std::sync::Arc;

use super::contents::Class;

/// The relevance and the near-duplicates of one class.
pub(super) struct ClassScores {
    pub(super) relevance: Arc<Vec<f32>>,
    /// The probability of each row, where the method gives one.
    pub(super) probability: Vec<Option<f32>>,
    /// The first row of each row's near-duplicates.
    pub(super) groups: Arc<Vec<u32>>,
    /// Grows whenever one of the two changes.
    pub(super) revision: u64,
    /// The state that the relevance was made from; none if it was another than the current one.
    pub(super) made_from: Option<Stamp>,
    /// Whether near-duplicates were looked for.
    pub(super) has_groups: bool,
}

/// Versions of everything that relevance depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Of the class's decisions.
    pub(super) decisions: u64,
    /// Of λ.
    pub(super) lambda: u64,
}

impl ClassScores {
    /// The relevance of the file; every candidate is its own group.
    pub(super) fn of_file(class: &Class, made_from: Option<Stamp>) -> ClassScores {
        ClassScores {
            relevance: Arc::new(class.relevance.clone()),
            probability: class.probability.clone(),
            groups: Arc::new((0..class.candidates.len() as u32).collect()),
            revision: 0,
            made_from,
            has_groups: false,
        }
    }

    pub(super) fn mean(&self) -> Option<f32> {
        let sum: f64 = self.relevance.iter().map(|&relevance| f64::from(relevance)).sum();
        (!self.relevance.is_empty()).then(|| (sum / self.relevance.len() as f64) as f32)
    }

    /// Rows and their near-duplicates: those given first, each once.
    pub(super) fn with_duplicates(&self, rows: &[usize]) -> Vec<usize> {
        let mut seen = vec![false; self.groups.len()];
        let mut all = Vec::with_capacity(rows.len());
        let mut firsts = std::collections::HashSet::new();
        for &row in rows {
            if !std::mem::replace(&mut seen[row], true) {
                all.push(row);
                firsts.insert(self.groups[row]);
            }
        }
        let others = self.groups.iter().enumerate().filter(|(_, first)| firsts.contains(first));
        all.extend(others.map(|(row, _)| row).filter(|&row| !seen[row]));
        all
    }
}
