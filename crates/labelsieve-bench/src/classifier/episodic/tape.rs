//! Reverse-mode differentiation of small matrices, for the networks that learn from episodes.
//!
//! A forward pass records every intermediate matrix with the operation that made it; gradients are propagated backwards from the loss.

use std::borrow::Cow;

use labelsieve::classifier::{length, log_softmax, softmax, through_normalisation};
use labelsieve_numerics::kernels::matrix::{Layout, Sum, multiply};
use labelsieve_numerics::kernels::{add, add_scaled, dot};
use labelsieve_numerics::level::Level;
use labelsieve_numerics::unit_rows;

/// A matrix on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Var(usize);

/// All matrices of a pass, in the order in which they were made.
#[derive(Default)]
pub(super) struct Tape<'a> {
    nodes: Vec<Node<'a>>,
}

struct Node<'a> {
    rows: usize,
    columns: usize,
    values: Cow<'a, [f32]>,
    made_by: Operation,
    /// Whether its gradient is needed.
    learns: bool,
}

/// The operation that made a matrix.
enum Operation {
    Given,
    /// a · bᵀ
    ProductTransposed(Var, Var),
    /// a · b
    Product(Var, Var),
    /// constant · a
    Mixed(Var, Vec<f32>),
    Sum(Var, Var),
    /// a + a row
    RowAdded(Var, Var),
    /// Element by element.
    Times(Var, Var),
    Relu(Var),
    Sigmoid(Var),
    Tanh(Var),
    /// Columns from this one on.
    Columns(Var, usize),
    Beside(Var, Var),
    Row(Var, usize),
    Stacked(Vec<Var>),
    /// Rows of unit length, with their lengths before.
    Unit(Var, Vec<f32>),
    Softmax(Var),
    /// A matrix times a number (1×1).
    Scaled(Var, Var),
    /// The mean cross entropy of rows of logits, with the softmax of each.
    CrossEntropy(Var, Vec<usize>, Vec<f32>),
}

impl<'a> Tape<'a> {
    /// A matrix that does not learn.
    pub(super) fn constant(&mut self, values: impl Into<Cow<'a, [f32]>>, columns: usize) -> Var {
        self.given(values.into(), columns, false)
    }

    /// A matrix whose gradient is needed.
    pub(super) fn parameter(&mut self, values: &'a [f32], columns: usize) -> Var {
        self.given(Cow::Borrowed(values), columns, true)
    }

    fn given(&mut self, values: Cow<'a, [f32]>, columns: usize, learns: bool) -> Var {
        let rows = values.len() / columns.max(1);
        self.nodes.push(Node { rows, columns, values, made_by: Operation::Given, learns });
        Var(self.nodes.len() - 1)
    }

    fn push(&mut self, columns: usize, values: Vec<f32>, made_by: Operation, of: &[Var]) -> Var {
        let learns = of.iter().any(|var| self.nodes[var.0].learns);
        let rows = values.len() / columns.max(1);
        self.nodes.push(Node { rows, columns, values: Cow::Owned(values), made_by, learns });
        Var(self.nodes.len() - 1)
    }

    /// The numbers of a matrix, row by row.
    pub(super) fn values(&self, var: Var) -> &[f32] {
        &self.nodes[var.0].values
    }

