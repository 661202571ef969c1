//! The rows of the fine-tuned network: all its layers learn from the photos, weighted by relevance.

use labelsieve::Features;
use labelsieve::classifier::{WeightMatrix, WeightedClass, prototypes};
use labelsieve::evaluation::{BaseTest, TestSets, Trial};
use labelsieve_files::work::{Context, Monitor, Progress, Result};
use labelsieve_networks::devices::OpenLearners;
use labelsieve_networks::opening::network::OpenedNetwork;
use labelsieve_networks::training::{Checkpoint, Examples, Objective, Rates, Recipe, Training, Watcher};
use labelsieve_networks::{ScaleRule, Snapshot, dataset_features};
use serde::{Deserialize, Serialize};

use super::half::{Half, Halves};
use super::measure::RowResult;
use super::photo_set::ClassPhotos;
use super::pictures::Pictures;
use crate::protocol::{CellResult, Row, Run, Score, Source, Task, best_of};

/// Learning rates and epochs that tuning tries.
const RATES: [f32; 3] = [0.001, 0.003, 0.01];
const EPOCHS: [usize; 3] = [5, 10, 20];

/// The learning rate and the number of epochs of fine-tuning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    pub rate: f32,
    pub epochs: usize,
}

/// The paper's schedule, which it states for fine-tuning with base classes.
const PAPER: Schedule = Schedule { rate: 0.01, epochs: 10 };

/// The classes that a network is fine-tuned on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TrainedClasses {
    /// Eq. (6): novel classes.
    Novel,
    /// Eq. (8): base classes too, with a softmax for each kind.
    Base,
    /// The losses of eq. (8) under one softmax over all classes.
    BaseTogether,
}

impl TrainedClasses {
    fn row_name(self) -> &'static str {
        match self {
            TrainedClasses::Novel => "gcn, fine-tuned",
            TrainedClasses::Base => "gcn, fine-tuned with base",
            TrainedClasses::BaseTogether => "gcn, fine-tuned with base, one softmax",
        }
    }
}

/// A network, the device it learns on and the photos it learns from.
pub struct FineTuning<'a> {
    pub device: &'a OpenLearners,
    pub opened: &'a OpenedNetwork,
    pub pictures: &'a Pictures,
}

/// One training: the classes of a half, with the weights of a source at a shot in an episode.
#[derive(Clone, Copy)]
struct Session<'a> {
    half: &'a Half<'a>,
    shot: usize,
    k: usize,
    episode: usize,
    source: &'a Source,
    learns: TrainedClasses,
    schedule: Schedule,
}

