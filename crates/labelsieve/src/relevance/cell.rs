//! One network among those trained over a pool: its weights, and its own rows forward and backward.

use std::ops::Range;

use labelsieve_numerics::kernels::{Aligned, BLOCK, add_at, add_gradients, thin_product};
use labelsieve_numerics::level::Level;
use labelsieve_numerics::random::Stream;
use rayon::prelude::*;

use super::adam::Adam;
use super::loss::loss_gradient;
use super::pool_rows::{CellRows, PoolRows};
use super::units::{HIDDEN, hidden_gradients, sigmoid};
use crate::graph::Columns;

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
    pub fn parts(&self) -> (&[f32], &[f32; HIDDEN], &[f32; HIDDEN], f32) {
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
    pub hidden: Vec<f32>,
    pub support: Vec<f32>,
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

impl Cell {
    /// H of some noisy rows, without b₁.
    pub fn hidden_rows(
        &self,
        level: Level,
        shared: &PoolRows,
        rows: &Range<usize>,
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
    pub fn output(
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
    pub fn gathered(&self, x: Columns, own: usize, row: usize, column: usize) -> f32 {
        let numbered = Columns { first: x.first - self.own.n_clean, ..x };
        let [sum] = numbered.sums::<1>(self.own.propagation.edges(own), column);
        x.numbers[row * x.width + column] + sum
    }

    pub fn add_clean_gradients(
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
    pub fn add_gradients(
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
pub(super) fn partial_len(dim: usize) -> usize {
    (dim + 2) * HIDDEN
}
