//! Linear layers on blocks of rows.
//!
//! Weights are packed once, when they are loaded: panels of as many outputs as a tile has columns, input by input. Rows are
//! read where they are. Every sum adds its products in the same order, wherever its row lies in a block: a feature does not
//! depend on its batch or on the number of threads.
#![expect(unsafe_code, reason = "hands checked slices to the register tile")]

use std::ops::Range;

use labelsieve_numerics::level::Level;

use super::tile::{MAX_TILE, Store, Tile, TileShape, compute};
use super::transpose::{StridedRows, transpose};
use crate::cpu::numbers::Numbers;
use crate::transformer::tensors::Linear;

/// Inputs that are summed before a tile leaves its registers: a panel and the rows of a tile stay in the caches meanwhile.
pub(super) const DEPTH: usize = 384;

/// A matrix of factors as tiles read it: panels of as many outputs as a tile has columns, input by input; zeros behind the
/// last output. The last panel is a narrow one if that is enough.
pub(super) struct Panels {
    inputs: usize,
    outputs: usize,
    shape: TileShape,
    values: Numbers,
}

/// A linear layer, packed.
pub struct PackedLinear {
    panels: Panels,
    /// Zeros behind the last output, as in the panels.
    bias: Vec<f32>,
}

/// Rows inside larger rows: where the first number is, how many there are in a row, and how far rows are apart.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub first: usize,
    pub width: usize,
    pub stride: usize,
}

impl Part {
    /// Rows without gaps.
    pub fn whole(width: usize) -> Part {
        Part { first: 0, width, stride: width }
    }

    /// Row `row` of `values`.
    fn row(self, values: &[f32], row: usize) -> &[f32] {
        &values[self.first + row * self.stride..][..self.width]
    }
}

/// A number of rows that are multiplied.
#[derive(Clone, Copy)]
pub(super) struct Factors<'a> {
    pub values: &'a [f32],
    pub part: Part,
    pub rows: usize,
}

impl<'a> Factors<'a> {
    /// All of these rows, without gaps.
    pub fn whole(values: &'a [f32], width: usize) -> Factors<'a> {
        Factors { values, part: Part::whole(width), rows: values.len() / width }
    }
}

/// Which part of a product is computed.
#[derive(Clone)]
pub(super) struct ProductBlock {
    /// Outputs, from a whole panel on.
    pub outputs: Range<usize>,
    /// Inputs; the rows have these alone.
    pub inputs: Range<usize>,
}

/// Where results go: rows `stride` apart, the first output of the share in front.
pub(super) struct Target<'a> {
    pub values: &'a mut [f32],
    pub stride: usize,
    pub store: Store,
}

impl Panels {
    /// Empty panels for this level.
    pub fn empty(level: Level) -> Panels {
        Panels { inputs: 0, outputs: 0, shape: TileShape::of(level), values: Numbers::default() }
    }

    /// How many outputs there are with the zeros behind the last.
    pub fn padded(&self) -> usize {
        let whole = self.outputs / self.shape.columns;
        let rest = self.outputs % self.shape.columns;
        let last = match rest {
            0 => 0,
            rest if rest <= self.shape.narrow => self.shape.narrow,
            _ => self.shape.columns,
        };
        whole * self.shape.columns + last
    }

    fn resize(&mut self, inputs: usize, outputs: usize) {
        (self.inputs, self.outputs) = (inputs, outputs);
        self.values.resize(self.padded() * inputs);
    }

    /// The panels with the first output and the width of each.
    fn panels_mut(&mut self) -> impl Iterator<Item = (usize, usize, &mut [f32])> {
        let inputs = self.inputs;
        let columns = self.shape.columns;
        let padded = self.padded();
        let panels = self.values.chunks_mut((inputs * columns).max(1)).enumerate();
        panels.map(move |(p, panel)| (p * columns, columns.min(padded - p * columns), panel))
    }

    /// One row of inputs per output, as weights are stored.
    pub fn fill_by_output(&mut self, level: Level, values: &[f32], part: Part, outputs: usize) {
        self.resize(part.width, outputs);
        if outputs > 0 {
            assert!(part.row(values, outputs - 1).len() == part.width, "as many rows as outputs");
        }
        for (first, width, panel) in self.panels_mut() {
            let n = width.min(outputs - first);
            let values = &values[part.first + first * part.stride..];
            let rows = StridedRows { values, stride: part.stride, n, depth: part.width };
            transpose(level, rows, panel, width);
        }
    }

    /// One row of outputs per input.
    pub fn fill_by_input(&mut self, values: &[f32], part: Part, inputs: usize) {
        self.resize(inputs, part.width);
        for (first, width, panel) in self.panels_mut() {
            for (input, place) in panel.chunks_exact_mut(width).enumerate() {
                let row = &part.row(values, input)[first..];
                let n = row.len().min(width);
                place[..n].copy_from_slice(&row[..n]);
                place[n..].fill(0.0);
            }
        }
    }

