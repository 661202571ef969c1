//! A check that needs no test set: can the clean examples be recognised when each is left out in turn?

use labelsieve_numerics::kernels::dot;
use rayon::prelude::*;

use crate::classifier::{WeightMatrix, WeightedClass};
use crate::error::Result;
use crate::features::Features;

/// Share of clean examples whose class's prototype is the closest, when the example itself is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct LeaveOneOut {
    /// Clean examples tried.
    pub n: usize,
    /// With candidates weighted by relevance.
    pub weighted: Option<f64>,
    /// With all candidates at relevance 1.
    pub untreated: Option<f64>,
    /// With clean examples alone; none unless every class has two.
    pub clean_only: Option<f64>,
}

/// The examples a class is learned from, and the sum of those left out of them.
#[derive(Clone, Copy)]
pub struct CheckedClass<'a> {
    /// The examples that it is learned from. Candidates of relevance zero change nothing and may be left out …
    pub learned: WeightedClass<'a>,
    /// … if this is the sum of their feature rows, one number per column.
    pub irrelevant: &'a [f32],
}

/// Compares the three ways to use a pool on the clean examples.
///
/// The relevance was learned with the left-out example among the clean ones, so the weighted figure is somewhat
/// optimistic; a figure *below* the other two is a warning all the same.
pub fn leave_one_out(classes: &[CheckedClass]) -> Result<LeaveOneOut> {
    let n = classes.iter().map(|class| class.learned.n_clean()).sum();
    if classes.len() < 2 {
        return Ok(LeaveOneOut { n, weighted: None, untreated: None, clean_only: None });
    }
    let several = classes.iter().all(|class| class.learned.n_clean() >= 2);
    let without_noise = several.then(|| recognised(classes, |_| 0.0)).transpose()?;
    Ok(LeaveOneOut {
        n,
        weighted: Some(recognised(classes, |relevance| relevance)?),
        untreated: Some(recognised(classes, |_| 1.0)?),
        clean_only: without_noise,
    })
}

/// The share of clean examples that are recognised when noisy ones have weight `weight(relevance)`.
fn recognised(classes: &[CheckedClass], weight: impl Fn(f32) -> f32 + Sync) -> Result<f64> {
    let dim = classes[0].learned.clean().dim();
    let of_zero = weight(0.0);
    let sum_of = |class: &CheckedClass| {
        let mut sum = class.learned.weighted_sum(&weight);
        sum.iter_mut().zip(class.irrelevant).for_each(|(sum, v)| *sum += of_zero * v);
        sum
    };
    let sums: Vec<Vec<f32>> = classes.par_iter().map(sum_of).collect();
    let prototypes = WeightMatrix::new(Features::new(sums.concat(), dim)?, 1.0)?;
    let right_of = |(c, class): (usize, &CheckedClass)| -> Result<usize> {
        let mut right = 0;
        for row in class.learned.clean().rows() {
            let others = prototypes.weights().rows().enumerate().filter(|(other, _)| *other != c);
            right += usize::from(is_recognised(row, &sums[c], 1.0, others.map(|(_, prototype)| prototype))?);
        }
        Ok(right)
    };
    let right: Vec<usize> = classes.par_iter().enumerate().map(right_of).collect::<Result<_>>()?;
    let n: usize = classes.iter().map(|class| class.learned.n_clean()).sum();
    Ok(right.iter().sum::<usize>() as f64 / n.max(1) as f64)
}

/// Whether an example is recognised when it is left out of its class: it is closer to the rest of the class's `sum`, in which
/// it has this weight, than to all `others`, prototypes of unit length.
pub fn is_recognised<'a>(
    row: &[f32],
    sum: &[f32],
    weight: f32,
    mut others: impl Iterator<Item = &'a [f32]>,
) -> Result<bool> {
    let rest: Vec<f32> = sum.iter().zip(row).map(|(sum, v)| sum - weight * v).collect();
    let rest = Features::new(rest, row.len())?;
    let own = dot(rest.row(0), row);
    Ok(others.all(|other| dot(other, row) < own))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [f32; 2] = [0.0; 2];

    fn checked<'a>(
        clean: &'a Features,
        noisy: &'a Features,
        relevance: &'a [f32],
        irrelevant: &'a [f32],
    ) -> CheckedClass<'a> {
        CheckedClass { learned: WeightedClass::new(clean, noisy, relevance).unwrap(), irrelevant }
    }

    #[test]
    fn a_pool_of_the_wrong_class_shows_in_the_untreated_figure() {
        let features = |values: &[f32]| Features::new(values.to_vec(), 2).unwrap();
        let east = features(&[1.0, 0.0, 1.0, 0.1]);
        let north = features(&[0.0, 1.0, 0.1, 1.0]);
        let good = features(&[1.0, 0.0].repeat(9));
        let bad = features(&[1.0, -0.1].repeat(9));
        let classes = [
            checked(&east, &good, &[1.0; 9], &NONE),
            checked(&north, &bad, &[0.0; 9], &NONE), // its candidates are all of the other class
        ];
        let check = leave_one_out(&classes).unwrap();
        assert_eq!((check.n, check.weighted, check.clean_only), (4, Some(1.0), Some(1.0)));
        assert!(check.untreated.unwrap() < 1.0);
    }

    #[test]
    fn candidates_of_relevance_zero_count_alike_whether_they_are_listed_or_summed_up() {
        // Class east: one clean example east. Class north: one north, and three candidates south of relevance 0. Alike,
        // what is left of north points south, so its example is closer to east (0) than to its own class (-1).
        let row = |x: f32, y: f32| Features::new(vec![x, y], 2).unwrap();
        let east = row(1.0, 0.0);
        let north = row(0.0, 1.0);
        let good = row(1.0, 0.0);
        let wrong = Features::new([0.0, -1.0].repeat(3), 2).unwrap();
        let none = Features::empty(2);
        let listed = [checked(&east, &good, &[0.5], &NONE), checked(&north, &wrong, &[0.0; 3], &NONE)];
        let summed = [checked(&east, &good, &[0.5], &NONE), checked(&north, &none, &[], &[0.0, -3.0])];
        for classes in [listed, summed] {
            let check = leave_one_out(&classes).unwrap();
            assert_eq!((check.n, check.untreated), (2, Some(0.5)));
        }
    }

    #[test]
    fn one_clean_example_leaves_nothing_for_clean_only() {
        let row = Features::new(vec![1.0, 0.0], 2).unwrap();
        let other = Features::new(vec![0.0, 1.0], 2).unwrap();
        let classes = [checked(&row, &row, &[0.5], &NONE), checked(&other, &other, &[0.5], &NONE)];
        let check = leave_one_out(&classes).unwrap();
        assert_eq!((check.weighted, check.clean_only), (Some(1.0), None));
    }
}
