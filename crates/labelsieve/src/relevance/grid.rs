//! Jobs over one pool, scored together and one at a time: the same bits.

use std::sync::Mutex;

use labelsieve_numerics::Watch;
use labelsieve_numerics::random::Stream;
use proptest::prelude::*;

use super::training::Trainer;
use super::*;
use crate::decision::Decision;
use crate::engine::{Cpu, Engine, Job};
use crate::error::Error;
use crate::features::Features;
use crate::graph::NoisyPool;
use crate::model::Relevance;

/// Rows around a few centres, so that clean ones come among the neighbours of many noisy ones.
fn clustered(n: usize, dim: usize, seed: u64) -> Features {
    let centres = Stream::new(99);
    let noise = Stream::new(seed);
    let value =
        |i: usize| centres.normal((i / dim % 3 * dim + i % dim) as u64) + 0.7 * noise.normal(i as u64);
    Features::new((0..n * dim).map(value).collect(), dim).unwrap()
}

fn short() -> Training {
    Training { iterations: 7, ..Training::default() }
}

fn one_at_a_time(method: &Method, jobs: &[Job]) -> Vec<Relevance> {
    let model = method.build().unwrap();
    jobs.iter().map(|job| model.relevance(&job.problem, job.seed).unwrap()).collect()
}

/// The bits of every number that a relevance has.
fn bits(all: &[Relevance]) -> Vec<(Vec<u32>, Option<&[u32]>)> {
    let of_one = |r: &Relevance| r.noisy().iter().map(|number| number.to_bits()).collect();
    all.iter().map(|relevance| (of_one(relevance), relevance.reciprocal_neighbours())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_grid_has_the_bits_of_its_cells_one_at_a_time(
        z in prop_oneof![1usize..12, 40usize..80, 260usize..420],
        shots in prop_oneof![prop::collection::vec(1usize..90, 2..12), prop::collection::vec(1usize..4, 17..40)],
        dim in prop_oneof![Just(5usize), Just(16), Just(37)],
        neighbours in prop_oneof![Just(3usize), Just(20), Just(50)],
        is_mlp: bool,
        is_decided: bool,
        seed in 0u64..100,
    ) {
        let noisy = clustered(z, dim, seed);
        let graph = crate::graph::NoisyGraph::new(&noisy, neighbours);
        let pool = NoisyPool::from_parts(noisy, graph).unwrap();
        let cleans: Vec<Features> =
            shots.iter().enumerate().map(|(i, &k)| clustered(k, dim, 1000 + seed + i as u64)).collect();
        let draw = |i: usize| [None, Some(Decision::Accept), Some(Decision::Reject)][i % 3];
        let decisions: Vec<Option<Decision>> = (0..z).map(draw).collect();
        let job = |(i, clean)| {
            let problem = ClassProblem::new(clean, &pool).unwrap();
            let problem = if is_decided && i % 2 == 0 { problem.with_decisions(&decisions).unwrap() } else { problem };
            Job { problem, seed: i as u64 / 2 }
        };
        let jobs: Vec<Job> = cleans.iter().enumerate().map(job).collect();
        let method = if is_mlp { Method::Mlp(Mlp { training: short(), ..Mlp::default() }) } else { Method::Gcn(Gcn { neighbours, training: short(), ..Gcn::default() }) };
        let told = Mutex::new(vec![0; jobs.len()]);
        let model = method.build().unwrap();
        let together = model.relevance_of_all(&jobs, &|i, _| told.lock().unwrap()[i] += 1);
        let together: Vec<Relevance> = together.into_iter().map(Result::unwrap).collect();
        let alone = one_at_a_time(&method, &jobs);
        prop_assert_eq!(bits(&together), bits(&alone));
        prop_assert!(told.into_inner().unwrap().iter().all(|&times| times == 1));
    }
}

#[test]
fn how_many_are_trained_at_once_changes_no_bit() {
    let pool = NoisyPool::with_graph(clustered(700, 24, 1));
    let cleans: Vec<Features> = (1..10).map(|k| clustered(k, 24, 10 + k as u64)).collect();
    let job = |clean| Job { problem: ClassProblem::new(clean, &pool).unwrap(), seed: 3 };
    let jobs: Vec<Job> = cleans.iter().map(job).collect();
    let gcn = Gcn { training: short(), ..Gcn::default() };
    let alone = one_at_a_time(&Method::Gcn(gcn), &jobs);
    for max_bytes in [1, 200_000, 1 << 30] {
        for threads in [1, 3] {
            let trainer = Trainer { max_bytes, ..Trainer::new(None, gcn.training) };
            let threads = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let scored = threads.install(|| gcn.together(&jobs, trainer, &|_, _| ()));
            let scored: Vec<Relevance> = scored.into_iter().map(Result::unwrap).collect();
            assert_eq!(bits(&scored), bits(&alone), "{max_bytes} bytes");
        }
    }
}

#[test]
fn a_stopped_job_ends_with_an_error_and_leaves_the_others_alone() {
    let pool = NoisyPool::with_graph(clustered(300, 16, 2));
    let clean = clustered(2, 16, 3);
    let stopped = Watch::new();
    let running = Watch::new();
    stopped.stop();
    let problem = ClassProblem::new(&clean, &pool).unwrap();
    let jobs = [&running, &stopped, &running].map(|watch| Job { problem: problem.watched(watch), seed: 1 });
    let told = Mutex::new(Vec::new());
    let model = Method::gcn().build().unwrap();
    let scored = model.relevance_of_all(&jobs, &|i, _| told.lock().unwrap().push(i));
    assert_eq!(scored[1], Err(Error::Numerics(labelsieve_numerics::Error::Stopped)));
    assert_eq!(told.into_inner().unwrap(), [0, 2]);
    assert_eq!(scored[0], scored[2]);
    assert_eq!(running.done(), 2 * 302, "each counts the rows of its training");
    assert_eq!(
        Cpu.relevance(&Method::gcn(), &jobs, &|_, _| ()),
        Err(Error::Numerics(labelsieve_numerics::Error::Stopped))
    );
}

#[test]
fn jobs_over_several_pools_come_back_in_order() {
    let pools = [NoisyPool::with_graph(clustered(60, 8, 4)), NoisyPool::new(clustered(90, 8, 5))];
    let cleans = [clustered(1, 8, 6), clustered(3, 8, 7)];
    let problem = |i: usize| ClassProblem::new(&cleans[i / 2], &pools[i % 2]).unwrap();
    let jobs: Vec<Job> = (0..4).map(|i| Job { problem: problem(i), seed: i as u64 }).collect();
    for method in [Method::gcn(), Method::Mlp(Mlp::default()), Method::Similarity(Similarity {})] {
        let scored = Cpu.relevance(&method, &jobs, &|_, _| ()).unwrap();
        assert_eq!(bits(&scored), bits(&one_at_a_time(&method, &jobs)), "{}", method.name());
    }
}
