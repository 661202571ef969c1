//! What suits the class, chosen from the data at hand: the graph convolutional network and the mixture together.
//!
//! Where the mixture knows nothing it says "own class" of every candidate and leaves the network's order alone; where the network
//! knows nothing the mixture decides. g_i: relevance by the network; m_i: by the mixture.
//!
//! ```text
//! relevance_i = m_i^½ · g_i^½        with other classes at hand
//!             = g_i                  without
//! ```
//!
//! Everything that `auto` chooses stands in this file, as functions of the class and of what the parts say.

use serde::{Deserialize, Serialize};

use super::{Gcn, Method, Mixture, Training, check_lambda, lambda_of};
use crate::error::{Error, Result, check};
use crate::features::Features;
use crate::graph::NEIGHBOURS;
use crate::model::{ClassProblem, Relevance, RelevanceModel};

/// Chooses what suits the class; a setting that is given is not chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auto {
    /// Weight λ of the noisy examples in the loss; none: chosen by the number of clean examples.
    pub lambda: Option<f32>,
    /// Neighbours per example; none: chosen by the number of candidates.
    pub neighbours: Option<usize>,
}

/// What the mixture's word counts beside the network's: the exponents add up to 1.
const MIXTURE: f32 = 0.5;

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

    /// The models whose words are combined, over one graph; the one that takes longest comes last.
    pub fn parts(&self, problem: &ClassProblem) -> Vec<Method> {
        let neighbours = self.neighbours(problem.noisy.features().len());
        let gcn = Method::Gcn(Gcn { lambda: self.lambda, neighbours, training: Training::default() });
        match n_other_classes(problem) {
            0 => vec![gcn],
            _ => vec![Method::Mixture(Mixture::default()), gcn],
        }
    }

    /// What the parts say together; `said` has one relevance for each of them.
    pub fn combine(&self, problem: &ClassProblem, said: &[Relevance]) -> Result<Relevance> {
        let expected = self.parts(problem).len();
        let [mixture @ .., gcn] = said else {
            return Err(Error::Length { what: "parts", expected, found: 0 });
        };
        if said.len() != expected {
            return Err(Error::Length { what: "parts", expected, found: said.len() });
        }
        let mixture = mixture.first().map(Relevance::noisy);
        let together = gcn.noisy().iter().enumerate();
        let together = together.map(|(i, &gcn)| blend(gcn, mixture.map(|mixture| mixture[i]))).collect();
        let counts = gcn.reciprocal_neighbours().unwrap_or_default().to_vec();
        let relevance = Relevance::new(together)?;
        let probability = probability(&relevance);
        let relevance = relevance.with_probability(probability)?.with_reciprocal_neighbours(counts);
        Ok(problem.settle(relevance.with_choice(self.choice(problem))))
    }

    fn lambda(&self, problem: &ClassProblem) -> f32 {
        lambda_of(problem, self.lambda)
    }

    /// What was chosen for a class and why.
    fn choice(&self, problem: &ClassProblem) -> String {
        let (n_clean, n_noisy) = (problem.clean.len(), problem.noisy.features().len());
        let why = |given: bool, reason: String| match given {
            true => "as asked for".to_owned(),
            false => format!("for {reason}"),
        };
        let settings = format!(
            "{} {}, λ = {} {}",
            counted(self.neighbours(n_noisy), "neighbour"),
            why(self.neighbours.is_some(), counted(n_noisy, "candidate")),
            self.lambda(problem),
            why(self.lambda.is_some(), counted(n_clean, "clean example")),
        );
        let n_base = problem.n_base();
        let n_others = n_other_classes(problem) - n_base;
        let compared: Vec<String> = [(n_others, "other class"), (n_base, "base class")]
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| counted(n, what))
            .collect();
        match compared.is_empty() {
            true => format!("gcn: {settings}; no other class to compare with"),
            false => format!("gcn and mixture: {settings}, compared with {}", compared.join(" and ")),
        }
    }
}

impl RelevanceModel for Auto {
    fn relevance(&self, problem: &ClassProblem, seed: u64) -> Result<Relevance> {
        let count = self.neighbours(problem.noisy.features().len());
        let affinity = problem.affinity(count)?;
        let shared = problem.with_affinity(count, &affinity);
        let parts = self.parts(problem);
        let said =
            parts.iter().map(|part| part.build()?.relevance(&shared, seed)).collect::<Result<Vec<_>>>()?;
        self.combine(problem, &said)
    }

    fn uses_graph(&self) -> bool {
        true
    }
}

/// Neighbours per example by the number of candidates.
fn neighbours(_n_noisy: usize) -> usize {
    NEIGHBOURS
}

/// What network and mixture say of one candidate, together.
fn blend(gcn: f32, mixture: Option<f32>) -> f32 {
    match mixture {
        Some(mixture) => mixture.powf(MIXTURE) * gcn.powf(1.0 - MIXTURE),
        None => gcn,
    }
}

/// How probable it is that each candidate belongs to the class.
fn probability(relevance: &Relevance) -> Vec<f32> {
    relevance.noisy().to_vec()
}

fn n_other_classes(problem: &ClassProblem) -> usize {
    problem.other_classes.map_or(0, Features::len)
}

/// `1 clean example`, `20 clean examples`.
fn counted(n: usize, what: &str) -> String {
    let ending = match (n, what.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{n} {what}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NoisyPool;
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
            "gcn and mixture: 50 neighbours for 3 candidates, λ = 0.05 for 2 clean examples, compared with 5 other \
             classes and 1 base class"
        );
        let given = Auto { lambda: Some(2.0), neighbours: Some(1) };
        assert_eq!(
            choice(given, 0, 4),
            "gcn and mixture: 1 neighbour as asked for, λ = 2 as asked for, compared with 4 base classes"
        );
        assert!(
            choice(Auto::default(), 0, 0).ends_with("for 2 clean examples; no other class to compare with")
        );
    }

    #[test]
    fn without_other_classes_it_is_the_network() {
        let class = Recipe { n_classes: 1, ..Recipe::default() }.generate(1).classes.remove(0);
        let pool = NoisyPool::new(class.noisy);
        let problem = ClassProblem::new(&class.clean, &pool).unwrap();
        let (auto, gcn) =
            (Auto::default().relevance(&problem, 5).unwrap(), Gcn::default().relevance(&problem, 5).unwrap());
        assert_eq!(auto.noisy(), gcn.noisy());
        assert_eq!(auto.reciprocal_neighbours(), gcn.reciprocal_neighbours());
    }

    #[test]
    fn parts_and_what_they_said_must_be_as_many() {
        let class = Recipe { n_classes: 1, ..Recipe::default() }.generate(1).classes.remove(0);
        let pool = NoisyPool::new(class.noisy.select(&[0, 1]));
        let problem =
            ClassProblem::new(&class.clean, &pool).unwrap().with_other_classes(&class.clean).unwrap();
        let said = [Relevance::new(vec![0.25, 1.0]).unwrap(), Relevance::new(vec![1.0, 0.36]).unwrap()];
        let together = Auto::default().combine(&problem, &said).unwrap();
        assert_eq!(together.noisy(), [0.5, 0.6]);
        for said in [&said[..1], &[]] {
            let error = Auto::default().combine(&problem, said).unwrap_err();
            assert_eq!(error.to_string(), format!("parts: expected 2 values, found {}", said.len()));
        }
    }
}