    fn matrix(&self, var: Var, layout: Layout) -> Matrix<'_> {
        Matrix { values: self.values(var), layout }
    }

    /// Rows and columns.
    pub(super) fn shape(&self, var: Var) -> (usize, usize) {
        (self.nodes[var.0].rows, self.nodes[var.0].columns)
    }

    /// a · bᵀ. A single row, as in each step of an LSTM, is computed by dot products, forwards and backwards, since a blocked product
    /// would first copy all of `b`.
    pub(super) fn product_transposed(&mut self, a: Var, b: Var) -> Var {
        let (n, d) = self.shape(a);
        let m = self.shape(b).0;
        let mut out = vec![0f32; n * m];
        if n == 1 {
            let rows = self.values(b).chunks_exact(d);
            out.iter_mut().zip(rows).for_each(|(out, row)| *out = dot(self.values(a), row));
        } else {
            let left = Layout::by_rows(n, d);
            let right = Layout::by_rows(m, d).transposed();
            replace(self.matrix(a, left), self.matrix(b, right), &mut out, Layout::by_rows(n, m));
        }
        self.push(m, out, Operation::ProductTransposed(a, b), &[a, b])
    }

    /// a · b
    pub(super) fn product(&mut self, a: Var, b: Var) -> Var {
        let (n, k) = self.shape(a);
        let m = self.shape(b).1;
        let mut out = vec![0f32; n * m];
        let left = Layout::by_rows(n, k);
        let right = Layout::by_rows(k, m);
        replace(self.matrix(a, left), self.matrix(b, right), &mut out, Layout::by_rows(n, m));
        self.push(m, out, Operation::Product(a, b), &[a, b])
    }

    /// A constant matrix times `a`, e.g. means over groups of its rows.
    pub(super) fn mixed(&mut self, constant: Vec<f32>, a: Var) -> Var {
        let (n, d) = self.shape(a);
        let rows = constant.len() / n;
        let mut out = vec![0f32; rows * d];
        let left = Matrix { values: &constant, layout: Layout::by_rows(rows, n) };
        replace(left, self.matrix(a, Layout::by_rows(n, d)), &mut out, Layout::by_rows(rows, d));
        self.push(d, out, Operation::Mixed(a, constant), &[a])
    }

    /// a + b
    pub(super) fn sum(&mut self, a: Var, b: Var) -> Var {
        let mut out = self.values(a).to_vec();
        add(&mut out, self.values(b));
        self.push(self.shape(a).1, out, Operation::Sum(a, b), &[a, b])
    }

    /// A row added to every row of `a`.
    pub(super) fn row_added(&mut self, a: Var, row: Var) -> Var {
        let columns = self.shape(a).1;
        let mut out = self.values(a).to_vec();
        out.chunks_exact_mut(columns).for_each(|values| add(values, self.values(row)));
        self.push(columns, out, Operation::RowAdded(a, row), &[a, row])
    }

    /// a ⊙ b
    pub(super) fn times(&mut self, a: Var, b: Var) -> Var {
        let out = self.values(a).iter().zip(self.values(b)).map(|(a, b)| a * b).collect();
        self.push(self.shape(a).1, out, Operation::Times(a, b), &[a, b])
    }

    fn each(&mut self, a: Var, change: impl Fn(f32) -> f32, made_by: Operation) -> Var {
        let out = self.values(a).iter().map(|&value| change(value)).collect();
        self.push(self.shape(a).1, out, made_by, &[a])
    }

    pub(super) fn relu(&mut self, a: Var) -> Var {
        self.each(a, |value| value.max(0.0), Operation::Relu(a))
    }

    pub(super) fn sigmoid(&mut self, a: Var) -> Var {
        self.each(a, |value| 1.0 / (1.0 + (-value).exp()), Operation::Sigmoid(a))
    }

    pub(super) fn tanh(&mut self, a: Var) -> Var {
        self.each(a, f32::tanh, Operation::Tanh(a))
    }

    /// `count` columns from `start` on.
    pub(super) fn columns(&mut self, a: Var, start: usize, count: usize) -> Var {
        let columns = self.shape(a).1;
        let rows = self.values(a).chunks_exact(columns);
        let out = rows.flat_map(|row| &row[start..start + count]).copied().collect();
        self.push(count, out, Operation::Columns(a, start), &[a])
    }

    /// \[a, b\]
    pub(super) fn beside(&mut self, a: Var, b: Var) -> Var {
        let left = self.shape(a).1;
        let right = self.shape(b).1;
        let rows = self.values(a).chunks_exact(left).zip(self.values(b).chunks_exact(right));
        let out = rows.flat_map(|(a, b)| a.iter().chain(b)).copied().collect();
        self.push(left + right, out, Operation::Beside(a, b), &[a, b])
    }

    /// One row.
    pub(super) fn row(&mut self, a: Var, row: usize) -> Var {
        let columns = self.shape(a).1;
        let out = self.values(a)[row * columns..(row + 1) * columns].to_vec();
        self.push(columns, out, Operation::Row(a, row), &[a])
    }

    /// Matrices below each other.
    pub(super) fn stacked(&mut self, parts: Vec<Var>) -> Var {
        let columns = parts.first().map_or(1, |&part| self.shape(part).1);
        let out = parts.iter().flat_map(|&part| self.values(part)).copied().collect();
        let of = parts.clone();
        self.push(columns, out, Operation::Stacked(parts), &of)
    }

    /// Rows scaled to unit length; a row of zeros stays zero.
    pub(super) fn unit(&mut self, a: Var) -> Var {
        let columns = self.shape(a).1;
        let (out, lengths) = unit_rows(self.values(a), columns, length);
        self.push(columns, out, Operation::Unit(a, lengths), &[a])
    }

    /// The softmax of each row.
    pub(super) fn softmax(&mut self, a: Var) -> Var {
        let columns = self.shape(a).1;
        let mut out = self.values(a).to_vec();
        out.chunks_exact_mut(columns).for_each(softmax);
        self.push(columns, out, Operation::Softmax(a), &[a])
    }

    /// `a` times the number `scale`.
    pub(super) fn scaled(&mut self, a: Var, scale: Var) -> Var {
        let factor = self.values(scale)[0];
        let out = self.values(a).iter().map(|value| factor * value).collect();
        self.push(self.shape(a).1, out, Operation::Scaled(a, scale), &[a, scale])
    }

    /// The mean of −ln softmax at the class of each row.
    pub(super) fn cross_entropy(&mut self, logits: Var, classes: Vec<usize>) -> Var {
        let columns = self.shape(logits).1;
        let mut shares = self.values(logits).to_vec();
        let mut loss = 0f64;
        for (row, &class) in shares.chunks_exact_mut(columns).zip(&classes) {
            loss -= f64::from(log_softmax(row, class)) / classes.len() as f64;
            softmax(row);
        }
        self.push(1, vec![loss as f32], Operation::CrossEntropy(logits, classes, shares), &[logits])
    }

    /// The gradients of the number `loss` with respect to every parameter, in the order in which they were put on the tape.
    pub(super) fn gradients(&self, loss: Var) -> Vec<Vec<f32>> {
        let mut gradients = Gradients { tape: self, by: vec![None; self.nodes.len()] };
        gradients.by[loss.0] = Some(vec![1.0]);
        let mut parameters = Vec::new();
        for node in (0..self.nodes.len()).rev() {
            let by = gradients.by[node].take();
            if !self.nodes[node].learns {
                continue;
            }
            match &self.nodes[node].made_by {
                Operation::Given => {
                    parameters.push(by.unwrap_or_else(|| vec![0.0; self.nodes[node].values.len()]));
                }
                _ => by.iter().for_each(|by| gradients.pass_on(node, by)),
            }
        }
        parameters.reverse();
        parameters
    }
}

