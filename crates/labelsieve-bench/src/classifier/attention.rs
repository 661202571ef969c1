//! Class weights from the mean of examples and from similar base classes: "class prototypes with attention".

use labelsieve::classifier::{WeightMatrix, WeightedClass, length, prototype, softmax};
use labelsieve::{Error, Features, Result, check};
use labelsieve_numerics::kernels::{add_scaled, product_with_transposed};
use labelsieve_numerics::random::Stream;
use labelsieve_numerics::unit_rows;
use rayon::prelude::*;

/// Makes the weights of a new class from its examples and the weights of base classes (the weight generator of
/// Gidaris and Komodakis, CVPR 2018, which the paper's rows "class proto. w/ att." use).
///
/// ```text
/// w = φ_avg ⊙ z̄ + φ_att ⊙ 1/r(X) Σ_i r_i Σ_b softmax_b(γ cos(φ_q z_i, key_b)) ŵ_b
/// ```
///
/// z_i: features of the class's examples; r_i: their relevance, 1 for clean ones; z̄: their weighted mean, eq. (5);
/// ŵ_b: weights of base class b; φ_q (d×d), key_b, φ_avg, φ_att and γ are learned on base classes
/// ([`AttentionTraining`](super::AttentionTraining)).
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    parameters: AttentionParameters,
    base: WeightMatrix,
}

/// The learned parameters of the generator; gradients have the same shape.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionParameters {
    /// φ_q, d×d: row o makes number o of the query.
    pub query: Vec<f32>,
    /// One key of d numbers per base class.
    pub keys: Vec<f32>,
    /// φ_avg, d factors of the mean.
    pub average: Vec<f32>,
    /// φ_att, d factors of the attended base weights.
    pub attended: Vec<f32>,
    /// γ, the factor of the cosines in the softmax.
    pub gamma: f32,
}

impl AttentionParameters {
    /// The parameters at the start of training: φ_q near the identity, keys from N(0, 2/d), φ_avg and φ_att at 1, γ at 10.
    pub fn initial(n_base: usize, dim: usize, seed: u64) -> AttentionParameters {
        const QUERY_NOISE: f32 = 0.001;
        let query = Stream::new(seed).branch(0);
        let keys = Stream::new(seed).branch(1);
        let deviation = (2.0 / dim as f32).sqrt();
        let near_identity = |i: usize| {
            let identity = if i / dim == i % dim { 1.0 } else { 0.0 };
            identity + QUERY_NOISE * query.normal(i as u64)
        };
        AttentionParameters {
            query: (0..dim * dim).map(near_identity).collect(),
            keys: (0..n_base * dim).map(|i| deviation * keys.normal(i as u64)).collect(),
            average: vec![1.0; dim],
            attended: vec![1.0; dim],
            gamma: 10.0,
        }
    }

    /// The same shapes, all zero.
    pub(super) fn zeros_like(&self) -> AttentionParameters {
        AttentionParameters {
            query: vec![0.0; self.query.len()],
            keys: vec![0.0; self.keys.len()],
            average: vec![0.0; self.average.len()],
            attended: vec![0.0; self.attended.len()],
            gamma: 0.0,
        }
    }

    /// All learned parameters, as slices.
    pub(super) fn slices_mut(&mut self) -> [&mut [f32]; 5] {
        let AttentionParameters { query, keys, average, attended, gamma } = self;
        [query, keys, average, attended, std::slice::from_mut(gamma)]
    }
}

impl Attention {
    /// A generator over the weights of base classes; rejects wrong shapes and non-finite numbers.
    pub fn new(parameters: AttentionParameters, base: WeightMatrix) -> Result<Attention> {
        let n_base = base.weights().len();
        let dim = base.weights().dim();
        check(n_base >= 2, "base classes", "at least 2", n_base)?;
        let AttentionParameters { query, keys, average, attended, gamma } = &parameters;
        for (name, values, expected) in [
            ("query of the attention", query, dim * dim),
            ("keys of the attention", keys, n_base * dim),
            ("average factors of the attention", average, dim),
            ("attended factors of the attention", attended, dim),
        ] {
            if values.len() != expected {
                return Err(Error::Length { what: name, expected, found: values.len() });
            }
            if let Some(value) = values.iter().find(|value| !value.is_finite()) {
                return Err(Error::Setting { name, expected: "finite numbers", found: value.to_string() });
            }
        }
        check(gamma.is_finite(), "gamma of the attention", "a finite number", gamma)?;
        Ok(Attention { parameters, base })
    }

