//! Devices that fail in every way a real one does.

use std::sync::atomic::{AtomicUsize, Ordering};

use labelsieve::{ClassProblem, NoisyPool};
use labelsieve_networks::{Architecture, Distance, Prototypical, ScaleRule, Stem};

use super::*;

/// Everything that was told.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn notices(&self) -> Notices {
        let heard = self.0.clone();
        Notices::new(move |notice| heard.lock().unwrap().push(notice.to_owned()))
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Scores the first jobs and then runs out of memory; does nothing else.
struct Breaks {
    after: usize,
    with: Error,
}

impl Breaks {
    fn after(after: usize) -> Breaks {
        Breaks { after, with: Error::Engine("the GPU is out of memory".to_owned()) }
    }
}

/// What no CPU would answer, so that it shows who did.
const BY_DEVICE: f32 = 0.125;

impl Engine for Breaks {
    fn noisy_graph(&self, _noisy: &Features, _count: usize) -> Result<NoisyGraph> {
        Err(self.with.clone())
    }

    fn relevance(
        &self,
        _method: &Method,
        jobs: &[Job],
        finished: &(dyn Fn(usize, &Relevance) + Sync),
    ) -> Result<Vec<Relevance>> {
        let mut done = Vec::new();
        for (number, job) in jobs.iter().enumerate().take(self.after) {
            let relevance = Relevance::new(vec![BY_DEVICE; job.problem.noisy.features().len()])?;
            finished(number, &relevance);
            done.push(relevance);
        }
        if self.after < jobs.len() { Err(self.with.clone()) } else { Ok(done) }
    }

    fn prototypes(&self, _: &[WeightedClass], _: usize, _: f32) -> Result<WeightMatrix> {
        Err(self.with.clone())
    }

    fn cosine(&self, _: &Cosine, _: &[WeightedClass], _: usize, _: u64) -> Result<WeightMatrix> {
        Err(self.with.clone())
    }
}

fn features(n: usize, seed: u64) -> Features {
    let draws = labelsieve_numerics::random::Stream::new(seed);
    Features::new((0..n as u64 * 6).map(|i| draws.normal(i)).collect(), 6).unwrap()
}

fn pools() -> (Features, Vec<NoisyPool>) {
    (features(2, 1), (0..4).map(|i| NoisyPool::new(features(20 + i, 2 + i as u64))).collect())
}

fn jobs<'a>(clean: &'a Features, pools: &'a [NoisyPool]) -> Vec<Job<'a>> {
    let job = |(seed, pool)| Job { problem: ClassProblem::new(clean, pool).unwrap(), seed };
    (0..).zip(pools).map(job).collect()
}

#[test]
fn what_a_device_has_finished_is_kept_and_the_rest_is_scored_once_on_the_cpu() {
    let (clean, pools) = pools();
    let jobs = jobs(&clean, &pools);
    let on_cpu = Cpu.relevance(&Method::gcn(), &jobs, &|_, _| ()).unwrap();
    for after in 0..=jobs.len() {
        let heard = Heard::default();
        let engine = Fallback::new(Breaks::after(after), heard.notices());
        let told = Mutex::new(vec![Vec::new(); jobs.len()]);
        let scored = engine
            .relevance(&Method::gcn(), &jobs, &|job, relevance| {
                told.lock().unwrap()[job].push(relevance.clone())
            })
            .unwrap();
        for (job, relevance) in scored.iter().enumerate() {
            if job < after {
                assert!(relevance.noisy().iter().all(|&r| r == BY_DEVICE), "job {job} of {after}")
            } else {
                assert_eq!(*relevance, on_cpu[job], "job {job} of {after}")
            }
        }
        let each_once: Vec<Vec<Relevance>> = scored.into_iter().map(|relevance| vec![relevance]).collect();
        assert_eq!(*told.lock().unwrap(), each_once, "after {after}");
        let notice = match jobs.len() - after {
            0 => Vec::new(),
            1 => vec!["the GPU is out of memory; scoring 1 class on the CPU instead".to_owned()],
            n => vec![format!("the GPU is out of memory; scoring {n} classes on the CPU instead")],
        };
        assert_eq!(heard.all(), notice);
    }
}

#[test]
fn what_the_method_refuses_stays_refused() {
    let (clean, pools) = pools();
    let heard = Heard::default();
    let engine = Fallback::new(
        Breaks { after: 1, with: Error::Numerics(labelsieve_numerics::Error::Stopped) },
        heard.notices(),
    );
    let stopped = engine.relevance(&Method::gcn(), &jobs(&clean, &pools), &|_, _| ());
    assert_eq!(stopped, Err(Error::Numerics(labelsieve_numerics::Error::Stopped)));
    assert!(heard.all().is_empty());
}