/// Gradients during backpropagation.
struct Gradients<'t, 'a> {
    tape: &'t Tape<'a>,
    by: Vec<Option<Vec<f32>>>,
}

impl Gradients<'_, '_> {
    /// The gradient with respect to `var`, to be added to; `None` if it is not needed.
    fn of(&mut self, var: Var) -> Option<&mut Vec<f32>> {
        let node = &self.tape.nodes[var.0];
        node.learns.then(|| self.by[var.0].get_or_insert_with(|| vec![0.0; node.values.len()]))
    }

    fn add_each(&mut self, var: Var, by: &[f32], share: impl Fn(usize) -> f32) {
        if let Some(gradient) = self.of(var) {
            gradient.iter_mut().zip(by).enumerate().for_each(|(i, (sum, by))| *sum += by * share(i));
        }
    }

    /// Adds left · right to the gradient of `var`, of this shape.
    fn add_product(&mut self, var: Var, left: Matrix, right: Matrix, shape: Layout) {
        if let Some(gradient) = self.of(var) {
            let left = (left.values, left.layout);
            let right = (right.values, right.layout);
            multiply(Level::current(), left, right, Sum::Add, (gradient, shape));
        }
    }

    /// Propagates the gradient `by` of a node to the matrices that the node was made of.
    fn pass_on(&mut self, node: usize, by: &[f32]) {
        let tape = self.tape;
        let values = &tape.nodes[node].values;
        let columns = tape.nodes[node].columns;
        let shape = |var: Var| {
            let (rows, columns) = tape.shape(var);
            Layout::by_rows(rows, columns)
        };
        let own = Matrix { values: by, layout: Layout::by_rows(tape.nodes[node].rows, columns) };
        match &tape.nodes[node].made_by {
            Operation::Given => (),
            &Operation::ProductTransposed(a, b) if tape.shape(a).0 == 1 => {
                let dim = tape.shape(a).1;
                if let Some(sum) = self.of(a) {
                    let rows = tape.values(b).chunks_exact(dim).zip(by);
                    rows.for_each(|(row, &by)| add_scaled(sum, by, row));
                }
                if let Some(sum) = self.of(b) {
                    let rows = sum.chunks_exact_mut(dim).zip(by);
                    rows.for_each(|(sum, &by)| add_scaled(sum, by, tape.values(a)));
                }
            }
            &Operation::ProductTransposed(a, b) => {
                self.add_product(a, own, tape.matrix(b, shape(b)), shape(a));
                self.add_product(b, own.transposed(), tape.matrix(a, shape(a)), shape(b));
            }
            &Operation::Product(a, b) => {
                self.add_product(a, own, tape.matrix(b, shape(b).transposed()), shape(a));
                self.add_product(b, tape.matrix(a, shape(a).transposed()), own, shape(b));
            }
            Operation::Mixed(a, constant) => {
                let mixing = Layout::by_rows(tape.nodes[node].rows, tape.shape(*a).0);
                let left = Matrix { values: constant, layout: mixing.transposed() };
                self.add_product(*a, left, own, shape(*a));
            }
            &Operation::Sum(a, b) => {
                self.add_each(a, by, |_| 1.0);
                self.add_each(b, by, |_| 1.0);
            }
            &Operation::RowAdded(a, row) => {
                self.add_each(a, by, |_| 1.0);
                if let Some(sum) = self.of(row) {
                    by.chunks_exact(columns).for_each(|by| add(sum, by));
                }
            }
            &Operation::Times(a, b) => {
                self.add_each(a, by, |i| tape.values(b)[i]);
                self.add_each(b, by, |i| tape.values(a)[i]);
            }
            &Operation::Relu(a) => self.add_each(a, by, |i| f32::from(u8::from(values[i] > 0.0))),
            &Operation::Sigmoid(a) => self.add_each(a, by, |i| values[i] * (1.0 - values[i])),
            &Operation::Tanh(a) => self.add_each(a, by, |i| 1.0 - values[i] * values[i]),
            &Operation::Columns(a, start) => {
                let width = tape.shape(a).1;
                if let Some(sum) = self.of(a) {
                    let rows = sum.chunks_exact_mut(width).zip(by.chunks_exact(columns));
                    rows.for_each(|(sum, by)| add(&mut sum[start..start + columns], by));
                }
            }
            &Operation::Beside(a, b) => {
                let left = tape.shape(a).1;
                for (var, range) in [(a, 0..left), (b, left..columns)] {
                    if let Some(sum) = self.of(var) {
                        let rows = sum.chunks_exact_mut(range.len()).zip(by.chunks_exact(columns));
                        rows.for_each(|(sum, by)| add(sum, &by[range.clone()]));
                    }
                }
            }
            &Operation::Row(a, row) => {
                if let Some(sum) = self.of(a) {
                    add(&mut sum[row * columns..(row + 1) * columns], by);
                }
            }
            Operation::Stacked(parts) => {
                let mut start = 0;
                for &part in parts {
                    let end = start + tape.values(part).len();
                    self.add_each(part, &by[start..end], |_| 1.0);
                    start = end;
                }
            }
            Operation::Unit(a, lengths) => {
                let mut by = by.to_vec();
                let rows = by.chunks_exact_mut(columns).zip(values.chunks_exact(columns));
                rows.zip(lengths).for_each(|((by, unit), &length)| through_normalisation(by, unit, length));
                self.add_each(*a, &by, |_| 1.0);
            }
            &Operation::Softmax(a) => {
                if let Some(sum) = self.of(a) {
                    let rows = by.chunks_exact(columns).zip(values.chunks_exact(columns));
                    for (sum, (by, shares)) in sum.chunks_exact_mut(columns).zip(rows) {
                        let mean: f32 = by.iter().zip(shares).map(|(by, share)| by * share).sum();
                        let each = by.iter().zip(shares).map(|(by, share)| share * (by - mean));
                        sum.iter_mut().zip(each).for_each(|(sum, each)| *sum += each);
                    }
                }
            }
            &Operation::Scaled(a, scale) => {
                let factor = tape.values(scale)[0];
                self.add_each(a, by, |_| factor);
                if let Some(sum) = self.of(scale) {
                    sum[0] += by.iter().zip(tape.values(a)).map(|(by, value)| by * value).sum::<f32>();
                }
            }
            Operation::CrossEntropy(logits, classes, shares) => {
                let columns = tape.shape(*logits).1;
                let weight = by[0] / classes.len() as f32;
                if let Some(sum) = self.of(*logits) {
                    add_scaled(sum, weight, shares);
                    let rows = sum.chunks_exact_mut(columns).zip(classes);
                    rows.for_each(|(sum, &class)| sum[class] -= weight);
                }
            }
        }
    }
}

