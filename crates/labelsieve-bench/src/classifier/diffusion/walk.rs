//! One step of the diffusion: every row takes the mean of its neighbours' labels.

use labelsieve::graph::Neighbours;
use rayon::prelude::*;

/// **W** = D⁻¹(W₀ + W₀ᵀ): the probability of a step from each row to the rows it is linked with, row by row. W₀ has a 1 where a
/// row is a neighbour of another; a mutual pair counts twice. Pairs whose similarity is not positive are
/// not linked.
pub(super) struct Walk {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    weights: Vec<f32>,
}

impl Walk {
    pub(super) fn new(neighbours: &Neighbours) -> Walk {
        let n = neighbours.len();
        let linked = |i: usize| {
            let (indices, similarities) = neighbours.of(i);
            indices.iter().zip(similarities).filter(|(_, s)| **s > 0.0).map(|(&j, _)| j)
        };
        let mut links: Vec<Vec<u32>> = (0..n).map(|i| linked(i).collect()).collect();
        for i in 0..n {
            linked(i).for_each(|j| links[j as usize].push(i as u32));
        }
        let mut walk = Walk { offsets: vec![0], columns: Vec::new(), weights: Vec::new() };
        for mut row in links {
            row.sort_unstable();
            let total = row.len() as f32;
            for alike in row.chunk_by(|a, b| a == b) {
                walk.columns.push(alike[0]);
                walk.weights.push(alike.len() as f32 / total);
            }
            walk.offsets.push(walk.columns.len());
        }
        walk
    }

    /// W L, with each row restricted to the classes of `allowed` and to its `keep` largest entries, then columns normalised to sum 1.
    pub(super) fn step<'a>(
        &self,
        labels: &Labels,
        keep: usize,
        allowed: impl Fn(usize) -> Option<&'a [u32]> + Sync,
    ) -> Labels {
        const CHUNK: usize = 256;
        let n = self.offsets.len() - 1;
        let n_classes = labels.n_classes;
        let parts: Vec<Vec<Vec<(u32, f32)>>> = (0..n.div_ceil(CHUNK))
            .into_par_iter()
            .map_init(
                || vec![0f32; n_classes],
                |sums, chunk| {
                    let rows = chunk * CHUNK..((chunk + 1) * CHUNK).min(n);
                    rows.map(|i| self.row(i, labels, keep, allowed(i), sums)).collect()
                },
            )
            .collect();
        Labels::from_rows(parts.into_iter().flatten(), n_classes)
    }

    /// Row `i` of W L; `sums` is all zero before and after.
    fn row(
        &self,
        i: usize,
        labels: &Labels,
        keep: usize,
        allowed: Option<&[u32]>,
        sums: &mut [f32],
    ) -> Vec<(u32, f32)> {
        let range = self.offsets[i]..self.offsets[i + 1];
        for (&j, &weight) in self.columns[range.clone()].iter().zip(&self.weights[range]) {
            let (classes, masses) = labels.of(j as usize);
            classes.iter().zip(masses).for_each(|(&class, mass)| sums[class as usize] += weight * mass);
        }
        let entry = |class: u32| Some((class, sums[class as usize])).filter(|(_, mass)| *mass > 0.0);
        let mut row: Vec<(u32, f32)> = match allowed {
            Some(classes) => classes.iter().filter_map(|&class| entry(class)).collect(),
            None => (0..sums.len() as u32).filter_map(entry).collect(),
        };
        sums.fill(0.0);
        if row.len() > keep {
            row.select_nth_unstable_by(keep, |a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            row.truncate(keep);
            row.sort_unstable_by_key(|&(class, _)| class);
        }
        row
    }
}

/// **L**, sparse: the mass of each class's label in a row. The column of a class sums to 1, or to 0 if no row holds it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Labels {
    pub(super) n_classes: usize,
    offsets: Vec<usize>,
    classes: Vec<u32>,
    masses: Vec<f32>,
}

