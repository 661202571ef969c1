//! Labels that spread over one graph of everything: the diffusion of Douze, Szlam, Hariharan and Jégou, *Low-shot learning
//! with large-scale diffusion*, CVPR 2018.
//!
//! Where the method of this crate makes one small graph per class, of the class's clean examples and candidates, this one makes a
//! single graph of all rows there are, and classes spread over it side by side.

mod collection;
mod fusion;
mod walk;

use labelsieve::classifier::WeightedClass;
use labelsieve::graph::nearest_to;
use labelsieve::{Classifier, Error, Features, Result, Scores, check};
use serde::{Deserialize, Serialize};
use walk::{Labels, Walk};

pub use collection::Collection;
pub use fusion::{FUSION_WEIGHTS, Fusion, fuse};

/// How labels spread.
///
/// ```text
/// L₀: 1 for the clean examples of each class, its column scaled to the sum 1
/// L ← W L, then columns are scaled to the sum 1 again;   W = D⁻¹(W₀ + W₀ᵀ)
/// score of class c for x: Σ over the nearest rows i of x of L_ic
/// ```
///
/// W₀: 1 where a row is among the `neighbours` nearest of another; D: row sums. The number of iterations is the one setting that
/// matters, chosen on validation classes: after many, every class is everywhere alike.
///
/// Decisions: neighbours are exact, by cosine; edges weigh 1, as in the published code; clean examples are not reset
/// after a step, nor are test examples part of the graph. Rows keep their `keep` largest labels, which changes nothing while there are no more classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Diffusion {
    /// Neighbours of each row, and of each test example.
    pub neighbours: usize,
    /// Steps of the diffusion.
    pub iterations: usize,
    /// Labels that a row keeps, the largest.
    pub keep: usize,
    /// Whether it matters which class found a candidate.
    pub text: TextRule,
}

/// Whether it matters by the name of which class a candidate was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextRule {
    /// Any row may hold any label, as in the paper of the diffusion.
    Ignored,
    /// A candidate holds labels of the classes that found it, and no other; background rows hold any.
    Kept,
}

impl Default for Diffusion {
    fn default() -> Diffusion {
        Diffusion { neighbours: 30, iterations: 3, keep: 32, text: TextRule::Ignored }
    }
}

/// More steps than any validation would choose.
const MOST_ITERATIONS: usize = 1000;

impl Diffusion {
    /// Refuses settings outside their range.
    pub fn checked(&self) -> Result<()> {
        check(self.neighbours >= 1, "neighbours", "at least 1", self.neighbours)?;
        check(self.iterations <= MOST_ITERATIONS, "iterations", "at most 1000", self.iterations)?;
        check(self.keep >= 1, "keep", "at least 1", self.keep)
    }

    /// Spreads the labels of the clean examples over the candidates of all classes and the background. What relevance the
    /// candidates have is not asked: the diffusion finds out on its own.
    pub fn train(&self, classes: &[WeightedClass], background: &Features) -> Result<DiffusionClassifier> {
        self.checked()?;
        let pools: Vec<&Features> = classes.iter().map(WeightedClass::noisy).collect();
        let clean: Vec<&Features> = classes.iter().map(WeightedClass::clean).collect();
        let collection = Collection::new(&pools, background, self.neighbours)?;
        let mut spread = self.start(&collection, &clean)?;
        for _ in 0..self.iterations {
            spread.step();
        }
        Ok(spread.into_classifier())
    }

    /// The state before the first step, with the clean examples of each class joined to the collection.
    pub fn start<'a>(&self, collection: &'a Collection, clean: &[&Features]) -> Result<Spread<'a>> {
        self.checked()?;
        if collection.graph().count() != self.neighbours {
            let found = collection.graph().count().to_string();
            return Err(Error::Setting { name: "neighbours", expected: "those of the collection", found });
        }
        let mut seeds = Features::empty(collection.rows().dim());
        let mut labels = Vec::new();
        for (class, clean) in clean.iter().enumerate() {
            collection.rows().check_width("the clean set", clean, "the collection")?;
            clean.rows().for_each(|row| seeds.push(row));
            labels.extend(std::iter::repeat_n(vec![(class as u32, 1.0)], clean.len()));
        }
        let walk = Walk::new(&collection.graph().insert(&seeds, collection.rows()));
        labels.resize(seeds.len() + collection.rows().len(), Vec::new());
        Ok(Spread {
            settings: *self,
            collection,
            n_seeds: seeds.len(),
            rows: seeds.stack(collection.rows())?,
            walk,
            labels: Labels::from_rows(labels, clean.len()),
        })
    }
}

/// A diffusion under way.
pub struct Spread<'a> {
    settings: Diffusion,
    collection: &'a Collection,
    n_seeds: usize,
    /// Clean examples, then the collection.
    rows: Features,
    walk: Walk,
    labels: Labels,
}

