//! What suits the class, chosen from the data at hand: the graph convolutional network, the mixture and similarity together.
//!
//! Where the mixture knows nothing it says "own class" of every candidate and leaves the network's order alone; where the network
//! knows nothing the mixture decides; in small pools, where the graph is nearly complete, similarity helps out ([`formula`]).
//! Number of neighbours, λ, the contrast of the mixture, what counts how much and whether features are centred come from the class and
//! the classes beside it. No label but those of the clean examples is used (`docs/auto.md`).

mod centre;
mod formula;
mod probability;
mod share;

use serde::{Deserialize, Serialize};

pub use centre::Centred;

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
            _ => vec![Method::Mixture(Mixture { neighbours, ..Mixture::default() }), gcn],
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
        let (n_clean, n_noisy) = (problem.clean.len(), problem.noisy.features().len());
        let class = formula::Class { n_clean, n_noisy, share: share::relevant_share(problem)? };
        let mixture = mixture.first().map(Relevance::noisy);
        let standing = formula::standing(problem)?;
        let together = |i: usize| {
            let mixture = mixture.map_or(1.0, |mixture| mixture[i]);
            formula::blend(mixture, gcn.noisy()[i], standing[i], &class).clamp(0.0, 1.0)
        };
        let relevance = Relevance::new((0..n_noisy).map(together).collect())?;
        let probability = probability::probability(problem, relevance.noisy(), &standing, class.share);
        let counts = gcn.reciprocal_neighbours().unwrap_or_default().to_vec();
        let relevance = relevance.with_probability(probability)?.with_reciprocal_neighbours(counts);
        Ok(problem.settle(relevance.with_choice(self.choice(problem, class.share))))
    }

    fn lambda(&self, problem: &ClassProblem) -> f32 {
        lambda_of(problem, self.lambda)
    }

    /// What was chosen for a class and why.
    fn choice(&self, problem: &ClassProblem, share: f32) -> String {
        let (n_clean, n_noisy) = (problem.clean.len(), problem.noisy.features().len());
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
        let mut words = match compared.is_empty() {
            true => format!("gcn: {settings}; no other class to compare with"),
            false => format!("gcn and mixture: {settings}, compared with {}", compared.join(" and ")),
        };
        match share {
            share if share < MOSTLY_NOISE => words.push_str("; most of the pool seems to be noise"),
            share if share > MOSTLY_RIGHT => words.push_str("; most of the pool seems right"),
            _ => (),
        }
        let by_similarity = formula::similarity_exponent(n_noisy);
        if by_similarity >= TOLD {
            words.push_str("; similarity counts too, since the pool is small");
        }
        if problem.is_centred() {
            words.push_str("; features centred, since they point one way");
        }
        words
    }
}

impl RelevanceModel for Auto {
    fn relevance(&self, problem: &ClassProblem, seed: u64) -> Result<Relevance> {
        match Centred::of(problem)? {
            Some(centred) => self.score(&centred.problem(problem), seed),
            None => self.score(problem, seed),
        }
    }

    fn uses_graph(&self) -> bool {
        true
    }
}

impl Auto {
    /// The relevance by features as they are, over one graph.
    fn score(&self, problem: &ClassProblem, seed: u64) -> Result<Relevance> {
        let count = self.neighbours(problem.noisy.features().len());
        let affinity = problem.affinity(count)?;
        let shared = problem.with_affinity(count, &affinity);
        let parts = self.parts(problem);
        let said =
            parts.iter().map(|part| part.build()?.relevance(&shared, seed)).collect::<Result<Vec<_>>>()?;
        self.combine(problem, &said)
    }
}

/// Shares of a pool from which on it is worth telling that most of it belongs, or does not.
const MOSTLY_NOISE: f32 = 0.35;
const MOSTLY_RIGHT: f32 = 0.65;
/// From this weight on, similarity is worth telling about.
const TOLD: f32 = 0.1;

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
        let (auto, gcn) =
            (Auto::default().relevance(&problem, 5).unwrap(), Gcn::default().relevance(&problem, 5).unwrap());
        let share = share::relevant_share(&problem).unwrap();
        let of = formula::Class { n_clean: class.clean.len(), n_noisy: pool.features().len(), share };
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
            let (clean, pool) = (move_rows(&class.clean), NoisyPool::new(move_rows(&class.noisy)));
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
    fn parts_and_what_they_said_must_be_as_many() {
        let class = Recipe { n_classes: 1, ..Recipe::default() }.generate(1).classes.remove(0);
        let pool = NoisyPool::new(class.noisy.select(&[0, 1]));
        let problem =
            ClassProblem::new(&class.clean, &pool).unwrap().with_other_classes(&class.clean).unwrap();
        let said = [Relevance::new(vec![0.25, 1.0]).unwrap(), Relevance::new(vec![1.0, 0.36]).unwrap()];
        let together = Auto::default().combine(&problem, &said).unwrap();
        let standing = formula::standing(&problem).unwrap();
        let share = share::relevant_share(&problem).unwrap();
        let of = formula::Class { n_clean: class.clean.len(), n_noisy: 2, share };
        let expected = formula::blend(0.25, 1.0, standing[0], &of);
        assert_eq!(together.noisy()[0], expected);
        for said in [&said[..1], &[]] {
            let error = Auto::default().combine(&problem, said).unwrap_err();
            assert_eq!(error.to_string(), format!("parts: expected 2 values, found {}", said.len()));
        }
    }
}
