//! A discriminant with one covariance for all classes, in closed form.
//!
//! Every class is a Gaussian around its weighted mean, and all share one shape. With weights w (1 for clean examples) and
//! unit-length rows x:
//!
//! ```text
//! W_c = Σ_i w_i      μ_c = 1/W_c Σ_i w_i x_i      Σ = 1/K Σ_c 1/W_c Σ_i w_i (x_i − μ_c)(x_i − μ_c)ᵀ
//!
//! S = (1 − γ) Σ + γ (tr Σ / d) I        d²_c(x) = (x − μ_c)ᵀ S⁻¹ (x − μ_c)        score_c(x) = − ½ d²_c(x) + terms equal for all c
//! ```
//!
//! There are no epochs and no seed. `sums` adds up classes one after the other, `within` is Σ, `whitening` S⁻¹, `shrinkage`
//! chooses γ, `left_out` asks how every clean example is classified without itself, and `model` is the result.

mod left_out;
mod model;
mod shrinkage;
mod sums;
#[cfg(test)]
mod tests;
mod whitening;
mod within;

use labelsieve_numerics::Watch;

pub use model::FittedDiscriminant;
pub use shrinkage::Shrinkage;
pub use sums::ClassSums;
pub use within::Within;

use self::left_out::left_out;
use self::shrinkage::{GRID, MIN_SHRINKAGE, penalty};
use self::whitening::Whitening;
use super::left_out::LeftOut;
use crate::error::{Result, check};

/// Settings of the discriminant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Discriminant {
    /// How γ is chosen.
    pub shrinkage: Shrinkage,
}

/// Classes that are known by their means alone, or by their means and the covariance within them.
#[derive(Clone, Debug, PartialEq)]
pub struct BaseClasses {
    /// Their means, one after the other.
    pub means: Vec<f64>,
    /// The covariance within them and the number of classes that it was measured on.
    pub within: Option<(Within, usize)>,
}

/// The means of all classes, base classes first, and the covariance within them.
pub(super) struct Moments {
    dim: usize,
    n_base: usize,
    /// K×d.
    means: Vec<f64>,
    within: Within,
    /// Classes that Σ was measured on.
    n_pooled: usize,
}

/// A discriminant, and how it classifies clean examples that are left out of it.
#[derive(Clone, Debug)]
pub struct DiscriminantFit {
    /// The classifier.
    pub model: FittedDiscriminant,
    /// The left-out examples.
    pub left_out: LeftOut,
}

impl Discriminant {
    /// An error if a setting is out of range.
    pub fn checked(&self) -> Result<()> {
        match self.shrinkage {
            Shrinkage::Fixed(gamma) => {
                check(gamma > 0.0 && gamma <= 1.0, "shrinkage", "a number above 0 and at most 1", gamma)
            }
            _ => Ok(()),
        }
    }

    /// The discriminant of the classes added to `sums`, behind the base classes.
    ///
    /// Where no row differs from the mean of its class, Σ says nothing: the nearest mean wins (γ = 1).
    pub fn fit(
        &self,
        sums: &ClassSums,
        base: Option<&BaseClasses>,
        watch: &Watch,
    ) -> Result<DiscriminantFit> {
        self.checked()?;
        let moments = Moments::new(sums, base);
        let rows = sums.kept_rows(moments.n_base);
        let weigh = |gamma: f64| -> Result<(LeftOut, Whitening)> {
            watch.check()?;
            let whitening = Whitening::new(&moments.within, gamma);
            Ok((left_out(&moments, sums, &rows, &whitening), whitening))
        };
        let spread = sums.spread();
        let fixed = if moments.within.trace() <= 0.0 {
            Some(1.0)
        } else {
            match self.shrinkage {
                Shrinkage::Fixed(gamma) => Some(gamma),
                Shrinkage::LedoitWolf => Some(spread.ledoit_wolf(&moments.within).max(MIN_SHRINKAGE)),
                Shrinkage::Oas => Some(spread.oas(&moments.within).max(MIN_SHRINKAGE)),
                Shrinkage::Auto | Shrinkage::LeftOut => None,
            }
        };
        let (gamma, (left_out, whitening)) = match fixed {
            Some(gamma) => (gamma, weigh(gamma)?),
            None => {
                let start = spread.start(&moments.within);
                let mut best: Option<(f64, f64, (LeftOut, Whitening))> = None;
                for gamma in [start].into_iter().chain(GRID) {
                    let weighed = weigh(gamma)?;
                    let loss = weighed.0.least_loss(1.0);
                    let prior = if self.shrinkage == Shrinkage::Auto { penalty(gamma, start) } else { 0.0 };
                    if best.as_ref().is_none_or(|(_, least, _)| loss + prior < *least) {
                        best = Some((gamma, loss + prior, weighed));
                    }
                }
                let (gamma, _, weighed) = best.expect("there is a grid");
                (gamma, weighed)
            }
        };
        let model = FittedDiscriminant::with_whitening(moments, gamma, whitening);
        Ok(DiscriminantFit { model, left_out })
    }
}

impl Moments {
    fn new(sums: &ClassSums, base: Option<&BaseClasses>) -> Moments {
        let dim = sums.dim();
        let mut means = base.map_or(Vec::new(), |base| base.means.clone());
        let n_base = means.len() / dim;
        let mut within = sums.within();
        let mut n_pooled = sums.n_classes();
        if let Some((of_base, n_of_base)) = base.and_then(|base| base.within.as_ref()) {
            within = Within::pooled(of_base, *n_of_base, &within, n_pooled);
            n_pooled += n_of_base;
        }
        means.extend((0..sums.n_classes()).flat_map(|c| sums.mean(c)));
        Moments { dim, n_base, means, within, n_pooled }
    }

    fn n_classes(&self) -> usize {
        self.means.len() / self.dim
    }
}
