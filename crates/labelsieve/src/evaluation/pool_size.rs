//! What a change brings to classes with few and with many candidates.

use serde::{Deserialize, Serialize};

/// Classes whose numbers of candidates have the same number of digits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeGroup {
    /// Fewest candidates of the group.
    pub from: usize,
    /// Most candidates of the group.
    pub to: usize,
    /// Classes in it.
    pub n_classes: usize,
    /// Mean gain of these classes.
    pub mean_gain: f64,
}

impl SizeGroup {
    /// The group's sizes for people: `0`, `1–9`, `10–99`, …
    pub fn range(&self) -> String {
        if self.from == self.to { self.from.to_string() } else { format!("{}–{}", self.from, self.to) }
    }
}

/// Groups classes by candidates in powers of ten (0, 1–9, 10–99, …), leaving out empty groups. `gains[c]` is what
/// class c gained, e.g. in accuracy.
pub fn group_by_pool_size(sizes: &[usize], gains: &[f64]) -> Vec<SizeGroup> {
    let digits = |size: usize| size.checked_ilog10().map_or(0, |power| power as usize + 1);
    let most = sizes.iter().map(|&size| digits(size)).max().unwrap_or(0);
    (0..=most)
        .filter_map(|group| {
            let members: Vec<f64> = sizes
                .iter()
                .zip(gains)
                .filter(|(size, _)| digits(**size) == group)
                .map(|(_, &g)| g)
                .collect();
            let from = if group == 0 { 0 } else { 10usize.pow(group as u32 - 1) };
            let to = if group == 0 { 0 } else { from * 10 - 1 };
            let n_classes = members.len();
            (n_classes > 0).then(|| SizeGroup {
                from,
                to,
                n_classes,
                mean_gain: members.iter().sum::<f64>() / n_classes as f64,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_group_by_digits_and_average_their_gain() {
        let groups = group_by_pool_size(&[0, 5, 9, 10, 12_000], &[0.0, 0.1, 0.3, -0.2, 0.5]);
        let brief: Vec<_> = groups.iter().map(|g| (g.from, g.to, g.n_classes)).collect();
        assert_eq!(brief, [(0, 0, 1), (1, 9, 2), (10, 99, 1), (10_000, 99_999, 1)]);
        assert!((groups[1].mean_gain - 0.2).abs() < 1e-12);
    }
}
