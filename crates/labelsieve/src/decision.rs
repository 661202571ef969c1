//! A person's decisions on candidates, and how they fix relevance.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::model::{ClassProblem, Relevance};

/// A person's decision on one candidate of a class. It changes how models treat the candidate, never the pool: see
/// [`ClassProblem::with_decisions`](crate::ClassProblem::with_decisions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It belongs to the class: as good as a clean example.
    Accept,
    /// It does not.
    Reject,
    /// The person could not decide: models treat it as undecided.
    Unsure,
}

impl Decision {
    /// Every decision.
    pub const ALL: [Decision; 3] = [Decision::Accept, Decision::Reject, Decision::Unsure];

    /// The word in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Accept => "accept",
            Decision::Reject => "reject",
            Decision::Unsure => "unsure",
        }
    }

    /// The relevance that it fixes regardless of the model.
    pub fn relevance(self) -> Option<f32> {
        match self {
            Decision::Accept => Some(1.0),
            Decision::Reject => Some(0.0),
            Decision::Unsure => None,
        }
    }
}

impl ClassProblem<'_> {
    /// The decision on noisy example `i`.
    pub fn decision(&self, i: usize) -> Option<Decision> {
        self.decisions.get(i).copied().flatten()
    }

    /// The noisy examples with this decision, in order.
    pub fn decided(&self, decision: Decision) -> Vec<usize> {
        (0..self.decisions.len()).filter(|&i| self.decisions[i] == Some(decision)).collect()
    }

    /// The relevance by a model, overridden by the decisions.
    pub fn settle(&self, mut relevance: Relevance) -> Relevance {
        let probability = relevance.probability.as_deref_mut().unwrap_or_default();
        for numbers in [&mut relevance.noisy[..], probability] {
            for (number, decision) in numbers.iter_mut().zip(self.decisions) {
                if let Some(fixed) = decision.and_then(Decision::relevance) {
                    *number = fixed;
                }
            }
        }
        relevance
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Decision {
    type Err = Error;

    fn from_str(text: &str) -> Result<Decision, Error> {
        let refused = || Error::Setting {
            name: "decision",
            expected: "accept, reject or unsure",
            found: text.to_owned(),
        };
        Decision::ALL.into_iter().find(|decision| decision.name() == text).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_spelled_the_same_everywhere() {
        for decision in Decision::ALL {
            assert_eq!(decision.to_string().parse::<Decision>(), Ok(decision));
            assert_eq!(serde_json::to_string(&decision).unwrap(), format!("\"{decision}\""));
        }
        let error = "keep".parse::<Decision>().unwrap_err();
        assert_eq!(error.to_string(), "decision: expected accept, reject or unsure, found keep");
    }
}
