//! Classes into bins, the longest first.
//!
//! A class that takes long is placed while all bins still have room for it, and each goes to the bin with the least work so
//! far. The fullest bin then takes at most 4/3 - 1/(3 bins) of what the best packing would (Graham, 1969).

use std::collections::BTreeSet;

use crate::cost::{ClassSize, CostModel, Memory};

/// The classes of one bin.
#[derive(Clone, Debug, PartialEq)]
pub struct PackedBin {
    /// Positions of its classes, ascending.
    pub classes: Vec<usize>,
    /// The time they take, one after the other.
    pub seconds: f64,
    /// Peak memory of a process that scores them.
    pub memory: Memory,
    /// Whether one of its classes is larger than the limit by itself, and has to be worked on out of core.
    pub out_of_core: bool,
}

/// Packs classes into `n_bins`, each within `limit` bytes where that can be done. `empty`: what a process takes before its
/// first class.
pub fn pack(
    sizes: &[ClassSize],
    model: &CostModel,
    n_bins: usize,
    limit: Option<u64>,
    empty: Memory,
) -> Vec<PackedBin> {
    let seconds: Vec<f64> = sizes.iter().map(|&size| model.seconds(size)).collect();
    let limit = limit.unwrap_or(u64::MAX);
    let new = PackedBin { classes: Vec::new(), seconds: 0.0, memory: empty, out_of_core: false };
    let mut bins = vec![new; n_bins];
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|&a, &b| seconds[b].total_cmp(&seconds[a])); // stable: equal ones by position
    let mut by_load: BTreeSet<(Load, usize)> = (0..n_bins).map(|bin| (Load::default(), bin)).collect();
    for class in order {
        let size = sizes[class];
        let is_too_large = empty.with(model, size).bytes() > limit;
        let fits = |bin: &PackedBin| {
            is_too_large || bin.out_of_core || bin.memory.with(model, size).bytes() <= limit
        };
        let Some(&(load, bin)) =
            by_load.iter().find(|(_, bin)| fits(&bins[*bin])).or_else(|| by_load.first())
        else {
            break; // no bins
        };
        by_load.remove(&(load, bin));
        let packed = &mut bins[bin];
        packed.classes.push(class);
        packed.seconds += seconds[class];
        packed.memory = packed.memory.with(model, size);
        packed.out_of_core |= is_too_large;
        by_load.insert((Load { seconds: packed.seconds, n_classes: packed.classes.len() }, bin));
    }
    bins.iter_mut().for_each(|bin| bin.classes.sort_unstable());
    bins
}

/// How much a bin has to do. Classes that take no time are still spread.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    seconds: f64,
    n_classes: usize,
}

impl Ord for Load {
    fn cmp(&self, other: &Load) -> std::cmp::Ordering {
        self.seconds.total_cmp(&other.seconds).then(self.n_classes.cmp(&other.n_classes))
    }
}

impl PartialOrd for Load {
    fn partial_cmp(&self, other: &Load) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Load {
    fn eq(&self, other: &Load) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Load {}

#[cfg(test)]
mod tests {
    use labelsieve::Method;
    use proptest::prelude::*;

    use super::*;
    use crate::cost::Machine;

    fn sizes(n_noisy: &[usize]) -> Vec<ClassSize> {
        n_noisy.iter().map(|&n_noisy| ClassSize { n_noisy, n_others: 0 }).collect()
    }

    /// The longest bin of the best of all ways to pack.
    fn best(seconds: &[f64], n_bins: usize) -> f64 {
        let n_ways = n_bins.pow(seconds.len() as u32);
        let longest = |way: usize| {
            let mut loads = vec![0.0; n_bins];
            let mut rest = way;
            for seconds in seconds {
                loads[rest % n_bins] += seconds;
                rest /= n_bins;
            }
            loads.into_iter().fold(0.0, f64::max)
        };
        (0..n_ways).map(longest).fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #[test]
        fn the_longest_bin_is_within_a_third_of_the_best_packing(
            n_noisy in prop::collection::vec(0usize..40_000, 0..8),
            n_bins in 1usize..4,
        ) {
            let method = Method::gcn();
            let model = CostModel::new(&method, 64, Machine::Core).unwrap();
            let sizes = sizes(&n_noisy);
            let bins = pack(&sizes, &model, n_bins, None, Memory::new(0, 1));
            let seconds: Vec<f64> = sizes.iter().map(|&size| model.seconds(size)).collect();
            for bin in &bins {
                let sum: f64 = bin.classes.iter().map(|&class| seconds[class]).sum();
                prop_assert!((sum - bin.seconds).abs() <= 1e-9 * sum);
                prop_assert!(bin.classes.is_sorted());
            }
            let longest = bins.iter().map(|bin| bin.seconds).fold(0.0, f64::max);
            let bound = 4.0 / 3.0 - 1.0 / (3 * n_bins) as f64;
            prop_assert!(longest <= bound * best(&seconds, n_bins) * (1.0 + 1e-9));
        }

        #[test]
        fn every_class_is_in_exactly_one_bin_whatever_the_limit(
            n_noisy in prop::collection::vec(0usize..2_000_000, 0..60),
            n_bins in 1usize..12,
            limit in prop::option::of(0u64..1 << 33),
        ) {
            let method = Method::gcn();
            let model = CostModel::new(&method, 128, Machine::Core).unwrap();
            let sizes = sizes(&n_noisy);
            let empty = Memory::new(1 << 20, 1);
            let bins = pack(&sizes, &model, n_bins, limit, empty);
            prop_assert_eq!(bins.len(), n_bins);
            let mut all: Vec<usize> = bins.iter().flat_map(|bin| bin.classes.clone()).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..sizes.len()).collect::<Vec<_>>());
            let is_too_large = |class: usize| empty.with(&model, sizes[class]).bytes() > limit.unwrap_or(u64::MAX);
            for bin in &bins {
                prop_assert_eq!(bin.out_of_core, bin.classes.iter().any(|&class| is_too_large(class)));
                let memory = bin.classes.iter().fold(empty, |memory, &class| memory.with(&model, sizes[class]));
                prop_assert_eq!(bin.memory, memory);
            }
        }
    }

    #[test]
    fn a_class_goes_where_it_fits_rather_than_where_there_is_least_to_do() {
        let method = Method::gcn();
        let model = CostModel::new(&method, 64, Machine::Core).unwrap();
        let empty = Memory::new(0, 1).with_table(1 << 16); // rows of a table that is in memory outweigh the work on them
        let sizes = sizes(&[30_000, 8000, 8000, 8000, 8000, 8000]);
        let packed = |limit| {
            let bins = pack(&sizes, &model, 2, limit, empty);
            bins.into_iter().map(|bin| bin.classes).collect::<Vec<_>>()
        };
        assert_eq!(
            packed(None),
            [vec![0], vec![1, 2, 3, 4, 5]],
            "the large class takes as long as five small ones"
        );
        let limit = empty.with(&model, sizes[0]).with(&model, sizes[5]).bytes();
        assert_eq!(packed(Some(limit)), [vec![0, 5], vec![1, 2, 3, 4]]);
    }

    #[test]
    fn classes_that_take_no_time_are_spread_too() {
        let method = Method::Beta(labelsieve::relevance::Beta { beta: 1.0 });
        let model = CostModel::new(&method, 1, Machine::Core).unwrap();
        let bins = pack(&sizes(&[0; 6]), &model, 3, None, Memory::new(0, 1));
        assert!(bins.iter().all(|bin| bin.classes.len() == 2), "{bins:?}");
    }
}
