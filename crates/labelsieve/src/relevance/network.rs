//! The two-layer network behind GCN and MLP, forward and backward.
//!
//! Shapes: N examples, d numbers each, m = 16 hidden units. Dropout sits behind the hidden layer, so X = Ã V is
//! constant during training and computed once. The second layer's product with Θ₂ comes before its propagation, so
//! both sparse products of an iteration have a single column. What is left are two passes over X:
//!
//! ```text
//! forward   H = X Θ₁ + b₁          N×m     backward  ∂Θ₁ = Xᵀ ∂H                d×m
//!           R = dropout [H]+       N×m               ∂H  = ∂s Θ₂ᵀ where R > 0   N×m
//!           s = R Θ₂               N×1               ∂Θ₂ = Rᵀ ∂s                m×1
//!           p = σ(Ã s + b₂)        N×1               ∂s  = Ãᵀ ∂a                N×1
//! ```
//!
//! Several networks, a [`Cell`] each, can be trained over one pool of noisy rows. They share nearly all of X
//! ([`PoolRows`]): a block of its rows is loaded once for all cells, and their s and ∂a are adjacent, so that an edge is followed
//! once. Every number is the sum of the same terms in the same order as when a cell is trained alone.

use labelsieve_numerics::kernels::{Aligned, BLOCK, add_at, add_gradients, thin_product};
use labelsieve_numerics::level::Level;
use labelsieve_numerics::random::Stream;
use rayon::prelude::*;

use super::adam::Adam;
use super::loss::loss_gradient;
use super::pool_rows::{CellRows, PoolRows};
use super::units::{Dropout, HIDDEN, activate, hidden_gradients, outputs, sigmoid};
use crate::graph::{Columns, add_neighbours};

/// Θ₁ (d×m), b₁ (m), Θ₂ (m) and b₂, one after the other.
#[derive(Clone)]
pub(super) struct Weights(pub Aligned);

impl Weights {
    pub fn len(dim: usize) -> usize {
        dim * HIDDEN + 2 * HIDDEN + 1
    }

    /// Uniform in ±1/√(out width) for each layer's weights and biases: widths 16 and 1.
    pub fn random(dim: usize, stream: Stream) -> Weights {
        let first_layer = (dim + 1) * HIDDEN;
        let bound = |i: usize| if i < first_layer { 1.0 / (HIDDEN as f32).sqrt() } else { 1.0 };
        let draw = |i: usize| bound(i) * (2.0 * stream.uniform(i as u64) - 1.0);
        Weights((0..Weights::len(dim)).map(draw).collect())
    }

    /// Θ₁, b₁, Θ₂, b₂.
    fn parts(&self) -> (&[f32], &[f32; HIDDEN], &[f32; HIDDEN], f32) {
        let (theta_1, rest) = self.0.split_at(self.0.len() - 2 * HIDDEN - 1);
        let (rest, bias_2) = rest.split_at(2 * HIDDEN);
        let (layers, _) = rest.as_chunks::<HIDDEN>();
        (theta_1, &layers[0], &layers[1], bias_2[0])
    }
}

/// The network of one choice of clean examples, and the rows in which its graph differs from the pool's.
pub(super) struct Cell {
    pub own: CellRows,
    pub weights: Weights,
    pub gradient: Vec<f32>,
    adam: Adam,
    /// R and s of the clean rows.
    hidden: Vec<f32>,
    support: Vec<f32>,
}

impl Cell {
    pub fn new(own: CellRows, weights: Weights) -> Cell {
        let k = own.n_clean;
        let n_parameters = weights.0.len();
        Cell {
            own,
            weights,
            gradient: vec![0.0; n_parameters],
            adam: Adam::new(Level::current(), n_parameters),
            hidden: vec![0.0; k * HIDDEN],
            support: vec![0.0; k],
        }
    }

