//! The CPU as fallback of a device that was found automatically: work it fails at moves to the CPU, with a notice.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use labelsieve::classifier::{Cosine, WeightMatrix, WeightedClass};
use labelsieve::engine::{Cpu, Engine, Job};
use labelsieve::graph::{Neighbours, NoisyGraph};
use labelsieve::{Error, Features, Method, Relevance, Result};
use labelsieve_networks::{
    Batch, Embedder, Error as VisionError, FeatureObjective, Learner, Learners, Network, Sgd, Snapshot,
    Tally, Targets,
};

use crate::cuda::Cuda;

/// Reports why work moves to the CPU, each reason once.
#[derive(Clone)]
pub(crate) struct Notices {
    tell: Arc<dyn Fn(&str) + Send + Sync>,
    reported: Arc<Mutex<HashSet<String>>>,
}

impl Notices {
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Notices {
        Notices { tell: Arc::new(tell), reported: Arc::default() }
    }

    /// `reason`: the problem; `what`: the work that moves to the CPU.
    pub fn moved(&self, reason: &str, what: &str) {
        let notice = format!("{reason}; {what} on the CPU instead");
        if self.reported.lock().unwrap_or_else(PoisonError::into_inner).insert(notice.clone()) {
            (self.tell)(&notice);
        }
    }
}

/// An engine, with the CPU for the work it fails at.
pub struct Fallback<E> {
    first: E,
    notices: Notices,
}

impl<E: Engine> Fallback<E> {
    pub(crate) fn new(first: E, notices: Notices) -> Fallback<E> {
        Fallback { first, notices }
    }

    /// The preferred engine.
    pub fn first(&self) -> &E {
        &self.first
    }

    pub(crate) fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Reports why `what` moves to the CPU, each reason once.
    pub fn moved(&self, reason: &str, what: &str) {
        self.notices.moved(reason, what);
    }

    /// Runs the work on the CPU if the engine itself has failed; errors of the method remain errors.
    fn or_on_cpu<T>(&self, result: Result<T>, what: &str, on_cpu: impl FnOnce() -> Result<T>) -> Result<T> {
        match result {
            Err(Error::Engine(reason)) => {
                self.notices.moved(&reason, what);
                on_cpu()
            }
            result => result,
        }
    }
}

impl Fallback<Cuda> {
    /// The `count` nearest other rows of each row: exactly [`Neighbours::exact`].
    pub fn neighbours(&self, features: &Features, count: usize) -> Result<Neighbours> {
        let found = self.first.neighbours(features, count).map_err(Error::from);
        self.or_on_cpu(found, "searching", || Ok(Neighbours::exact(features, count)))
    }
}

impl<E: Engine> Engine for Fallback<E> {
    fn scores_in_parts(&self) -> bool {
        self.first.scores_in_parts()
    }

    fn noisy_graph(&self, noisy: &Features, count: usize) -> Result<NoisyGraph> {
        let graph = self.first.noisy_graph(noisy, count);
        self.or_on_cpu(graph, "making graphs", || Cpu.noisy_graph(noisy, count))
    }

    /// Results from before a failure are kept, and no result is reported twice.
    fn relevance(
        &self,
        method: &Method,
        jobs: &[Job],
        finished: &(dyn Fn(usize, &Relevance) + Sync),
    ) -> Result<Vec<Relevance>> {
        let kept: Mutex<Vec<Option<Relevance>>> = Mutex::new(vec![None; jobs.len()]);
        let keep = |job: usize, relevance: &Relevance| {
            kept.lock().unwrap_or_else(PoisonError::into_inner)[job] = Some(relevance.clone());
            finished(job, relevance);
        };
        let reason = match self.first.relevance(method, jobs, &keep) {
            Err(Error::Engine(reason)) => reason,
            result => return result,
        };
        let mut kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        let open: Vec<usize> = (0..jobs.len()).filter(|&job| kept[job].is_none()).collect();
        let classes = if open.len() == 1 { "class" } else { "classes" };
        self.notices.moved(&reason, &format!("scoring {} {classes}", open.len()));
        let rest: Vec<Job> = open.iter().map(|&job| jobs[job]).collect();
        let scored = Cpu.relevance(method, &rest, &|i, relevance| finished(open[i], relevance))?;
        open.into_iter().zip(scored).for_each(|(job, relevance)| kept[job] = Some(relevance));
        Ok(kept.into_iter().flatten().collect())
    }

    fn prototypes(&self, classes: &[WeightedClass], dim: usize, scale: f32) -> Result<WeightMatrix> {
        let made = self.first.prototypes(classes, dim, scale);
        self.or_on_cpu(made, "making prototypes", || Cpu.prototypes(classes, dim, scale))
    }

    fn cosine(
        &self,
        settings: &Cosine,
        classes: &[WeightedClass],
        dim: usize,
        seed: u64,
    ) -> Result<WeightMatrix> {
        let learned = self.first.cosine(settings, classes, dim, seed);
        self.or_on_cpu(learned, "learning", || Cpu.cosine(settings, classes, dim, seed))
    }
}

/// As [`Fallback`], for networks.
pub(crate) struct FallbackLearners<N> {
    pub first: N,
    pub notices: Notices,
}