    /// All inputs and outputs.
    pub fn whole(&self) -> ProductBlock {
        ProductBlock { outputs: 0..self.outputs, inputs: 0..self.inputs }
    }

    /// Products of rows with a share of the panels, and the bias where there is one, which has zeros behind the last output. A
    /// target whose rows are that far apart may be written to behind the last output.
    pub fn multiply(
        &self,
        level: Level,
        rows: Factors,
        share: ProductBlock,
        bias: Option<&[f32]>,
        target: Target,
    ) {
        let ProductBlock { outputs: wanted, inputs } = share;
        let shape = self.shape;
        let Part { first, stride, .. } = rows.part;
        let Target { values: out, stride: out_stride, store } = target;
        assert!(shape == TileShape::of(level), "packed for another level");
        assert!(wanted.start.is_multiple_of(shape.columns) && wanted.end <= self.outputs, "whole panels");
        assert!(inputs.len() == rows.part.width && inputs.end <= self.inputs, "rows of that many inputs");
        assert!(bias.is_none_or(|bias| bias.len() == self.padded()), "a number per output");
        if rows.rows == 0 || wanted.is_empty() {
            return;
        }
        assert!(first + (rows.rows - 1) * stride + inputs.len() <= rows.values.len(), "as many rows");
        assert!((rows.rows - 1) * out_stride + wanted.len() <= out.len(), "as many rows out as in");
        assert!(wanted.len() <= out_stride, "rows out that do not overlap");
        let mut edge = [0.0; MAX_TILE.rows * MAX_TILE.columns];
        for from in inputs.clone().step_by(DEPTH) {
            let depth = DEPTH.min(inputs.end - from);
            let is_first = from == inputs.start;
            let (bias, store) = if is_first { (bias, store) } else { (None, Store::Add) };
            for column in wanted.clone().step_by(shape.columns) {
                let width = shape.columns.min(self.padded() - column);
                let panel = &self.values[column * self.inputs + from * width..][..depth * width];
                let bias = bias.map_or(std::ptr::null(), |bias| bias[column..column + width].as_ptr());
                let to = column - wanted.start;
                let n_columns = width.min(wanted.end - column);
                // The tiles of a panel prefetch the next panel.
                let n_tiles = rows.rows.div_ceil(shape.rows);
                let ahead_step = width.div_ceil(n_tiles);
                let next = panel.as_ptr().wrapping_add(self.inputs * width);
                for row in (0..rows.rows).step_by(shape.rows) {
                    let n_rows = shape.rows.min(rows.rows - row);
                    let factors = &rows.values[first + row * stride + (from - inputs.start)..];
                    let sums = &mut out[row * out_stride + to..];
                    let mut tile = Tile {
                        rows: factors.as_ptr(),
                        row_stride: stride,
                        n_rows,
                        panel: panel.as_ptr(),
                        depth,
                        width,
                        bias,
                        sums: sums.as_mut_ptr(),
                        stride: out_stride,
                        store,
                        ahead: next.wrapping_add(row / shape.rows * depth * ahead_step),
                        ahead_step,
                    };
                    debug_assert!((n_rows - 1) * stride + depth <= factors.len());
                    if width <= out_stride - to && (n_rows - 1) * out_stride + width <= sums.len() {
                        // SAFETY: rows end inside `rows.values`, as checked above; the panel and the bias were sliced; the last
                        // row of `sums` has `width` numbers, as just checked, and rows do not overlap.
                        unsafe { compute(level, &tile) }
                        continue;
                    }
                    (tile.sums, tile.stride, tile.store) = (edge.as_mut_ptr(), shape.columns, Store::Replace);
                    // SAFETY: as above; `edge` has the most rows and columns that a tile can have.
                    unsafe { compute(level, &tile) }
                    for (row, edge) in edge.chunks_exact(shape.columns).take(n_rows).enumerate() {
                        let sums = &mut sums[row * out_stride..][..n_columns];
                        match store {
                            Store::Replace => sums.copy_from_slice(&edge[..n_columns]),
                            Store::Add => sums.iter_mut().zip(edge).for_each(|(sum, edge)| *sum += edge),
                        }
                    }
                }
            }
        }
    }
}

impl PackedLinear {
    pub(super) fn new(level: Level, linear: Linear) -> PackedLinear {
        let mut panels = Panels::empty(level);
        panels.fill_by_output(level, &linear.weight, Part::whole(linear.inputs), linear.outputs);
        let mut bias = linear.bias;
        bias.resize(panels.padded(), 0.0);
        PackedLinear { panels, bias }
    }

    pub(super) fn inputs(&self) -> usize {
        self.panels.inputs
    }

    pub(super) fn outputs(&self) -> usize {
        self.panels.outputs
    }

    /// `out = linear(rows)` or `out += linear(rows)`, rows without gaps.
    pub(super) fn apply(&self, level: Level, rows: Factors, out: &mut [f32], store: Store) {
        let target = Target { values: out, stride: self.outputs(), store };
        self.panels.multiply(level, rows, self.panels.whole(), Some(&self.bias), target);
    }

