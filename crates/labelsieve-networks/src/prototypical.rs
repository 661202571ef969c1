//! Prototypical networks (Snell, Swersky and Zemel, NIPS 2017): a network learns from episodes in which a class is the mean of a
//! few of its examples.

use labelsieve_numerics::unit_rows;
use serde::{Deserialize, Serialize};

use crate::cosine::{length, through_unit_length};
use crate::error::{Error, Result, Setting};
use crate::learner::{FeatureLoss, FeatureObjective};

/// The composition of an episode, and the distance between examples and classes.
///
/// The images of an episode come class by class: `shots` examples that the class is made of, then `queries` that are classified.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prototypical {
    /// Classes of an episode.
    pub ways: usize,
    /// Examples that each class is the mean of.
    pub shots: usize,
    /// Examples of each class to classify.
    pub queries: usize,
    /// The score of an example for a class.
    pub distance: Distance,
}

/// The score of an example for a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// −10/d ‖g(x) − p‖², for features of d numbers.
    ///
    /// Decision: the paper of prototypical networks has no factor. With a few hundred features that start at unit variance, SGD
    /// then begins at scores in the hundreds and shrinks all features to a point; the factor is a change of their unit.
    Euclidean,
    /// 10 times the cosine of g(x) and p.
    Cosine,
}

/// The factor before the softmax: where the scale of the cosine classifier starts. It does not learn.
const SCALE: f32 = 10.0;

impl Default for Prototypical {
    /// Five examples of twenty classes, fifteen queries each: what the paper trains with for five shots.
    fn default() -> Prototypical {
        Prototypical { ways: 20, shots: 5, queries: 15, distance: Distance::Euclidean }
    }
}

impl Prototypical {
    /// Images of each class in an episode.
    pub fn per_class(&self) -> usize {
        self.shots.saturating_add(self.queries)
    }

    /// Images of an episode.
    pub fn batch(&self) -> usize {
        self.ways.saturating_mul(self.per_class())
    }

    /// Checks that an episode has at least two classes and an image of each kind, and at most `most` images.
    pub fn check(&self, most: usize) -> Result<()> {
        let wrong = |name, expected: String, found: usize| {
            Err(Error::Setting { name, expected, found: found.to_string() })
        };
        for (name, least, found) in [
            (Setting::Ways, 2, self.ways),
            (Setting::Shots, 1, self.shots),
            (Setting::Queries, 1, self.queries),
        ] {
            if found < least {
                return wrong(name, format!("at least {least}"), found);
            }
        }
        if self.batch() > most {
            return wrong(Setting::Ways, format!("episodes of at most {most} images"), self.batch());
        }
        Ok(())
    }

    /// The score of each class for each example: N×K, from N×d features and K×d prototypes.
    pub fn scores(&self, features: &[f32], prototypes: &[f32], dim: usize) -> Vec<f32> {
        let (features, prototypes) = match self.distance {
            Distance::Euclidean => (features.to_vec(), prototypes.to_vec()),
            Distance::Cosine => (unit_rows(features, dim, length).0, unit_rows(prototypes, dim, length).0),
        };
        let nearness = SCALE / dim as f32;
        let score = |x: &[f32], p: &[f32]| match self.distance {
            Distance::Euclidean => -nearness * x.iter().zip(p).map(|(x, p)| (x - p) * (x - p)).sum::<f32>(),
            Distance::Cosine => SCALE * x.iter().zip(p).map(|(x, p)| x * p).sum::<f32>(),
        };
        let rows = features.chunks_exact(dim);
        rows.flat_map(|x| prototypes.chunks_exact(dim).map(move |p| score(x, p))).collect()
    }
}

