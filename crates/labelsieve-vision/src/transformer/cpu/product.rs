//! Linear layers on blocks of rows.
//!
//! Weights are packed once, when they are loaded: panels of as many outputs as a tile has columns, input by input. Rows are
//! packed when they are multiplied, a block at a time that fits the second cache. Every sum adds its products in the same
//! order, wherever its row lies in a block: a feature does not depend on its batch or on the number of threads.
#![expect(unsafe_code, reason = "hands checked slices to the register tile")]

use labelsieve::level::Level;

use super::functions::add;
use super::tile::{MOST, TileShape, add_product};
use crate::transformer::tensors::Linear;

/// Inputs that are summed before a tile leaves its registers: a panel of so many stays in the second cache.
const DEPTH: usize = 768;

/// A matrix of factors as tiles read it: panels of as many outputs as a tile has columns, input by input; zeros behind the
/// last output.
pub(super) struct Panels {
    inputs: usize,
    outputs: usize,
    shape: TileShape,
    values: Vec<f32>,
}

/// Rows as tiles read them; keeps its memory.
#[derive(Default)]
pub(super) struct PackedRows {
    rows: usize,
    values: Vec<f32>,
}

/// A linear layer, packed.
pub struct PackedLinear {
    panels: Panels,
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

impl Panels {
    /// None yet, for this level.
    pub fn empty(level: Level) -> Panels {
        Panels { inputs: 0, outputs: 0, shape: TileShape::of(level), values: vec![] }
    }

    fn resize(&mut self, inputs: usize, outputs: usize) {
        (self.inputs, self.outputs) = (inputs, outputs);
        self.values.clear();
        self.values.resize(outputs.div_ceil(self.shape.columns) * inputs * self.shape.columns, 0.0);
    }

    /// One row of inputs per output, as weights are stored.
    pub fn fill_by_output(&mut self, level: Level, values: &[f32], (part, outputs): (Part, usize)) {
        self.resize(part.width, outputs);
        let columns = self.shape.columns;
        for (p, panel) in self.values.chunks_exact_mut(part.width * columns).enumerate() {
            for (place, output) in (p * columns..outputs).take(columns).enumerate() {
                scatter(level, &mut panel[place..], part.row(values, output), columns);
            }
        }
    }

    /// One row of outputs per input.
    pub fn fill_by_input(&mut self, values: &[f32], (part, inputs): (Part, usize)) {
        self.resize(inputs, part.width);
        let columns = self.shape.columns;
        for (p, panel) in self.values.chunks_exact_mut(inputs * columns).enumerate() {
            for (input, place) in panel.chunks_exact_mut(columns).enumerate() {
                let row = &part.row(values, input)[p * columns..];
                let n = row.len().min(columns);
                place[..n].copy_from_slice(&row[..n]);
            }
        }
    }

    /// `out += rows · panels`, rows without gaps.
    pub fn add_products(&self, level: Level, rows: &PackedRows, out: &mut [f32]) {
        let (shape, inputs, outputs) = (self.shape, self.inputs, self.outputs);
        assert!(shape == TileShape::of(level), "packed for another level");
        assert!(out.len() == rows.rows * outputs, "as many rows out as in");
        assert!(
            rows.values.len() == rows.rows.div_ceil(shape.rows) * shape.rows * inputs,
            "rows of that many inputs"
        );
        let mut edge = [0.0; MOST.rows * MOST.columns];
        for from in (0..inputs).step_by(DEPTH) {
            let depth = DEPTH.min(inputs - from);
            for (p, panel) in self.values.chunks_exact(inputs * shape.columns).enumerate() {
                let panel = &panel[from * shape.columns..][..depth * shape.columns];
                let first = p * shape.columns;
                let n_columns = shape.columns.min(outputs - first);
                for (t, tile) in rows.values.chunks_exact(shape.rows * inputs).enumerate() {
                    let tile = &tile[from * shape.rows..][..depth * shape.rows];
                    let n_rows = shape.rows.min(rows.rows - t * shape.rows);
                    let factors = (tile.as_ptr(), panel.as_ptr(), depth);
                    let at = t * shape.rows * outputs + first;
                    if n_rows == shape.rows && n_columns == shape.columns {
                        let sums = &mut out[at..at + (n_rows - 1) * outputs + n_columns];
                        // SAFETY: `tile` and `panel` hold `depth` steps of a tile's rows and columns, as sliced above; the
                        // rows of `sums` are `outputs` apart and the last has all columns, as sliced above.
                        unsafe { add_product(level, factors, (sums.as_mut_ptr(), outputs)) }
                        continue;
                    }
                    edge.fill(0.0);
                    // SAFETY: as above; `edge` has the most rows and columns that a tile can have.
                    unsafe { add_product(level, factors, (edge.as_mut_ptr(), shape.columns)) }
                    for row in 0..n_rows {
                        let sums = &edge[row * shape.columns..][..n_columns];
                        let out = &mut out[at + row * outputs..][..n_columns];
                        out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
                    }
                }
            }
        }
    }
}

impl PackedLinear {
    pub(super) fn new(level: Level, linear: Linear) -> PackedLinear {
        let mut panels = Panels::empty(level);
        panels.fill_by_output(level, &linear.weight, (Part::whole(linear.inputs), linear.outputs));
        PackedLinear { panels, bias: linear.bias }
    }

