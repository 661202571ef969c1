//! A device that was found and not asked for: what it cannot do is done on the CPU, with a notice.

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

/// Passes on why work moves to the CPU, each reason once.
#[derive(Clone)]
pub(crate) struct Notices {
    tell: Arc<dyn Fn(&str) + Send + Sync>,
    told: Arc<Mutex<HashSet<String>>>,
}

impl Notices {
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Notices {
        Notices { tell: Arc::new(tell), told: Arc::default() }
    }

    /// `reason`: what is wrong; `what`: what the CPU does instead.
    pub fn moved(&self, reason: &str, what: &str) {
        let notice = format!("{reason}; {what} on the CPU instead");
        if self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(notice.clone()) {
            (self.tell)(&notice);
        }
    }
}

/// An engine, and the CPU for what the engine fails at.
pub struct Fallback<E> {
    first: E,
    notices: Notices,
}

impl<E: Engine> Fallback<E> {
    pub(crate) fn new(first: E, notices: Notices) -> Fallback<E> {
        Fallback { first, notices }
    }

    /// What is asked first.
    pub fn first(&self) -> &E {
        &self.first
    }

    pub(crate) fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Tells why work moves to the CPU, each reason once. `what`: what the CPU does instead.
    pub fn moved(&self, reason: &str, what: &str) {
        self.notices.moved(reason, what);
    }

    /// Does it on the CPU if the engine itself has failed; what the method refuses stays refused.
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

    /// What the engine had finished when it failed is kept, and no result is reported twice.
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

/// The same for networks.
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
                place: Place::Device { start: Some(snapshot.clone()) },
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
    place: Place,
    /// What the steps on the device added up to, from the move to the next [`Learner::tally`].
    before: Tally,
    notices: Notices,
}

/// Where a network is.
enum Place {
    /// Where it started from is kept until the first step changes it: a device that has failed may not answer any more.
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
        match (work(self.current.as_mut()), &self.place) {
            (Err(VisionError::Device(reason)), Place::Device { .. }) => {
                self.move_to_cpu(&reason)?;
                work(self.current.as_mut())
            }
            (result, _) => result,
        }
    }

    fn move_to_cpu(&mut self, reason: &str) -> labelsieve_networks::Result<()> {
        // A device that cannot even say what it has learned ends the training with the error that came first.
        let lost = |_| VisionError::Device(reason.to_owned());
        let Place::Device { start } = std::mem::replace(&mut self.place, Place::Processor) else {
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
        if let Place::Device { start } = &mut self.place {
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
        if let Place::Device { start } = &mut self.place {
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

/// A network that only makes features: on a device, and read once more for the CPU when the device fails.
pub struct FallbackEmbedder<R> {
    current: Box<dyn Embedder>,
    /// Reads it for the CPU; none once that has happened.
    on_cpu: Option<R>,
    notices: Notices,
}

impl<R> FallbackEmbedder<R>
where
    R: FnOnce() -> labelsieve_networks::Result<Box<dyn Embedder>> + Send,
{
    /// A network on the device that `found` is, and how to read it for the CPU.
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
