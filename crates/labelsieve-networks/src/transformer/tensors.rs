//! Tensors by name, and layers read from them with every shape checked.

use crate::error::{Error, Result};
use crate::weights::sizes;

/// Tensors by name, from any source.
pub trait Tensors {
    /// The shape of a tensor; `None` if it does not exist.
    fn shape(&self, name: &str) -> Option<Vec<usize>>;
    /// Its numbers, the last dimension fastest.
    fn values(&self, name: &str) -> Result<Vec<f32>>;
}

/// A layer y = W x + b.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// Numbers in.
    pub inputs: usize,
    /// Numbers out.
    pub outputs: usize,
    /// W, a row of `inputs` numbers per output.
    pub weight: Vec<f32>,
    /// b, zeros where the layer has none.
    pub bias: Vec<f32>,
}

impl Linear {
    /// Every output times its factor, as if a layer scale followed.
    pub fn scaled(mut self, factors: &[f32]) -> Linear {
        for (row, factor) in self.weight.chunks_exact_mut(self.inputs).zip(factors) {
            row.iter_mut().for_each(|weight| *weight *= factor);
        }
        self.bias.iter_mut().zip(factors).for_each(|(bias, factor)| *bias *= factor);
        self
    }
}

/// The numbers of a layer normalisation: (x - mean) / √(variance + eps) · weight + bias.
#[derive(Clone, Debug, PartialEq)]
pub struct Norm {
    /// One factor per number.
    pub weight: Vec<f32>,
    /// One summand per number.
    pub bias: Vec<f32>,
    /// Added to the variance.
    pub eps: f32,
}

/// Reads a tensor of this shape.
pub fn read(tensors: &dyn Tensors, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
    let wrong =
        |found: String| Error::Shape { what: format!("tensor `{name}`"), expected: sizes(shape), found };
    let found = tensors.shape(name).ok_or_else(|| wrong("none".to_owned()))?;
    if found != shape {
        return Err(wrong(sizes(&found)));
    }
    let values = tensors.values(name)?;
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(values),
        Some(at) => Err(Error::Shape {
            what: format!("tensor `{name}`, number {at}"),
            expected: "a finite number".to_owned(),
            found: values[at].to_string(),
        }),
    }
}

/// Reads a layer normalisation.
pub fn read_norm(tensors: &dyn Tensors, name: &str, width: usize, eps: f32) -> Result<Norm> {
    Ok(Norm {
        weight: read(tensors, &format!("{name}.weight"), &[width])?,
        bias: read(tensors, &format!("{name}.bias"), &[width])?,
        eps,
    })
}

/// Reads `rows` rows of `width` numbers, stored with or without dimensions of one in front.
pub fn read_rows(tensors: &dyn Tensors, name: &str, rows: usize, width: usize) -> Result<Vec<f32>> {
    let found = tensors.shape(name).unwrap_or_default();
    let is_flat = rows == 1 && found == [width];
    let is_rows = found.len() >= 2
        && found[found.len() - 2..] == [rows, width]
        && found[..found.len() - 2].iter().all(|&n| n == 1);
    if is_flat || is_rows { read(tensors, name, &found) } else { read(tensors, name, &[rows, width]) }
}

/// The tensor names of a linear layer. Its outputs may be split into several tensors, weights and biases each.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearName {
    /// The names of the weights.
    pub weights: Vec<String>,
    /// The names of the biases; none where outputs have no bias.
    pub biases: Vec<Option<String>>,
    /// Whether weights are stored inputs × outputs.
    pub transposed: bool,
}

impl LinearName {
    /// `NAME.weight` and `NAME.bias`.
    pub fn new(name: impl AsRef<str>) -> LinearName {
        LinearName::with_bias(name, true)
    }

    /// `NAME.weight`, and `NAME.bias` if there is to be a bias.
    pub fn with_bias(name: impl AsRef<str>, bias: bool) -> LinearName {
        let name = name.as_ref();
        let biases = vec![bias.then(|| format!("{name}.bias"))];
        LinearName { weights: vec![format!("{name}.weight")], biases, transposed: false }
    }

    /// The outputs of one layer, then those of the next.
    pub fn joined(names: impl IntoIterator<Item = LinearName>) -> LinearName {
        let mut all = LinearName { weights: vec![], biases: vec![], transposed: false };
        for name in names {
            all.weights.extend(name.weights);
            all.biases.extend(name.biases);
        }
        all
    }

    /// Reads it.
    pub fn read(&self, tensors: &dyn Tensors, inputs: usize, outputs: usize) -> Result<Linear> {
        let mut weight = Vec::new(); // what a configuration says is not believed before a tensor has that shape
        let mut left = outputs;
        for (at, name) in self.weights.iter().enumerate() {
            let part = share(tensors, Some(name), left, self.weights.len() - at);
            left -= part;
            let values = if self.transposed {
                transpose(&read(tensors, name, &[inputs, part])?, part)
            } else {
                read(tensors, name, &[part, inputs])?
            };
            match at {
                0 => weight = values,
                _ => weight.extend(values),
            }
        }
        let mut bias = Vec::new();
        let mut left = outputs;
        for (at, name) in self.biases.iter().enumerate() {
            let part = share(tensors, name.as_deref(), left, self.biases.len() - at);
            left -= part;
            bias.extend(match name {
                Some(name) => read(tensors, name, &[part])?,
                None => vec![0.0; part],
            });
        }
        Ok(Linear { inputs, outputs, weight, bias })
    }
}

/// How many of the `left` outputs the next of `n_left` tensors has. Sizes may differ (timm: queries, then keys and values); the
/// last one has the rest.
fn share(tensors: &dyn Tensors, name: Option<&str>, left: usize, n_left: usize) -> usize {
    let stored = name.and_then(|name| tensors.shape(name)?.first().copied());
    match n_left {
        1 => left,
        _ => stored.filter(|&n| n < left).unwrap_or(left / n_left),
    }
}

/// Rows of `columns` numbers become columns.
fn transpose(values: &[f32], columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| values.iter().skip(column).step_by(columns).copied()).collect()
}
