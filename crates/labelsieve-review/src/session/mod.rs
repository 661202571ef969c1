//! A review under way.

mod deciding;
mod looking;
mod working;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use labelsieve::Method;
use labelsieve::relevance::paper_lambda;
use labelsieve_files::work::Result;
use labelsieve_files::{DataError, DecisionLog};

pub use looking::Order;

use super::answers::{ClassSummary, CurvePoint, LambdaChoice, Overview};
use super::cache::Cache;
use super::contents::Contents;
use super::curve::Curve;
use super::decisions::DecisionState;
use super::events::{Event, Listener, Listeners};
use super::pictures::{self, Picture, Thumbnails};
use super::queue::{Queue, Urgency};
use super::ready::{Ready, Scorer};
use super::refusal::Refusal;
use super::scores::{ClassScores, Stamp};
use super::{Review, command};

/// The smallest and largest λ of a slider: the paper's choices are between 0.01 and 5.
const LAMBDA_RANGE: [f32; 2] = [0.001, 20.0];

/// A review under way. All questions can be asked from any thread; none waits for a class to be scored.
pub struct Session {
    inner: Arc<Inner>,
    workers: Vec<JoinHandle<()>>,
}

/// What the threads of a session share.
struct Inner {
    review: Review,
    contents: Contents,
    scorer: Option<Scorer>,
    decided: Mutex<DecisionState>,
    /// Held while decisions are written, so that the file has them in the order in which they count.
    writing: Mutex<Writing>,
    scores: Mutex<Vec<ClassScores>>,
    lambda: Mutex<Lambda>,
    ready: Cache<Ready>,
    /// Why classes could not be made ready.
    failures: Mutex<HashMap<usize, String>>,
    queue: Queue,
    curve: Curve,
    thumbnails: Thumbnails,
    listeners: Listeners,
}

/// Where decisions are written.
struct Writing {
    /// None once the session is closed.
    log: Option<DecisionLog>,
    /// The moment of the last decision: no two have the same.
    last_at: u64,
}

/// λ that somebody chose.
#[derive(Clone, Copy, Default)]
struct Lambda {
    chosen: Option<f32>,
    version: u64,
    /// The class that was looked at last, which is scored again first.
    looked_at: Option<usize>,
}

/// What a session leaves behind.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSummary {
    /// Candidates with a decision.
    pub n_decisions: usize,
    /// Whether relevance followed the decisions.
    pub can_score: bool,
    /// The command that makes the relevance permanent, as in [`Overview::command`].
    pub command: Option<String>,
}

impl Session {
    pub(super) fn start(
        review: &Review,
        contents: Contents,
        scorer: Option<Scorer>,
        log: DecisionLog,
        decided: DecisionState,
    ) -> Result<Session> {
        let scores = contents.classes.iter().enumerate().map(|(c, class)| {
            let is_made_from_these = class.decisions == decided.of(c);
            let stamp = Stamp { decisions: decided.version(c), lambda: 0 };
            ClassScores::of_file(class, is_made_from_these.then_some(stamp))
        });
        let mut scores: Vec<ClassScores> = scores.collect();
        if scorer.is_none() {
            for (c, scores) in scores.iter_mut().enumerate() {
                deciding::fix_relevance(scores, &contents.classes[c], decided.of(c));
            }
        }
        let n_summed = if scorer.is_some() { contents.classes.len() } else { 0 };
        let inner = Arc::new(Inner {
            ready: Cache::new(review.memory),
            failures: Mutex::default(),
            review: review.clone(),
            curve: Curve::new(n_summed),
            contents,
            scorer,
            decided: Mutex::new(decided),
            writing: Mutex::new(Writing { log: Some(log), last_at: 0 }),
            scores: Mutex::new(scores),
            lambda: Mutex::default(),
            queue: Queue::default(),
            thumbnails: Thumbnails::default(),
            listeners: Listeners::default(),
        });
        let mut workers = Vec::new();
        if inner.scorer.is_some() {
            let scoring = inner.clone();
            workers.push(spawn("scoring", move || working::score(&scoring))?);
            let summing = inner.clone();
            workers.push(spawn("curve", move || working::follow_curve(&summing))?);
        }
        Ok(Session { inner, workers })
    }

    /// Tells `listener` everything that changes from now on, from any thread.
    pub fn listen(&self, listener: Box<dyn Listener>) {
        self.inner.listeners.add(listener);
    }