/// A factor of a product.
#[derive(Clone, Copy)]
struct Matrix<'v> {
    values: &'v [f32],
    layout: Layout,
}

impl Matrix<'_> {
    fn transposed(self) -> Self {
        Matrix { layout: self.layout.transposed(), ..self }
    }
}

/// out = a · b
fn replace(a: Matrix, b: Matrix, out: &mut [f32], shape: Layout) {
    multiply(Level::current(), (a.values, a.layout), (b.values, b.layout), Sum::Replace, (out, shape));
}

#[cfg(test)]
mod tests {
    use super::*;
    use labelsieve_numerics::random::Stream;

    fn numbers(label: u64, n: usize) -> Vec<f32> {
        (0..n).map(|i| 0.8 * Stream::new(label).normal(i as u64)).collect()
    }

    /// Every operation once, from three parameters (4×3, 5×3 and a number) to a loss.
    fn everything<'a>(tape: &mut Tape<'a>, a: &'a [f32], b: &'a [f32], s: &'a [f32]) -> Var {
        let a = tape.parameter(a, 3);
        let b = tape.parameter(b, 3);
        let s = tape.parameter(s, 1);
        let constant = tape.constant(numbers(9, 12), 3);
        let row = tape.row(b, 1);
        let shifted = tape.row_added(a, row);
        let squashed = tape.tanh(shifted);
        let opened = tape.sigmoid(a);
        let gated = tape.times(squashed, opened);
        let both = tape.sum(gated, constant);
        let kept = tape.relu(both);
        let wide = tape.beside(kept, squashed); // 4×6
        let some = tape.columns(wide, 2, 3); // 4×3
        let all = tape.stacked(vec![some, b]); // 9×3
        let mixed = tape.mixed(numbers(10, 4 * 9), all); // 4×3
        let attention = tape.product_transposed(mixed, b); // 4×5
        let shares = tape.softmax(attention);
        let read = tape.product(shares, b); // 4×3
        let unit = tape.unit(read);
        let cosines = tape.product_transposed(unit, all); // 4×9
        let of_one = tape.product_transposed(row, all); // 1×9
        let moved = tape.row_added(cosines, of_one);
        let logits = tape.scaled(moved, s);
        tape.cross_entropy(logits, vec![0, 8, 3, 5])
    }

    #[test]
    fn the_gradient_of_every_operation_is_what_finite_differences_say() {
        let start = [numbers(1, 12), numbers(2, 15), vec![1.7]];
        let loss_of = |parameters: &[Vec<f32>; 3]| {
            let mut tape = Tape::default();
            let loss = everything(&mut tape, &parameters[0], &parameters[1], &parameters[2]);
            f64::from(tape.values(loss)[0])
        };
        let mut tape = Tape::default();
        let loss = everything(&mut tape, &start[0], &start[1], &start[2]);
        let gradients = tape.gradients(loss);
        assert_eq!(gradients.iter().map(Vec::len).collect::<Vec<_>>(), [12, 15, 1]);
        const STEP: f32 = 3e-3;
        for (p, gradient) in gradients.iter().enumerate() {
            for (i, &found) in gradient.iter().enumerate() {
                let at = |shift: f32| {
                    let mut moved = start.clone();
                    moved[p][i] += shift;
                    loss_of(&moved)
                };
                let expected = (at(STEP) - at(-STEP)) / f64::from(2.0 * STEP);
                assert!((f64::from(found) - expected).abs() < 1e-3, "{p}, {i}: {found}, {expected}");
            }
        }
    }

    #[test]
    fn constants_have_no_gradient_and_unused_parameters_have_zeros() {
        let used = [1.0, 2.0];
        let unused = [3.0];
        let mut tape = Tape::default();
        let a = tape.parameter(&used, 2);
        tape.parameter(&unused, 1);
        let b = tape.constant(vec![1.0, 0.0, 0.0, 1.0], 2);
        let logits = tape.product_transposed(a, b);
        let loss = tape.cross_entropy(logits, vec![1]);
        let gradients = tape.gradients(loss);
        let p = 1.0 / (1.0 + 1f32.exp());
        crate::golden::assert_close(&gradients[0], &[p, -p], 1e-6);
        assert_eq!(gradients[1], [0.0]);
    }
}
