//! Rows reduced to their leading numbers and the length of the rest, with similar ones adjacent.

use std::ops::Range;

use labelsieve_numerics::Watch;
use labelsieve_numerics::kernels::{RowSlice, product_with_transposed};
use rayon::prelude::*;

use super::leading::Leading;
use crate::features::Features;

/// Rows whose products bound those of the rows they were made from ([`Leading`]).
pub struct Reduced {
    /// Row by row, in `order`.
    values: Vec<f32>,
    width: usize,
    order: Vec<u32>,
    error: f32,
}

/// Rows per unit of work.
const BLOCK: usize = 64;

impl Reduced {
    /// Reduces `rows` and sorts them so that similar ones are adjacent. Incomplete once `watch` is stopped.
    pub fn new(leading: &Leading, rows: &Features, watch: &Watch) -> Reduced {
        let width = leading.len() + 1;
        let mut values = vec![0f32; rows.len() * width];
        reduce(leading, rows, 0..rows.len(), &mut values, watch);
        let order = order(&values, width, watch);
        Reduced::in_order(leading, &values, order)
    }

    /// The rows of these clusters.
    pub fn in_clusters(leading: &Leading, clusters: Clusters) -> Reduced {
        Reduced::in_order(leading, &clusters.values, clusters.order)
    }

    fn in_order(leading: &Leading, values: &[f32], order: Vec<u32>) -> Reduced {
        let width = leading.len() + 1;
        let values =
            order.iter().flat_map(|&row| &values[row as usize * width..][..width]).copied().collect();
        Reduced { values, width, order, error: leading.error_bound() }
    }

    /// The row that each reduced one was made from.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The slack that makes the product of two of them an upper bound on the product of the rows.
    pub fn error_bound(&self) -> f32 {
        self.error
    }

    /// All reduced rows, as kernels take them.
    pub(super) fn as_slice(&self) -> RowSlice<'_> {
        RowSlice { values: &self.values, dim: self.width }
    }
}

/// For each of these rows the p leading numbers and a bound on the length of the rest.
pub(super) fn reduce(
    leading: &Leading,
    rows: &Features,
    range: Range<usize>,
    out: &mut [f32],
    watch: &Watch,
) {
    let p = leading.len();
    let width = leading.len() + 1;
    let dim = rows.dim();
    out.par_chunks_mut(BLOCK * width).enumerate().for_each_init(Vec::new, |numbers, (block, out)| {
        if watch.is_stopped() {
            return;
        }
        let first = range.start + block * BLOCK;
        let n = out.len() / width;
        numbers.resize(n * p, 0.0);
        let rows = rows.block(first..first + n);
        product_with_transposed(rows, leading.directions(), numbers, dim);
        let numbers = numbers.chunks_exact(p).zip(rows.chunks_exact(dim));
        for (out, (numbers, row)) in out.chunks_exact_mut(width).zip(numbers) {
            out[..p].copy_from_slice(numbers);
            out[p] = length_of_rest(leading, row, numbers);
        }
    });
}

/// A bound on the length of the part of `row` outside the span of P: ‖x‖² − a·G⁻¹a ≤ ‖x‖² − ‖a‖²/(1 + ‖G − I‖), where a = P x
/// and G = P Pᵀ.
fn length_of_rest(leading: &Leading, row: &[f32], numbers: &[f32]) -> f32 {
    const MAX_SQUARE: f64 = 1.000_003; // squared length of a unit row
    let square: f64 = numbers.iter().map(|&a| f64::from(a).powi(2)).sum();
    if square == 0.0 && row.iter().all(|&x| x == 0.0) {
        return 0.0;
    }
    let inside =
        (square.sqrt() - leading.rounding()).max(0.0).powi(2) / (1.0 + f64::from(leading.deviation()));
    ((MAX_SQUARE - inside).max(0.0).sqrt() * 1.000_001) as f32
}