    /// The session as a whole.
    pub fn overview(&self) -> Overview {
        let inner = &self.inner;
        let (method, lambda) = (inner.method(), lock(&inner.lambda).chosen);
        let (decided, scores) = (lock(&inner.decided), lock(&inner.scores));
        let classes = inner.contents.classes.iter().enumerate().map(|(c, class)| ClassSummary {
            class: c,
            name: class.name.clone(),
            n_clean: class.clean.len(),
            n_candidates: class.candidates.len(),
            counts: decided.counts(c),
            mean_relevance: scores[c].mean(),
        });
        let has_lambda = command::has_lambda(&method);
        Overview {
            title: inner.review.title.clone(),
            output: inner.review.output.display().to_string(),
            by: inner.review.by.clone(),
            method: method.name(),
            lambda,
            default_lambda: has_lambda.then(|| inner.default_lambda()),
            lambda_range: (has_lambda && inner.scorer.is_some()).then_some(LAMBDA_RANGE),
            can_score: inner.scorer.is_some(),
            has_pictures: inner.contents.pictures.n_found() > 0,
            has_captions: inner.contents.captions.iter().any(Option::is_some),
            last: decided.last(),
            n_decisions: decided.n_decisions(),
            n_undo: decided.n_undo(),
            n_redo: decided.n_redo(),
            command: inner.command(&method),
            classes: classes.collect(),
        }
    }

    /// Chooses λ, or the default. Classes are scored again as they are looked at.
    pub fn set_lambda(&self, lambda: Option<f32>) -> Result<LambdaChoice, Refusal> {
        let inner = &self.inner;
        if inner.scorer.is_none() || !command::has_lambda(&inner.contents.settings.method) {
            return Err(Refusal::Conflict("nothing here depends on lambda".to_owned()));
        }
        let method = inner.method_with(lambda);
        method.build().map_err(|error| Refusal::Invalid(error.to_string()))?;
        let looked_at = {
            let mut known = lock(&inner.lambda);
            (known.chosen, known.version) = (lambda, known.version + 1);
            known.looked_at
        };
        let command = inner.command(&method);
        inner.listeners.tell(&Event::Lambda { lambda, command: command.clone() });
        if let Some(class) = looked_at {
            inner.queue.ask(class, Urgency::Decision);
        }
        Ok(LambdaChoice { lambda, command })
    }

    /// Accuracy on left-out examples, as decisions came in.
    pub fn curve(&self) -> Vec<CurvePoint> {
        self.inner.curve.points()
    }

    /// A small picture of an example.
    pub fn thumbnail(&self, example: usize) -> Result<Picture> {
        self.inner.thumbnails.get(&self.inner.contents, example)
    }

    /// The whole picture of an example.
    pub fn picture(&self, example: usize) -> Result<Picture> {
        pictures::whole(&self.inner.contents, example)
    }

    /// What the session would leave behind now.
    pub fn summary(&self) -> SessionSummary {
        let n_decisions = lock(&self.inner.decided).n_decisions();
        let (can_score, command) = (self.inner.scorer.is_some(), self.inner.command(&self.inner.method()));
        SessionSummary { n_decisions, can_score, command }
    }

    /// Ends all work, and folds the decisions into their file.
    pub fn close(mut self) -> Result<SessionSummary> {
        self.stop();
        let closed = self.summary();
        if let Some(log) = lock(&self.inner.writing).log.take() {
            log.close()?;
        }
        Ok(closed)
    }

    fn stop(&mut self) {
        self.inner.queue.close();
        self.inner.curve.close();
        for worker in self.workers.drain(..) {
            let _ = worker.join(); // it has told its listeners of what went wrong
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Inner {
    /// The method in force.
    fn method(&self) -> Method {
        self.method_with(lock(&self.lambda).chosen)
    }

    fn method_with(&self, lambda: Option<f32>) -> Method {
        let mut method = self.contents.settings.method.clone();
        if lambda.is_some() {
            match &mut method {
                Method::Gcn(model) => model.lambda = lambda,
                Method::Mlp(model) => model.lambda = lambda,
                Method::Auto(model) => model.lambda = lambda,
                _ => (),
            }
        }
        method
    }

    /// λ if nobody chooses another: that of the file, else the paper's for the median number of clean examples.
    fn default_lambda(&self) -> f32 {
        command::lambda(&self.contents.settings.method).unwrap_or_else(|| {
            let mut n_clean: Vec<usize> =
                self.contents.classes.iter().map(|class| class.clean.len()).collect();
            n_clean.sort_unstable();
            paper_lambda(n_clean.get(n_clean.len() / 2).copied().unwrap_or(1).max(1))
        })
    }

    fn command(&self, method: &Method) -> Option<String> {
        let review = &self.review;
        let (files, seed) = (review.files.as_ref()?, self.contents.settings.seed);
        command::clean(files, method, seed, &review.output, &review.relevance)
    }

    fn check_class(&self, class: usize) -> Result<(), Refusal> {
        let n = self.contents.classes.len();
        match class < n {
            true => Ok(()),
            false => Err(Refusal::NotFound(format!("there is no class {class}: there are {n}"))),
        }
    }

    fn check_row(&self, class: usize, row: usize) -> Result<(), Refusal> {
        self.check_class(class)?;
        let n = self.contents.classes[class].candidates.len();
        match row < n {
            true => Ok(()),
            false => Err(Refusal::NotFound(format!("class {class} has no row {row}: it has {n}"))),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    Ok(thread.map_err(DataError::io("start a thread for", name))?)
}
