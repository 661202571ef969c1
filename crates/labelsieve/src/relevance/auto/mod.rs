//! The default method: the graph convolutional network, the mixture and similarity combined, with settings chosen by class.
//!
//! Where the mixture has no evidence, it assigns every candidate to its own class and leaves the order of the network alone;
//! where the network has none, the mixture decides; in small pools, where the graph is nearly complete, similarity helps
//! ([`formula`]). The number of neighbours, λ, the weights of the parts and whether features are centred follow from the class
//! and the other classes. The only labels used are those of the clean examples (`docs/auto.md`).

mod centre;
mod formula;
mod probability;
mod share;
mod shared_inputs;

use serde::{Deserialize, Serialize};

pub(crate) use shared_inputs::SharedInputs;

use super::{Gcn, Method, Mixture, Training, check_lambda, lambda_of};
use crate::error::{Error, Result, check, check_len};
use crate::features::Features;
use crate::graph::NEIGHBOURS;
use crate::model::{ClassProblem, Relevance, RelevanceModel};

/// Chooses its settings by class, except those that are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auto {
    /// Weight λ of the noisy examples in the loss; none: chosen by the number of clean examples.
    pub lambda: Option<f32>,
    /// Neighbours per example; none: chosen by the number of candidates.
    pub neighbours: Option<usize>,
}

impl Auto {
    pub(super) fn checked(self) -> Result<Auto> {
        check_lambda(self.lambda)?;
        let count = self.neighbours.unwrap_or(NEIGHBOURS);
        check(count >= 1, "neighbours", "at least 1", count)?;
        Ok(self)
    }

    /// Neighbours per example of a class with `n_noisy` candidates.
    pub fn neighbours(&self, n_noisy: usize) -> usize {
        self.neighbours.unwrap_or_else(|| neighbours(n_noisy))
    }

    /// The models that are combined, over one graph, the slowest last.
    pub fn parts(&self, problem: &ClassProblem) -> Vec<Method> {
        let neighbours = self.neighbours(problem.noisy.features().len());
        let gcn = Method::Gcn(Gcn { lambda: self.lambda, neighbours, training: Training::default() });
        match n_other_classes(problem) {
            0 => vec![gcn],
            _ => vec![Method::Mixture(Mixture { neighbours, ..Mixture::default() }), gcn],
        }
    }

    /// Combines the results of [`Auto::parts`], one relevance each in the same order.
    pub fn combine(&self, problem: &ClassProblem, results: &[Relevance]) -> Result<Relevance> {
        let expected = self.parts(problem).len();
        let [mixture @ .., gcn] = results else {
            return Err(Error::Length { what: "parts", expected, found: 0 });
        };
        check_len("parts", expected, results.len())?;
        let n_clean = problem.clean.len();
        let n_noisy = problem.noisy.features().len();
        let class = formula::ClassStatistics { n_clean, n_noisy, share: share::relevant_share(problem)? };
        let mixture = mixture.first().map(Relevance::noisy);
        let standing = formula::standing(problem)?;
        let combined = |i: usize| {
            let mixture = mixture.map_or(1.0, |mixture| mixture[i]);
            formula::blend(mixture, gcn.noisy()[i], standing[i], &class).clamp(0.0, 1.0)
        };
        let relevance = Relevance::new((0..n_noisy).map(combined).collect())?;
        let probability = probability::probability(problem, relevance.noisy(), &standing, class.share);
        let counts = gcn.reciprocal_neighbours().unwrap_or_default().to_vec();
        let relevance = relevance.with_probability(probability)?.with_reciprocal_neighbours(counts);
        Ok(problem.settle(relevance.with_choice(self.choice(problem, class.share))))
    }

    fn lambda(&self, problem: &ClassProblem) -> f32 {
        lambda_of(problem, self.lambda)
    }

