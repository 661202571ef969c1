//! The identity of a run, which its parts share: everything that decides its result, by contents.

use labelsieve::{Features, Method};
use labelsieve_files::inputs::decisions::Decisions;
use labelsieve_files::inputs::same_network::common_network;
use labelsieve_files::inputs::tables::load;
use labelsieve_files::work::Result;
use labelsieve_files::work::digest::Digest;
use labelsieve_files::work::resume::NUMBERS;
use serde::{Deserialize, Serialize};

use crate::inputs::base::BaseClasses;
use crate::inputs::pools::{ClassRows, Pools};

/// Rows of candidates that are looked at in each class, evenly spaced.
const SAMPLED: usize = 8;

/// The settings that all classes share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// How relevance is scored.
    pub method: Method,
    /// Random seed.
    pub seed: u64,
    /// Numbers per row.
    pub dim: usize,
    /// The network that made the features, where files say so.
    pub network: Option<String>,
    /// A digest of the clean examples of all classes: names, ids and rows.
    pub clean: String,
    /// Of the base classes, where there are any.
    pub base: Option<String>,
    /// Of the decisions, where they were given.
    pub decisions: Option<String>,
}

/// A class of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedClass {
    /// Its name.
    pub name: String,
    /// Its clean examples.
    pub n_clean: usize,
    /// Its candidates, copies of clean examples that have other ids included.
    pub n_candidates: usize,
    /// A digest of the ids of its clean examples, the ids and matched names of its candidates in order, and some of their
    /// rows.
    pub digest: String,
}

impl Identity {
    /// Of a run with these examples.
    pub fn of(pools: &Pools, decisions: Option<&Decisions>, method: &Method, seed: u64) -> Result<Identity> {
        Ok(Identity {
            method: method.clone(),
            seed,
            dim: pools.clean.features.cols(),
            network: common_network(&[(&pools.clean).into(), (&pools.pool).into()]),
            clean: clean_digest(pools)?,
            base: pools.base.as_ref().map(base_digest),
            decisions: decisions.map(Decisions::digest),
        })
    }

    /// The digest of the whole run, which all of its parts carry.
    pub fn run(&self, version: &str, classes: &[PlannedClass]) -> String {
        let method = serde_json::to_string(&self.method).unwrap_or_default(); // plain numbers and words
        let perhaps = |text: &Option<String>| text.as_ref().map_or(String::new(), |text| format!(" {text}"));
        let mut digest = Digest::default()
            .text(&format!("labelsieve {version} clean, numbers {NUMBERS}"))
            .text(&method)
            .number(self.seed)
            .number(self.dim as u64)
            .text(&perhaps(&self.network))
            .text(&self.clean)
            .text(&perhaps(&self.base))
            .text(&perhaps(&self.decisions));
        for class in classes {
            digest = digest.text(&class.name).number(class.n_clean as u64);
            digest = digest.number(class.n_candidates as u64).text(&class.digest);
        }
        digest.finish()
    }

    /// Differences to a run with the arguments `here`, in words. Tables that hold no rows need not name their
    /// network.
    pub fn differences(&self, here: &Identity) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |name: &str, planned: String, here: String| {
            if planned != here {
                found.push(format!("{name}: {planned} in the plan, {here} here"));
            }
        };
        compare("method", self.method.name().to_owned(), here.method.name().to_owned());
        if self.method.name() == here.method.name() {
            compare("settings of the method", settings(&self.method), settings(&here.method));
        }
        compare("seed", self.seed.to_string(), here.seed.to_string());
        compare("columns", self.dim.to_string(), here.dim.to_string());
        if let (Some(planned), Some(here)) = (&self.network, &here.network) {
            compare("network", planned.clone(), here.clone());
        }
        let is_given = |digest: &Option<String>| if digest.is_some() { "given" } else { "not given" };
        for (name, contents, planned, here) in [
            ("base", "the base classes", &self.base, &here.base),
            ("decisions", "the decisions", &self.decisions, &here.decisions),
        ] {
            match (planned, here) {
                (Some(planned), Some(here)) if planned != here => found.push(format!("{contents} differ")),
                (planned, here) if planned.is_some() != here.is_some() => {
                    found.push(format!("{name}: {} in the plan, {} here", is_given(planned), is_given(here)));
                }
                _ => (),
            }
        }
        if self.clean != here.clean && self.dim == here.dim {
            found.push("the clean examples differ".to_owned());
        }
        found
    }
}

