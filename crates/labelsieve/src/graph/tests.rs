//! The fast graph against the naive one: all pairs measured, sorted, cut; membership in both lists searched for.

use labelsieve_numerics::Watch;
use labelsieve_numerics::kernels::dot;
use labelsieve_numerics::level::Level;
use labelsieve_numerics::random::Stream;
use proptest::prelude::*;

use super::leading::Leading;
use super::neighbours::Entry;
use super::reduced::Reduced;
use super::*;
use crate::features::Features;
use crate::in_memory::InMemory;

fn naive_neighbours(features: &Features, count: usize) -> Vec<Vec<(u32, f32)>> {
    (0..features.len())
        .map(|i| {
            let mut others: Vec<Entry> = (0..features.len())
                .filter(|&j| j != i)
                .map(|j| Entry { similarity: dot(features.row(i), features.row(j)), index: j as u32 })
                .collect();
            others.sort_by(Entry::order);
            others.iter().take(count).map(|entry| (entry.index, entry.similarity)).collect()
        })
        .collect()
}

fn naive_affinity(lists: &[Vec<(u32, f32)>]) -> Vec<Vec<(u32, f32)>> {
    (0..lists.len() as u32)
        .map(|i| {
            let mut row: Vec<(u32, f32)> = lists[i as usize]
                .iter()
                .copied()
                .filter(|&(j, s)| s > 0.0 && lists[j as usize].iter().any(|&(back, _)| back == i))
                .collect();
            row.sort_by_key(|&(j, _)| j);
            row
        })
        .collect()
}

fn lists(neighbours: &Neighbours) -> Vec<Vec<(u32, f32)>> {
    let list = |i| {
        let (indices, similarities) = neighbours.of(i);
        indices.iter().copied().zip(similarities.iter().copied()).collect()
    };
    (0..neighbours.len()).map(list).collect()
}

fn rows(affinity: &Affinity) -> Vec<Vec<(u32, f32)>> {
    let row = |i| {
        let (columns, weights) = affinity.row(i);
        columns.iter().copied().zip(weights.iter().copied()).collect()
    };
    (0..affinity.len()).map(row).collect()
}

