//! The few directions in which most of the rows' length lies, and a bound on similarities from them.
//!
//! Features of real images live in few directions. With orthonormal directions P, a row splits into its leading numbers
//! x₁ = P x and a rest of length ρ, and by Cauchy and Schwarz
//!
//! ```text
//! x·y ≤ x₁·y₁ + ρₓ ρᵧ
//! ```
//!
//! which is an inner product again, of the *reduced* rows (x₁, ρ). A search multiplies these, an eighth as long or less, and
//! measures only the pairs whose bound reaches a floor. Any P is valid: its distance from the principal directions changes how many
//! pairs are left, never which neighbours are found, and its deviation from orthonormality is part of the bound.

use labelsieve_numerics::Watch;
use labelsieve_numerics::kernels::{add_scaled_at, add_transposed_product, dot_at, product_with_transposed};
use labelsieve_numerics::level::{Instructions, Level};
use labelsieve_numerics::random::Stream;
use rayon::prelude::*;

use super::reduced;
use crate::features::Features;

/// Candidate widths of reduced rows: the leading numbers and ρ.
const WIDTHS: [usize; 3] = [32, 64, 128];
/// Below the first, a full search is as fast; below the second, more than 64 numbers never pay.
const MIN_ROWS: usize = 8192;
const MANY_ROWS: usize = 16_384;
/// Rows that directions are computed from, and rows whose neighbours decide on the width.
const SAMPLE: usize = 1024;
const PROBES: usize = 64;
/// Power iterations, from rows of the sample.
const ITERATIONS: usize = 2;
/// The bound is used if it leaves less than this share of the work of a full search.
const MAX_COST_SHARE: f64 = 0.8;

/// The largest accepted deviation from orthonormality; it is about 10⁻⁵ in practice.
const MAX_DEVIATION: f32 = 0.02;

/// Orthonormal directions, most important first, up to a known deviation.
#[derive(Clone, Debug)]
pub struct Leading {
    /// p×d.
    directions: Vec<f32>,
    dim: usize,
    /// A bound on ‖P Pᵀ − I‖.
    deviation: f32,
}

impl Leading {
    /// The directions that should bound a search for `count` neighbours of each row; none if the rows spread too evenly, or are too
    /// few, for that to pay.
    pub fn choose(level: Level, features: &Features, count: usize) -> Option<Leading> {
        let n = features.len();
        let dim = features.dim();
        if n < MIN_ROWS || count == 0 {
            return None;
        }
        let max_width = if n < MANY_ROWS { 64 } else { 128 };
        let widest = *WIDTHS.iter().rfind(|&&width| width <= max_width.min(dim / 4))?;
        let size = SAMPLE.min(n / 4);
        let draws = Stream::new(n as u64);
        let sample = features.select(&(0..size).map(|i| draws.below(i as u64, n)).collect::<Vec<_>>());
        let mut leading = Leading::of(level, &sample, widest - 1);
        let n_directions = leading.choose_width(level, &sample, n, count)? - 1;
        leading.directions.truncate(n_directions * dim);
        leading.deviation = deviation(&leading.directions, dim);
        (leading.deviation < MAX_DEVIATION).then_some(leading)
    }

    /// Approximately the first `count` principal directions of `rows`, by power iterations that start from some of the rows.
    pub(super) fn of(level: Level, rows: &Features, count: usize) -> Leading {
        let n = rows.len();
        let dim = rows.dim();
        let mut directions: Vec<f32> = (0..count).flat_map(|i| rows.row(i * n / count).to_vec()).collect();
        for _ in 0..ITERATIONS {
            directions = times_covariance(rows, &directions);
            orthonormalise(level, &mut directions, dim);
        }
        let deviation = deviation(&directions, dim);
        Leading { directions, dim, deviation }
    }

    /// Number of directions p.
    pub fn len(&self) -> usize {
        self.directions.len() / self.dim
    }

    /// P, row by row.
    pub fn directions(&self) -> &[f32] {
        &self.directions
    }

    /// A bound on ‖P Pᵀ − I‖.
    pub fn deviation(&self) -> f32 {
        self.deviation
    }

    /// A bound on the rounding error of the leading numbers of a reduced row, as a vector: each is a sum of d products, in any order.
    pub(super) fn rounding(&self) -> f64 {
        let of_one_sum = (self.dim + 8) as f64 * f64::from(f32::EPSILON / 2.0) * 1.1;
        of_one_sum * (self.len() as f64).sqrt() * (1.0 + f64::from(self.deviation))
    }

    /// The slack that makes the product of two reduced rows an upper bound on the product of the rows.
    ///
    /// With G = P Pᵀ and a = P x, the part of x in the span of P is Pᵀ G⁻¹ a, so two such parts have the product a·G⁻¹b instead of
    /// a·b. The rounding of a and b is added.
    pub fn error_bound(&self) -> f32 {
        (1.05 * f64::from(self.deviation) + 2.05 * self.rounding()) as f32
    }