impl FineTuning<'_> {
    /// The rows, for the first `episodes` episodes of every shot, and the schedules chosen for the first row on one episode of the
    /// tuning classes, if there are any. All other rows use the paper's schedule.
    pub fn rows(
        &self,
        run: &mut Run,
        halves: Halves,
        gcn: &Row,
        episodes: usize,
        score: Score,
        monitor: &dyn Monitor,
    ) -> Result<(Vec<RowResult>, Vec<Trial<Schedule>>)> {
        let mut rows = Vec::new();
        let mut chosen = Vec::new();
        for learns in [TrainedClasses::Novel, TrainedClasses::Base, TrainedClasses::BaseTogether] {
            let mut cells = Vec::new();
            for (shot, source) in gcn.sources.iter().enumerate() {
                let k = run.grid.shots[shot];
                let mut session =
                    Session { half: halves.report, shot, k, episode: 0, source, learns, schedule: PAPER };
                if let Some(tuning) = halves.tuning.filter(|_| learns == TrainedClasses::Novel) {
                    let trial = self.choose(run, Session { half: tuning, ..session }, score, monitor)?;
                    session.schedule = trial.setting;
                    chosen.push(trial);
                }
                let of_episode = |episode| self.reached(run, Session { episode, ..session }, monitor);
                cells.push((0..episodes).map(of_episode).collect::<Result<Vec<_>>>()?);
            }
            rows.push(RowResult { name: learns.row_name().to_owned(), is_bound: false, cells });
        }
        Ok((rows, chosen))
    }

    fn choose(
        &self,
        run: &mut Run,
        session: Session,
        score: Score,
        monitor: &dyn Monitor,
    ) -> Result<Trial<Schedule>> {
        let mut trials = Vec::new();
        for rate in RATES {
            for epochs in EPOCHS {
                let setting = Schedule { rate, epochs };
                let reached = self.reached(run, Session { schedule: setting, ..session }, monitor)?;
                trials.push(Trial { setting, score: score(&reached) });
            }
        }
        best_of(trials)
    }

    /// The accuracy after a training: read from the journal, or measured now.
    fn reached(&self, run: &mut Run, session: Session, monitor: &dyn Monitor) -> Result<CellResult> {
        let recipe = self.recipe(session.schedule);
        let key = format!(
            "{} fine-tuned on {} {:?} {} k={} episode={} {}",
            session.half.journal_name(),
            self.device.kind(),
            session.learns,
            serde_json::json!(recipe),
            session.k,
            session.episode,
            session.source.key()
        );
        if let Some(kept) = run.kept(&key).and_then(|bytes| serde_json::from_slice(bytes).ok()) {
            return Ok(kept);
        }
        let weights = run.weights(session.half, session.shot, session.source, session.episode)?;
        let seed = run.grid.learning_seed(session.k, session.episode);
        let reached =
            run.clock.time("fine-tuning", || self.train(session, &weights, &recipe, seed, monitor))?;
        run.keep(key, serde_json::to_vec(&reached)?)?;
        Ok(reached)
    }

    fn recipe(&self, schedule: Schedule) -> Recipe {
        let Schedule { rate, epochs } = schedule;
        let input = self.opened.network.input();
        let usual = Recipe::fine_tuning(input.height, input.width);
        Recipe { epochs, rates: Rates::Steps(vec![(0, rate)]), ..usual }
    }

    fn train(
        &self,
        session: Session,
        weights: &[Vec<f32>],
        recipe: &Recipe,
        seed: u64,
        monitor: &dyn Monitor,
    ) -> Result<CellResult> {
        let examples = self.examples(session, weights).without_irrelevant();
        let training = Training {
            learners: self.device.learners(),
            network: &self.opened.network,
            examples: &examples,
            validation: None,
            objective: Objective::Cosine,
            recipe,
            scale: ScaleRule::Fixed,
            seed,
        };
        let images = (recipe.epochs * recipe.batches(examples.rows.len()) * recipe.batch) as u64;
        let progress = monitor.progress(images, "images");
        let Session { half, k, episode, learns, .. } = session;
        progress.set_message(&format!(
            "{}, {}, k = {k}, episode {}",
            half.title(),
            learns.row_name(),
            episode + 1
        ));
        let start = Checkpoint::start(self.start(session, weights)?);
        let learned = training.run(start, &mut ProgressBar(&progress))?;
        progress.finish();
        self.test(session, &learned.snapshot)
    }

    /// The network with a classifier that starts at the prototypes of the weighted examples, preceded by W_B if base classes learn
    /// too.
    fn start(&self, session: Session, weights: &[Vec<f32>]) -> Result<Snapshot> {
        let Session { half, k, episode, .. } = session;
        let clean = half.clean(episode, k)?;
        let pools = (0..clean.len()).map(|class| half.pool(class)).collect::<Result<Vec<Features>>>()?;
        let classes = (0..clean.len())
            .map(|class| WeightedClass::new(&clean[class], &pools[class], &weights[class]))
            .collect::<labelsieve::Result<Vec<_>>>()?;
        let novel = prototypes(&classes, half.dim(), half.scale())?;
        let base = if session.n_base() > 0 { half.base_weights()? } else { Vec::new() };
        let rows = [&base[..], novel.weights().block(0..classes.len())].concat();
        Ok(self.opened.snapshot.with_classifier(&self.opened.network, &rows, half.scale())?)
    }

    /// The weighted examples: 1 for base photos (if base classes learn too) and clean photos, the relevance for candidates.
    fn examples(&self, session: Session, weights: &[Vec<f32>]) -> Examples {
        let Session { half, k, episode, learns, .. } = session;
        let n_base = session.n_base();
        let mut examples = Vec::new();
        let mut add = |photo: usize, class: usize, relevance: f32| {
            examples.extend(self.pictures.place(photo).map(|row| (row, class as u32, relevance)));
        };
        for (class, photos) in half.context.photos.base[..n_base].iter().enumerate() {
            photos.train.iter().for_each(|&photo| add(photo, class, 1.0));
        }
        for (class, weights) in weights.iter().enumerate() {
            half.clean_photos(class, episode, k).iter().for_each(|&photo| add(photo, n_base + class, 1.0));
            let noisy = half.candidates(class).photos.iter().zip(weights);
            noisy.for_each(|(&photo, &relevance)| add(photo, n_base + class, relevance));
        }
        let split = if learns == TrainedClasses::BaseTogether { 0 } else { n_base };
        let n_classes = n_base + weights.len();
        Examples { split, ..Examples::weighted(self.pictures.images.clone(), n_classes, examples) }
    }

    /// Tests on the novel classes, and on all classes if base classes learned too: otherwise W_B does not fit the changed network.
    fn test(&self, session: Session, snapshot: &Snapshot) -> Result<CellResult> {
        let Session { half, .. } = session;
        let network = &self.opened.network;
        let photos = half.context.photos;
        let learned = Features::new(snapshot.class_weights(network)?.to_vec(), network.dim())?;
        let n_base = session.n_base();
        let part = |rows: std::ops::Range<usize>| -> Result<WeightMatrix> {
            let rows = learned.select(&rows.collect::<Vec<_>>());
            Ok(WeightMatrix::new(rows, half.scale())?)
        };
        let novel = half.classes.iter().map(|&class| &photos.novel[class]);
        let (novel, novel_labels) = self.features(snapshot, novel)?;
        let base = if n_base == 0 {
            None
        } else {
            let (features, labels) = self.features(snapshot, photos.base.iter())?;
            Some(BaseTest { weights: part(0..n_base)?, features, labels })
        };
        let tests = TestSets { novel, novel_labels, base };
        CellResult::new(&tests, &part(n_base..learned.len())?).context("cannot test the fine-tuned network")
    }

    /// Features of the test photos of some classes, and their labels.
    fn features<'b>(
        &self,
        snapshot: &Snapshot,
        classes: impl Iterator<Item = &'b ClassPhotos>,
    ) -> Result<(Features, Vec<usize>)> {
        let network = &self.opened.network;
        let mut rows = Vec::new();
        let mut labels = Vec::new();
        for (label, class) in classes.enumerate() {
            rows.extend(class.test.iter().filter_map(|&photo| self.pictures.place(photo)));
            labels.resize(rows.len(), label);
        }
        let mut learner = self.device.learners().learner(network, snapshot)?;
        let view = (self.opened.metadata.image_size, self.opened.view);
        let features = dataset_features(learner.as_mut(), &self.pictures.images, &rows, view, |_| ())?;
        Ok((Features::new(features, network.dim())?, labels))
    }
}

impl Session<'_> {
    /// The number of base classes that learn too.
    fn n_base(&self) -> usize {
        match self.learns {
            TrainedClasses::Novel => 0,
            TrainedClasses::Base | TrainedClasses::BaseTogether => self.half.context.photos.base.len(),
        }
    }
}

/// Advances the progress bar batch by batch.
struct ProgressBar<'a>(&'a Progress);

impl Watcher for ProgressBar<'_> {
    fn epoch_starts(&mut self, _: usize, _: usize) {}

    fn batch_done(&mut self, images: usize) -> labelsieve_networks::Result<()> {
        self.0.inc(images as u64);
        Ok(())
    }

    fn epoch_done(&mut self, _: &Checkpoint) -> labelsieve_networks::Result<()> {
        Ok(())
    }
}
