//! What a person said about a candidate.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A person's decision on one candidate of a class. It changes what the candidate is to the models, never the pool: see
/// [`ClassProblem::with_decisions`](crate::ClassProblem::with_decisions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It belongs to the class: as good as a clean example.
    Accept,
    /// It does not.
    Reject,
    /// The person looked and could not tell: the models treat it as one that nobody has looked at.
    Unsure,
}

impl Decision {
    /// All of them.
    pub const ALL: [Decision; 3] = [Decision::Accept, Decision::Reject, Decision::Unsure];

    /// The word in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Accept => "accept",
            Decision::Reject => "reject",
            Decision::Unsure => "unsure",
        }
    }

    /// The relevance that it fixes, whatever a model says.
    pub fn relevance(self) -> Option<f32> {
        match self {
            Decision::Accept => Some(1.0),
            Decision::Reject => Some(0.0),
            Decision::Unsure => None,
        }
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
