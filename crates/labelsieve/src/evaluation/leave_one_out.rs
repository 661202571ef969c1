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
    let mut check = LeaveOneOutCheck::default();
    classes.iter().for_each(|class| check.add(class));
    check.finish()
}

/// [`leave_one_out`] for classes that come one after the other.
#[derive(Default)]
pub struct LeaveOneOutCheck {
    classes: Vec<ClassSums>,
}

/// A class's clean examples, and the sums of its examples in the three ways.
struct ClassSums {
    clean: Features,
    weighted: Vec<f32>,
    untreated: Vec<f32>,
    clean_only: Vec<f32>,
}

impl LeaveOneOutCheck {
    /// Adds a class.
    pub fn add(&mut self, class: &CheckedClass) {
        let mut untreated = class.learned.weighted_sum(|_| 1.0);
        untreated.iter_mut().zip(class.irrelevant).for_each(|(sum, v)| *sum += v);
        self.classes.push(ClassSums {
            clean: class.learned.clean().clone(),
            weighted: class.learned.weighted_sum(|relevance| relevance),
            untreated,
            clean_only: class.learned.weighted_sum(|_| 0.0),
        });
    }

    /// The result over all classes.
    pub fn finish(&self) -> Result<LeaveOneOut> {
        let n = self.classes.iter().map(|class| class.clean.len()).sum();
        if self.classes.len() < 2 {
            return Ok(LeaveOneOut { n, weighted: None, untreated: None, clean_only: None });
        }
        let several = self.classes.iter().all(|class| class.clean.len() >= 2);
        let clean_only = several.then(|| self.recognised(|class| &class.clean_only)).transpose()?;
        Ok(LeaveOneOut {
            n,
            weighted: Some(self.recognised(|class| &class.weighted)?),
            untreated: Some(self.recognised(|class| &class.untreated)?),
            clean_only,
        })
    }

    /// The share of clean examples that are recognised by these sums.
    fn recognised(&self, sum: impl Fn(&ClassSums) -> &Vec<f32> + Sync) -> Result<f64> {
        let dim = self.classes[0].clean.dim();
        let sums: Vec<&[f32]> = self.classes.iter().map(|class| sum(class).as_slice()).collect();
        let prototypes = WeightMatrix::new(Features::new(sums.concat(), dim)?, 1.0)?;
        let right_of = |(c, class): (usize, &ClassSums)| -> Result<usize> {
            let mut right = 0;
            for row in class.clean.rows() {
                let others = prototypes.weights().rows().enumerate().filter(|(other, _)| *other != c);
                let others = others.map(|(_, prototype)| prototype);
                right += usize::from(is_recognised(row, sums[c], 1.0, others)?);
            }
            Ok(right)
        };
        let right: Vec<usize> = self.classes.par_iter().enumerate().map(right_of).collect::<Result<_>>()?;
        let n: usize = self.classes.iter().map(|class| class.clean.len()).sum();
        Ok(right.iter().sum::<usize>() as f64 / n.max(1) as f64)
    }
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
