//! Which classifier? The one that does best on clean examples that it was learned without.

use std::fmt;

use labelsieve_numerics::Watch;

use super::discriminant::ClassSums;
use super::left_out::LeftOut;
use super::{Cosine, WeightedClass};
use crate::engine::Engine;
use crate::error::Result;
use crate::features::Features;
use crate::model::Classifier as _;

/// Examples up to which SGD on all of them, several times, is worth the wait.
pub const MAX_COMPARED_WITH_COSINE: usize = 5_000;

/// Trainings of a cosine classifier, each without one part of the clean examples.
const FOLDS: usize = 3;

/// Fewer left-out examples decide nothing.
pub const MIN_TO_CHOOSE: usize = 20;

/// Standard errors by which another classifier must be better than the discriminant.
const MARGIN: f64 = 2.0;

/// A classifier to choose from.
#[derive(Clone, Debug)]
pub struct Contender<'a> {
    /// Its name.
    pub name: &'static str,
    /// Left-out examples as it scores them.
    pub left_out: &'a LeftOut,
    /// The factor on its scores where nothing else is known.
    pub start: f64,
}

/// How a contender does on left-out examples.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct LeftOutResult {
    /// The classifier.
    pub classifier: &'static str,
    /// The share of left-out examples that it classifies right.
    pub accuracy: Option<f64>,
    /// The mean of −ln of the probability that it gives their class.
    pub loss: Option<f64>,
}

/// The chosen classifier, and the results behind the choice.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ClassifierChoice {
    /// The classifier.
    pub chosen: &'static str,
    /// Clean examples that were left out in turn.
    pub n_left_out: usize,
    /// The results of all, the chosen one among them.
    pub results: Vec<LeftOutResult>,
}

impl ClassifierChoice {
    /// The first contender, unless another has a lower loss by more than two standard errors on at least
    /// [`MIN_TO_CHOOSE`] examples. All have left out the same examples.
    pub fn among(contenders: &[Contender]) -> ClassifierChoice {
        let losses: Vec<Vec<f64>> = contenders
            .iter()
            .map(|contender| contender.left_out.losses(contender.left_out.temperature(contender.start)))
            .collect();
        let n = losses[0].len();
        let mut best = 0;
        for (other, of_other) in losses.iter().enumerate().skip(1) {
            let gains = || losses[0].iter().zip(of_other).map(|(first, other)| first - other);
            let mean = gains().sum::<f64>() / n.max(1) as f64;
            let variance =
                gains().map(|gain| (gain - mean).powi(2)).sum::<f64>() / n.saturating_sub(1).max(1) as f64;
            let is_better = mean > MARGIN * (variance / n.max(1) as f64).sqrt();
            let is_best = of_other.iter().sum::<f64>() < losses[best].iter().sum();
            if n >= MIN_TO_CHOOSE && of_other.len() == n && is_better && is_best {
                best = other;
            }
        }
        let mean =
            |losses: &[f64]| (!losses.is_empty()).then(|| losses.iter().sum::<f64>() / losses.len() as f64);
        let results = contenders.iter().zip(&losses).map(|(contender, losses)| LeftOutResult {
            classifier: contender.name,
            accuracy: contender.left_out.accuracy(),
            loss: mean(losses),
        });
        ClassifierChoice { chosen: contenders[best].name, n_left_out: n, results: results.collect() }
    }
}

impl fmt::Display for ClassifierChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClassifierChoice { chosen, n_left_out, results } = self;
        if *n_left_out < MIN_TO_CHOOSE {
            return write!(
                f,
                "classifier: {chosen}, the usual one; {n_left_out} left-out clean examples are too few to compare others"
            );
        }
        let shown = |result: &LeftOutResult| {
            let percent = |share: f64| format!(" {:.1} %", 100.0 * share);
            let loss = result.loss.map_or(String::new(), |loss| format!(" (loss {loss:.3})"));
            result.classifier.to_owned() + &result.accuracy.map_or(String::new(), percent) + &loss
        };
        let shown: Vec<String> = results.iter().map(shown).collect();
        write!(f, "classifier: {chosen}, by {n_left_out} left-out clean examples: {}", shown.join(", "))
    }
}

impl LeftOut {
    /// As cosine classifiers score them that were trained without a third of the clean examples each.
    pub fn of_cosine(
        settings: &Cosine,
        engine: &dyn Engine,
        classes: &[WeightedClass],
        base: Option<&Features>,
        seed: u64,
        watch: &Watch,
    ) -> Result<LeftOut> {
        let dim = classes[0].clean().dim();
        let sums = ClassSums::of(classes, dim)?;
        let n_base = base.map_or(0, Features::len);
        let n_classes = n_base + classes.len();
        let kept = sums.kept_rows(n_base);
        let mut scores = vec![0f32; kept.len() * n_classes];
        for fold in 0..FOLDS {
            watch.check()?;
            let of_fold: Vec<usize> = (0..kept.len()).filter(|i| i % FOLDS == fold).collect();
            if of_fold.is_empty() {
                continue;
            }
            let is_left_out = |class: usize, row: &[f32]| {
                of_fold.iter().any(|&i| kept[i].class == class && kept[i].row == row)
            };
            let clean: Vec<Features> = classes
                .iter()
                .enumerate()
                .map(|(c, class)| {
                    let rows = class.clean();
                    let rest = (0..rows.len()).filter(|&i| !is_left_out(c, rows.row(i)));
                    rows.select(&rest.collect::<Vec<_>>())
                })
                .collect();
            let rest = classes.iter().zip(&clean).map(|(class, clean)| match class.without(clean) {
                Some(rest) => rest,
                None => *class, // nothing else is left of it
            });
            let rest: Vec<WeightedClass> = rest.collect();
            let learned = engine.cosine(settings, &rest, dim, seed)?;
            for &i in &of_fold {
                let row = Features::new(kept[i].row.to_vec(), dim)?;
                let out = &mut scores[i * n_classes..(i + 1) * n_classes];
                if let Some(base) = base {
                    for (out, weights) in out.iter_mut().zip(base.rows()) {
                        *out = labelsieve_numerics::kernels::dot(weights, row.row(0));
                    }
                }
                out[n_base..].copy_from_slice(&learned.scores(&row).values);
            }
        }
        let mut found = LeftOut { n_classes, ..LeftOut::default() };
        for (kept, scores) in kept.iter().zip(scores.chunks_exact(n_classes)) {
            let start = found.scores.len();
            found.scores.extend_from_slice(scores);
            found.push(kept.label, start);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_out(n: usize, n_right: usize) -> LeftOut {
        LeftOut {
            labels: vec![0; n],
            scores: (0..n).flat_map(|i| if i < n_right { [1.0, 0.0] } else { [0.0, 1.0] }).collect(),
            distances: vec![0.0; n],
            n_classes: 2,
        }
    }

    fn choose(first: &LeftOut, second: &LeftOut) -> &'static str {
        let contender = |name, left_out| Contender { name, left_out, start: 1.0 };
        ClassifierChoice::among(&[contender("first", first), contender("second", second)]).chosen
    }

    #[test]
    fn another_classifier_must_be_clearly_better_on_enough_examples() {
        assert_eq!(choose(&left_out(40, 20), &left_out(40, 40)), "second");
        assert_eq!(choose(&left_out(40, 39), &left_out(40, 40)), "first"); // within the noise
        assert_eq!(choose(&left_out(19, 1), &left_out(19, 19)), "first"); // too few
        assert_eq!(choose(&left_out(40, 40), &left_out(40, 20)), "first");
        assert_eq!(choose(&left_out(0, 0), &left_out(0, 0)), "first");
    }
}
