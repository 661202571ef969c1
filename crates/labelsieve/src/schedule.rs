//! The order of classes that keeps all threads busy and memory use low.

use rayon::prelude::*;

/// A class with at least this many examples keeps all threads busy on its own.
pub const LARGE: usize = 8192;

/// Runs `work(class)` for every class and returns the results in class order.
///
/// Large classes go first, one after the other with all threads inside, so that only one of them is in memory. The
/// rest follow side by side, a thread each, largest first. `sizes` are the classes' numbers of examples.
pub fn map_classes<R: Send>(sizes: &[usize], work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&class| (std::cmp::Reverse(sizes[class]), class));
    let n_large = order.partition_point(|&class| sizes[class] >= LARGE);
    let (large, small) = order.split_at(n_large);
    let mut done: Vec<(usize, R)> = large.iter().map(|&class| (class, work(class))).collect();
    done.par_extend(small.par_iter().with_max_len(1).map(|&class| (class, work(class))));
    done.sort_by_key(|(class, _)| *class);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Classes to load together, largest first: up to a gibibyte of features, or a single larger class. `sizes`: rows that each
/// class needs in memory, including examples of other classes that it learns from; `dim`: numbers per row.
pub fn batches(sizes: &[usize], dim: usize) -> Vec<Vec<usize>> {
    const MAX_BYTES: usize = 1 << 30;
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&class| (std::cmp::Reverse(sizes[class]), class));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut bytes_left = 0;
    for class in order {
        let bytes = sizes[class] * dim * size_of::<f32>();
        match batches.last_mut() {
            Some(batch) if bytes <= bytes_left => batch.push(class),
            _ => {
                batches.push(vec![class]);
                bytes_left = MAX_BYTES;
            }
        }
        bytes_left = bytes_left.saturating_sub(bytes);
    }
    batches
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn results_come_in_class_order_and_large_classes_go_first() {
        let sizes = [3, 90_000, 0, 20_000, 7];
        let started = Mutex::new(Vec::new());
        let results = map_classes(&sizes, |class| {
            started.lock().unwrap().push(class);
            class * 10
        });
        assert_eq!(results, [0, 10, 20, 30, 40]);
        assert_eq!(started.into_inner().unwrap()[..2], [1, 3]);
    }

    #[test]
    fn batches_hold_every_class_once_and_a_gibibyte_at_most_unless_one_class_is_larger() {
        // At 256 numbers a row is a kibibyte: the first class alone is too large, the next two fill a batch.
        let sizes = [1 << 19, 1 << 21, 0, 1 << 19, 7];
        assert_eq!(batches(&sizes, 256), [vec![1], vec![0, 3], vec![4, 2]]);
        assert!(batches(&[], 256).is_empty());
    }
}
