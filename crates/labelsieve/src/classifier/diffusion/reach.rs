//! The rows of a graph that are nearest to examples outside of it.

use rayon::prelude::*;

use crate::features::Features;
use crate::kernels::{dot, product_with_transposed, rounding_bound};

/// The nearest graph rows of some examples, as many for each.
pub struct Reach {
    pub(super) width: usize,
    pub(super) rows: Vec<u32>,
}

/// The `count` rows that are most similar to each of `examples`; equal ones by lower row. Exact: a fast product leaves out what
/// cannot be among them, and what remains is measured by the similarity of this crate.
pub(super) fn nearest(graph: &Features, examples: &Features, count: usize) -> Reach {
    const BLOCK: usize = 64;
    let (n, dim) = (graph.len(), graph.dim());
    let width = count.min(n);
    let mut rows = vec![0u32; examples.len() * width];
    if width > 0 {
        let margin = 2.0 * rounding_bound(dim);
        rows.par_chunks_mut(BLOCK * width).enumerate().for_each(|(block, rows)| {
            let start = block * BLOCK;
            let block = start..start + rows.len() / width;
            let mut products = vec![0f32; block.len() * n];
            product_with_transposed(examples.block(block.clone()), graph.block(0..n), &mut products, dim);
            let lists = block.zip(products.chunks_exact(n)).zip(rows.chunks_exact_mut(width));
            lists.for_each(|((i, products), list)| first(graph, examples.row(i), products, margin, list));
        });
    }
    Reach { width, rows }
}

fn first(graph: &Features, example: &[f32], products: &[f32], margin: f32, list: &mut [u32]) {
    let mut ranked = products.to_vec();
    let (_, &mut last, _) = ranked.select_nth_unstable_by(list.len() - 1, |a, b| b.total_cmp(a));
    let close = (0..products.len()).filter(|&row| products[row] >= last - margin);
    let mut measured: Vec<(f32, u32)> = close.map(|row| (dot(graph.row(row), example), row as u32)).collect();
    measured.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    list.iter_mut().zip(measured).for_each(|(slot, (_, row))| *slot = row);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn the_nearest_rows_are_those_of_the_plain_search_copies_included() {
        let stream = Stream::new(3);
        let rows = |label: u64, n: usize| -> Features {
            let values = (0..n * 9).map(|i| stream.branch(label).normal(i as u64)).collect();
            Features::new(values, 9).unwrap()
        };
        let some = rows(0, 150);
        let graph = some.stack(&some).unwrap().stack(&Features::new(vec![0.0; 9], 9).unwrap()).unwrap();
        let examples = rows(1, 70);
        for count in [1, 2, 5, 30, 301, 400] {
            let found = nearest(&graph, &examples, count);
            assert_eq!(found.width, count.min(301));
            for (i, list) in found.rows.chunks_exact(found.width).enumerate() {
                let mut all: Vec<u32> = (0..301).collect();
                let similarity = |row: u32| dot(graph.row(row as usize), examples.row(i));
                all.sort_by(|&a, &b| similarity(b).total_cmp(&similarity(a)).then(a.cmp(&b)));
                assert_eq!(list, &all[..found.width]);
            }
        }
    }
}
