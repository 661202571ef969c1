use super::*;
use crate::architecture::{Architecture, Stem};
use crate::cpu::CpuLearners;
use crate::images::{Augmentation, DatasetOptions, Encoded};
use crate::prototypical::Distance;

/// Two classes of 16×16 images: dark on the left, or dark on the right, with noise.
fn images(seed: u64, n: usize) -> Dataset {
    let encoded = (0..n).map(|i| {
        let stream = Stream::new(seed).branch(i as u64);
        let mut pixels = Vec::new();
        for p in 0..16 * 16 {
            let dark = (p % 16 < 8) == (i % 2 == 0);
            let value = if dark { 60.0 } else { 190.0 } + 40.0 * stream.normal(p);
            pixels.extend([value.clamp(0.0, 255.0) as u8; 3]);
        }
        let mut bytes = std::io::Cursor::new(Vec::new());
        let image = image::RgbImage::from_raw(16, 16, pixels).unwrap();
        image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        let label = if i % 2 == 0 { "left" } else { "right" };
        Encoded { id: i.to_string(), label: Some(label.to_owned()), bytes: Ok(bytes.into_inner()) }
    });
    Dataset::decode(encoded, &DatasetOptions::default())
}

fn recipe(epochs: usize) -> Recipe {
    Recipe {
        epochs,
        batches_per_epoch: Some(3),
        batch: 8,
        rates: Rates::Cosine(0.05, 0.01),
        momentum: 0.9,
        decay: 5e-4,
        augmentation: Augmentation { flip: 0.0, ..Augmentation::gentle(16, 16) },
    }
}

#[derive(Default)]
struct Log {
    checkpoints: Vec<Checkpoint>,
    batches: usize,
}

impl Watcher for Log {
    fn epoch_starts(&mut self, _: usize, batches: usize) {
        assert_eq!(batches, 3);
    }

    fn batch_done(&mut self, images: usize) -> Result<()> {
        assert_eq!(images, 8);
        self.batches += 1;
        Ok(())
    }

    fn epoch_done(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        self.checkpoints.push(checkpoint.clone());
        Ok(())
    }
}

fn train(start: Option<Checkpoint>, epochs: usize, log: &mut Log) -> Checkpoint {
    let network = Architecture::ConvNet128.network(16, 16, Stem::Small).unwrap();
    let examples = Examples::all(Arc::new(images(1, 24)));
    let start = start.unwrap_or_else(|| Checkpoint::start(Snapshot::initial(&network, 2, 5)));
    let training = Training {
        learners: &CpuLearners,
        network: &network,
        examples: &examples,
        validation: Some(&images(2, 20)),
        objective: Objective::Cosine,
        recipe: &recipe(epochs),
        scale: ScaleRule::Learned,
        seed: 3,
    };
    training.run(start, log).unwrap()
}

#[test]
fn a_resumed_training_equals_the_unbroken_one_and_learns() {
    let mut log = Log::default();
    let unbroken = train(None, 4, &mut log);
    assert_eq!(log.batches, 12);
    assert_eq!(unbroken.epochs.len(), 4);
    assert!(unbroken.epochs[3].validation.unwrap() > 0.9, "{:?}", unbroken.epochs);
    assert!(unbroken.epochs[3].loss < unbroken.epochs[0].loss, "{:?}", unbroken.epochs);
    let resumed = train(Some(log.checkpoints[1].clone()), 4, &mut Log::default());
    assert!(resumed == unbroken, "the same bytes");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let alone = pool.install(|| train(None, 4, &mut Log::default()));
    assert!(alone == unbroken, "whatever the number of threads");
}

