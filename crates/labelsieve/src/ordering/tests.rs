//! The orders on pools that fit in a head, and the fast coverage against a plain one.

use labelsieve_numerics::kernels::dot;
use proptest::prelude::*;

use super::*;
use crate::decision::Decision;
use crate::features::Features;
use crate::graph::{NoisyGraph, NoisyPool, closest_clean};

fn on_the_circle(degrees: &[f32]) -> Features {
    let rows = degrees.iter().flat_map(|degree| [degree.to_radians().cos(), degree.to_radians().sin()]);
    Features::new(rows.collect(), 2).unwrap()
}

struct Case {
    clean: Features,
    pool: NoisyPool,
    decisions: Vec<Option<Decision>>,
    groups: Vec<u32>,
    relevance: Vec<f32>,
}

impl Case {
    /// One clean example at 0 degrees, candidates at these, nothing decided.
    fn new(degrees: &[f32], neighbours: usize) -> Case {
        let noisy = on_the_circle(degrees);
        let graph = NoisyGraph::new(&noisy, neighbours);
        Case {
            clean: on_the_circle(&[0.0]),
            groups: near_duplicates(&graph, 0.9999),
            pool: NoisyPool::new(noisy),
            decisions: vec![None; degrees.len()],
            relevance: degrees.iter().map(|degree| 1.0 - degree / 360.0).collect(),
        }
    }

    fn first(&self, order: LookOrder, count: usize) -> Vec<u32> {
        let problem = ClassProblem::new(&self.clean, &self.pool).unwrap();
        let problem = problem.with_decisions(&self.decisions).unwrap();
        let look = Look { problem: &problem, groups: &self.groups, relevance: &self.relevance };
        order.first(&look, count, Stream::new(1)).unwrap()
    }
}

#[test]
fn each_order_is_what_its_name_says() {
    let case = Case::new(&[50.0, 10.0, 40.0, 20.0, 30.0], 50);
    assert_eq!(case.first(LookOrder::MostRelevant, 2), [1, 3]);
    assert_eq!(case.first(LookOrder::NearMedian, 3), [4, 3, 2]);
    assert_eq!(case.first(LookOrder::Evenly, 2), [3, 2]);
    assert_eq!(case.first(LookOrder::Evenly, 1), [4]);
    let mut random = case.first(LookOrder::Random, 5);
    assert_ne!(random, [0, 1, 2, 3, 4]);
    random.sort_unstable();
    assert_eq!(random, [0, 1, 2, 3, 4]);
}

#[test]
fn coverage_goes_to_the_middle_of_the_largest_group_that_nothing_covers() {
    // Three close to the clean example, three far away around 120 degrees, one alone at 250.
    let mut case = Case::new(&[1.0, 3.0, 5.0, 110.0, 120.0, 130.0, 250.0], 50);
    assert_eq!(case.first(LookOrder::Covering, 2), [4, 6]);
    case.decisions[4] = Some(Decision::Reject);
    assert_eq!(case.first(LookOrder::Covering, 1), [6]);
    case.decisions[6] = Some(Decision::Unsure);
    let next = case.first(LookOrder::Covering, 1)[0];
    assert!([3, 5].contains(&next), "{next}");
}

#[test]
fn decided_rows_and_second_copies_are_never_shown() {
    let mut case = Case::new(&[10.0, 10.0, 80.0, 80.0, 170.0], 50);
    case.decisions[4] = Some(Decision::Accept);
    for order in LookOrder::ALL {
        let mut rows = case.first(order, 10);
        rows.sort_unstable();
        assert_eq!(rows, [0, 2], "{order}");
    }
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    let case = Case::new(&[10.0, 20.0], 50);
    let problem = ClassProblem::new(&case.clean, &case.pool).unwrap();
    let error = what_next(&problem, &case.groups, &[0.5], 1).unwrap_err();
    assert_eq!(error.to_string(), "relevance: expected 2 values, found 1");
}

/// What the covering order should be: every gain anew before every choice.
fn plain_covering(case: &Case, count: usize) -> Vec<u32> {
    let n = case.decisions.len();
    let noisy = case.pool.features();
    let similarity = |i: usize, j: usize| dot(noisy.row(i), noisy.row(j));
    let closest = closest_clean(&case.clean, case.pool.features());
    let mut covered: Vec<f32> = closest.iter().map(|(_, similarity)| similarity.max(0.0)).collect();
    let cover = |covered: &mut Vec<f32>, j: usize| {
        (0..n).for_each(|i| covered[i] = covered[i].max(similarity(i, j)));
    };
    let is_open = |j: &usize| case.decisions[*j].is_none() && case.groups[*j] as usize == *j;
    (0..n).filter(|&j| case.decisions[j].is_some()).for_each(|j| cover(&mut covered, j));
    let mut chosen: Vec<u32> = Vec::new();
    while chosen.len() < count {
        let gain = |j: usize| -> f32 { (0..n).map(|i| (similarity(i, j) - covered[i]).max(0.0)).sum() };
        let open = (0..n).filter(is_open).filter(|&j| !chosen.contains(&(j as u32)));
        let Some(best) = open.max_by(|&a, &b| gain(a).total_cmp(&gain(b)).then(b.cmp(&a))) else { break };
        cover(&mut covered, best);
        chosen.push(best as u32);
    }
    chosen
}

proptest! {
    #[test]
    fn the_lazy_choice_is_the_plain_one(
        degrees in prop::collection::vec(0u8..=255, 0..40),
        decided in prop::collection::vec(0..8u8, 40),
        count in 0..12usize,
    ) {
        // Whole degrees: there are ties.
        let degrees: Vec<f32> = degrees.into_iter().map(f32::from).collect();
        let mut case = Case::new(&degrees, 50);
        for (decision, draw) in case.decisions.iter_mut().zip(&decided) {
            *decision = Decision::ALL.get(*draw as usize).copied();
        }
        prop_assert_eq!(case.first(LookOrder::Covering, count), plain_covering(&case, count));
    }
}

#[test]
fn in_a_large_pool_every_distant_group_is_looked_at_before_any_is_looked_at_twice() {
    // 4,000 rows in five groups of very different sizes, far larger than a neighbour list is long.
    let centre = |row: usize| match row % 100 {
        0..=79 => 0.0,
        80..=89 => 60.0,
        90..=94 => 120.0,
        95..=97 => 180.0,
        _ => 240.0,
    };
    let degrees: Vec<f32> =
        (0..4000).map(|row| centre(row) + 5.0 * Stream::new(3).uniform(row as u64)).collect();
    let case = Case { groups: (0..4000).collect(), ..Case::new(&degrees, 5) };
    let shown = case.first(LookOrder::Covering, 4); // the clean example covers the first group
    let mut groups: Vec<u32> = shown.iter().map(|&row| centre(row as usize) as u32).collect();
    groups.sort_unstable();
    assert_eq!(groups, [60, 120, 180, 240]);
}