    /// The width of reduced rows that minimises the work of a search among `n` rows like the sample; none if it does not pay.
    fn choose_width(&self, level: Level, sample: &Features, n: usize, count: usize) -> Option<usize> {
        let size = sample.len();
        let dim = sample.dim();
        let n_probes = PROBES.min(size);
        let mut reduced = vec![0f32; size * (self.len() + 1)];
        reduced::reduce(self, sample, 0..size, &mut reduced, Watch::unwatched());
        let mut exact = vec![0f32; n_probes * size];
        product_with_transposed(sample.block(0..n_probes), sample.block(0..size), &mut exact, dim);
        // The rank in the sample, including the probe itself, of the similarity of the last neighbour.
        let rank = (count * size / n).min(size - 2) + 1;
        let nth =
            |similarities: &mut [f32]| *similarities.select_nth_unstable_by(rank, |a, b| b.total_cmp(a)).1;
        let floors: Vec<f32> = exact.chunks_exact_mut(size).map(nth).collect();
        let cost = |width: usize| {
            let rows = narrowed(&reduced, self.len() + 1, width);
            let mut bounds = vec![0f32; n_probes * size];
            product_with_transposed(&rows[..n_probes * width], &rows, &mut bounds, width);
            let bounds = bounds.chunks_exact(size).zip(&floors);
            let left: usize = bounds.map(|(b, &floor)| b.iter().filter(|&&b| b >= floor).count()).sum();
            let left_per_row = left as f64 / (n_probes * size) as f64 * n as f64;
            // Floors rise while rows are seen, so as many pairs are left in each part of the rows that is e times the last.
            let candidates = left_per_row * (1.0 + (n as f64 / left_per_row).ln().max(0.0));
            width as f64 * n as f64 / 2.0 + cost_of_pair(level) * candidates.min(n as f64) / 2.0
        };
        let tried =
            WIDTHS.iter().take_while(|&&width| width <= self.len() + 1).map(|&width| (cost(width), width));
        let (cost, width) = tried.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let full_cost = dim as f64 * n as f64 / 2.0 + cost_of_pair(level) * count as f64;
        (cost < MAX_COST_SHARE * full_cost).then_some(width)
    }
}

/// The cost of measuring a pair, in multiplications by a screen of `level`. Measured at N = 10,000 and 30,000.
fn cost_of_pair(level: Level) -> f64 {
    let is_fastest = level.instructions() == Instructions::Avx512 && level.adds_products();
    if is_fastest { 6_000.0 } else { 4_000.0 }
}

/// Reduced rows of `all` numbers made narrower: the dropped leading numbers become part of the rest.
fn narrowed(reduced: &[f32], all: usize, width: usize) -> Vec<f32> {
    let mut out = Vec::with_capacity(reduced.len() / all * width);
    for row in reduced.chunks_exact(all) {
        let (leading, rest) = row.split_at(width - 1);
        out.extend_from_slice(leading);
        out.push(rest.iter().map(|x| x * x).sum::<f32>().sqrt());
    }
    out
}

/// `directions` (p×d) · SᵀS, S being the rows.
fn times_covariance(rows: &Features, directions: &[f32]) -> Vec<f32> {
    let n = rows.len();
    let dim = rows.dim();
    let p = directions.len() / dim;
    const BLOCK: usize = 128;
    let parts: Vec<Vec<f32>> = (0..n.div_ceil(BLOCK))
        .into_par_iter()
        .map(|block| {
            let rows = rows.block(block * BLOCK..n.min((block + 1) * BLOCK));
            let mut along = vec![0f32; rows.len() / dim * p];
            product_with_transposed(rows, directions, &mut along, dim);
            let mut out = vec![0f32; p * dim];
            add_transposed_product(&along, rows, &mut out, p, dim);
            out
        })
        .collect();
    let mut sum = vec![0f32; p * dim];
    parts.iter().for_each(|part| sum.iter_mut().zip(part).for_each(|(sum, x)| *sum += x));
    sum
}

/// Makes each direction a unit vector orthogonal to those before it (Gram and Schmidt, twice against rounding). One that lies in the
/// span of those before it becomes zero.
fn orthonormalise(level: Level, directions: &mut [f32], dim: usize) {
    for i in 0..directions.len() / dim {
        let (before, rest) = directions.split_at_mut(i * dim);
        let direction = &mut rest[..dim];
        let start = dot_at(level, direction, direction).sqrt();
        for _ in 0..2 {
            for other in before.chunks_exact(dim) {
                let along = dot_at(level, direction, other);
                add_scaled_at(level, direction, -along, other);
            }
        }
        let length = dot_at(level, direction, direction).sqrt();
        let scale = if length > 1e-5 * start { 1.0 / length } else { 0.0 };
        direction.iter_mut().for_each(|x| *x *= scale);
    }
}

/// ‖P Pᵀ − I‖ by its Frobenius norm, in `f64`, where I has zeros for directions that are zero.
fn deviation(directions: &[f32], dim: usize) -> f32 {
    let dot = |a: &[f32], b: &[f32]| {
        let mut lanes = [0f64; 8];
        for (a, b) in a.chunks(8).zip(b.chunks(8)) {
            lanes
                .iter_mut()
                .zip(a.iter().zip(b))
                .for_each(|(lane, (&a, &b))| *lane += f64::from(a) * f64::from(b));
        }
        lanes.iter().sum::<f64>()
    };
    let rows: Vec<&[f32]> = directions.chunks_exact(dim).collect();
    let square_of_row = |i: usize| -> f64 {
        let own = dot(rows[i], rows[i]);
        let others = rows[..i].iter().map(|row| 2.0 * dot(rows[i], row).powi(2));
        (own - if own == 0.0 { 0.0 } else { 1.0 }).powi(2) + others.sum::<f64>()
    };
    let squares: Vec<f64> = (0..rows.len()).into_par_iter().map(square_of_row).collect();
    (squares.iter().sum::<f64>().sqrt() * 1.000_001) as f32
}