    /// Moves the weights one step against the gradient.
    pub fn step(&mut self, learning_rate: f32, weight_decay: f32) {
        self.adam.step(&mut self.weights.0, &self.gradient, learning_rate, weight_decay);
    }
}

/// The networks of some cells over one pool, and the buffers of their training.
pub(super) struct Network<'a> {
    level: Level,
    shared: &'a PoolRows,
    pub cells: Vec<Cell>,
    /// Noisy rows per unit of work; depends on their number alone, so that sums do not depend on the number of threads or of
    /// cells. Clean rows belong to the first unit.
    chunk: usize,
    /// Rows for clean examples before the noisy ones in the matrices below; a cell with fewer uses the last of them.
    n_clean: usize,
    /// Columns of the matrices below, at least one per cell.
    width: usize,
    /// R of the noisy rows: per chunk, the rows of each cell in turn.
    hidden: Vec<f32>,
    /// s, p, ∂L/∂a D⁻¹ and the weights of the loss ([`loss_weights`](super::loss::loss_weights)).
    support: Vec<f32>,
    probabilities: Vec<f32>,
    gradients: Vec<f32>,
    loss_weights: Vec<f32>,
    /// Each chunk's share of the gradients, per cell: of Θ₁ (m×d), b₁ and Θ₂.
    partial: Aligned,
    /// Each chunk's Σ ∂L/∂a, per column.
    output_sums: Vec<f64>,
}

/// Units of work.
const CHUNKS: usize = 32;