impl FeatureObjective for Prototypical {
    /// ```text
    /// L = - 1/n Σ_x ln softmax_c(score(g(x), p_c)),   p_c = 1/shots Σ g(x') over the examples x' of class c
    /// ```
    ///
    /// x: the n queries of the episode, of class c.
    fn loss(&self, features: &[f32], dim: usize) -> Result<FeatureLoss> {
        if features.len() != self.batch() * dim {
            return Err(Error::Shape {
                what: "features of an episode".to_owned(),
                expected: format!("{} of {dim} numbers", self.batch()),
                found: format!("{} numbers", features.len()),
            });
        }
        let (prototypes, queries) = self.parts(features, dim);
        let mut errors = self.scores(&queries, &prototypes, dim);
        let n = (self.ways * self.queries) as f32;
        let mut loss = 0.0;
        let mut correct = 0;
        for (query, row) in errors.chunks_exact_mut(self.ways).enumerate() {
            let class = query / self.queries;
            let best = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            correct += u64::from(row.iter().position(|&score| score == best) == Some(class));
            let sum: f32 = row.iter().map(|score| (score - best).exp()).sum();
            loss += f64::from(sum.ln() + best - row[class]) / f64::from(n);
            row.iter_mut().for_each(|score| *score = (*score - best).exp() / sum / n);
            row[class] -= 1.0 / n;
        }
        let (by_prototype, by_query) = self.by_parts(&errors, &prototypes, &queries, dim);
        let mut by_features = Vec::with_capacity(features.len());
        for (prototype, queries) in
            by_prototype.chunks_exact(dim).zip(by_query.chunks_exact(self.queries * dim))
        {
            for _ in 0..self.shots {
                by_features.extend(prototype.iter().map(|value| value / self.shots as f32));
            }
            by_features.extend_from_slice(queries);
        }
        Ok(FeatureLoss { loss, correct, counted: (self.ways * self.queries) as u64, by_features })
    }
}

impl Prototypical {
    /// The prototypes, and the queries class by class.
    fn parts(&self, features: &[f32], dim: usize) -> (Vec<f32>, Vec<f32>) {
        let mut prototypes = Vec::new();
        let mut queries = Vec::new();
        for class in features.chunks_exact(self.per_class() * dim) {
            let (shots, rest) = class.split_at(self.shots * dim);
            let mut mean = vec![0f32; dim];
            for row in shots.chunks_exact(dim) {
                mean.iter_mut().zip(row).for_each(|(mean, value)| *mean += value / self.shots as f32);
            }
            prototypes.extend(mean);
            queries.extend_from_slice(rest);
        }
        (prototypes, queries)
    }

    /// The gradients by prototypes and by queries, from those by scores (N×K).
    ///
    /// Euclidean: by x it is −2s/d Σ_c e_c (x − p_c), by p_c it is 2s/d Σ_x e_xc (x − p_c). Cosine: s Σ_c e_c p̂_c and s Σ_x e_xc x̂, both
    /// back through unit length.
    fn by_parts(
        &self,
        errors: &[f32],
        prototypes: &[f32],
        queries: &[f32],
        dim: usize,
    ) -> (Vec<f32>, Vec<f32>) {
        let mut by_prototype = vec![0f32; prototypes.len()];
        let mut by_query = vec![0f32; queries.len()];
        let unit = |rows: &[f32]| unit_rows(rows, dim, length);
        let (unit_prototypes, prototype_lengths) = unit(prototypes);
        let (unit_queries, query_lengths) = unit(queries);
        let twice = 2.0 * SCALE / dim as f32;
        for (q, errors) in errors.chunks_exact(self.ways).enumerate() {
            let of_query = q * dim..(q + 1) * dim;
            for (c, &error) in errors.iter().enumerate() {
                let of_class = c * dim..(c + 1) * dim;
                let by_p = &mut by_prototype[of_class.clone()];
                let by_x = &mut by_query[of_query.clone()];
                match self.distance {
                    Distance::Euclidean => {
                        let pairs = queries[of_query.clone()].iter().zip(&prototypes[of_class]);
                        for ((by_p, by_x), (x, p)) in by_p.iter_mut().zip(by_x).zip(pairs) {
                            *by_p += twice * error * (x - p);
                            *by_x -= twice * error * (x - p);
                        }
                    }
                    Distance::Cosine => {
                        let pairs = unit_queries[of_query.clone()].iter().zip(&unit_prototypes[of_class]);
                        for ((by_p, by_x), (x, p)) in by_p.iter_mut().zip(by_x).zip(pairs) {
                            *by_p += error * x;
                            *by_x += error * p;
                        }
                    }
                }
            }
        }
        if self.distance == Distance::Cosine {
            through_unit_length(&mut by_prototype, &unit_prototypes, &prototype_lengths, SCALE);
            through_unit_length(&mut by_query, &unit_queries, &query_lengths, SCALE);
        }
        (by_prototype, by_query)
    }
}