#[test]
fn graphs_and_classifiers_are_made_on_the_cpu_and_a_reason_is_told_once() {
    let heard = Heard::default();
    let engine = Fallback::new(Breaks::after(0), heard.notices());
    let noisy = features(40, 3);
    for _ in 0..2 {
        let pool = engine.pool(&Method::gcn(), noisy.clone()).unwrap();
        assert!(pool.ready_graph(50) == Cpu.pool(&Method::gcn(), noisy.clone()).unwrap().ready_graph(50));
    }
    let clean = features(3, 4);
    let ones = vec![1.0; 40];
    let classes = [
        WeightedClass::new(&clean, &noisy, &ones).unwrap(),
        WeightedClass::new(&noisy, &clean, &ones[..3]).unwrap(),
    ];
    let cosine = Cosine { epochs: 2, ..Cosine::default() };
    assert_eq!(engine.prototypes(&classes, 6, 10.0), Cpu.prototypes(&classes, 6, 10.0));
    assert_eq!(engine.cosine(&cosine, &classes, 6, 5), Cpu.cosine(&cosine, &classes, 6, 5));
    let notices = ["making graphs", "making prototypes", "learning"]
        .map(|what| format!("the GPU is out of memory; {what} on the CPU instead"));
    assert_eq!(heard.all(), notices);
}

/// Learners on the CPU that pretend to be a device and fail at a certain call.
struct FailingLearners {
    at_call: usize,
    /// Whether the device then answers no more at all.
    is_lost: bool,
}

struct FailingLearner {
    inner: Box<dyn Learner>,
    calls: AtomicUsize,
    at_call: usize,
    is_lost: bool,
}

fn failure() -> VisionError {
    VisionError::Device("a batch of 2 images of 16×16 does not fit the GPU's memory".to_owned())
}

impl Learners for FailingLearners {
    fn learner(
        &self,
        network: &Network,
        snapshot: &Snapshot,
    ) -> labelsieve_networks::Result<Box<dyn Learner>> {
        if self.at_call == 0 {
            return Err(failure());
        }
        let inner = labelsieve_networks::CpuLearners.learner(network, snapshot)?;
        let at_call = self.at_call;
        let is_lost = self.is_lost;
        Ok(Box::new(FailingLearner { inner, calls: AtomicUsize::new(0), at_call, is_lost }))
    }
}

impl FailingLearner {
    fn call(&self) -> labelsieve_networks::Result<()> {
        match self.calls.fetch_add(1, Ordering::Relaxed) + 1 {
            call if call < self.at_call => Ok(()),
            _ => Err(failure()),
        }
    }

    fn read(&self) -> labelsieve_networks::Result<()> {
        let has_failed = self.calls.load(Ordering::Relaxed) >= self.at_call;
        if self.is_lost && has_failed { Err(VisionError::Device("lost".to_owned())) } else { Ok(()) }
    }
}

impl Embedder for FailingLearner {
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn features(&mut self, images: &Batch) -> labelsieve_networks::Result<Vec<f32>> {
        self.call()?;
        self.inner.features(images)
    }
}

impl Learner for FailingLearner {
    fn step(&mut self, images: &Batch, targets: Targets, sgd: &Sgd) -> labelsieve_networks::Result<()> {
        self.call()?;
        self.inner.step(images, targets, sgd)
    }

    fn step_on_features(
        &mut self,
        images: &Batch,
        objective: &dyn FeatureObjective,
        sgd: &Sgd,
    ) -> labelsieve_networks::Result<()> {
        self.call()?;
        self.inner.step_on_features(images, objective, sgd)
    }

    fn tally(&mut self) -> labelsieve_networks::Result<Tally> {
        self.read()?;
        self.inner.tally()
    }

    fn snapshot(&mut self) -> labelsieve_networks::Result<Snapshot> {
        self.read()?;
        self.inner.snapshot()
    }
}

/// Features, three steps, and features again.
fn learn(learners: &dyn Learners) -> labelsieve_networks::Result<(Vec<f32>, Tally, Snapshot)> {
    let network = Architecture::ConvNet128.network(16, 16, Stem::Small)?;
    let mut learner = learners.learner(&network, &Snapshot::initial(&network, 2, 7))?;
    let images = Batch::new(16, 16, (0..2 * 16 * 16 * 3).map(|i| (i * 7 % 251) as u8).collect())?;
    let sgd = Sgd { rate: 0.01, momentum: 0.9, decay: 1e-4, scale: ScaleRule::Learned };
    let mut features = learner.features(&images)?;
    for _ in 0..3 {
        learner.step(&images, Targets { classes: &[0, 1], weights: &[0.5, 0.5], split: 0 }, &sgd)?;
    }
    features.extend(learner.features(&images)?);
    Ok((features, learner.tally()?, learner.snapshot()?))
}