/// Sets with everything that goes wrong in practice: duplicates, ties, zero rows, opposite rows, tight clusters.
fn awkward_features(max_rows: usize) -> impl Strategy<Value = Features> {
    (0..=max_rows, 1usize..40, 1u64..1000, 0..4u32).prop_map(|(n, dim, seed, kind)| {
        let stream = Stream::new(seed);
        let value = |row: usize, column: usize| {
            let (row, spread) = match kind {
                0 => (row, 1.0),                                 // everywhere
                1 => (stream.below(row as u64, n / 3 + 1), 0.0), // many exact duplicates
                2 => (row % 3, 1e-3 * (row % 7) as f32),         // three tight clusters
                _ => (row % 2, 0.0),                             // two rows, over and over
            };
            let sign = if kind == 3 && row % 2 == 1 { -1.0 } else { 1.0 };
            let base = stream.branch(if kind == 3 { 0 } else { row as u64 }).normal(column as u64);
            let noise = stream.branch(1 << 20).normal((row * 64 + column) as u64);
            sign * base + spread * noise
        };
        let zero = |row: usize| kind != 3 && row % 11 == 10;
        let data = (0..n * dim).map(|i| if zero(i / dim) { 0.0 } else { value(i / dim, i % dim) }).collect();
        Features::new(data, dim).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn exact_search_equals_the_naive_one_bit_for_bit(features in awkward_features(260), count in 1usize..60) {
        let naive = naive_neighbours(&features, count);
        for level in Level::available() {
            let fast = search::exact(level, &features, count, Watch::unwatched());
            prop_assert_eq!(&lists(&fast), &naive, "{}", level);
            prop_assert_eq!(rows(&Affinity::reciprocal(&fast)), naive_affinity(&naive), "{}", level);
        }
    }

    #[test]
    fn search_bounded_by_any_directions_equals_the_naive_one_bit_for_bit(
        features in awkward_features(260),
        count in 1usize..60,
        share in 0.0f64..=1.0,
    ) {
        prop_assume!(!features.is_empty());
        let naive = naive_neighbours(&features, count);
        let n_directions = 1 + (features.dim() as f64 * share) as usize; // more than there can be, at times
        for level in Level::available() {
            let leading = Leading::of(level, &features, n_directions);
            let fast = search::exact_by(level, &features, count, Some(&leading), Watch::unwatched());
            prop_assert_eq!(&lists(&fast), &naive, "{}", level);
        }
    }

    #[test]
    fn out_of_core_neighbours_edges_and_means_equal_those_in_memory_bit_for_bit(
        features in awkward_features(1100),
        count in 1usize..60,
        n_directions in 0usize..9,
        memory in prop_oneof![Just(0usize), Just(400_000), Just(1 << 40)],
        k in 0usize..4,
    ) {
        let k = k.min(features.len());
        let clean = features.select(&(0..k).collect::<Vec<_>>());
        let noisy = features.select(&(k..features.len()).collect::<Vec<_>>());
        let scratch = InMemory(memory); // windows of 192 rows and more, up to all of them
        let graph = NoisyGraph::new(&noisy, count);
        let propagation = Propagation::new(Affinity::reciprocal(&graph.insert(&clean, &noisy)));
        let mut x = vec![0f32; noisy.len() * noisy.dim()];
        propagation.propagate_rows(&clean, &noisy, |i| k + i, &mut x);
        for level in Level::available() {
            let leading = (n_directions > 0 && !noisy.is_empty()).then(|| Leading::of(level, &noisy, n_directions));
            let sorted = SortedRows::by(leading, &noisy, &scratch, Watch::unwatched()).unwrap();
            let found = windows::exact(level, &sorted, count, &scratch, Watch::unwatched()).unwrap();
            prop_assert_eq!(&found, graph.neighbours(), "{}", level);
            let found = NoisyGraph::from_neighbours(found, count).insert_in(Some(&scratch), &clean, &noisy).unwrap();
            let found = Propagation::new(Affinity::reciprocal_in(Some(&scratch), &found).unwrap());
            let found = found.propagate_sorted(&clean, sorted, &scratch).unwrap();
            prop_assert!(found.iter().map(|x| x.to_bits()).eq(x.iter().map(|x| x.to_bits())), "{}", level);
        }
    }

    #[test]
    fn products_of_reduced_rows_bound_those_of_the_rows(features in awkward_features(80), share in 0.0f64..=1.0) {
        prop_assume!(!features.is_empty());
        let leading = Leading::of(Level::current(), &features, 1 + (features.dim() as f64 * share) as usize);
        let reduced = Reduced::new(&leading, &features, Watch::unwatched());
        for (a, &i) in reduced.order().iter().enumerate() {
            for (b, &j) in reduced.order().iter().enumerate() {
                let product = |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum() };
                let bound = product(reduced.as_slice().row(a), reduced.as_slice().row(b));
                let exact = product(features.row(i as usize), features.row(j as usize));
                prop_assert!(exact <= bound + f64::from(reduced.error_bound()), "{} is above {}", exact, bound);
            }
        }
    }

    #[test]
    fn inserting_clean_rows_equals_building_from_scratch(
        features in awkward_features(200),
        count in 1usize..60,
        share in 0.0f64..=1.0,
    ) {
        let k = (features.len() as f64 * share) as usize; // up to k = N
        let clean = features.select(&(0..k).collect::<Vec<_>>());
        let noisy = features.select(&(k..features.len()).collect::<Vec<_>>());
        let inserted = NoisyGraph::new(&noisy, count).insert(&clean, &noisy);
        prop_assert_eq!(inserted, Neighbours::exact(&features, count));
    }
}

#[test]
fn a_larger_set_of_many_panels_equals_the_naive_one() {
    let stream = Stream::new(5);
    let n = 2500;
    let dim = 24;
    let value = |i: usize| {
        stream.branch((i / dim % 40) as u64).normal((i % dim) as u64) + 0.5 * stream.normal(i as u64)
    };
    let features = Features::new((0..n * dim).map(value).collect(), dim).unwrap();
    let naive = naive_neighbours(&features, NEIGHBOURS);
    for level in Level::available() {
        let fast = search::exact(level, &features, NEIGHBOURS, Watch::unwatched());
        assert!(lists(&fast) == naive, "{level}");
    }
}

/// Rows around some centres, whose numbers fall off from column to column.
fn steep_features(n: usize, dim: usize) -> Features {
    let stream = Stream::new(8);
    let value = |i: usize| {
        let row = i / dim;
        let column = i % dim;
        let centre = stream.branch(1 + (row % 50) as u64).normal(column as u64);
        (centre + 0.5 * stream.normal(i as u64)) / ((8 + column) as f32).powf(1.5)
    };
    Features::new((0..n * dim).map(value).collect(), dim).unwrap()
}

#[test]
fn rows_in_few_directions_are_searched_by_them_and_others_are_not() {
    let n = 9000;
    let dim = 512;
    let steep = steep_features(n, dim);
    let stream = Stream::new(9);
    let flat = Features::new((0..n * dim).map(|i| stream.normal(i as u64)).collect(), dim).unwrap();
    for level in Level::available() {
        assert!(Leading::choose(level, &flat, NEIGHBOURS).is_none(), "{level}");
        let leading = Leading::choose(level, &steep, NEIGHBOURS).unwrap();
        assert!(leading.deviation() < 1e-4, "{}", leading.deviation());
        let bounded = search::exact_by(level, &steep, NEIGHBOURS, Some(&leading), Watch::unwatched());
        assert!(bounded == search::exact_by(level, &steep, NEIGHBOURS, None, Watch::unwatched()), "{level}");
    }
}

#[test]
fn copies_and_zero_rows_among_many_are_searched_by_directions_as_without() {
    let steep = steep_features(3000, 128);
    let of_row = |row: usize| if (100..400).contains(&row) { 100 } else { row };
    let zero = vec![0f32; steep.dim()];
    let data = (0..3000).flat_map(|row| if row % 100 == 7 { &zero } else { steep.row(of_row(row)) }).copied();
    let features = Features::new(data.collect(), steep.dim()).unwrap();
    for level in Level::available() {
        let leading = Leading::of(level, &features, 31);
        let bounded = search::exact_by(level, &features, NEIGHBOURS, Some(&leading), Watch::unwatched());
        assert!(
            bounded == search::exact_by(level, &features, NEIGHBOURS, None, Watch::unwatched()),
            "{level}"
        );
    }
}

#[test]
fn rows_wider_than_any_cache_equal_the_naive_ones() {
    for dim in [196_608, 196_609, 1 << 20] {
        let stream = Stream::new(dim as u64);
        let features = Features::new((0..9 * dim).map(|i| stream.normal(i as u64)).collect(), dim).unwrap();
        assert_eq!(lists(&Neighbours::exact(&features, 4)), naive_neighbours(&features, 4), "{dim} columns");
    }
}

#[test]
fn a_thousand_copies_of_one_row_are_neighbours_by_lower_index() {
    let features = Features::new([0.3, -0.7, 0.2].repeat(1000), 3).unwrap();
    let neighbours = Neighbours::exact(&features, 50);
    assert_eq!(neighbours.of(0).0, (1..=50).collect::<Vec<u32>>());
    assert_eq!(neighbours.of(999).0, (0..50).collect::<Vec<u32>>());
}

#[test]
fn search_gives_the_same_lists_at_any_number_of_threads() {
    let stream = Stream::new(6);
    let features = Features::new((0..900 * 20).map(|i| stream.normal(i)).collect(), 20).unwrap();
    let with_threads = |n| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| Neighbours::exact(&features, 50))
    };
    assert_eq!(with_threads(1), with_threads(4));
    let bounded = |n| {
        let leading = Leading::of(Level::current(), &features, 8);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| search::exact_by(Level::current(), &features, 50, Some(&leading), Watch::unwatched()))
    };
    assert_eq!(bounded(1), with_threads(1));
    assert_eq!(bounded(4), with_threads(1));
}