/// Rows ordered by their most similar pivot.
fn order(rows: &[f32], width: usize, watch: &Watch) -> Vec<u32> {
    let n = rows.len() / width;
    let pivots =
        evenly_spaced(n, n_pivots(n)).flat_map(|row| &rows[row * width..][..width]).copied().collect();
    let mut clusters = vec![0u32; n];
    Pivots::of(pivots, width).assign(rows, &mut clusters, watch);
    in_order(&clusters)
}

/// Rows ordered by cluster.
pub(super) fn in_order(clusters: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..clusters.len() as u32).collect();
    order.sort_by_key(|&row| clusters[row as usize]);
    order
}

/// Rows that others are compared with, ordered as a chain from each to the most similar one left.
pub(super) struct Pivots {
    rows: Vec<f32>,
    width: usize,
    places: Vec<u32>,
}

impl Pivots {
    /// A sample of these rows, reduced.
    pub fn new(leading: &Leading, rows: &Features) -> Pivots {
        let width = leading.len() + 1;
        let n_pivots = n_pivots(rows.len());
        let mut pivots = vec![0f32; n_pivots * width];
        for (row, out) in evenly_spaced(rows.len(), n_pivots).zip(pivots.chunks_exact_mut(width)) {
            reduce(leading, rows, row..row + 1, out, Watch::unwatched());
        }
        Pivots::of(pivots, width)
    }

    fn of(rows: Vec<f32>, width: usize) -> Pivots {
        let places = chain(&rows, width);
        Pivots { rows, width, places }
    }

    /// Pivots in the given order.
    fn unordered(rows: Vec<f32>, width: usize) -> Pivots {
        let places = (0..(rows.len() / width) as u32).collect();
        Pivots { rows, width, places }
    }

    /// The places of the `count` pivots that each of these reduced rows is most similar to, best first.
    fn nearest(&self, rows: &[f32], count: usize, nearest: &mut [u32], watch: &Watch) {
        let width = self.width;
        let n_pivots = self.places.len();
        let blocks = nearest.par_chunks_mut(BLOCK * count).enumerate();
        blocks.for_each_init(Vec::new, |products, (block, nearest)| {
            if watch.is_stopped() {
                return;
            }
            let n = nearest.len() / count;
            products.resize(n * n_pivots, 0.0);
            product_with_transposed(&rows[block * BLOCK * width..][..n * width], &self.rows, products, width);
            let mut best: Vec<(f32, usize)> = Vec::with_capacity(count + 1);
            for (nearest, products) in nearest.chunks_exact_mut(count).zip(products.chunks_exact(n_pivots)) {
                best.clear();
                for (pivot, &product) in products.iter().enumerate() {
                    if best.len() == count && product <= best[count - 1].0 {
                        continue;
                    }
                    let place = best.partition_point(|&(other, _)| other >= product);
                    best.insert(place, (product, pivot));
                    best.truncate(count);
                }
                nearest.iter_mut().zip(&best).for_each(|(slot, &(_, pivot))| *slot = self.places[pivot]);
            }
        });
    }

    /// The place of the pivot that each of these reduced rows is most similar to.
    pub fn assign(&self, rows: &[f32], clusters: &mut [u32], watch: &Watch) {
        self.nearest(rows, 1, clusters, watch);
    }
}

fn n_pivots(n: usize) -> usize {
    n.isqrt().clamp(1, 256)
}

/// `some` of n rows.
fn evenly_spaced(n: usize, some: usize) -> impl ExactSizeIterator<Item = usize> {
    (0..some).map(move |i| i * n / some)
}

/// Rows in clusters of similar ones, with similar clusters adjacent.
pub(super) struct Clusters {
    /// The reduced rows in their own order.
    values: Vec<f32>,
    order: Vec<u32>,
    /// For each row the places of its most similar clusters, its own first.
    nearest: Vec<u32>,
    per_row: usize,
    n_clusters: usize,
}