impl Labels {
    /// Labels from rows of (class, mass), scaled so that columns sum to 1.
    pub(super) fn from_rows(rows: impl IntoIterator<Item = Vec<(u32, f32)>>, n_classes: usize) -> Labels {
        let mut labels = Labels { n_classes, offsets: vec![0], classes: Vec::new(), masses: Vec::new() };
        let mut sums = vec![0f64; n_classes];
        for row in rows {
            for (class, mass) in row {
                labels.classes.push(class);
                labels.masses.push(mass);
                sums[class as usize] += f64::from(mass);
            }
            labels.offsets.push(labels.classes.len());
        }
        for (mass, &class) in labels.masses.iter_mut().zip(&labels.classes) {
            *mass = (f64::from(*mass) / sums[class as usize]) as f32;
        }
        labels
    }

    /// Labels from unscaled entries, e.g. of a file.
    pub(super) fn from_parts(
        n_classes: usize,
        offsets: Vec<usize>,
        classes: Vec<u32>,
        masses: Vec<f32>,
    ) -> Labels {
        Labels { n_classes, offsets, classes, masses }
    }

    /// The classes of row `i`, ascending, and their masses.
    pub(super) fn of(&self, i: usize) -> (&[u32], &[f32]) {
        let range = self.offsets[i]..self.offsets[i + 1];
        (&self.classes[range.clone()], &self.masses[range])
    }

    /// All entries: offsets of the rows, classes, masses.
    pub(super) fn parts(&self) -> (&[usize], &[u32], &[f32]) {
        (&self.offsets, &self.classes, &self.masses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows 0 and 1 chose each other, row 2 chose row 1.
    fn chain() -> Walk {
        Walk::new(&Neighbours::from_lists(3, 1, vec![1, 0, 1], vec![0.9, 0.9, 0.5]).unwrap())
    }

    #[test]
    fn a_pair_that_chose_each_other_counts_twice() {
        let walk = chain();
        assert_eq!(walk.offsets, [0, 1, 3, 4]);
        assert_eq!(walk.columns, [1, 0, 2, 1]);
        assert_eq!(walk.weights, [1.0, 2.0 / 3.0, 1.0 / 3.0, 1.0]);
    }

    #[test]
    fn a_step_moves_labels_to_neighbours_and_columns_add_up_to_one() {
        let start = Labels::from_rows([vec![(0, 1.0)], vec![], vec![(1, 1.0)]], 2);
        let labels = chain().step(&start, 2, |_| None);
        // Row 1 takes 2/3 of class 0 and 1/3 of class 1, the others nothing: both columns are all row 1's.
        assert_eq!(labels.of(1), (&[0, 1][..], &[1.0, 1.0][..]));
        assert!(labels.of(0).0.is_empty() && labels.of(2).0.is_empty());
        let again = chain().step(&labels, 2, |_| None);
        assert_eq!(again.of(0), (&[0, 1][..], &[0.5, 0.5][..]));
        assert_eq!(again.of(2), (&[0, 1][..], &[0.5, 0.5][..]));
    }

    #[test]
    fn rows_are_cut_to_their_largest_entries_and_to_what_they_may_hold() {
        let start = Labels::from_rows([vec![(0, 1.0)], vec![], vec![(1, 1.0)]], 2);
        assert_eq!(chain().step(&start, 1, |_| None).of(1), (&[0][..], &[1.0][..]));
        let only_second: &[u32] = &[1];
        assert_eq!(chain().step(&start, 2, |_| Some(only_second)).of(1), (&[1][..], &[1.0][..]));
    }

    #[test]
    fn what_is_not_similar_at_all_is_not_linked() {
        let walk = Walk::new(&Neighbours::from_lists(2, 1, vec![1, 0], vec![0.0, 0.0]).unwrap());
        assert!(walk.columns.is_empty());
    }
}