impl<'a> Network<'a> {
    /// `loss_weights`: of each cell's rows, clean ones first.
    pub fn new(shared: &'a PoolRows, cells: Vec<Cell>, loss_weights: &[Vec<f32>]) -> Network<'a> {
        let z = shared.len();
        let n_clean = cells.iter().map(|cell| cell.own.n_clean).max().unwrap_or(0);
        let width = Columns::width_for(cells.len());
        let chunk = z.div_ceil(CHUNKS).next_multiple_of(8).max(128);
        let n_chunks = z.div_ceil(chunk);
        let zeros = || vec![0f32; (n_clean + z) * width];
        let mut of_loss = zeros();
        for (c, weights) in loss_weights.iter().enumerate() {
            let first = n_clean + z - weights.len();
            weights.iter().enumerate().for_each(|(i, &weight)| of_loss[(first + i) * width + c] = weight);
        }
        Network {
            level: Level::current(),
            shared,
            chunk,
            n_clean,
            width,
            hidden: vec![0.0; z * HIDDEN * cells.len()],
            support: zeros(),
            probabilities: zeros(),
            gradients: zeros(),
            loss_weights: of_loss,
            partial: Aligned::zeros(n_chunks * cells.len() * partial_len(shared.dim)),
            output_sums: vec![0.0; n_chunks * width],
            cells,
        }
    }

    /// Approximate bytes of the buffers per cell.
    pub fn memory_per_cell(shared: &PoolRows) -> usize {
        let per_row = HIDDEN + 4 * 2; // columns are rounded up
        (shared.len() * per_row + CHUNKS * partial_len(shared.dim)) * size_of::<f32>()
    }

    /// p of a cell's rows at the last forward pass, clean rows first.
    pub fn probabilities(&self, cell: usize) -> Vec<f32> {
        let first = self.n_clean - self.cells[cell].own.n_clean;
        self.probabilities[first * self.width..].iter().skip(cell).step_by(self.width).copied().collect()
    }

    /// **Eq. (2)**: the relevance of every example, for every cell.
    ///
    /// ```text
    /// F(Ã, V) = σ(Ã [Ã V Θ₁ + b₁]+ Θ₂ + b₂)
    /// ```
    ///
    /// Rows are examples here, so each layer of **eq. (1)**, h(Θᵀ Z Ã), reads h(Ã Z Θ).
    pub fn forward(&mut self, dropouts: &[Dropout]) {
        self.first_layer(dropouts);
        self.second_layer();
    }

    /// R and s.
    fn first_layer(&mut self, dropouts: &[Dropout]) {
        let level = self.level;
        let shared = self.shared;
        let width = self.width;
        let chunk = self.chunk;
        let (clean, noisy) = self.support.split_at_mut(self.n_clean * width);
        self.cells.par_iter_mut().zip(dropouts).for_each(|(cell, &dropout)| {
            let (theta_1, bias_1, theta_2, _) = cell.weights.parts();
            let x = &cell.own.x[..cell.own.n_clean * shared.dim];
            cell.hidden
                .par_chunks_mut(BLOCK * HIDDEN)
                .zip(cell.support.par_chunks_mut(BLOCK))
                .zip(x.par_chunks(BLOCK * shared.dim).zip(cell.own.keys.par_chunks(BLOCK)))
                .for_each(|((hidden, support), (x, keys))| {
                    thin_product(level, x, theta_1, hidden, shared.dim, &[]);
                    activate(level, hidden, support, bias_1, theta_2, dropout, keys);
                });
        });
        for (c, cell) in self.cells.iter().enumerate() {
            let first = self.n_clean - cell.own.n_clean;
            cell.support.iter().enumerate().for_each(|(i, &s)| clean[(first + i) * width + c] = s);
        }
        let cells = &self.cells;
        noisy
            .par_chunks_mut(chunk * width)
            .zip(self.hidden.par_chunks_mut(chunk * HIDDEN * cells.len()))
            .enumerate()
            .for_each(|(at, (support, hidden))| {
                let start = at * chunk;
                let n = support.len() / width;
                for rows in shared.blocks(start, n) {
                    for (c, cell) in cells.iter().enumerate() {
                        let hidden = of_cell(hidden, c, n, &rows, start);
                        let mut s = [0f32; BLOCK];
                        let is_last = c + 1 == cells.len();
                        let ahead = if is_last { shared.rows_from(rows.end) } else { &[] };
                        cell.hidden_rows(level, shared, &rows, hidden, ahead);
                        let (_, bias_1, theta_2, _) = cell.weights.parts();
                        let keys = &shared.keys[rows.clone()];
                        activate(level, hidden, &mut s[..keys.len()], bias_1, theta_2, dropouts[c], keys);
                        let column = support[(rows.start - start) * width + c..].iter_mut().step_by(width);
                        column.zip(&s[..keys.len()]).for_each(|(support, &s)| *support = s);
                    }
                }
            });
    }

    /// p, and from it the gradients of the loss.
    fn second_layer(&mut self) {
        let level = self.level;
        let shared = self.shared;
        let width = self.width;
        let chunk = self.chunk;
        let n_clean = self.n_clean;
        let cells = &self.cells;
        let support = Columns { numbers: &self.support, width, first: n_clean - shared.n_clean };
        let bias_2: Vec<f32> =
            (0..width).map(|c| cells.get(c).map_or(0.0, |cell| cell.weights.parts().3)).collect();
        let (p_clean, p_noisy) = self.probabilities.split_at_mut(n_clean * width);
        let (g_clean, g_noisy) = self.gradients.split_at_mut(n_clean * width);
        let (w_clean, w_noisy) = self.loss_weights.split_at(n_clean * width);
        p_clean
            .par_chunks_mut(width)
            .zip(g_clean.par_chunks_mut(width))
            .zip(w_clean.par_chunks(width))
            .enumerate()
            .with_min_len(BLOCK)
            .for_each(|(row, ((p, gradients), weights))| {
                for (c, cell) in cells.iter().enumerate() {
                    let Some(i) = (row + cell.own.n_clean).checked_sub(n_clean) else { continue };
                    let (of_cell, gradient) = cell.output(support, n_clean, i, row * width + c, weights[c]);
                    (p[c], gradients[c]) = (of_cell, gradient * cell.own.propagation.inverse_degree(i));
                }
            });
        p_noisy
            .par_chunks_mut(chunk * width)
            .zip(g_noisy.par_chunks_mut(chunk * width))
            .zip(w_noisy.par_chunks(chunk * width))
            .zip(self.output_sums.par_chunks_mut(width))
            .enumerate()
            .for_each(|(at, (((p, gradients), weights), sums))| {
                let rows = at * chunk..at * chunk + p.len() / width;
                let of_graph = shared.n_clean + rows.start..shared.n_clean + rows.end;
                add_neighbours(level, &shared.propagation, of_graph.clone(), support, p);
                for (i, a) in of_graph.clone().zip(p.chunks_exact_mut(width)) {
                    let inverse_degree = shared.propagation.inverse_degree(i);
                    a.iter_mut().zip(&bias_2).for_each(|(a, bias)| *a = inverse_degree * *a + bias);
                }
                outputs(level, p, weights, gradients);
                for (c, cell) in cells.iter().enumerate() {
                    for (own, row) in cell.own.changed_in(&rows) {
                        let at = (row - rows.start) * width + c;
                        let slot = (n_clean + row) * width + c;
                        (p[at], gradients[at]) = cell.output(support, n_clean, own, slot, weights[at]);
                    }
                }
                sums.fill(0.0);
                for (i, gradients) in of_graph.zip(gradients.chunks_exact_mut(width)) {
                    let inverse_degree = shared.propagation.inverse_degree(i);
                    for (gradient, sum) in gradients.iter_mut().zip(&mut *sums) {
                        *sum += f64::from(*gradient);
                        *gradient *= inverse_degree;
                    }
                }
                for (c, cell) in cells.iter().enumerate() {
                    for (own, row) in cell.own.changed_in(&rows) {
                        let at = (row - rows.start) * width + c;
                        let gradient = loss_gradient(p[at], weights[at]);
                        gradients[at] = gradient * cell.own.propagation.inverse_degree(own);
                    }
                }
                shared.release(rows);
            });
    }

    /// The gradient of eq. (3) at the last forward pass, per cell in the order of [`Weights`].
    pub fn backward(&mut self, dropouts: &[Dropout]) {
        let level = self.level;
        let shared = self.shared;
        let chunk = self.chunk;
        let dim = self.shared.dim;
        let len = partial_len(dim);
        let all = len * self.cells.len();
        let own = Columns { numbers: &self.gradients, width: self.width, first: self.n_clean };
        let of_first = self.partial.chunks_mut(all).next().unwrap_or_default();
        let with_cells = of_first.par_chunks_mut(len).zip(&mut self.cells).zip(dropouts).enumerate();
        with_cells.for_each(|(c, ((partial, cell), dropout))| {
            partial.fill(0.0);
            cell.add_clean_gradients(level, dim, own, c, dropout.scale, partial);
        });
        let cells = &self.cells;
        let gradients = Columns { first: self.n_clean - shared.n_clean, ..own };
        // Last chunk first, since the forward pass left the end of X in the cache.
        self.partial
            .par_chunks_mut(all)
            .zip(self.hidden.par_chunks_mut(chunk * HIDDEN * cells.len()))
            .enumerate()
            .rev()
            .for_each(|(at, (partial, hidden))| {
                if at > 0 {
                    partial.fill(0.0); // the first chunk holds those of the clean rows
                }
                let start = at * chunk;
                let n = hidden.len() / (HIDDEN * cells.len());
                let mut sums = vec![0f32; BLOCK * gradients.width];
                for rows in shared.blocks(start, n) {
                    let sums = &mut sums[..rows.len() * gradients.width];
                    let of_graph = shared.n_clean + rows.start..shared.n_clean + rows.end;
                    add_neighbours(level, &shared.propagation, of_graph, gradients, sums);
                    for (c, (cell, partial)) in cells.iter().zip(partial.chunks_exact_mut(len)).enumerate() {
                        let hidden = of_cell(hidden, c, n, &rows, start);
                        let mut of_support = [0f32; BLOCK];
                        let column = sums.iter().skip(c).step_by(gradients.width);
                        of_support.iter_mut().zip(column).for_each(|(out, &sum)| *out = sum);
                        let mut x: [&[f32]; BLOCK] = [&[]; BLOCK];
                        x.iter_mut().zip(rows.clone()).for_each(|(x, row)| *x = shared.row(row));
                        for (of_own, row) in cell.own.changed_in(&rows) {
                            let at = row - rows.start;
                            of_support[at] = cell.gathered(own, of_own, self.n_clean + row, c);
                            x[at] = &cell.own.x[of_own * dim..][..dim];
                        }
                        let of_support = &of_support[..rows.len()];
                        cell.add_gradients(
                            level,
                            &x[..rows.len()],
                            hidden,
                            of_support,
                            dropouts[c].scale,
                            partial,
                        );
                    }
                }
            });
        self.add_up();
    }

    /// The gradients of all chunks together, in order.
    fn add_up(&mut self) {
        const COLUMNS: usize = 64;
        let level = self.level;
        let dim = self.shared.dim;
        let n_clean = self.n_clean;
        let width = self.width;
        let len = partial_len(dim);
        let all = len * self.cells.len();
        let partial = &self.partial;
        let output_sums = &self.output_sums;
        let p = &self.probabilities;
        let loss_weights = &self.loss_weights;
        self.cells.par_iter_mut().enumerate().for_each(|(c, cell)| {
            let parts = || partial.chunks_exact(all).map(|chunk| &chunk[c * len..(c + 1) * len]);
            let (theta_1, rest) = cell.gradient.split_at_mut(dim * HIDDEN);
            theta_1.par_chunks_mut(COLUMNS * HIDDEN).enumerate().for_each(|(at, theta_1)| {
                let from = at * COLUMNS;
                let n = theta_1.len() / HIDDEN;
                let mut sums = [[0f32; COLUMNS]; HIDDEN];
                for part in parts() {
                    for (u, sums) in sums.iter_mut().enumerate() {
                        add_at(level, &mut sums[..n], &part[u * dim + from..][..n]);
                    }
                }
                for (j, units) in theta_1.as_chunks_mut::<HIDDEN>().0.iter_mut().enumerate() {
                    *units = std::array::from_fn(|u| sums[u][j]);
                }
            });
            rest.fill(0.0);
            parts()
                .for_each(|part| add_at(level, &mut rest[..2 * HIDDEN], &part[dim * HIDDEN..][..2 * HIDDEN]));
            let of_clean = (n_clean - cell.own.n_clean..n_clean)
                .map(|slot| slot * width + c)
                .map(|at| f64::from(loss_gradient(p[at], loss_weights[at])));
            let of_noisy = output_sums.iter().skip(c).step_by(width);
            rest[2 * HIDDEN] = of_clean.chain(of_noisy.copied()).sum::<f64>() as f32;
        });
    }
}

impl Cell {
    /// H of some noisy rows, without b₁.
    fn hidden_rows(
        &self,
        level: Level,
        shared: &PoolRows,
        rows: &std::ops::Range<usize>,
        hidden: &mut [f32],
        ahead: &[f32],
    ) {
        let (theta_1, ..) = self.weights.parts();
        let dim = shared.dim;
        thin_product(level, &shared.x[rows.start * dim..rows.end * dim], theta_1, hidden, dim, ahead);
        let mut changed = self.own.changed_in(rows);
        let n = changed.len();
        let Some((first, _)) = changed.clone().next() else { return };
        let mut own = [0f32; BLOCK * HIDDEN];
        let x = &self.own.x[first * dim..(first + n) * dim];
        thin_product(level, x, theta_1, &mut own[..n * HIDDEN], dim, &[]);
        for units in own[..n * HIDDEN].as_chunks::<HIDDEN>().0 {
            if let Some((_, row)) = changed.next() {
                hidden[(row - rows.start) * HIDDEN..][..HIDDEN].copy_from_slice(units);
            }
        }
    }

