//! The gain from a change, by the number of candidates of the classes.

use serde::{Deserialize, Serialize};

use super::size_group::SizeGroup;

/// The mean gain of the classes in a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupGain {
    /// The classes, by their numbers of candidates.
    #[serde(flatten)]
    pub group: SizeGroup,
    /// Mean gain of these classes.
    pub mean_gain: f64,
}

/// Groups classes by candidates in powers of ten (0, 1–9, 10–99, …), leaving out empty groups. `gains[c]`: the
/// gain of class c, e.g. in accuracy.
pub fn gain_by_pool_size(sizes: &[usize], gains: &[f64]) -> Vec<GroupGain> {
    let counts: Vec<u64> = sizes.iter().map(|&size| size as u64).collect();
    let groups = SizeGroup::by_digits(&counts).into_iter().filter(|group| group.n_classes > 0);
    groups
        .map(|group| {
            let members = counts.iter().zip(gains).filter(|(count, _)| group.contains(**count));
            let sum: f64 = members.map(|(_, gain)| gain).sum();
            GroupGain { mean_gain: sum / group.n_classes as f64, group }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_group_by_digits_and_average_their_gain() {
        let groups = gain_by_pool_size(&[0, 5, 9, 10, 12_000], &[0.0, 0.1, 0.3, -0.2, 0.5]);
        let brief: Vec<_> = groups.iter().map(|g| (g.group.from, g.group.to, g.group.n_classes)).collect();
        assert_eq!(brief, [(0, 0, 1), (1, 9, 2), (10, 99, 1), (10_000, 99_999, 1)]);
        assert!((groups[1].mean_gain - 0.2).abs() < 1e-12);
    }

    #[test]
    fn a_group_and_its_gain_are_one_object_in_json() {
        let groups = gain_by_pool_size(&[3], &[0.5]);
        let json = serde_json::to_string(&groups).unwrap();
        assert_eq!(json, r#"[{"from":1,"to":9,"n_classes":1,"mean_gain":0.5}]"#);
        assert_eq!(serde_json::from_str::<Vec<GroupGain>>(&json).unwrap(), groups);
    }
}