#[test]
fn eq_6_weighs_examples_by_their_relevance_within_the_class() {
    let network = Architecture::ConvNet128.network(16, 16, Stem::Small).unwrap();
    let examples = Examples {
        classes: vec![0, 0, 1, 1],
        relevance: vec![1.0, 0.5, 0.2, 0.2],
        rows: vec![0, 2, 1, 3],
        n_classes: 2,
        split: 0,
        images: Arc::new(images(1, 4)),
    };
    let training = Training {
        learners: &CpuLearners,
        network: &network,
        examples: &examples,
        validation: None,
        objective: Objective::Cosine,
        recipe: &recipe(1),
        scale: ScaleRule::Fixed,
        seed: 0,
    };
    // r over the mean of the class: 1 / 0.75, 0.5 / 0.75, 1, 1
    let expected = [1.0 / 0.75, 0.5 / 0.75, 1.0, 1.0];
    for (found, expected) in training.weights().iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6);
    }
    let less = Examples { relevance: vec![1.0, 0.09, 0.1, 0.0], ..examples }.without_irrelevant();
    assert_eq!((less.rows, less.classes, less.relevance), (vec![0, 1], vec![0, 1], vec![1.0, 0.1]));
}

#[test]
fn a_network_learns_from_episodes_and_resumes_where_it_stopped() {
    let network = Architecture::ConvNet128.network(16, 16, Stem::Small).unwrap();
    let examples = Examples::all(Arc::new(images(1, 24)));
    let validation = images(2, 20);
    for distance in [Distance::Euclidean, Distance::Cosine] {
        let rule = Prototypical { ways: 2, shots: 1, queries: 3, distance };
        let train = |start: Checkpoint, epochs: usize| {
            let training = Training {
                learners: &CpuLearners,
                network: &network,
                examples: &examples,
                validation: Some(&validation),
                objective: Objective::Prototypical(rule),
                recipe: &Recipe { rates: Rates::Steps(vec![(0, 0.01)]), ..recipe(epochs) },
                scale: ScaleRule::Fixed,
                seed: 3,
            };
            training.run(start, &mut Log::default()).unwrap()
        };
        let start = || Checkpoint::start(Snapshot::initial(&network, 0, 5));
        let unbroken = train(start(), 4);
        assert_eq!(train(train(start(), 2), 4), unbroken);
        let last = unbroken.epochs.last().unwrap();
        assert!(last.validation.unwrap() >= 0.9, "{:?}", unbroken.epochs);
        assert!(last.loss < unbroken.epochs[0].loss, "{:?}", unbroken.epochs);
        assert!((0.0..=1.0).contains(&last.accuracy));
    }
}

#[test]
fn a_loss_of_features_refuses_a_network_with_a_classifier() {
    let network = Architecture::ConvNet128.network(16, 16, Stem::Small).unwrap();
    let mut learner = CpuLearners.learner(&network, &Snapshot::initial(&network, 2, 5)).unwrap();
    let batch = images(1, 2).evaluation_batch(&[0, 1], (16, 16), View::for_images(16, 16)).unwrap();
    let sgd = Sgd { rate: 0.1, momentum: 0.9, decay: 0.0, scale: ScaleRule::Fixed };
    let error = learner.step_on_features(&batch, &Prototypical::default(), &sgd).unwrap_err().to_string();
    assert!(error.contains("found 2 classes"), "{error}");
}

#[test]
fn a_network_takes_another_classifier_and_keeps_the_rest() {
    let network = Architecture::ConvNet128.network(16, 16, Stem::Small).unwrap();
    let snapshot = Snapshot::initial(&network, 2, 5);
    let weights: Vec<f32> = (0..3 * network.dim()).map(|i| i as f32).collect();
    let other = snapshot.with_classifier(&network, &weights, 7.0).unwrap();
    assert_eq!(other.n_classes, 3);
    assert_eq!(other.class_weights(&network).unwrap(), weights);
    assert_eq!(other.scale(&network).unwrap(), 7.0);
    let batch = images(1, 2).evaluation_batch(&[0, 1], (16, 16), View::for_images(16, 16)).unwrap();
    let features =
        |snapshot: &Snapshot| CpuLearners.learner(&network, snapshot).unwrap().features(&batch).unwrap();
    assert_eq!(features(&snapshot), features(&other));
    assert!(snapshot.with_classifier(&network, &weights[1..], 7.0).is_err());
}