impl<N: Learners> Learners for FallbackLearners<N> {
    fn learner(
        &self,
        network: &Network,
        snapshot: &Snapshot,
    ) -> labelsieve_networks::Result<Box<dyn Learner>> {
        match self.first.learner(network, snapshot) {
            Ok(current) => Ok(Box::new(FallbackLearner {
                network: network.clone(),
                current,
                location: Location::Device { start: Some(snapshot.clone()) },
                before: Tally::default(),
                notices: self.notices.clone(),
            })),
            Err(VisionError::Device(reason)) => {
                self.notices.moved(&reason, "running the network");
                labelsieve_networks::CpuLearners.learner(network, snapshot)
            }
            Err(error) => Err(error),
        }
    }
}

/// A network that moves to the CPU, with all it has learned, when its device fails.
struct FallbackLearner {
    network: Network,
    current: Box<dyn Learner>,
    location: Location,
    /// The totals of the steps on the device, from the move to the next [`Learner::tally`].
    before: Tally,
    notices: Notices,
}

/// The location of a network.
enum Location {
    /// The initial snapshot is kept until the first step, since a failed device may no longer return it.
    Device {
        start: Option<Snapshot>,
    },
    Processor,
}

impl FallbackLearner {
    /// Tries once, and once more on the CPU if the device has failed.
    fn either<T>(
        &mut self,
        work: impl Fn(&mut dyn Learner) -> labelsieve_networks::Result<T>,
    ) -> labelsieve_networks::Result<T> {
        match (work(self.current.as_mut()), &self.location) {
            (Err(VisionError::Device(reason)), Location::Device { .. }) => {
                self.move_to_cpu(&reason)?;
                work(self.current.as_mut())
            }
            (result, _) => result,
        }
    }

    fn move_to_cpu(&mut self, reason: &str) -> labelsieve_networks::Result<()> {
        // If the device cannot return its parameters, the training ends with the first error.
        let lost = |_| VisionError::Device(reason.to_owned());
        let Location::Device { start } = std::mem::replace(&mut self.location, Location::Processor) else {
            return Ok(());
        };
        let snapshot = match start {
            Some(start) => start,
            None => {
                self.before = self.current.tally().map_err(lost)?;
                self.current.snapshot().map_err(lost)?
            }
        };
        self.notices.moved(reason, "running the network");
        self.current = labelsieve_networks::CpuLearners.learner(&self.network, &snapshot)?;
        Ok(())
    }
}

impl Embedder for FallbackLearner {
    fn dim(&self) -> usize {
        self.current.dim()
    }

    fn features(&mut self, images: &Batch) -> labelsieve_networks::Result<Vec<f32>> {
        self.either(|learner| learner.features(images))
    }
}

impl Learner for FallbackLearner {
    fn step(&mut self, images: &Batch, targets: Targets, sgd: &Sgd) -> labelsieve_networks::Result<()> {
        self.either(|learner| learner.step(images, targets, sgd))?;
        if let Location::Device { start } = &mut self.location {
            *start = None;
        }
        Ok(())
    }

    fn step_on_features(
        &mut self,
        images: &Batch,
        objective: &dyn FeatureObjective,
        sgd: &Sgd,
    ) -> labelsieve_networks::Result<()> {
        self.either(|learner| learner.step_on_features(images, objective, sgd))?;
        if let Location::Device { start } = &mut self.location {
            *start = None;
        }
        Ok(())
    }

    fn tally(&mut self) -> labelsieve_networks::Result<Tally> {
        let before = std::mem::take(&mut self.before);
        let since = self.current.tally()?;
        Ok(Tally {
            loss: before.loss + since.loss,
            correct: before.correct + since.correct,
            images: before.images + since.images,
            steps: before.steps + since.steps,
        })
    }

    fn snapshot(&mut self) -> labelsieve_networks::Result<Snapshot> {
        self.current.snapshot()
    }
}

/// A network for features alone: on a device, and opened again on the CPU if the device fails.
pub struct FallbackEmbedder<R> {
    current: Box<dyn Embedder>,
    /// Opens it on the CPU; none once that has happened.
    on_cpu: Option<R>,
    notices: Notices,
}

impl<R> FallbackEmbedder<R>
where
    R: FnOnce() -> labelsieve_networks::Result<Box<dyn Embedder>> + Send,
{
    /// A network on the device of `found`, and a function that opens it on the CPU.
    pub fn new<E>(current: Box<dyn Embedder>, on_cpu: R, found: &Fallback<E>) -> FallbackEmbedder<R> {
        FallbackEmbedder { current, on_cpu: Some(on_cpu), notices: found.notices.clone() }
    }
}

impl<R> Embedder for FallbackEmbedder<R>
where
    R: FnOnce() -> labelsieve_networks::Result<Box<dyn Embedder>> + Send,
{
    fn dim(&self) -> usize {
        self.current.dim()
    }

    fn features(&mut self, images: &Batch) -> labelsieve_networks::Result<Vec<f32>> {
        match (self.current.features(images), self.on_cpu.take()) {
            (Err(VisionError::Device(reason)), Some(on_cpu)) => {
                self.notices.moved(&reason, "running the network");
                self.current = on_cpu()?;
                self.current.features(images)
            }
            (result, on_cpu) => {
                self.on_cpu = on_cpu;
                result
            }
        }
    }
}

#[cfg(test)]
mod tests;