    /// p and ∂L/∂a of one of the cell's own rows, whose s is at `slot`.
    fn output(
        &self,
        support: Columns,
        n_clean: usize,
        own: usize,
        slot: usize,
        loss_weight: f32,
    ) -> (f32, f32) {
        let row = slot / support.width;
        let column = slot % support.width;
        let columns = Columns { first: n_clean, ..support };
        let sum = self.gathered(columns, own, row, column);
        let p = sigmoid(self.own.propagation.inverse_degree(own) * sum + self.weights.parts().3);
        (p, loss_gradient(p, loss_weight))
    }

    /// `x_row + Σ_j a_j x_j` over the edges of one of the cell's own rows; `x.first` is the row of the first noisy example.
    fn gathered(&self, x: Columns, own: usize, row: usize, column: usize) -> f32 {
        let numbered = Columns { first: x.first - self.own.n_clean, ..x };
        let [sum] = numbered.sums::<1>(self.own.propagation.edges(own), column);
        x.numbers[row * x.width + column] + sum
    }

    fn add_clean_gradients(
        &mut self,
        level: Level,
        dim: usize,
        gradients: Columns,
        column: usize,
        scale: f32,
        partial: &mut [f32],
    ) {
        const UNIT: usize = 16 * BLOCK; // rows whose gradients are summed up on one thread
        let k = self.own.n_clean;
        let mut hidden = std::mem::take(&mut self.hidden);
        let of_unit = |unit: usize, hidden: &mut [f32], partial: &mut [f32]| {
            for (block, hidden) in hidden.chunks_mut(BLOCK * HIDDEN).enumerate() {
                let start = unit * UNIT + block * BLOCK;
                let rows = start..start + hidden.len() / HIDDEN;
                let gathered = |i: usize| self.gathered(gradients, i, gradients.first - k + i, column);
                let of_support: Vec<f32> = rows.clone().map(gathered).collect();
                let x: Vec<&[f32]> = rows.map(|i| &self.own.x[i * dim..][..dim]).collect();
                self.add_gradients(level, &x, hidden, &of_support, scale, partial);
            }
        };
        let (first, rest) = hidden.split_at_mut((UNIT * HIDDEN).min(k * HIDDEN));
        of_unit(0, first, partial);
        let units = rest.par_chunks_mut(UNIT * HIDDEN).enumerate().map(|(unit, hidden)| {
            let mut partial = vec![0f32; partial_len(dim)];
            of_unit(unit + 1, hidden, &mut partial);
            partial
        });
        units.collect::<Vec<_>>().iter().for_each(|unit| add_at(level, partial, unit));
        self.hidden = hidden;
    }

    /// Turns R into ∂H in place and adds these rows' gradients of Θ₁, b₁ and Θ₂.
    fn add_gradients(
        &self,
        level: Level,
        x: &[&[f32]],
        hidden: &mut [f32],
        of_support: &[f32],
        scale: f32,
        partial: &mut [f32],
    ) {
        let (_, _, theta_2, _) = self.weights.parts();
        let dim = self.weights.0.len() / HIDDEN - 2;
        let (theta_1_gradient, rest) = partial.split_at_mut(dim * HIDDEN);
        hidden_gradients(level, hidden, of_support, theta_2, scale, rest);
        add_gradients(level, x, hidden, theta_1_gradient, dim);
    }
}

/// Numbers of a chunk's share of the gradient, in whole lines of the cache.
fn partial_len(dim: usize) -> usize {
    (dim + 2) * HIDDEN
}

/// Some rows of a cell's share of a chunk with `n` rows from `start` on.
fn of_cell<'a>(
    hidden: &'a mut [f32],
    cell: usize,
    n: usize,
    rows: &std::ops::Range<usize>,
    start: usize,
) -> &'a mut [f32] {
    let first = cell * n + rows.start - start;
    &mut hidden[first * HIDDEN..(first + rows.len()) * HIDDEN]
}
