//! Label propagation over one graph of all rows: the diffusion of Douze, Szlam, Hariharan and Jégou, *Low-shot learning
//! with large-scale diffusion*, CVPR 2018.
//!
//! The methods of `labelsieve` build a small graph per class, of its clean examples and candidates. This one builds a single graph of
//! all rows, over which the labels of all classes spread simultaneously. `collection` holds the unlabelled rows with their graph, `walk`
//! is one step, `fusion` combines the result with logistic regression.

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

/// Settings of the diffusion.
///
/// ```text
/// L₀: 1 for the clean examples of each class, its column scaled to the sum 1
/// L ← W L, then columns are scaled to the sum 1 again;   W = D⁻¹(W₀ + W₀ᵀ)
/// score of class c for x: Σ over the nearest rows i of x of L_ic
/// ```
///
/// W₀: 1 where a row is among the `neighbours` nearest of another; D: row sums. The number of iterations is the only important setting and
/// chosen on validation classes: after many iterations all rows hold the same labels.
///
/// Decisions: neighbours are exact, by cosine; edges weigh 1, as in the published code; clean examples are not reset
/// after a step, nor are test examples part of the graph. Rows keep their
/// `keep` largest labels, i.e. all labels if there are at most `keep` classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Diffusion {
    /// Neighbours of each row, and of each test example.
    pub neighbours: usize,
    /// Steps of the diffusion.
    pub iterations: usize,
    /// Number of labels that a row keeps, the largest ones.
    pub keep: usize,
    /// Whether candidates are restricted to the classes whose names they matched.
    pub text: TextRule,
}

/// Whether candidates are restricted to labels of the classes whose names they matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextRule {
    /// Any row may hold any label, as in the paper of the diffusion.
    Ignored,
    /// A candidate holds only labels of the classes whose names it matched; background rows hold any.
    Kept,
}

impl Default for Diffusion {
    fn default() -> Diffusion {
        Diffusion { neighbours: 30, iterations: 3, keep: 32, text: TextRule::Ignored }
    }
}

/// Far more steps than validation ever chooses.
const MAX_ITERATIONS: usize = 1000;

impl Diffusion {
    /// Rejects settings outside their range.
    pub fn checked(&self) -> Result<()> {
        check(self.neighbours >= 1, "neighbours", "at least 1", self.neighbours)?;
        check(self.iterations <= MAX_ITERATIONS, "iterations", "at most 1000", self.iterations)?;
        check(self.keep >= 1, "keep", "at least 1", self.keep)
    }

    /// Spreads the labels of the clean examples over the candidates of all classes and the background. The relevance
    /// of candidates is not used.
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
    pub fn start<'a>(&self, collection: &'a Collection, clean: &[&Features]) -> Result<DiffusionState<'a>> {
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
        Ok(DiffusionState {
            settings: *self,
            collection,
            n_seeds: seeds.len(),
            rows: seeds.stack(collection.rows())?,
            walk,
            labels: Labels::from_rows(labels, clean.len()),
        })
    }
}

/// The state of a diffusion between steps.
pub struct DiffusionState<'a> {
    settings: Diffusion,
    collection: &'a Collection,
    n_seeds: usize,
    /// Clean examples, then the collection.
    rows: Features,
    walk: Walk,
    labels: Labels,
}

impl DiffusionState<'_> {
    /// Takes one step.
    pub fn step(&mut self) {
        let allowed = |row: usize| {
            let row = row.checked_sub(self.n_seeds)?;
            let classes = self.collection.candidate_of(row);
            (self.settings.text == TextRule::Kept && !classes.is_empty()).then_some(classes)
        };
        self.labels = self.walk.step(&self.labels, self.settings.keep, allowed);
    }

    /// The nearest rows of examples that are not in the graph; they do not change between steps.
    pub fn reach(&self, examples: &Features) -> NearestRows {
        NearestRows::new(&self.rows, examples, self.settings.neighbours)
    }

    /// The scores of examples after the steps so far.
    pub fn scores(&self, reach: &NearestRows) -> Scores {
        scores(&self.labels, reach)
    }

    /// The classifier after the steps so far.
    pub fn into_classifier(self) -> DiffusionClassifier {
        DiffusionClassifier { rows: self.rows, labels: self.labels, neighbours: self.settings.neighbours }
    }
}

/// The nearest graph rows of some examples, as many for each.
pub struct NearestRows {
    width: usize,
    rows: Vec<u32>,
}

impl NearestRows {
    fn new(graph: &Features, examples: &Features, count: usize) -> NearestRows {
        NearestRows { width: count.min(graph.len()), rows: nearest_to(graph, examples, count) }
    }
}

/// Rows and their labels: an example has the labels of its nearest rows.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffusionClassifier {
    rows: Features,
    labels: Labels,
    neighbours: usize,
}

/// The labels of a [`DiffusionClassifier`], row after row: `offsets` holds the start of the entries of each row, and the end
/// of the last.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseLabels {
    /// Number of classes.
    pub n_classes: usize,
    /// Start of the entries of each row, and the end of the last.
    pub offsets: Vec<usize>,
    /// Class of each entry, ascending in a row.
    pub classes: Vec<u32>,
    /// Mass of the label in the row.
    pub masses: Vec<f32>,
}

impl DiffusionClassifier {
    /// A classifier from saved rows and labels; rejects parts that do not fit together.
    pub fn new(rows: Features, labels: SparseLabels, neighbours: usize) -> Result<DiffusionClassifier> {
        let SparseLabels { n_classes, offsets, classes, masses } = labels;
        check(neighbours >= 1, "neighbours", "at least 1", neighbours)?;
        let lengths = [
            ("offsets of labels", rows.len() + 1, offsets.len()),
            ("classes of labels", offsets.last().copied().unwrap_or(0), classes.len()),
            ("masses of labels", classes.len(), masses.len()),
        ];
        for (name, expected, found) in lengths {
            if expected != found {
                return Err(Error::Length { what: name, expected, found });
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

    /// The labels of the rows.
    pub fn labels(&self) -> SparseLabels {
        let (offsets, classes, masses) = self.labels.parts();
        SparseLabels {
            n_classes: self.labels.n_classes,
            offsets: offsets.to_vec(),
            classes: classes.to_vec(),
            masses: masses.to_vec(),
        }
    }

    /// The number of rows that an example takes its labels from.
    pub fn neighbours(&self) -> usize {
        self.neighbours
    }
}

impl Classifier for DiffusionClassifier {
    fn n_classes(&self) -> usize {
        self.labels.n_classes
    }

    fn scores(&self, features: &Features) -> Scores {
        scores(&self.labels, &NearestRows::new(&self.rows, features, self.neighbours))
    }
}

/// Σ over the nearest rows of their labels, scaled to a distribution; all zero if they hold none.
fn scores(labels: &Labels, reach: &NearestRows) -> Scores {
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
