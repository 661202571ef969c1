//! What a person decided about a candidate.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a person decided about a candidate of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It belongs to the class.
    Accept,
    /// It does not belong to the class.
    Reject,
    /// The person looked and could not tell.
    Unsure,
}

impl Decision {
    /// The word for it in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Decision::Accept => "accept",
            Decision::Reject => "reject",
            Decision::Unsure => "unsure",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Decision {
    type Err = String;

    fn from_str(word: &str) -> Result<Decision, String> {
        match word {
            "accept" => Ok(Decision::Accept),
            "reject" => Ok(Decision::Reject),
            "unsure" => Ok(Decision::Unsure),
            other => Err(format!("unknown decision `{other}`; expected accept, reject or unsure")),
        }
    }
}
