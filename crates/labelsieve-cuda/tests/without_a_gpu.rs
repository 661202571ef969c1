//! The behaviour on a machine without a GPU. On a machine with one, these tests print a note and check the opposite.

use labelsieve::engine::Job;
use labelsieve::{ClassProblem, Features, Method, NoisyPool};
use labelsieve_cuda::{ActivationPrecision, Cuda, Error, OpenDevice, open};
use labelsieve_networks::{Architecture, Batch, Snapshot, Stem};
use labelsieve_numerics::Device;

#[test]
fn asking_for_a_gpu_that_is_not_there_says_what_is_missing() {
    match Cuda::open(0) {
        Ok(cuda) => eprintln!("skipped: this machine has a {}", cuda.name()),
        Err(error) => {
            assert!(open(Device::Cuda(0), |_| ()).is_err());
            let reasons = ["no NVIDIA driver found", "supports CUDA", "no GPU number 0", "cannot be loaded"];
            assert!(reasons.iter().any(|reason| error.to_string().contains(reason)), "{error}");
        }
    }
}

#[test]
fn a_gpu_number_beyond_the_last_is_refused() {
    match Cuda::open(99).err().expect("no machine has a hundred GPUs") {
        Error::NoDevice { index, count } => assert!(index == 99 && count < 99),
        error => eprintln!("no GPU at all: {error}"),
    }
}

#[test]
fn auto_falls_back_to_the_cpu_and_gives_the_reason() {
    let opened = open(Device::Auto, |_| ()).unwrap();
    match &opened {
        OpenDevice::Cuda(_) => panic!("a GPU without a request"),
        OpenDevice::Found(found) => eprintln!("skipped: this machine has a {}", found.first().name()),
        OpenDevice::Cpu { reason } => {
            assert_eq!(opened.to_string(), format!("cpu ({reason})"));
            assert_eq!(*reason, Cuda::open(0).err().unwrap().to_string());
        }
    }
    let clean = Features::new(vec![1.0, 0.0], 2).unwrap();
    let pool = NoisyPool::new(Features::new(vec![0.9, 0.1, 0.0, 1.0], 2).unwrap());
    let jobs = [Job { problem: ClassProblem::new(&clean, &pool).unwrap(), seed: 0 }];
    let relevance = opened.engine().relevance(&Method::gcn(), &jobs, &|_, _| ()).unwrap();
    assert!(relevance[0].noisy()[0] > relevance[0].noisy()[1]);
}

#[test]
fn the_cpu_can_be_asked_for() {
    assert_eq!(open(Device::Cpu, |_| ()).unwrap().to_string(), "cpu (asked for)");
}

#[test]
fn networks_are_made_where_the_engine_is_unless_cudnn_is_missing() {
    let learners = open(Device::Cpu, |_| ()).unwrap().learners(ActivationPrecision::Bf16).unwrap();
    assert_eq!((learners.kind(), learners.to_string()), ("cpu", "cpu (asked for)".to_owned()));

    let opened = open(Device::Auto, |_| ()).unwrap();
    let learners = opened.learners(ActivationPrecision::Bf16).unwrap();
    match &opened {
        OpenDevice::Cpu { reason } => assert_eq!(learners.to_string(), format!("cpu ({reason})")),
        OpenDevice::Cuda(_) => panic!("a GPU without a request"),
        OpenDevice::Found(found) => match found.first().learners(ActivationPrecision::Bf16) {
            Ok(_) => assert_eq!(learners.to_string(), opened.to_string()),
            Err(error) => {
                assert_eq!(learners.to_string(), format!("cpu ({error})"));
                let asked = open(Device::Cuda(0), |_| ()).unwrap().learners(ActivationPrecision::Bf16);
                assert_eq!(asked.err(), Some(error));
            }
        },
    }
    let network = Architecture::ConvNet128.network(16, 16, Stem::Small).unwrap();
    let mut learner = learners.learners().learner(&network, &Snapshot::initial(&network, 0, 1)).unwrap();
    let features = learner.features(&Batch::new(16, 16, vec![9; 2 * 16 * 16 * 3]).unwrap()).unwrap();
    assert_eq!(features.len(), 2 * network.dim());
}