/// Limits the quadratic work on pairs of clusters.
const MAX_CLUSTERS: usize = 4096;
/// Rows per cluster that its centre is made from.
const ROWS_PER_CENTRE: usize = 64;

impl Clusters {
    /// About `n_clusters` clusters, of which each row knows the `per_row` nearest. Incomplete once `watch` is stopped.
    pub fn new(
        leading: &Leading,
        rows: &Features,
        n_clusters: usize,
        per_row: usize,
        watch: &Watch,
    ) -> Clusters {
        let n = rows.len();
        let width = leading.len() + 1;
        let n_clusters = n_clusters.clamp(1, MAX_CLUSTERS.min(n));
        let per_row = per_row.min(n_clusters);
        let mut values = vec![0f32; n * width];
        reduce(leading, rows, 0..n, &mut values, watch);
        let row = |row: usize| &values[row * width..(row + 1) * width];
        let mut centres: Vec<f32> = evenly_spaced(n, n_clusters).flat_map(row).copied().collect();
        centres.chunks_exact_mut(width).for_each(direction);
        let sample: Vec<f32> =
            evenly_spaced(n, n.min(ROWS_PER_CENTRE * n_clusters)).flat_map(row).copied().collect();
        let mut own = vec![0u32; sample.len() / width];
        Pivots::unordered(centres.clone(), width).assign(&sample, &mut own, watch);
        for (row, &own) in sample.chunks_exact(width).zip(&own) {
            let centre = &mut centres[own as usize * width..][..width];
            centre.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        centres.chunks_exact_mut(width).for_each(direction);
        let centres = Pivots::of(centres, width);
        let mut nearest = vec![0u32; n * per_row];
        centres.nearest(&values, per_row, &mut nearest, watch);
        let own: Vec<u32> = nearest.iter().step_by(per_row).copied().collect();
        Clusters { order: in_order(&own), values, nearest, per_row, n_clusters }
    }

    /// Rows by cluster.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The place of each row in that order.
    pub fn places(&self) -> Vec<u32> {
        let mut places = vec![0u32; self.order.len()];
        (0..).zip(&self.order).for_each(|(place, &row)| places[row as usize] = place);
        places
    }

    /// The most similar clusters of a row.
    pub fn of(&self, row: usize) -> &[u32] {
        &self.nearest[row * self.per_row..(row + 1) * self.per_row]
    }

    /// The places of each cluster in that order.
    pub fn stretches(&self) -> Vec<Range<usize>> {
        let mut stretches = vec![0..0; self.n_clusters];
        for (place, &row) in self.order.iter().enumerate() {
            let stretch = &mut stretches[self.of(row as usize)[0] as usize];
            let start = if stretch.end == 0 { place } else { stretch.start };
            *stretch = start..place + 1;
        }
        stretches
    }
}

/// Normalises the leading numbers of a reduced row, or of a sum of some, and clears the rest, so that products ignore it.
fn direction(row: &mut [f32]) {
    let (rest, leading) = row.split_last_mut().expect("the length of the rest");
    *rest = 0.0;
    let length = leading.iter().map(|x| x * x).sum::<f32>().sqrt();
    leading.iter_mut().for_each(|x| *x /= length.max(f32::MIN_POSITIVE));
}

/// The place of each row in a chain that begins with the first and goes on to the most similar row left.
fn chain(rows: &[f32], width: usize) -> Vec<u32> {
    let n = rows.len() / width;
    let mut products = vec![0f32; n * n];
    product_with_transposed(rows, rows, &mut products, width);
    let mut places = vec![u32::MAX; n];
    let mut at = 0;
    for place in 0..n as u32 {
        places[at] = place;
        let left = (0..n).filter(|&i| places[i] == u32::MAX);
        at = left.max_by(|&a, &b| products[at * n + a].total_cmp(&products[at * n + b])).unwrap_or(0);
    }
    places
}