#[cfg(test)]
mod tests {
    use labelsieve_numerics::random::Stream;

    use super::*;

    fn rule(distance: Distance) -> Prototypical {
        Prototypical { ways: 3, shots: 2, queries: 2, distance }
    }

    fn features(rule: &Prototypical, dim: usize) -> Vec<f32> {
        let stream = Stream::new(4);
        (0..rule.batch() * dim).map(|i| 0.7 * stream.normal(i as u64)).collect()
    }

    #[test]
    fn the_loss_of_two_classes_in_one_dimension_by_hand() {
        let rule = Prototypical { ways: 2, shots: 2, queries: 1, distance: Distance::Euclidean };
        // Class 0 is the mean of 0 and 2, class 1 that of 3 and 3; queries at 1 and 2: squared distances 0 and 4, 1 and 1.
        let found = rule.loss(&[0.0, 2.0, 1.0, 3.0, 3.0, 2.0], 1).unwrap();
        let expected = ((1.0 + (-40f64).exp()).ln() + 2f64.ln()) / 2.0;
        assert!((found.loss - expected).abs() < 1e-6, "{}", found.loss);
        assert_eq!((found.correct, found.counted), (1, 2)); // the tie goes to class 0
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let dim = 5;
        for rule in [rule(Distance::Euclidean), rule(Distance::Cosine)] {
            let start = features(&rule, dim);
            let found = rule.loss(&start, dim).unwrap();
            for i in 0..start.len() {
                let loss_at = |shift: f32| {
                    let mut moved = start.clone();
                    moved[i] += shift;
                    rule.loss(&moved, dim).unwrap().loss
                };
                let expected = (loss_at(1e-2) - loss_at(-1e-2)) / 2e-2;
                let gradient = f64::from(found.by_features[i]);
                assert!(
                    (gradient - expected).abs() < 2e-3,
                    "{:?}, {i}: {gradient}, {expected}",
                    rule.distance
                );
            }
        }
    }

    #[test]
    fn loss_and_gradient_agree_with_pytorch() {
        let text = include_str!("../tests/golden/prototypical.json");
        let golden: serde_json::Value = serde_json::from_str(text).unwrap();
        let numbers = |value: &serde_json::Value| -> Vec<f32> {
            value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
        };
        for case in golden["cases"].as_array().unwrap() {
            let rule: Prototypical = serde_json::from_value(case["rule"].clone()).unwrap();
            let dim = case["dim"].as_u64().unwrap() as usize;
            let found = rule.loss(&numbers(&case["features"]), dim).unwrap();
            assert!((found.loss - case["loss_f64"].as_f64().unwrap()).abs() < 1e-5);
            assert_eq!(found.correct, case["correct"].as_u64().unwrap());
            for (found, expected) in found.by_features.iter().zip(numbers(&case["gradient_f64"])) {
                assert!((found - expected).abs() < 2e-6, "{found}, {expected}");
            }
        }
    }

    #[test]
    fn episodes_that_teach_nothing_and_features_of_another_number_are_refused() {
        let usual = Prototypical::default();
        let refused = |rule: Prototypical| rule.check(1000).unwrap_err().to_string();
        assert_eq!(refused(Prototypical { ways: 1, ..usual }), "ways: expected at least 2, found 1");
        assert_eq!(refused(Prototypical { shots: 0, ..usual }), "shots: expected at least 1, found 0");
        assert_eq!(
            refused(Prototypical { ways: 60, ..usual }),
            "ways: expected episodes of at most 1000 images, found 1200"
        );
        let error = usual.loss(&[0.0; 4], 2).unwrap_err().to_string();
        assert_eq!(error, "features of an episode: expected 400 of 2 numbers, found 4 numbers");
    }
}