impl Spread<'_> {
    /// One step.
    pub fn step(&mut self) {
        let allowed = |row: usize| {
            let row = row.checked_sub(self.n_seeds)?;
            let classes = self.collection.candidate_of(row);
            (self.settings.text == TextRule::Kept && !classes.is_empty()).then_some(classes)
        };
        self.labels = self.walk.step(&self.labels, self.settings.keep, allowed);
    }

    /// Where in the graph examples from outside are; it serves every step.
    pub fn reach(&self, examples: &Features) -> Reach {
        Reach::new(&self.rows, examples, self.settings.neighbours)
    }

    /// The scores of examples after the steps so far.
    pub fn scores(&self, reach: &Reach) -> Scores {
        scores(&self.labels, reach)
    }

    /// What the steps so far have come to.
    pub fn into_classifier(self) -> DiffusionClassifier {
        DiffusionClassifier { rows: self.rows, labels: self.labels, neighbours: self.settings.neighbours }
    }
}

/// The nearest graph rows of some examples, as many for each.
pub struct Reach {
    width: usize,
    rows: Vec<u32>,
}

impl Reach {
    fn new(graph: &Features, examples: &Features, count: usize) -> Reach {
        Reach { width: count.min(graph.len()), rows: nearest_to(graph, examples, count) }
    }
}

/// Rows and the labels that arrived there: an example has the labels of its nearest rows.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffusionClassifier {
    rows: Features,
    labels: Labels,
    neighbours: usize,
}

/// The labels of a [`DiffusionClassifier`], row after row: `offsets` says where the entries of each row begin and, one more than there
/// are rows, where the last one's end.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseLabels {
    /// Number of classes.
    pub n_classes: usize,
    /// Where rows begin.
    pub offsets: Vec<usize>,
    /// Class of each entry, ascending in a row.
    pub classes: Vec<u32>,
    /// How much the row holds of the label.
    pub masses: Vec<f32>,
}

impl DiffusionClassifier {
    /// From rows and labels that were kept; refuses what does not fit together.
    pub fn new(rows: Features, labels: SparseLabels, neighbours: usize) -> Result<DiffusionClassifier> {
        let SparseLabels { n_classes, offsets, classes, masses } = labels;
        check(neighbours >= 1, "neighbours", "at least 1", neighbours)?;
        let lengths = [
            ("offsets of labels", rows.len() + 1, offsets.len()),
            ("classes of labels", offsets.last().copied().unwrap_or(0), classes.len()),
            ("masses of labels", classes.len(), masses.len()),
        ];
        for (what, expected, found) in lengths {
            if expected != found {
                return Err(Error::Length { what, expected, found });
            }
        }
        check(offsets[0] == 0 && offsets.is_sorted(), "offsets of labels", "ascending from 0", "others")?;
        if let Some(class) = classes.iter().find(|&&class| class as usize >= n_classes) {
            check(false, "class of a label", "a class of the classifier", class)?;
        }
        let sound = |mass: &&f32| !(mass.is_finite() && **mass >= 0.0);
        if let Some(mass) = masses.iter().find(sound) {
            check(false, "mass of a label", "a non-negative number", mass)?;
        }
        let labels = Labels::from_parts(n_classes, offsets, classes, masses);
        Ok(DiffusionClassifier { rows, labels, neighbours })
    }

    /// The rows of the graph.
    pub fn rows(&self) -> &Features {
        &self.rows
    }

    /// What arrived at them.
    pub fn labels(&self) -> SparseLabels {
        let (offsets, classes, masses) = self.labels.parts();
        SparseLabels {
            n_classes: self.labels.n_classes,
            offsets: offsets.to_vec(),
            classes: classes.to_vec(),
            masses: masses.to_vec(),
        }
    }

    /// Rows that an example's labels come from.
    pub fn neighbours(&self) -> usize {
        self.neighbours
    }
}

impl Classifier for DiffusionClassifier {
    fn n_classes(&self) -> usize {
        self.labels.n_classes
    }

    fn scores(&self, features: &Features) -> Scores {
        scores(&self.labels, &Reach::new(&self.rows, features, self.neighbours))
    }
}

/// Σ over the nearest rows of their labels, scaled to a distribution; all zero where none of them holds any.
fn scores(labels: &Labels, reach: &Reach) -> Scores {
    let n_classes = labels.n_classes;
    let n = reach.rows.len().checked_div(reach.width).unwrap_or(0);
    let mut values = vec![0f32; n * n_classes];
    for (rows, values) in
        reach.rows.chunks_exact(reach.width.max(1)).zip(values.chunks_exact_mut(n_classes.max(1)))
    {
        for &row in rows {
            let (classes, masses) = labels.of(row as usize);
            classes.iter().zip(masses).for_each(|(&class, mass)| values[class as usize] += mass);
        }
        let total: f32 = values.iter().sum();
        if total > 0.0 {
            values.iter_mut().for_each(|value| *value /= total);
        }
    }
    Scores { values, n_classes }
}

#[cfg(test)]
mod tests;
