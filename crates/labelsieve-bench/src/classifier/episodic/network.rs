//! The forward pass of the systems that learn from episodes.

use super::tape::{Tape, Var};
use super::{EpisodicModel, Tensor};

/// A system whose parameters are on a tape.
pub(super) struct Network<'m> {
    model: &'m EpisodicModel,
    parameters: Vec<Var>,
}

impl<'m> Network<'m> {
    /// Puts all parameters on the tape, in order; `learns` decides whether gradients can be computed.
    pub(super) fn new(tape: &mut Tape<'m>, model: &'m EpisodicModel, learns: Learning) -> Network<'m> {
        let put = |tensor: &'m Tensor| match learns {
            Learning::Yes => tape.parameter(&tensor.values, tensor.shape[1]),
            Learning::No => tape.constant(&tensor.values[..], tensor.shape[1]),
        };
        Network { model, parameters: model.tensors.iter().map(put).collect() }
    }

    fn get(&self, name: &str) -> Var {
        let place = self.model.tensors.iter().position(|tensor| tensor.name == name);
        self.parameters[place.expect("a tensor of the layout")]
    }

    /// Layers with a ReLU between them: `x ↦ … relu(x Aᵀ + a) …`.
    fn layers(&self, tape: &mut Tape<'m>, mut x: Var, names: &[(&str, &str)]) -> Var {
        for (place, (weights, bias)) in names.iter().enumerate() {
            if place > 0 {
                x = tape.relu(x);
            }
            let product = tape.product_transposed(x, self.get(weights));
            x = tape.row_added(product, self.get(bias));
        }
        x
    }

    /// φ
    pub(super) fn embed(&self, tape: &mut Tape<'m>, x: Var) -> Var {
        if !self.model.kind.embeds() {
            return x;
        }
        let names =
            [("embedding.first", "embedding.first_bias"), ("embedding.second", "embedding.second_bias")];
        let change = self.layers(tape, x, &names);
        let moved = tape.sum(x, change);
        tape.unit(moved)
    }

    /// G(x, z), row by row.
    pub(super) fn hallucinate(&self, tape: &mut Tape<'m>, x: Var, noise: Var) -> Var {
        let names = [
            ("hallucinator.first", "hallucinator.first_bias"),
            ("hallucinator.second", "hallucinator.second_bias"),
            ("hallucinator.third", "hallucinator.third_bias"),
        ];
        let both = tape.beside(x, noise);
        let change = self.layers(tape, both, &names);
        let moved = tape.sum(x, change);
        tape.unit(moved)
    }

    /// g_c from p_c: classes in the context of all classes.
    pub(super) fn in_context(&self, tape: &mut Tape<'m>, prototypes: Var) -> Var {
        if !self.model.kind.has_context() {
            return prototypes;
        }
        let n_classes = tape.shape(prototypes).0;
        let onward = self.walk(tape, prototypes, "onward", (0..n_classes).collect());
        let backward = self.walk(tape, prototypes, "backward", (0..n_classes).rev().collect());
        let both = tape.sum(onward, backward);
        tape.sum(prototypes, both)
    }

    /// The states of an LSTM that visits the rows in `order`, returned in the order of the rows.
    fn walk(&self, tape: &mut Tape<'m>, rows: Var, name: &str, order: Vec<usize>) -> Var {
        let [input, state, bias] = ["input", "state", "bias"].map(|part| self.get(&format!("{name}.{part}")));
        let product = tape.product_transposed(rows, input);
        let seen = tape.row_added(product, bias); // the part of the gates that needs no state, for all rows at once
        let mut memory: Option<(Var, Var)> = None;
        let mut states = vec![None; order.len()];
        for row in order {
            let mut gates = tape.row(seen, row);
            if let Some((h, _)) = memory {
                let recalled = tape.product_transposed(h, state);
                gates = tape.sum(gates, recalled);
            }
            let next = self.cell(tape, gates, memory.map(|(_, c)| c));
            states[row] = Some(next.0);
            memory = Some(next);
        }
        tape.stacked(states.into_iter().flatten().collect())
    }

    /// h and c of an LSTM from its gates (input, forget, candidate, output) and its previous c; `None` is zero.
    fn cell(&self, tape: &mut Tape<'m>, gates: Var, c: Option<Var>) -> (Var, Var) {
        let dim = self.model.sizes.dim;
        let mut gate = |place: usize| tape.columns(gates, place * dim, dim);
        let input = gate(0);
        let forget = gate(1);
        let candidate = gate(2);
        let output = gate(3);
        let input = tape.sigmoid(input);
        let candidate = tape.tanh(candidate);
        let mut next = tape.times(input, candidate);
        if let Some(c) = c {
            let forget = tape.sigmoid(forget);
            let kept = tape.times(forget, c);
            next = tape.sum(kept, next);
        }
        let output = tape.sigmoid(output);
        let shown = tape.tanh(next);
        (tape.times(output, shown), next)
    }

    /// h: queries that have attended to the classes, from their embeddings.
    fn read(&self, tape: &mut Tape<'m>, embedded: Var, classes: Var) -> Var {
        if !self.model.kind.has_context() {
            return embedded;
        }
        let [input, state, bias] = ["reader.input", "reader.state", "reader.bias"].map(|name| self.get(name));
        let product = tape.product_transposed(embedded, input);
        let seen = tape.row_added(product, bias);
        let mut h = embedded;
        let mut c = None;
        for _ in 0..self.model.sizes.readings {
            let likeness = tape.product_transposed(h, classes);
            let shares = tape.softmax(likeness);
            let read = tape.product(shares, classes);
            let both = tape.beside(h, read);
            let recalled = tape.product_transposed(both, state);
            let gates = tape.sum(seen, recalled);
            let (state, memory) = self.cell(tape, gates, c);
            h = tape.sum(state, embedded);
            c = Some(memory);
        }
        h
    }

    /// s cos(h, g_c) of queries from their features.
    pub(super) fn scores(&self, tape: &mut Tape<'m>, queries: Var, classes: Var) -> Var {
        let embedded = self.embed(tape, queries);
        let h = self.read(tape, embedded, classes);
        let h = tape.unit(h);
        let g = tape.unit(classes);
        let cosines = tape.product_transposed(h, g);
        tape.scaled(cosines, self.get("scale"))
    }
}

/// Whether the parameters on a tape are trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learning {
    Yes,
    No,
}