    /// The chosen settings and the reasons, in one sentence.
    fn choice(&self, problem: &ClassProblem, share: f32) -> String {
        let n_clean = problem.clean.len();
        let n_noisy = problem.noisy.features().len();
        let neighbours = match (self.neighbours, neighbours(n_noisy)) {
            (Some(given), _) => format!("{} as asked for", counted(given, "neighbour")),
            (None, chosen) if chosen == n_noisy / 2 && chosen < NEIGHBOURS => {
                "half of the pool as neighbours".to_owned()
            }
            (None, chosen) => counted(chosen, "neighbour"),
        };
        let lambda = match self.lambda {
            Some(given) => format!("λ = {given} as asked for"),
            None => {
                let rounded = (100.0 * self.lambda(problem)).round() / 100.0;
                format!("λ = {rounded} for {}", counted(n_clean, "clean example"))
            }
        };
        let settings = format!("{neighbours}, {lambda}");
        let n_base = problem.n_base();
        let n_others = n_other_classes(problem) - n_base;
        let compared: Vec<String> = [(n_others, "other class"), (n_base, "base class")]
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| counted(n, what))
            .collect();
        let mut words = if compared.is_empty() {
            format!("gcn: {settings}; no other class to compare with")
        } else {
            format!("gcn and mixture: {settings}, compared with {}", compared.join(" and "))
        };
        if share < MOSTLY_NOISE {
            words.push_str("; most of the pool seems to be noise");
        } else if share > MOSTLY_RIGHT {
            words.push_str("; most of the pool seems right");
        }
        let by_similarity = formula::similarity_exponent(n_noisy);
        if by_similarity >= MIN_REPORTED_EXPONENT {
            words.push_str("; similarity counts too, since the pool is small");
        }
        if problem.is_centred {
            words.push_str("; features centred, since they point one way");
        }
        words
    }
}

impl RelevanceModel for Auto {
    fn relevance(&self, problem: &ClassProblem, seed: u64) -> Result<Relevance> {
        let inputs = SharedInputs::new(self, problem, |problem, count| problem.affinity(count))?;
        let problem = inputs.problem(problem);
        let parts = self.parts(&problem);
        let results = parts.iter().map(|part| part.build()?.relevance(&problem, seed));
        self.combine(&problem, &results.collect::<Result<Vec<Relevance>>>()?)
    }

    fn uses_graph(&self) -> bool {
        true
    }
}

/// Relevant shares below and above which the sentence says that most of the pool is noise, or right.
const MOSTLY_NOISE: f32 = 0.35;
const MOSTLY_RIGHT: f32 = 0.65;
/// The sentence mentions similarity from this exponent on.
const MIN_REPORTED_EXPONENT: f32 = 0.1;

/// Neighbours per example by the number of candidates: with 50 of fewer than a hundred, the graph would be nearly complete and the
/// relevance nearly constant. AUC of gcn on pools of 45 with 80 % noise (icons, k = 1): 0.81 with 50 neighbours, 0.85 with this.
fn neighbours(n_noisy: usize) -> usize {
    (n_noisy / 2).clamp(10, NEIGHBOURS)
}

fn n_other_classes(problem: &ClassProblem) -> usize {
    problem.other_classes.map_or(0, Features::len)
}

