//! In a process of its own: for a moment the program holds all memory of the GPU.

use labelsieve_cuda::{ActivationPrecision, Cuda};
use labelsieve_networks::{Architecture, Batch, Learners, ScaleRule, Sgd, Snapshot, Stem, Targets};

#[test]
fn a_batch_too_large_for_the_memory_is_refused_and_the_learner_goes_on() {
    let learners = match Cuda::open(0).and_then(|cuda| cuda.learners(ActivationPrecision::F32)) {
        Ok(learners) => learners,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let network = Architecture::ResNet50.network(224, 224, Stem::Photo).unwrap();
    let len = network.parameters(2).iter().map(|parameter| parameter.len()).sum();
    let snapshot = Snapshot { n_classes: 2, values: vec![0.01; len], momentum: vec![0.0; len] };
    let mut learner = learners.learner(&network, &snapshot).unwrap();
    let mut step = |n: usize| {
        let batch = Batch::new(224, 224, vec![0; n * 224 * 224 * 3]).unwrap();
        let classes = vec![0; n];
        let weights = vec![1.0; n];
        let sgd = Sgd { rate: 0.01, momentum: 0.9, decay: 0.0, scale: ScaleRule::Fixed };
        learner.step(&batch, Targets { classes: &classes, weights: &weights, split: 0 }, &sgd)
    };
    let message = step(20_000).err().unwrap().to_string(); // some 2.5 TB of images inside the network
    assert_eq!(
        message,
        "a batch of 20000 images of 224×224 does not fit the GPU's memory: lower the batch size"
    );
    step(2).unwrap();
    assert_eq!(learner.tally().unwrap().steps, 1);
}