    /// The learned parameters.
    pub fn parameters(&self) -> &AttentionParameters {
        &self.parameters
    }

    /// The base classes that attention goes to.
    pub fn base(&self) -> &WeightMatrix {
        &self.base
    }

    /// The classifier of all generated weights, in the order of `classes`: usable wherever prototypes are.
    pub fn weights(&self, classes: &[WeightedClass]) -> Result<WeightMatrix> {
        let dim = self.base.weights().dim();
        for class in classes {
            self.base.weights().check_width("the clean set", class.clean(), "the attention generator")?;
        }
        let lookup = Lookup::new(&self.parameters, &self.base);
        let rows: Vec<Vec<f32>> = classes.par_iter().map(|class| lookup.class_weight(class)).collect();
        WeightMatrix::new(Features::new(rows.concat(), dim)?, self.base.scale())
    }
}

/// The generator with normalised keys, valid while the parameters do not change.
pub(super) struct Lookup<'a> {
    pub(super) parameters: &'a AttentionParameters,
    pub(super) base: &'a WeightMatrix,
    /// Keys of unit length, and their lengths before.
    pub(super) unit_keys: Vec<f32>,
    pub(super) key_lengths: Vec<f32>,
}

/// The attention of some examples to base classes, with the intermediate results for the backward pass.
pub(super) struct Shares {
    /// n×d queries of unit length, and their lengths before.
    pub(super) unit_queries: Vec<f32>,
    pub(super) query_lengths: Vec<f32>,
    /// n×B cosines of queries and keys.
    pub(super) cosines: Vec<f32>,
    /// n×B shares; each row adds up to 1.
    pub(super) shares: Vec<f32>,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(parameters: &'a AttentionParameters, base: &'a WeightMatrix) -> Lookup<'a> {
        let (unit_keys, key_lengths) = unit_rows(&parameters.keys, base.weights().dim(), length);
        Lookup { parameters, base, unit_keys, key_lengths }
    }

    /// softmax_b(γ cos(φ_q z_i, key_b)) for each row z_i; the `absent` base classes get share 0.
    pub(super) fn shares(&self, rows: &[f32], absent: &[usize]) -> Shares {
        let n_base = self.base.weights().len();
        let dim = self.base.weights().dim();
        let mut queries = vec![0f32; rows.len()];
        product_with_transposed(rows, &self.parameters.query, &mut queries, dim);
        let (unit_queries, query_lengths) = unit_rows(&queries, dim, length);
        let mut cosines = vec![0f32; query_lengths.len() * n_base];
        product_with_transposed(&unit_queries, &self.unit_keys, &mut cosines, dim);
        let mut shares = cosines.clone();
        for row in shares.chunks_exact_mut(n_base) {
            row.iter_mut().for_each(|value| *value *= self.parameters.gamma);
            absent.iter().for_each(|&b| row[b] = f32::NEG_INFINITY);
            softmax(row);
        }
        Shares { unit_queries, query_lengths, cosines, shares }
    }

    /// Σ_b share_b ŵ_b.
    pub(super) fn attended(&self, shares: &[f32]) -> Vec<f32> {
        let mut sum = vec![0f32; self.base.weights().dim()];
        shares.iter().zip(self.base.weights().rows()).for_each(|(&share, w)| add_scaled(&mut sum, share, w));
        sum
    }

    /// φ_avg ⊙ mean + φ_att ⊙ attended.
    pub(super) fn combine(&self, mean: &[f32], attended: &[f32]) -> Vec<f32> {
        let AttentionParameters { average, attended: factors, .. } = self.parameters;
        let parts = mean.iter().zip(average).zip(attended.iter().zip(factors));
        parts.map(|((mean, average), (attended, factor))| average * mean + factor * attended).collect()
    }

    /// The weight of a class from all its examples.
    fn class_weight(&self, class: &WeightedClass) -> Vec<f32> {
        const CHUNK: usize = 512; // bounds the memory of a large pool's queries
        let n_base = self.base.weights().len();
        let examples: Vec<(&[f32], f32)> = class.examples().filter(|(_, weight)| *weight > 0.0).collect();
        let mut total = vec![0f64; n_base];
        for chunk in examples.chunks(CHUNK) {
            let rows: Vec<f32> = chunk.iter().flat_map(|(row, _)| row.iter().copied()).collect();
            let shares = self.shares(&rows, &[]).shares;
            for (shares, (_, weight)) in shares.chunks_exact(n_base).zip(chunk) {
                let weighted = shares.iter().map(|share| f64::from(weight * share));
                total.iter_mut().zip(weighted).for_each(|(total, share)| *total += share);
            }
        }
        let of_all = class.total();
        let shares: Vec<f32> = total.iter().map(|share| (share / of_all) as f32).collect();
        self.combine(&prototype(class), &self.attended(&shares))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use labelsieve::classifier::prototypes;

    fn axes() -> WeightMatrix {
        WeightMatrix::new(Features::new(vec![1.0, 0.0, 0.0, 1.0], 2).unwrap(), 10.0).unwrap()
    }

    fn plain(gamma: f32) -> AttentionParameters {
        AttentionParameters {
            query: vec![1.0, 0.0, 0.0, 1.0],
            keys: vec![3.0, 0.0, 0.0, 5.0],
            average: vec![1.0; 2],
            attended: vec![2.0, 4.0],
            gamma,
        }
    }

    #[test]
    fn the_weight_is_the_mean_and_what_the_attended_base_classes_bring() {
        // γ = ln 3: the example on the first axis gives its base class ¾, the one on the second ¼.
        let generator = Attention::new(plain(3f32.ln()), axes()).unwrap();
        let east = Features::new(vec![1.0, 0.0], 2).unwrap();
        let none = Features::empty(2);
        let lookup = Lookup::new(generator.parameters(), generator.base());
        let weight = lookup.class_weight(&WeightedClass::new(&east, &none, &[]).unwrap());
        // (1, 0) + (2, 4) ⊙ (¾, ¼)
        crate::golden::assert_close(&weight, &[2.5, 1.0], 1e-6);
    }

    #[test]
    fn examples_count_by_relevance_in_the_mean_and_in_the_attention() {
        let generator = Attention::new(plain(3f32.ln()), axes()).unwrap();
        let east = Features::new(vec![1.0, 0.0], 2).unwrap();
        let north = Features::new(vec![0.0, 1.0, 0.0, 1.0], 2).unwrap();
        let lookup = Lookup::new(generator.parameters(), generator.base());
        let weight = lookup.class_weight(&WeightedClass::new(&east, &north, &[1.0, 0.0]).unwrap());
        // Mean (½, ½), attention (½, ½) on average: (½, ½) + (2, 4) ⊙ (½, ½)
        crate::golden::assert_close(&weight, &[1.5, 2.5], 1e-6);
    }

    #[test]
    fn without_attention_the_weights_are_prototypes() {
        let parameters = AttentionParameters { attended: vec![0.0; 2], ..plain(10.0) };
        let generator = Attention::new(parameters, axes()).unwrap();
        let clean = Features::new(vec![3.0, 4.0, 1.0, 1.0], 2).unwrap();
        let noisy = Features::new(vec![-1.0, 1.0], 2).unwrap();
        let class = WeightedClass::new(&clean, &noisy, &[0.3]).unwrap();
        assert_eq!(generator.weights(&[class]).unwrap(), prototypes(&[class], 2, 10.0).unwrap());
    }

    #[test]
    fn shapes_that_disagree_and_broken_numbers_are_refused_by_name() {
        let message = |parameters| Attention::new(parameters, axes()).unwrap_err().to_string();
        assert_eq!(
            message(AttentionParameters { keys: vec![0.0; 6], ..plain(1.0) }),
            "keys of the attention: expected 4 values, found 6"
        );
        assert_eq!(
            message(AttentionParameters { gamma: f32::NAN, ..plain(1.0) }),
            "gamma of the attention: expected a finite number, found NaN"
        );
        let wide = Features::new(vec![1.0; 3], 3).unwrap();
        let none = Features::empty(3);
        let class = WeightedClass::new(&wide, &none, &[]).unwrap();
        let error = Attention::new(plain(1.0), axes()).unwrap().weights(&[class]).unwrap_err();
        assert_eq!(error.to_string(), "the clean set has 3 columns, but the attention generator has 2");
    }
}
