//! Approximate neighbours of very many rows: pairs of panels with few votes are skipped.
//!
//! Rows are clustered, with similar clusters adjacent, and split into panels. Every row votes for the panels of its most similar
//! clusters, and a pair of panels is searched if it has enough votes. The threshold is learned from some rows with an exact search;
//! the recall is measured on others.

use labelsieve_numerics::Watch;
use labelsieve_numerics::level::Level;
use rayon::prelude::*;

use super::leading::Leading;
use super::neighbours::Neighbours;
use super::outside::nearest_to;
use super::reduced::{Clusters, Reduced};
use super::search::{self, PANEL, Tiles};
use crate::features::Features;

/// Below this many rows, an exact search takes seconds.
pub(super) const MIN_ROWS: usize = 65_536;
/// Clusters that a row votes for.
const VOTES: usize = 8;
/// Rows that the threshold is learned from; as many others measure the recall.
const PROBES: usize = 128;
/// From this share of all pairs of panels on, an exact search is as fast.
const MAX_PAIR_SHARE: f64 = 0.6;

/// A pair of panels, the lower one first, and the votes of the rows of either for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    panels: (u32, u32),
    votes: u32,
}

/// The `count` nearest other rows of each row with about the `wanted` recall, and the measured recall; exact if rows are few or
/// skipping pairs saves too little.
pub(super) fn approximate(
    level: Level,
    features: &Features,
    count: usize,
    wanted: f64,
    watch: &Watch,
) -> (Neighbours, f64) {
    let leading = if features.len() < MIN_ROWS { None } else { Leading::choose(level, features, count) };
    match &leading {
        Some(leading) => approximate_by(level, features, count, wanted, leading, watch),
        None => (search::exact(level, features, count, watch), 1.0),
    }
}

/// As [`approximate`], by the given directions and with any number of rows.
fn approximate_by(
    level: Level,
    features: &Features,
    count: usize,
    wanted: f64,
    leading: &Leading,
    watch: &Watch,
) -> (Neighbours, f64) {
    let n = features.len();
    let clusters = Clusters::new(leading, features, n / PANEL, VOTES, watch);
    let pairs = pairs(&clusters, watch);
    let n_panels = n.div_ceil(PANEL);
    let probes = |first: usize| (0..PROBES).map(move |i| (first + 2 * i) * n / (2 * PROBES));
    let min_votes = (!watch.is_stopped())
        .then(|| votes_for(wanted, &pairs, &clusters, &truth(features, count, probes(0))))
        .flatten();
    let chosen = min_votes.map(|min_votes| chosen(pairs, min_votes, n_panels));
    let all = n_panels * (n_panels + 1) / 2;
    match chosen.filter(|chosen| (chosen.len() as f64) < MAX_PAIR_SHARE * all as f64) {
        None => (search::exact_by(level, features, count, Some(leading), watch), 1.0),
        Some(chosen) => {
            let reduced = Reduced::in_clusters(leading, clusters);
            let found =
                search::search(level, features, count, Some(&reduced), Some(Tiles::Listed(&chosen)), watch);
            if watch.is_stopped() {
                return (found, 0.0);
            }
            let truth = truth(features, count, probes(1));
            let recall = recall(&found, &truth);
            (found, recall)
        }
    }
}

/// The pairs of panels with votes, ascending.
fn pairs(clusters: &Clusters, watch: &Watch) -> Vec<Pair> {
    let panels_of = clusters.stretches();
    let panels_of: Vec<(u32, u32)> = panels_of
        .iter()
        .map(|rows| ((rows.start / PANEL) as u32, (rows.end.div_ceil(PANEL)) as u32))
        .collect();
    let pointed: Vec<Vec<Pair>> = clusters
        .order()
        .par_chunks(PANEL)
        .enumerate()
        .map(|(panel, rows)| {
            if watch.is_stopped() {
                return Vec::new();
            }
            let panel = panel as u32;
            let clusters = rows.iter().flat_map(|&row| clusters.of(row as usize));
            let mut others: Vec<u32> = clusters
                .flat_map(|&cluster| panels_of[cluster as usize].0..panels_of[cluster as usize].1)
                .collect();
            others.sort_unstable();
            let alike = others.chunk_by(|a, b| a == b);
            alike
                .map(|same| Pair {
                    panels: (panel.min(same[0]), panel.max(same[0])),
                    votes: same.len() as u32,
                })
                .collect()
        })
        .collect();
    let mut pairs = pointed.concat();
    pairs.par_sort_unstable_by_key(|pair| (pair.panels, pair.votes));
    pairs
        .chunk_by(|a, b| a.panels == b.panels)
        .map(|same| Pair { panels: same[0].panels, votes: same.iter().map(|pair| pair.votes).sum() })
        .collect()
}

/// The highest vote threshold that still finds the `wanted` share of known neighbours; none if even a threshold of one misses it.
fn votes_for(wanted: f64, pairs: &[Pair], clusters: &Clusters, truth: &[Probe]) -> Option<u32> {
    let places = clusters.places();
    let panel = |row: u32| places[row as usize] / PANEL as u32;
    let votes = |probe: &Probe, other: u32| {
        let a = panel(probe.row);
        let b = panel(other);
        if a.abs_diff(b) <= 1 {
            return u32::MAX; // searched anyway
        }
        let found = pairs.binary_search_by_key(&(a.min(b), a.max(b)), |pair| pair.panels);
        found.map_or(0, |place| pairs[place].votes)
    };
    let mut found: Vec<u32> =
        truth.iter().flat_map(|probe| probe.nearest.iter().map(|&other| votes(probe, other))).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    let needed = ((wanted * found.len() as f64).ceil() as usize).clamp(1, found.len());
    found.get(needed - 1).copied().filter(|&votes| votes > 0)
}

