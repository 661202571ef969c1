//! A x for many vectors x at once: one column per network trained on a shared graph.

use std::ops::Range;

use labelsieve_numerics::kernels::for_this_machine;

use super::affinity::Propagation;

/// Vectors side by side: a row of `width` numbers per example.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    pub numbers: &'a [f32],
    /// One of [`Columns::width_for`].
    pub width: usize,
    /// The row of the graph's first example.
    pub first: usize,
}

impl Columns<'_> {
    /// The width for `n` vectors: 1, or a multiple of the vector registers.
    pub fn width_for(n: usize) -> usize {
        match n {
            0 | 1 => 1,
            2..=8 => 8,
            _ => n.next_multiple_of(16),
        }
    }

    /// `Σ_j w_j x_j` over the edges of a row, for W columns from `column` on.
    #[inline(always)]
    pub fn sums<const W: usize>(self, edges: (&[u32], &[f32]), column: usize) -> [f32; W] {
        let (columns, weights) = edges;
        let row = |j: u32| -> &[f32; W] {
            let start = (j as usize + self.first) * self.width + column;
            self.numbers[start..].first_chunk().expect("a row of the graph")
        };
        let mut sums = [[0f32; W]; 4]; // four chains hide the latency of an addition
        let (columns_by_4, columns_rest) = columns.as_chunks::<4>();
        let (weights_by_4, weights_rest) = weights.as_chunks::<4>();
        for (columns, weights) in columns_by_4.iter().zip(weights_by_4) {
            for l in 0..4 {
                let x = row(columns[l]);
                for w in 0..W {
                    sums[l][w] += weights[l] * x[w];
                }
            }
        }
        let mut rest = [0f32; W];
        for (&j, &weight) in columns_rest.iter().zip(weights_rest) {
            let x = row(j);
            for w in 0..W {
                rest[w] += weight * x[w];
            }
        }
        std::array::from_fn(|w| (sums[0][w] + sums[1][w]) + (sums[2][w] + sums[3][w]) + rest[w])
    }

    #[inline(always)]
    fn add_sums<const W: usize>(self, edges: (&[u32], &[f32]), own: &[f32], out: &mut [f32]) {
        let blocks = out.as_chunks_mut::<W>().0.iter_mut().zip(own.as_chunks::<W>().0).enumerate();
        for (block, (out, own)) in blocks {
            let sums = self.sums::<W>(edges, block * W);
            for w in 0..W {
                out[w] = own[w] + sums[w];
            }
        }
    }
}

for_this_machine! {
    /// `out = (A + I) x` for these rows of the graph, all columns at once.
    pub(crate) fn add_neighbours(
        propagation: &Propagation,
        rows: Range<usize>,
        x: Columns<'_>,
        out: &mut [f32],
    ) {
        for (i, out) in rows.zip(out.chunks_exact_mut(x.width)) {
            let own = &x.numbers[(i + x.first) * x.width..][..x.width];
            match x.width {
                // A constant width saves a multiplication per edge.
                1 => Columns { width: 1, ..x }.add_sums::<1>(propagation.edges(i), own, out),
                8 => x.add_sums::<8>(propagation.edges(i), own, out),
                _ => x.add_sums::<16>(propagation.edges(i), own, out),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Features;
    use crate::graph::{Affinity, Neighbours};
    use labelsieve_numerics::level::Level;
    use labelsieve_numerics::random::Stream;

    #[test]
    fn columns_side_by_side_have_the_bits_of_each_alone_at_every_level() {
        let n = 90;
        let first = 3;
        let stream = Stream::new(1);
        let features = Features::new((0..n * 8).map(|i| stream.normal(i as u64)).collect(), 8).unwrap();
        let propagation = Propagation::new(Affinity::reciprocal(&Neighbours::exact(&features, 30)));
        let number = |row: usize, column: usize| stream.branch(column as u64).normal(row as u64);
        let gather = |level: Level, columns: &[usize]| -> Vec<f32> {
            let width = Columns::width_for(columns.len());
            let mut numbers = vec![0f32; (first + n) * width];
            for (at, &column) in columns.iter().enumerate() {
                (0..first + n).for_each(|row| numbers[row * width + at] = number(row, column));
            }
            let mut out = vec![f32::NAN; (n - 5) * width];
            add_neighbours(level, &propagation, 5..n, Columns { numbers: &numbers, width, first }, &mut out);
            let of_row = |row: &[f32]| row[..columns.len()].to_vec();
            out.chunks_exact(width).flat_map(of_row).collect()
        };
        for count in [1, 2, 8, 9, 25, 32] {
            let columns: Vec<usize> = (0..count).collect();
            for level in Level::available() {
                let together = gather(level, &columns);
                for &column in &columns {
                    let of_column: Vec<f32> = together.iter().skip(column).step_by(count).copied().collect();
                    assert_eq!(of_column, gather(Level::PLAIN, &[column]), "{column} of {count}, {level}");
                }
            }
        }
    }
}