    /// Some outputs of `linear(rows)`, from a whole panel on, without gaps.
    pub(super) fn apply_some(&self, level: Level, rows: Factors, outputs: Range<usize>, out: &mut [f32]) {
        let target = Target { values: out, stride: outputs.len(), store: Store::Replace };
        let share = ProductBlock { outputs, inputs: 0..self.inputs() };
        self.panels.multiply(level, rows, share, Some(&self.bias), target);
    }

    /// Adds the part of `linear(rows)` that comes from some of the inputs, which is all that `rows` have; the bias comes with
    /// the first of them.
    pub(super) fn add_from(&self, level: Level, rows: Factors, inputs: Range<usize>, out: &mut [f32]) {
        let bias = (inputs.start == 0).then_some(&self.bias[..]);
        let target = Target { values: out, stride: self.outputs(), store: Store::Add };
        let share = ProductBlock { outputs: 0..self.outputs(), inputs };
        self.panels.multiply(level, rows, share, bias, target);
    }
}

#[cfg(test)]
mod tests {
    use labelsieve_numerics::random::Stream;

    use super::*;

    #[test]
    fn products_equal_the_loops_of_the_definition_at_every_level_and_do_not_depend_on_the_block() {
        let stream = Stream::new(5);
        let draw = |label: u64, n: usize| -> Vec<f32> {
            (0..n).map(|i| stream.branch(label).normal(i as u64)).collect()
        };
        for (n, inputs, outputs) in
            [(1, 1, 1), (3, 7, 5), (14, 32, 32), (29, 50, 67), (5, 1600, 33), (40, 12, 100), (13, 9, 48)]
        {
            let linear =
                Linear { inputs, outputs, weight: draw(0, inputs * outputs), bias: draw(1, outputs) };
            let rows = draw(2, n * inputs);
            let before = draw(3, n * outputs);
            let cell = |at: usize| {
                let row = at / outputs;
                let output = at % outputs;
                let products = (0..inputs).map(|i| {
                    f64::from(rows[row * inputs + i]) * f64::from(linear.weight[output * inputs + i])
                });
                products.sum::<f64>() + f64::from(linear.bias[output])
            };
            for level in Level::available() {
                let packed = PackedLinear::new(level, linear.clone());
                let mut out = before.clone();
                packed.apply(level, Factors::whole(&rows, inputs), &mut out, Store::Add);
                let mut plain = vec![0.0; n * outputs];
                packed.apply(level, Factors::whole(&rows, inputs), &mut plain, Store::Replace);
                let near = 2e-6 * (inputs as f64).sqrt() * 4.0 + 1e-6;
                for at in 0..n * outputs {
                    assert!(
                        (f64::from(plain[at]) - cell(at)).abs() < near,
                        "{level}, {n}×{inputs}×{outputs}"
                    );
                    let sum = cell(at) + f64::from(before[at]);
                    assert!((f64::from(out[at]) - sum).abs() < near, "{level}, {n}×{inputs}×{outputs}");
                }
                let mut last = vec![0.0; outputs];
                let last_row = Factors::whole(&rows[(n - 1) * inputs..], inputs);
                packed.apply(level, last_row, &mut last, Store::Replace);
                assert_eq!(last, plain[(n - 1) * outputs..], "{level}: a row alone");
            }
        }
    }

    #[test]
    fn parts_of_a_product_are_those_of_the_whole() {
        let stream = Stream::new(6);
        let draw = |label: u64, n: usize| -> Vec<f32> {
            (0..n).map(|i| stream.branch(label).normal(i as u64)).collect()
        };
        let n = 17;
        let inputs = 2 * DEPTH + 5;
        let outputs = 80;
        let linear = Linear { inputs, outputs, weight: draw(0, inputs * outputs), bias: draw(1, outputs) };
        let rows = draw(2, n * inputs);
        for level in Level::available() {
            let packed = PackedLinear::new(level, linear.clone());
            let mut whole = vec![0.0; n * outputs];
            packed.apply(level, Factors::whole(&rows, inputs), &mut whole, Store::Add);
            let mut some = vec![0.0; n * 48];
            packed.apply_some(level, Factors::whole(&rows, inputs), 32..80, &mut some);
            for (some, whole) in some.chunks(48).zip(whole.chunks(outputs)) {
                assert_eq!(some, &whole[32..], "{level}: some outputs");
            }
            let mut sums = vec![0.0; n * outputs];
            for from in (0..inputs).step_by(DEPTH) {
                let width = DEPTH.min(inputs - from);
                let part = Part { first: from, width, stride: inputs };
                let factors = Factors { values: &rows, part, rows: n };
                packed.add_from(level, factors, from..from + width, &mut sums);
            }
            assert_eq!(sums, whole, "{level}: inputs in parts");
        }
    }
}
