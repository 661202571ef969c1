//! Classifiers of novel classes by a system that has learned from episodes.

use labelsieve::classifier::WeightedClass;
use labelsieve::{Classifier, Error, Features, Result, Scores, check};
use labelsieve_numerics::kernels::add_scaled;
use labelsieve_numerics::random::Stream;
use rayon::prelude::*;

use super::network::{Learning, Network};
use super::tape::Tape;
use super::{EpisodicModel, EpisodicSizes};
use crate::classifier::{LinearClassifier, Logistic};

/// Rows that go through the network at once.
const CHUNK: usize = 256;

/// A system with the vectors of its classes.
#[derive(Clone, Debug, PartialEq)]
pub struct EpisodicClassifier {
    model: EpisodicModel,
    /// g_c, K×d.
    classes: Vec<f32>,
}

impl EpisodicModel {
    /// Classes from their examples, which count by relevance, and from hallucinations that start at their clean examples.
    pub fn classifier(&self, classes: &[WeightedClass], seed: u64) -> Result<EpisodicClassifier> {
        let dim = self.sizes.dim;
        self.check_width(classes)?;
        let hallucinated = self.hallucinations(classes, seed)?;
        let means: Vec<Vec<f32>> =
            (0..classes.len()).into_par_iter().map(|c| self.mean(&classes[c], hallucinated.get(c))).collect();
        let mut tape = Tape::default();
        let network = Network::new(&mut tape, self, Learning::No);
        let means = tape.constant(means.concat(), dim);
        let prototypes = tape.unit(means);
        let in_context = network.in_context(&mut tape, prototypes);
        let vectors = tape.values(in_context).to_vec();
        EpisodicClassifier::new(self.clone(), vectors)
    }

    /// Logistic regression on examples and hallucinations; a hallucination has the weight of a clean example.
    pub fn logistic(
        &self,
        settings: &Logistic,
        classes: &[WeightedClass],
        seed: u64,
    ) -> Result<LinearClassifier> {
        self.check_width(classes)?;
        let hallucinated = self.hallucinations(classes, seed)?;
        check(
            !hallucinated.is_empty() || classes.is_empty(),
            "hallucinations",
            "a system that makes some",
            "none",
        )?;
        let joined =
            classes.iter().zip(&hallucinated).map(|(class, hallucinated)| class.clean().stack(hallucinated));
        let joined = joined.collect::<Result<Vec<_>>>()?;
        let classes = classes.iter().zip(&joined);
        let classes = classes.map(|(class, all)| WeightedClass::new(all, class.noisy(), class.relevance()));
        settings.train(&classes.collect::<Result<Vec<_>>>()?, self.sizes.dim)
    }

    /// Hallucinations of each class, from each of its clean examples in turn; empty for a system without a hallucinator.
    pub fn hallucinations(&self, classes: &[WeightedClass], seed: u64) -> Result<Vec<Features>> {
        let EpisodicSizes { dim, noise, generated, .. } = self.sizes;
        if !self.kind.hallucinates() {
            return Ok(Vec::new());
        }
        let of_class = |(c, class): (usize, &WeightedClass)| {
            let stream = Stream::new(seed).branch(c as u64);
            let clean = class.clean();
            let seeds =
                (0..generated).flat_map(|i| clean.row(i % clean.len())).copied().collect::<Vec<f32>>();
            let drawn: Vec<f32> = (0..generated * noise).map(|i| stream.normal(i as u64)).collect();
            let mut tape = Tape::default();
            let network = Network::new(&mut tape, self, Learning::No);
            let seeds = tape.constant(seeds, dim);
            let drawn = tape.constant(drawn, noise);
            let hallucinated = network.hallucinate(&mut tape, seeds, drawn);
            Features::new(tape.values(hallucinated).to_vec(), dim)
        };
        classes.par_iter().enumerate().map(of_class).collect()
    }

    fn check_width(&self, classes: &[WeightedClass]) -> Result<()> {
        let wrong = classes.iter().map(|class| class.clean().dim()).find(|&dim| dim != self.sizes.dim);
        match wrong {
            None => Ok(()),
            Some(found) => Err(Error::Width {
                what: "the clean set",
                found,
                reference: "the network",
                expected: self.sizes.dim,
            }),
        }
    }

    /// The weighted mean of φ over a class's examples and hallucinations.
    fn mean(&self, class: &WeightedClass, hallucinated: Option<&Features>) -> Vec<f32> {
        let dim = self.sizes.dim;
        let hallucinated = hallucinated.into_iter().flat_map(|rows| rows.rows().map(|row| (row, 1.0)));
        let all: Vec<(&[f32], f32)> =
            class.examples().chain(hallucinated).filter(|(_, weight)| *weight > 0.0).collect();
        let total: f64 = all.iter().map(|(_, weight)| f64::from(*weight)).sum();
        let mut mean = vec![0f32; dim];
        for some in all.chunks(CHUNK) {
            let mut tape = Tape::default();
            let network = Network::new(&mut tape, self, Learning::No);
            let rows = some.iter().flat_map(|(row, _)| row.iter().copied()).collect::<Vec<f32>>();
            let rows = tape.constant(rows, dim);
            let embedded = network.embed(&mut tape, rows);
            for (row, (_, weight)) in tape.values(embedded).chunks_exact(dim).zip(some) {
                add_scaled(&mut mean, (f64::from(*weight) / total) as f32, row);
            }
        }
        mean
    }
}

impl EpisodicClassifier {
    /// A system and the vectors of its classes, K×d; rejects other widths and non-finite numbers.
    pub fn new(model: EpisodicModel, classes: Vec<f32>) -> Result<EpisodicClassifier> {
        let dim = model.sizes.dim;
        if !classes.len().is_multiple_of(dim) {
            let expected = classes.len().next_multiple_of(dim);
            return Err(Error::Length { what: "vectors of classes", expected, found: classes.len() });
        }
        check(classes.iter().all(|v| v.is_finite()), "vectors of classes", "finite numbers", "others")?;
        Ok(EpisodicClassifier { model, classes })
    }

    /// The system.
    pub fn model(&self) -> &EpisodicModel {
        &self.model
    }

    /// The vectors of the classes, K×d.
    pub fn classes(&self) -> &[f32] {
        &self.classes
    }
}

impl Classifier for EpisodicClassifier {
    fn n_classes(&self) -> usize {
        self.classes.len() / self.model.sizes.dim
    }

    fn scores(&self, features: &Features) -> Scores {
        let dim = self.model.sizes.dim;
        let k = self.n_classes();
        let mut values = vec![0f32; features.len() * k];
        if k > 0 {
            values.par_chunks_mut(CHUNK * k).enumerate().for_each(|(chunk, values)| {
                let start = chunk * CHUNK;
                let mut tape = Tape::default();
                let network = Network::new(&mut tape, &self.model, Learning::No);
                let queries = tape.constant(features.block(start..start + values.len() / k), dim);
                let classes = tape.constant(&self.classes[..], dim);
                let scores = network.scores(&mut tape, queries, classes);
                values.copy_from_slice(tape.values(scores));
            });
        }
        Scores { values, n_classes: k }
    }
}
