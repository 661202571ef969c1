//! A check that needs no test set: can the clean examples be recognised when each is left out in turn?

use rayon::prelude::*;

use crate::classifier::{WeightMatrix, WeightedClass};
use crate::error::Result;
use crate::features::Features;
use crate::kernels::dot;

/// Share of clean examples whose class's prototype is the closest, when the example itself is not part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
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

/// Compares the three ways to use a pool on the clean examples.
///
/// The relevance was learned with the left-out example among the clean ones, so the weighted figure is somewhat
/// flattered; a figure *below* the other two is bad news all the same.
pub fn leave_one_out(classes: &[WeightedClass]) -> Result<LeaveOneOut> {
    let n = classes.iter().map(WeightedClass::n_clean).sum();
    if classes.len() < 2 {
        return Ok(LeaveOneOut { n, weighted: None, untreated: None, clean_only: None });
    }
    let several = classes.iter().all(|class| class.n_clean() >= 2);
    let without_noise = several.then(|| recognised(classes, |_| 0.0)).transpose()?;
    Ok(LeaveOneOut {
        n,
        weighted: Some(recognised(classes, |relevance| relevance)?),
        untreated: Some(recognised(classes, |_| 1.0)?),
        clean_only: without_noise,
    })
}

/// The share of clean examples that are recognised when noisy ones weigh `weight(relevance)`.
fn recognised(classes: &[WeightedClass], weight: impl Fn(f32) -> f32 + Sync) -> Result<f64> {
    let dim = classes[0].clean().dim();
    let sums: Vec<Vec<f32>> = classes.par_iter().map(|class| class.weighted_sum(&weight)).collect();
    let prototypes = WeightMatrix::new(Features::new(sums.concat(), dim)?, 1.0)?;
    let right_of = |(c, class): (usize, &WeightedClass)| -> Result<usize> {
        let mut right = 0;
        for row in class.clean().rows() {
            let rest: Vec<f32> = sums[c].iter().zip(row).map(|(sum, v)| sum - v).collect();
            let rest = Features::new(rest, dim)?;
            let own = dot(rest.row(0), row);
            let others = prototypes.weights().rows().enumerate().filter(|(other, _)| *other != c);
            right += usize::from(others.map(|(_, w)| dot(w, row)).all(|score| score < own));
        }
        Ok(right)
    };
    let right: Vec<usize> = classes.par_iter().enumerate().map(right_of).collect::<Result<_>>()?;
    let n: usize = classes.iter().map(WeightedClass::n_clean).sum();
    Ok(right.iter().sum::<usize>() as f64 / n.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_of_the_wrong_class_shows_in_the_untreated_figure() {
        let features = |values: &[f32]| Features::new(values.to_vec(), 2).unwrap();
        let (east, north) = (features(&[1.0, 0.0, 1.0, 0.1]), features(&[0.0, 1.0, 0.1, 1.0]));
        let (good, bad) = (features(&[1.0, 0.0].repeat(9)), features(&[1.0, -0.1].repeat(9)));
        let classes = [
            WeightedClass::new(&east, &good, &[1.0; 9]).unwrap(),
            WeightedClass::new(&north, &bad, &[0.0; 9]).unwrap(), // its candidates are all of the other class
        ];
        let check = leave_one_out(&classes).unwrap();
        assert_eq!((check.n, check.weighted, check.clean_only), (4, Some(1.0), Some(1.0)));
        assert!(check.untreated.unwrap() < 1.0);
    }

    #[test]
    fn one_clean_example_leaves_nothing_for_clean_only() {
        let row = Features::new(vec![1.0, 0.0], 2).unwrap();
        let other = Features::new(vec![0.0, 1.0], 2).unwrap();
        let classes = [
            WeightedClass::new(&row, &row, &[0.5]).unwrap(),
            WeightedClass::new(&other, &other, &[0.5]).unwrap(),
        ];
        let check = leave_one_out(&classes).unwrap();
        assert_eq!((check.weighted, check.clean_only), (Some(1.0), None));
    }
}