/// `1 clean example`, `20 clean examples`.
fn counted(n: usize, what: &str) -> String {
    let ending = match n {
        1 => "",
        _ if what.ends_with('s') => "es",
        _ => "s",
    };
    format!("{n} {what}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::NoisyPool;
    use crate::synthetic::Recipe;

    fn choice(auto: Auto, n_others: usize, n_base: usize) -> String {
        let class = Recipe { n_classes: 1, n_clean: 2, ..Recipe::default() }.generate(0).classes.remove(0);
        let pool = NoisyPool::new(class.noisy.select(&[0, 1, 2]));
        let others = class.noisy.select(&(0..n_others + n_base).collect::<Vec<_>>());
        let problem = ClassProblem::new(&class.clean, &pool).unwrap().with_other_classes(&others).unwrap();
        let relevance = auto.relevance(&problem.of_which_base(n_base), 0).unwrap();
        assert_eq!(relevance.probability().map(<[f32]>::len), Some(3));
        relevance.choice().unwrap().to_owned()
    }

    #[test]
    fn a_choice_is_told_with_its_reason() {
        assert_eq!(
            choice(Auto::default(), 5, 1),
            "gcn and mixture: 10 neighbours, λ = 0.05 for 2 clean examples, compared with 5 other classes and 1 base \
             class; most of the pool seems to be noise; similarity counts too, since the pool is small"
        );
        let given = Auto { lambda: Some(2.0), neighbours: Some(1) };
        assert_eq!(
            choice(given, 0, 4),
            "gcn and mixture: 1 neighbour as asked for, λ = 2 as asked for, compared with 4 base classes; most of \
             the pool seems to be noise; similarity counts too, since the pool is small"
        );
        assert!(
            choice(Auto::default(), 0, 0).contains("for 2 clean examples; no other class to compare with;")
        );
    }

    #[test]
    fn without_other_classes_it_has_the_order_of_the_network_in_large_pools() {
        let class = Recipe { n_classes: 1, ..Recipe::default() }.generate(1).classes.remove(0);
        let pool = NoisyPool::new(class.noisy);
        let problem = ClassProblem::new(&class.clean, &pool).unwrap();
        let auto = Auto::default().relevance(&problem, 5).unwrap();
        let gcn = Gcn::default().relevance(&problem, 5).unwrap();
        let share = share::relevant_share(&problem).unwrap();
        let of =
            formula::ClassStatistics { n_clean: class.clean.len(), n_noisy: pool.features().len(), share };
        let standing = formula::standing(&problem).unwrap();
        for (i, found) in auto.noisy().iter().enumerate() {
            assert_eq!(*found, formula::blend(1.0, gcn.noisy()[i], standing[i], &of));
        }
        assert_eq!(auto.reciprocal_neighbours(), gcn.reciprocal_neighbours());
    }

    #[test]
    fn features_that_point_one_way_are_centred() {
        let task = Recipe { n_classes: 12, largest_pool: 60, ..Recipe::default() }.generate(3);
        let shifted = |rows: &Features| {
            let shift = |(column, v): (usize, &f32)| if column == 0 { v + 2.0 } else { *v };
            let rows = rows.rows().flat_map(|row| row.iter().enumerate().map(shift).collect::<Vec<_>>());
            Features::new(rows.collect(), 64).unwrap()
        };
        let scored = |move_rows: &dyn Fn(&Features) -> Features| {
            let class = &task.classes[0];
            let clean = move_rows(&class.clean);
            let pool = NoisyPool::new(move_rows(&class.noisy));
            let others: Vec<f32> =
                task.classes[1..].iter().flat_map(|c| move_rows(&c.clean).row(0).to_vec()).collect();
            let others = Features::new(others, 64).unwrap();
            let problem = ClassProblem::new(&clean, &pool).unwrap().with_other_classes(&others).unwrap();
            let relevance = Auto::default().relevance(&problem, 0).unwrap();
            let choice = relevance.choice().unwrap().to_owned();
            (crate::evaluation::roc_auc(relevance.noisy(), &class.truth).unwrap(), choice)
        };
        let (as_they_are, choice) = scored(&Features::clone);
        assert!(!choice.contains("centred"), "{choice}");
        let (one_way, choice) = scored(&shifted);
        assert!(choice.ends_with("features centred, since they point one way"), "{choice}");
        assert!(one_way > as_they_are - 0.05, "{one_way} against {as_they_are}");
    }

    #[test]
    fn combining_needs_one_result_per_part() {
        let class = Recipe { n_classes: 1, ..Recipe::default() }.generate(1).classes.remove(0);
        let pool = NoisyPool::new(class.noisy.select(&[0, 1]));
        let problem =
            ClassProblem::new(&class.clean, &pool).unwrap().with_other_classes(&class.clean).unwrap();
        let results = [Relevance::new(vec![0.25, 1.0]).unwrap(), Relevance::new(vec![1.0, 0.36]).unwrap()];
        let together = Auto::default().combine(&problem, &results).unwrap();
        let standing = formula::standing(&problem).unwrap();
        let share = share::relevant_share(&problem).unwrap();
        let of = formula::ClassStatistics { n_clean: class.clean.len(), n_noisy: 2, share };
        let expected = formula::blend(0.25, 1.0, standing[0], &of);
        assert_eq!(together.noisy()[0], expected);
        for results in [&results[..1], &[]] {
            let error = Auto::default().combine(&problem, results).unwrap_err();
            assert_eq!(error.to_string(), format!("parts: expected 2 values, found {}", results.len()));
        }
    }
}
