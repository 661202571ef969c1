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
    /// What they take, one after the other.
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
    (n_bins, limit): (usize, Option<u64>),
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
