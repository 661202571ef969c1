//! Which class when: the order that keeps all threads busy and memory small.

use rayon::prelude::*;

/// From this many examples on, a class has work enough for all threads by itself.
pub const LARGE: usize = 8192;

/// Does `work(class)` for every class and returns the results in class order.
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
}
