//! The rows nearest to given examples, which need not be among the rows.

use std::ops::Range;

use labelsieve_numerics::kernels::{dot, product_with_transposed, rounding_bound};
use rayon::prelude::*;

use super::neighbours::Entry;
use crate::features::Features;

/// Examples and rows per block of products.
const EXAMPLES: usize = 256;
const ROWS: usize = 4096;

/// The `count` rows, or all, that are most similar to each example, best first; equal ones by lower row. Exact: a fast product
/// excludes rows that cannot be among them, and the rest are measured by [`dot`].
pub fn nearest_to(rows: &Features, examples: &Features, count: usize) -> Vec<u32> {
    let width = count.min(rows.len());
    if width == 0 {
        return Vec::new();
    }
    let blocks =
        (0..examples.len()).step_by(EXAMPLES).map(|start| start..examples.len().min(start + EXAMPLES));
    blocks.flat_map(|block| nearest_to_block(rows, examples, block, width)).collect()
}

fn nearest_to_block(rows: &Features, examples: &Features, block: Range<usize>, width: usize) -> Vec<u32> {
    let n = rows.len();
    let dim = rows.dim();
    let margin = 2.0 * rounding_bound(dim);
    let of_rows = |start: usize| -> Vec<Vec<Entry>> {
        let range = start..n.min(start + ROWS);
        let mut products = vec![0f32; block.len() * range.len()];
        product_with_transposed(examples.block(block.clone()), rows.block(range.clone()), &mut products, dim);
        let of_example = |products: &[f32]| {
            let entries = range.clone().zip(products);
            within_margin(
                entries.map(|(row, &s)| Entry { similarity: s, index: row as u32 }).collect(),
                width,
                margin,
            )
        };
        products.chunks_exact(range.len()).map(of_example).collect()
    };
    let parts: Vec<Vec<Vec<Entry>>> =
        (0..n.div_ceil(ROWS)).into_par_iter().map(|chunk| of_rows(chunk * ROWS)).collect();
    let lists: Vec<Vec<u32>> = (0..block.len())
        .into_par_iter()
        .map(|e| {
            let example = examples.row(block.start + e);
            let all = parts.iter().flat_map(|part| part[e].iter().copied()).collect();
            let mut measured = within_margin(all, width, margin);
            for entry in &mut measured {
                entry.similarity = dot(rows.row(entry.index as usize), example);
            }
            measured.sort_unstable_by(Entry::order);
            measured.truncate(width);
            measured.iter().map(|entry| entry.index).collect()
        })
        .collect();
    lists.concat()
}

/// The entries at most `margin` below the last of the `width` best.
fn within_margin(mut entries: Vec<Entry>, width: usize, margin: f32) -> Vec<Entry> {
    if entries.len() > width {
        let by_similarity = |a: &Entry, b: &Entry| b.similarity.total_cmp(&a.similarity);
        let floor = entries.select_nth_unstable_by(width - 1, by_similarity).1.similarity - margin;
        entries.retain(|entry| entry.similarity >= floor);
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use labelsieve_numerics::random::Stream;

    fn some(label: u64, n: usize) -> Features {
        let stream = Stream::new(3).branch(label);
        Features::new((0..n * 9).map(|i| stream.normal(i as u64)).collect(), 9).unwrap()
    }

    #[test]
    fn the_nearest_rows_are_those_of_the_plain_search_copies_included() {
        for (n, counts) in [(150, &[1, 2, 5, 30, 301, 400][..]), (3000, &[7])] {
            let set = some(0, n);
            let rows = set.stack(&set).unwrap().stack(&Features::new(vec![0.0; 9], 9).unwrap()).unwrap();
            let examples = some(1, 300);
            for &count in counts {
                let found = nearest_to(&rows, &examples, count);
                let width = count.min(rows.len());
                assert_eq!(found.len(), 300 * width);
                for (i, list) in found.chunks_exact(width).enumerate() {
                    let similarity = |row: u32| dot(rows.row(row as usize), examples.row(i));
                    let mut all: Vec<(f32, u32)> =
                        (0..rows.len() as u32).map(|row| (similarity(row), row)).collect();
                    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                    assert!(list.iter().eq(all[..width].iter().map(|(_, row)| row)), "{count}");
                }
            }
        }
    }

    #[test]
    fn no_rows_have_no_nearest() {
        assert!(nearest_to(&Features::empty(9), &some(1, 3), 5).is_empty());
        assert!(nearest_to(&some(1, 3), &Features::empty(9), 5).is_empty());
    }
}
