//! The compared methods.

use labelsieve::Method;
use serde_json::{Value, json};

use crate::protocol::Source;

/// All contenders, in the order of the tables. A new method of [`Method`] is compared once its name is here.
pub const ALL: [&str; 10] =
    [CLEAN_ONLY, BETA, SIMILARITY, "linear", "label-propagation", "mlp", GCN, "mixture", "auto", ORACLE];
/// Baselines without training. No method should do significantly worse than the best of them.
pub const SIMPLE: [&str; 3] = [CLEAN_ONLY, BETA, SIMILARITY];
/// Combines other methods and chooses their settings, so it does not count as the best *single* method of a cell.
const COMBINED: &str = "auto";

pub const CLEAN_ONLY: &str = "clean-only";
pub const ORACLE: &str = "oracle";
pub const GCN: &str = "gcn";
const BETA: &str = "beta";
const SIMILARITY: &str = "similarity";

/// A row of the tables: a source of weights and its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    pub name: String,
    pub source: Source,
}

impl Contender {
    /// `NAME`, or `NAME:SETTING=VALUE:…` with settings as in a configuration file.
    pub fn parse(text: &str) -> Result<Contender, String> {
        let source = match text {
            CLEAN_ONLY => Source::CleanOnly,
            ORACLE => Source::Oracle,
            text => Source::Scored(parse_method(text)?),
        };
        Ok(Contender { name: text.to_owned(), source })
    }

    /// The requested contenders, or all; always with the baselines and the oracle, which the others are compared with.
    pub fn list(asked: &[Contender]) -> Vec<Contender> {
        let named = |name: &str| Contender::parse(name).expect("a method of the list");
        if asked.is_empty() {
            return ALL.map(named).to_vec();
        }
        let mut list = SIMPLE.map(named).to_vec();
        for contender in asked {
            if !list.contains(contender) && contender.source != Source::Oracle {
                list.push(contender.clone());
            }
        }
        list.push(named(ORACLE));
        list
    }

    /// Whether it may be a cell's best single method.
    pub fn is_single(&self) -> bool {
        let base = self.name.split(':').next().unwrap_or_default();
        base != ORACLE && base != COMBINED
    }
}

fn parse_method(text: &str) -> Result<Method, String> {
    let mut parts = text.split(':');
    let mut fields = json!({ "method": parts.next().unwrap_or_default() });
    for part in parts {
        let (name, value) =
            part.split_once('=').ok_or_else(|| format!("expected SETTING=VALUE, found `{part}`"))?;
        fields[name] = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    }
    let method: Method = serde_json::from_value(fields).map_err(|error| error.to_string())?;
    method.build().map_err(|error| error.to_string())?;
    Ok(method)
}

#[cfg(test)]
mod tests {
    use labelsieve::relevance::Gcn;

    use super::*;

    #[test]
    fn every_method_of_the_list_exists() {
        assert_eq!(Contender::list(&[]).len(), ALL.len());
    }

    #[test]
    fn settings_follow_the_name_and_wrong_ones_are_refused() {
        let lambda = Contender::parse("gcn:lambda=0.5:neighbours=20").unwrap();
        let expected = Method::Gcn(Gcn { lambda: Some(0.5), neighbours: 20, ..Gcn::default() });
        assert_eq!(lambda.source, Source::Scored(expected));
        for (text, message) in [
            ("gnc", "unknown variant `gnc`"),
            ("gcn:lamda=1", "unknown field `lamda`"),
            ("gcn:lambda", "expected SETTING=VALUE, found `lambda`"),
            ("gcn:lambda=-1", "lambda: expected a non-negative number"),
        ] {
            let error = Contender::parse(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn what_others_are_compared_with_is_always_there_once() {
        let asked = ["gcn", "oracle", "beta"].map(|name| Contender::parse(name).unwrap());
        let names: Vec<String> = Contender::list(&asked).into_iter().map(|row| row.name).collect();
        assert_eq!(names, ["clean-only", "beta", "similarity", "gcn", "oracle"]);
    }
}