#[test]
fn a_network_that_learns_from_episodes_goes_on_where_its_device_failed() {
    let rule = Prototypical { ways: 2, shots: 1, queries: 1, distance: Distance::Euclidean };
    let learn = |learners: &dyn Learners| {
        let network = Architecture::ConvNet128.network(16, 16, Stem::Small)?;
        let mut learner = learners.learner(&network, &Snapshot::initial(&network, 0, 7))?;
        let images = Batch::new(16, 16, (0..4 * 16 * 16 * 3).map(|i| (i * 7 % 251) as u8).collect())?;
        let sgd = Sgd { rate: 0.001, momentum: 0.9, decay: 1e-4, scale: ScaleRule::Fixed };
        for _ in 0..3 {
            learner.step_on_features(&images, &rule, &sgd)?;
        }
        Ok::<_, VisionError>((learner.tally()?, learner.snapshot()?))
    };
    let expected = learn(&labelsieve_networks::CpuLearners).unwrap();
    for at_call in 0..=3 {
        let first = FailingLearners { at_call, is_lost: false };
        let fallback = FallbackLearners { first, notices: Heard::default().notices() };
        assert_eq!(learn(&fallback).unwrap(), expected, "failed at call {at_call}");
    }
}

#[test]
fn a_network_goes_on_where_its_device_failed() {
    let expected = learn(&labelsieve_networks::CpuLearners).unwrap();
    for at_call in 0..=6 {
        let heard = Heard::default();
        let first = FailingLearners { at_call, is_lost: false };
        let found = learn(&FallbackLearners { first, notices: heard.notices() }).unwrap();
        assert_eq!(found, expected, "failed at call {at_call}");
        let notice = format!("{}; running the network on the CPU instead", failure());
        assert_eq!(heard.all(), if at_call < 6 { vec![notice] } else { Vec::new() }, "call {at_call}");
    }
}

#[test]
fn a_device_that_is_lost_ends_a_training_with_its_first_error_but_not_before_one() {
    for (at_call, survives) in [(1, true), (2, true), (3, false), (5, false)] {
        let first = FailingLearners { at_call, is_lost: true };
        let found = learn(&FallbackLearners { first, notices: Heard::default().notices() });
        if survives {
            assert_eq!(found, learn(&labelsieve_networks::CpuLearners), "lost at call {at_call}")
        } else {
            assert_eq!(found, Err(failure()), "lost at call {at_call}")
        }
    }
}

/// Answers with as many numbers as it has images, until it fails.
struct Counts {
    left: usize,
    with: VisionError,
}

impl Embedder for Counts {
    fn dim(&self) -> usize {
        1
    }

    fn features(&mut self, images: &Batch) -> labelsieve_networks::Result<Vec<f32>> {
        self.left = self.left.checked_sub(1).ok_or(self.with.clone())?;
        Ok(vec![BY_DEVICE; images.len()])
    }
}

#[test]
fn a_network_that_only_embeds_is_read_for_the_cpu_once_its_device_fails() {
    let heard = Heard::default();
    let found = Fallback::new(Breaks::after(0), heard.notices());
    let device = Box::new(Counts { left: 1, with: failure() });
    let read = || -> labelsieve_networks::Result<Box<dyn Embedder>> {
        Ok(Box::new(Counts { left: 2, with: VisionError::Device("the CPU does not fail".to_owned()) }))
    };
    let mut embedder = FallbackEmbedder::new(device, read, &found);
    let images = Batch::new(1, 1, vec![0; 6]).unwrap();
    for _ in 0..3 {
        assert_eq!(embedder.features(&images).unwrap(), [BY_DEVICE; 2]);
    }
    assert_eq!(heard.all().len(), 1, "{:?}", heard.all());
    assert!(heard.all()[0].ends_with("running the network on the CPU instead"), "{:?}", heard.all());
    // The CPU's own failure is no reason to read it again.
    assert!(embedder.features(&images).unwrap_err().to_string().contains("the CPU does not fail"));
}

#[test]
fn what_the_network_itself_refuses_stays_refused() {
    let found = Fallback::new(Breaks::after(0), Heard::default().notices());
    let refused = VisionError::Shape { what: "images".into(), expected: "2×2".into(), found: "1×1".into() };
    let device = Box::new(Counts { left: 0, with: refused.clone() });
    let read = || -> labelsieve_networks::Result<Box<dyn Embedder>> { panic!("nothing to do for the CPU") };
    let mut embedder = FallbackEmbedder::new(device, read, &found);
    assert_eq!(embedder.features(&Batch::new(1, 1, vec![0; 3]).unwrap()), Err(refused));
}