/// The settings of a method but for its name.
fn settings(method: &Method) -> String {
    let mut settings = serde_json::to_value(method).unwrap_or_default();
    if let Some(settings) = settings.as_object_mut() {
        settings.remove("method");
    }
    settings.to_string()
}

impl PlannedClass {
    /// A class as it is in these examples.
    pub fn of(pools: &Pools, class: &ClassRows) -> Result<PlannedClass> {
        let mut digest = Digest::default().text(&class.name).number(class.clean.len() as u64);
        class.clean.iter().for_each(|&row| digest.add_text(&pools.clean.ids.get(row)));
        digest.add_number(class.pool.len() as u64);
        for (place, &row) in class.pool.iter().enumerate() {
            digest.add_text(&pools.pool.ids.get(row));
            digest.add_text(pools.matched_name(class, place).unwrap_or_default());
        }
        let sample: Vec<usize> = sampled(class.pool.len()).map(|place| class.pool[place]).collect();
        add_rows(&mut digest, &load(&pools.pool, &sample)?);
        Ok(PlannedClass {
            name: class.name.clone(),
            n_clean: class.clean.len(),
            n_candidates: class.pool.len(),
            digest: digest.finish(),
        })
    }
}

/// Places of the candidates whose rows are looked at.
fn sampled(n: usize) -> impl Iterator<Item = usize> {
    let count = n.min(SAMPLED);
    (0..count).map(move |i| i * n / count)
}

fn clean_digest(pools: &Pools) -> Result<String> {
    let mut digest = Digest::default();
    for class in &pools.classes {
        digest.add_text(&class.name);
        class.clean.iter().for_each(|&row| digest.add_text(&pools.clean.ids.get(row)));
        add_rows(&mut digest, &load(&pools.clean, &class.clean)?);
    }
    Ok(digest.finish())
}

fn base_digest(base: &BaseClasses) -> String {
    let mut digest = Digest::default();
    base.names.iter().for_each(|name| digest.add_text(name));
    add_rows(&mut digest, &base.directions);
    digest.finish()
}

/// Normalised rows, so that it does not matter how long they are in a file.
fn add_rows(digest: &mut Digest, rows: &Features) {
    rows.rows().for_each(|row| digest.add_floats(row));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampled_rows_are_spread_over_the_class() {
        let places = |n| sampled(n).collect::<Vec<_>>();
        assert_eq!(places(0), [0; 0]);
        assert_eq!(places(3), [0, 1, 2]);
        assert_eq!(places(80), [0, 10, 20, 30, 40, 50, 60, 70]);
    }

    #[test]
    fn what_differs_is_named() {
        let plan = Identity {
            method: Method::gcn(),
            seed: 1,
            dim: 4,
            network: Some("x 1".to_owned()),
            clean: "a".to_owned(),
            base: None,
            decisions: Some("d".to_owned()),
        };
        let silent = Identity { network: None, ..plan.clone() };
        assert_eq!(plan.differences(&silent), [""; 0], "an empty table need not say");
        let auto = Method::Auto(labelsieve::relevance::Auto::default());
        let other =
            Identity { method: auto, seed: 2, decisions: None, clean: "b".to_owned(), ..plan.clone() };
        assert_eq!(
            plan.differences(&other),
            [
                "method: gcn in the plan, auto here",
                "seed: 1 in the plan, 2 here",
                "decisions: given in the plan, not given here",
                "the clean examples differ",
            ]
        );
        let lambda = labelsieve::relevance::Gcn { lambda: Some(0.5), ..Default::default() };
        let found = plan.differences(&Identity { method: Method::Gcn(lambda), ..plan.clone() });
        assert!(found[0].starts_with("settings of the method: {"), "{found:?}");
        assert_ne!(plan.run("1", &[]), other.run("1", &[]));
        assert_ne!(plan.run("1", &[]), plan.run("2", &[]));
        assert_eq!(plan.run("1", &[]), plan.clone().run("1", &[]));
    }
}