/// The pairs with enough votes, most first so that floors rise early; before them every panel with itself and the next one, so that
/// every row has neighbours.
fn chosen(pairs: Vec<Pair>, min_votes: u32, n_panels: usize) -> Vec<(u32, u32)> {
    let near = |pair: &Pair| pair.panels.1 - pair.panels.0 <= 1;
    let mut others: Vec<Pair> =
        pairs.into_iter().filter(|pair| pair.votes >= min_votes && !near(pair)).collect();
    others.par_sort_unstable_by_key(|pair| (std::cmp::Reverse(pair.votes), pair.panels));
    let panels = 0..n_panels as u32;
    let with_next = panels.clone().zip(panels.clone().skip(1));
    panels.map(|panel| (panel, panel)).chain(with_next).chain(others.iter().map(|pair| pair.panels)).collect()
}

/// A row and its nearest others, by an exact search.
struct Probe {
    row: u32,
    nearest: Vec<u32>,
}

/// The exact `count` nearest others of some rows.
fn truth(features: &Features, count: usize, probes: impl Iterator<Item = usize>) -> Vec<Probe> {
    let rows: Vec<usize> = probes.collect();
    let width = (count + 1).min(features.len());
    let nearest = nearest_to(features, &features.select(&rows), width);
    let probe = |(&row, list): (&usize, &[u32])| {
        let others = list.iter().copied().filter(|&other| other as usize != row);
        Probe { row: row as u32, nearest: others.take(width - 1).collect() }
    };
    rows.iter().zip(nearest.chunks_exact(width)).map(probe).collect()
}

/// The share of the nearest others that were found.
fn recall(found: &Neighbours, truth: &[Probe]) -> f64 {
    let of_probe = |probe: &Probe| {
        let (indices, _) = found.of(probe.row as usize);
        probe.nearest.iter().filter(|other| indices.contains(other)).count()
    };
    let n: usize = truth.iter().map(|probe| probe.nearest.len()).sum();
    truth.iter().map(of_probe).sum::<usize>() as f64 / n.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use labelsieve_numerics::kernels::dot_at;
    use labelsieve_numerics::random::Stream;

    /// Rows around 40 centres in 12 directions of 32.
    fn clustered(n: usize) -> Features {
        let stream = Stream::new(8);
        let number = |label: u64, i: usize| stream.branch(label).normal(i as u64);
        let mut values = Vec::with_capacity(n * 32);
        for i in 0..n {
            let cluster = stream.branch(3).below(i as u64, 40);
            values.extend((0..12).map(|j| number(0, cluster * 12 + j) + 0.35 * number(1, i * 12 + j)));
            values.extend((0..20).map(|j| 0.02 * number(2, i * 20 + j)));
        }
        Features::new(values, 32).unwrap()
    }

    fn search(features: &Features, wanted: f64) -> (Neighbours, f64) {
        let level = Level::current();
        let leading = Leading::of(level, features, 12);
        approximate_by(level, features, 10, wanted, &leading, Watch::unwatched())
    }

    #[test]
    fn most_neighbours_are_found_by_looking_at_some_pairs_and_the_recall_is_the_real_one() {
        let features = clustered(20_000);
        let exact = Neighbours::exact(&features, 10);
        let (found, told) = search(&features, 0.9);
        let hits = |i: usize| found.of(i).0.iter().filter(|other| exact.of(i).0.contains(other)).count();
        let real = (0..20_000).map(hits).sum::<usize>() as f64 / 200_000.0;
        assert!((0.85..1.0).contains(&real), "{real}");
        assert!((real - told).abs() < 0.05, "{real}, told {told}");
        for i in 0..20_000 {
            let (indices, similarities) = found.of(i);
            assert!(similarities.is_sorted_by(|a, b| a >= b) && !indices.contains(&(i as u32)));
            let own = |&other: &u32| dot_at(Level::current(), features.row(i), features.row(other as usize));
            assert!(indices.iter().zip(similarities).all(|(other, &s)| own(other) == s), "row {i}");
        }
    }

    #[test]
    fn the_same_lists_come_at_any_number_of_threads() {
        let features = clustered(9_000);
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| search(&features, 0.9))
        };
        let one = with(1);
        let three = with(3);
        assert!(one.1 < 1.0); // else it was an exact search
        assert!(one == three);
    }

    #[test]
    fn few_rows_are_searched_exactly() {
        let features = clustered(9_000);
        let (found, recall) = approximate(Level::current(), &features, 10, 0.5, Watch::unwatched());
        assert!(recall == 1.0 && found == Neighbours::exact(&features, 10));
    }

    #[test]
    fn copies_fill_lists_too() {
        let copies = Features::new([1.0, 0.0, 0.0, 0.0].repeat(9_000), 4).unwrap();
        let leading = Leading::of(Level::current(), &copies, 1);
        let (found, _) = approximate_by(Level::current(), &copies, 10, 0.9, &leading, Watch::unwatched());
        assert!((0..9_000).all(|i| found.of(i).1.iter().all(|&s| s == 1.0)));
    }
}
