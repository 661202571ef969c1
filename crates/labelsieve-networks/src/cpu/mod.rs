//! Convolutional networks on the CPU.
//!
//! ```text
//! walk.rs: the nodes of a network ─┬─► convolution.rs ──► tile.rs
//!                                  ├─► depthwise.rs ────► depthwise_row.rs      filter.rs: the interface of both
//!                                  └─► normalise.rs, pool.rs
//! ```
//!
//! Activations are [`tensor::Tensor`]s with a border of zeros. Kernels are written once, on the vectors of `lanes.rs`.

mod convolution;
mod depthwise;
mod depthwise_row;
mod filter;
pub(crate) mod lanes;
mod normalise;
pub(crate) mod numbers;
mod pool;
mod tensor;
mod tile;
mod walk;

use std::ops::Range;

use filter::Filter;
use labelsieve_numerics::level::Level;
use walk::Walker;

use crate::cosine::cosine_loss_at;
use crate::embedder::Embedder;
use crate::error::{Error, Result};
use crate::learner::{
    Batch, FeatureObjective, Learner, Learners, ScaleRule, Sgd, Snapshot, Tally, Targets, check_no_classifier,
};
use crate::network::{Network, Parameter, Role};

/// Makes learners on the CPU, with the threads of the current rayon pool.
pub struct CpuLearners;

impl Learners for CpuLearners {
    fn learner(&self, network: &Network, snapshot: &Snapshot) -> Result<Box<dyn Learner>> {
        Ok(Box::new(CpuLearner::new(Level::current(), network, snapshot)?))
    }
}

/// A network in this machine's memory.
struct CpuLearner {
    level: Level,
    network: Network,
    n_classes: usize,
    tensors: Vec<(Parameter, Range<usize>)>,
    walker: Walker,
    /// Numbers of all tensors, one after the other; convolutions packed as their sweeps read them.
    values: Vec<f32>,
    momentum: Vec<f32>,
    tally: Tally,
}

impl CpuLearner {
    fn new(level: Level, network: &Network, snapshot: &Snapshot) -> Result<CpuLearner> {
        let tensors = snapshot.tensors(network)?;
        let walker = Walker::new(level, network, &tensors);
        let mut learner = CpuLearner {
            level,
            network: network.clone(),
            n_classes: snapshot.n_classes,
            values: snapshot.values.clone(),
            momentum: snapshot.momentum.clone(),
            tally: Tally::default(),
            tensors,
            walker,
        };
        learner.repack(|convolution, weights| convolution.pack(weights));
        Ok(learner)
    }

    /// Changes the layout of all convolutions' weights.
    fn repack(&mut self, change: impl Fn(&dyn Filter, &[f32]) -> Vec<f32>) {
        for (parameter, range) in &self.tensors {
            if let (Role::Convolution | Role::Depthwise, Some(node)) = (parameter.role, parameter.node) {
                let convolution = self.walker.convolution(node);
                for numbers in [&mut self.values, &mut self.momentum] {
                    let changed = change(convolution, &numbers[range.clone()]);
                    numbers[range.clone()].copy_from_slice(&changed);
                }
            }
        }
    }

    /// Images per forward pass: as many as fit in a typical last-level cache, and enough for all threads.
    fn images_at_once(&self) -> usize {
        const CACHE: usize = 16 << 20;
        let largest = self.network.nodes().iter().map(|node| node.shape.len()).max().unwrap_or(1);
        (CACHE / (size_of::<f32>() * largest.max(1))).max(2 * rayon::current_num_threads())
    }

    /// Updates all parameters by their gradients and drops what the forward pass kept.
    fn descend(&mut self, gradient: &[f32], sgd: &Sgd) {
        for (parameter, range) in &self.tensors {
            let decay = match (parameter.role, sgd.scale) {
                (Role::ClassScale, ScaleRule::Fixed) | (Role::RunningMean | Role::RunningVariance, _) => {
                    continue;
                }
                (Role::ClassScale, ScaleRule::Learned) => 0.0,
                _ => sgd.decay,
            };
            let range = range.clone();
            sgd.update(
                decay,
                &gradient[range.clone()],
                &mut self.momentum[range.clone()],
                &mut self.values[range],
            );
        }
        self.walker.forget();
    }

    /// The range of the classifier's tensor with this role.
    fn classifier(&self, role: Role) -> Result<Range<usize>> {
        let tensor = self.tensors.iter().find(|(parameter, _)| parameter.role == role);
        tensor.map(|(_, range)| range.clone()).ok_or_else(|| Error::Shape {
            what: "classifier".to_owned(),
            expected: "at least one class".to_owned(),
            found: "a network alone".to_owned(),
        })
    }
}

impl Embedder for CpuLearner {
    fn dim(&self) -> usize {
        self.network.dim()
    }

    fn features(&mut self, images: &Batch) -> Result<Vec<f32>> {
        images.check(&self.network)?;
        // A few images at a time, so that activations stay in the cache. Features do not depend on it.
        let (height, width) = images.size();
        let mut features = Vec::with_capacity(images.len() * self.network.dim());
        for pixels in images.pixels().chunks(self.images_at_once() * height * width * 3) {
            let some = Batch::new(height, width, pixels.to_vec())?;
            features.extend(self.walker.features(&some, &self.values));
        }
        Ok(features)
    }
}

impl Learner for CpuLearner {
    fn step(&mut self, images: &Batch, targets: Targets, sgd: &Sgd) -> Result<()> {
        images.check(&self.network)?;
        targets.check(images.len(), self.n_classes)?;
        if images.is_empty() {
            return Ok(());
        }
        let weights = self.classifier(Role::ClassWeights)?;
        let scale = self.classifier(Role::ClassScale)?;
        let features = self.walker.forward(images, &mut self.values);
        let loss = cosine_loss_at(
            self.level,
            &features,
            &self.values[weights.clone()],
            self.values[scale.start],
            self.network.dim(),
            targets,
        );
        let mut gradient = self.walker.backward(&loss.by_features, &self.values);
        gradient[weights].copy_from_slice(&loss.by_weights);
        gradient[scale.start] = loss.by_scale;
        self.descend(&gradient, sgd);
        self.tally.loss += loss.loss;
        self.tally.correct += loss.correct;
        self.tally.images += images.len() as u64;
        self.tally.steps += 1;
        Ok(())
    }

    fn step_on_features(
        &mut self,
        images: &Batch,
        objective: &dyn FeatureObjective,
        sgd: &Sgd,
    ) -> Result<()> {
        images.check(&self.network)?;
        check_no_classifier(self.n_classes)?;
        if images.is_empty() {
            return Ok(());
        }
        let features = self.walker.forward(images, &mut self.values);
        let loss = objective.loss(&features, self.network.dim())?;
        let gradient = self.walker.backward(&loss.by_features, &self.values);
        self.descend(&gradient, sgd);
        self.tally.loss += loss.loss;
        self.tally.correct += loss.correct;
        self.tally.images += loss.counted;
        self.tally.steps += 1;
        Ok(())
    }

    fn tally(&mut self) -> Result<Tally> {
        Ok(std::mem::take(&mut self.tally))
    }

    fn snapshot(&mut self) -> Result<Snapshot> {
        self.repack(|convolution, packed| convolution.unpack(packed));
        let snapshot = Snapshot {
            n_classes: self.n_classes,
            values: self.values.clone(),
            momentum: self.momentum.clone(),
        };
        self.repack(|convolution, weights| convolution.pack(weights));
        Ok(snapshot)
    }
}