#[test]
fn the_normalised_graph_averages_over_an_example_and_its_neighbours() {
    // Two rows at 60 degrees and one opposite to the first: a_01 = 1/2, the third is alone.
    let half = 0.5f32;
    let features = Features::new(vec![1.0, 0.0, half, 0.75f32.sqrt(), -1.0, 0.0], 2).unwrap();
    let affinity = Affinity::reciprocal(&Neighbours::exact(&features, 2));
    assert_eq!(affinity.n_entries(), 2);
    assert!((affinity.row(0).1[0] - 0.5).abs() < 1e-6);
    let propagation = Propagation::new(affinity);
    let x = [3.0, 6.0, 9.0];
    let mut averages = [0f32; 3];
    let columns = Columns { numbers: &x, width: 1, first: 0 };
    add_neighbours(Level::current(), &propagation, 0..3, columns, &mut averages);
    averages.iter_mut().enumerate().for_each(|(i, sum)| *sum *= propagation.inverse_degree(i));
    for (found, expected) in averages.iter().zip([4.0, 5.0, 9.0]) {
        assert!((found - expected).abs() < 1e-5, "{averages:?}"); // (3 + ½·6) / 1½, (6 + ½·3) / 1½, 9
    }
    let propagated = propagation.propagate(&features.select(&[0]), &features.select(&[1, 2]));
    assert!((propagated[0] - (1.0 + 0.25) / 1.5).abs() < 1e-6);
    assert_eq!(&propagated[4..], features.row(2));
}

#[test]
fn no_rows_and_one_row_have_no_neighbours() {
    for n in 0..2 {
        let features = Features::new(vec![1.0; n * 3], 3).unwrap();
        let neighbours = Neighbours::exact(&features, 50);
        assert_eq!((neighbours.len(), neighbours.width()), (n, 0));
        assert_eq!(Affinity::reciprocal(&neighbours).n_entries(), 0);
    }
}

#[test]
fn the_closest_clean_example_is_the_first_of_equals() {
    let clean = Features::new(vec![1.0, 0.0, 0.0, 1.0, 0.0, 1.0], 2).unwrap();
    let noisy = Features::new(vec![0.8, 0.6, 0.0, 1.0, 0.0, 0.0], 2).unwrap();
    assert_eq!(closest_clean(&clean, &noisy), [(0, 0.8), (1, 1.0), (0, 0.0)]);
}