    pub(super) fn inputs(&self) -> usize {
        self.panels.inputs
    }

    pub(super) fn outputs(&self) -> usize {
        self.panels.outputs
    }

    /// `out = linear(rows)`, rows without gaps.
    pub(super) fn apply(&self, level: Level, rows: &PackedRows, out: &mut [f32]) {
        out.chunks_exact_mut(self.outputs()).for_each(|row| row.copy_from_slice(&self.bias));
        self.panels.add_products(level, rows, out);
    }

    /// `out += linear(rows)`.
    pub(super) fn apply_add(&self, level: Level, rows: &PackedRows, out: &mut [f32]) {
        out.chunks_exact_mut(self.outputs()).for_each(|row| add(level, row, &self.bias));
        self.panels.add_products(level, rows, out);
    }
}

impl PackedRows {
    /// Packs `rows` rows.
    pub fn pack(&mut self, level: Level, values: &[f32], (part, rows): (Part, usize)) {
        let shape = TileShape::of(level);
        self.rows = rows;
        self.values.clear();
        self.values.resize(rows.div_ceil(shape.rows) * shape.rows * part.width, 0.0);
        for (t, tile) in self.values.chunks_exact_mut(shape.rows * part.width).enumerate() {
            for (place, row) in (t * shape.rows..rows).take(shape.rows).enumerate() {
                scatter(level, &mut tile[place..], part.row(values, row), shape.rows);
            }
        }
    }
}

labelsieve::for_this_machine! {
    /// Writes a row to every `step`-th place.
    fn scatter(places: &mut [f32], row: &[f32], step: usize) {
        for (place, &value) in places.iter_mut().step_by(step).zip(row) {
            *place = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use labelsieve::random::Stream;

    use super::*;

    #[test]
    fn products_equal_the_loops_of_the_definition_at_every_level_and_do_not_depend_on_the_block() {
        let stream = Stream::new(5);
        let draw = |label: u64, n: usize| -> Vec<f32> {
            (0..n).map(|i| stream.branch(label).normal(i as u64)).collect()
        };
        for (n, inputs, outputs) in
            [(1, 1, 1), (3, 7, 5), (14, 32, 32), (29, 50, 67), (5, 1600, 33), (40, 12, 100)]
        {
            let linear =
                Linear { inputs, outputs, weight: draw(0, inputs * outputs), bias: draw(1, outputs) };
            let (rows, before) = (draw(2, n * inputs), draw(3, n * outputs));
            let cell = |at: usize| {
                let (row, output) = (at / outputs, at % outputs);
                let products = (0..inputs).map(|i| {
                    f64::from(rows[row * inputs + i]) * f64::from(linear.weight[output * inputs + i])
                });
                products.sum::<f64>() + f64::from(linear.bias[output])
            };
            for level in Level::available() {
                let packed = PackedLinear::new(level, linear.clone());
                let mut block = PackedRows::default();
                block.pack(level, &rows, (Part::whole(inputs), n));
                let mut out = before.clone();
                packed.apply_add(level, &block, &mut out);
                let mut plain = vec![0.0; n * outputs];
                packed.apply(level, &block, &mut plain);
                let near = 2e-6 * (inputs as f64).sqrt() * 4.0 + 1e-6;
                for at in 0..n * outputs {
                    assert!(
                        (f64::from(plain[at]) - cell(at)).abs() < near,
                        "{level}, {n}×{inputs}×{outputs}"
                    );
                    let sum = cell(at) + f64::from(before[at]);
                    assert!((f64::from(out[at]) - sum).abs() < near, "{level}, {n}×{inputs}×{outputs}");
                }
                block.pack(level, &rows[(n - 1) * inputs..], (Part::whole(inputs), 1));
                let mut last = vec![0.0; outputs];
                packed.apply(level, &block, &mut last);
                assert_eq!(last, plain[(n - 1) * outputs..], "{level}: a row alone");
            }
        }
    }
}
