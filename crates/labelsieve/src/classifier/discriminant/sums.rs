//! Sums over the examples, class by class: all that the discriminant needs of them.

use labelsieve_numerics::kernels::{Scatter, dot};

use super::shrinkage::Spread;
use super::within::Within;
use crate::classifier::WeightedClass;
use crate::classifier::left_out::{KeptRow, MAX_LEFT_OUT};
use crate::error::{Result, check};
use crate::features::Features;

/// The sums over the examples of all classes, added class by class. It needs memory for d² + K·d numbers, however many rows there
/// are, and for a few clean examples that are left out in turn.
#[derive(Clone, Debug)]
pub struct ClassSums {
    dim: usize,
    n_expected: usize,
    classes: Vec<ClassSum>,
    rows: Rows,
    spread: Spread,
}

/// The sums over one class.
#[derive(Clone, Debug)]
struct ClassSum {
    /// W_c.
    total: f64,
    /// Σ w x.
    sum: Vec<f64>,
    /// Clean examples that are left out in turn.
    kept: Features,
}

/// The rows √(w/W_c) (x − μ_c), whose products with themselves are K Σ.
#[derive(Clone, Debug)]
enum Rows {
    /// Fewer rows than columns: the rows themselves.
    Listed(Vec<f32>),
    /// The sum of their products.
    Summed(Scatter),
    /// Not asked for.
    None,
}

impl ClassSums {
    /// No classes yet; there will be `n_classes`, with at most `n_rows` examples of `dim` numbers.
    pub fn new(dim: usize, n_classes: usize, n_rows: usize) -> ClassSums {
        let rows = if n_rows < dim { Rows::Listed(Vec::new()) } else { Rows::Summed(Scatter::new(dim)) };
        ClassSums { dim, n_expected: n_classes, classes: Vec::new(), rows, spread: Spread::new(dim) }
    }

    /// As [`ClassSums::new`], for the means alone, without a covariance.
    pub fn of_means(dim: usize, n_classes: usize) -> ClassSums {
        ClassSums { rows: Rows::None, ..ClassSums::new(dim, n_classes, 0) }
    }

    /// The sums over classes in memory.
    pub fn of(classes: &[WeightedClass], dim: usize) -> Result<ClassSums> {
        let n_rows = classes.iter().map(|class| class.n_clean() + class.noisy().len()).sum();
        let mut sums = ClassSums::new(dim, classes.len(), n_rows);
        classes.iter().try_for_each(|class| sums.add(class))?;
        Ok(sums)
    }

    /// Adds a class.
    pub fn add(&mut self, class: &WeightedClass) -> Result<()> {
        let invalid = class.relevance().iter().find(|weight| !(0.0..=1.0).contains(*weight));
        check(invalid.is_none(), "weight", "a number from 0 to 1", invalid.unwrap_or(&0.0))?;
        let total = class.total();
        let sum: Vec<f64> = class.weighted_sum(|weight| weight).into_iter().map(f64::from).collect();
        let mean: Vec<f32> = sum.iter().map(|sum| (sum / total) as f32).collect();
        let covariance = !matches!(self.rows, Rows::None);
        for (row, weight) in class.examples().filter(|(_, weight)| covariance && *weight > 0.0) {
            let share = f64::from(weight) / total;
            let factor = share.sqrt() as f32;
            let mut squared = 0.0; // share · ‖x − μ_c‖²
            let mut fill = |out: &mut [f32]| {
                for ((out, &x), mean) in out.iter_mut().zip(row).zip(&mean) {
                    *out = factor * (x - mean);
                }
                squared = f64::from(dot(out, out));
            };
            match &mut self.rows {
                Rows::Summed(scatter) => scatter.push(fill),
                Rows::Listed(rows) => {
                    rows.resize(rows.len() + self.dim, 0.0);
                    let start = rows.len() - self.dim;
                    fill(&mut rows[start..]);
                }
                Rows::None => (),
            }
            self.spread.add(share, squared);
        }
        let kept = self.rows_to_leave_out(class.clean());
        self.classes.push(ClassSum { total, sum, kept });
        Ok(())
    }

    /// An even part of a class's clean examples, such that there are at most [`MAX_LEFT_OUT`] of all classes.
    fn rows_to_leave_out(&self, clean: &Features) -> Features {
        let n_classes = self.n_expected.max(1);
        if !self.classes.len().is_multiple_of(n_classes.div_ceil(MAX_LEFT_OUT)) {
            return Features::empty(self.dim);
        }
        let step = clean.len().div_ceil((MAX_LEFT_OUT / n_classes).max(1)).max(1);
        clean.select(&(0..clean.len()).step_by(step).collect::<Vec<_>>())
    }

    /// Multiplies the rows that wait for others, which happens by itself later.
    pub fn flush(&mut self) {
        if let Rows::Summed(scatter) = &mut self.rows {
            scatter.flush();
        }
    }

    /// Numbers per feature.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Classes so far.
    pub fn n_classes(&self) -> usize {
        self.classes.len()
    }

    /// W_c.
    pub(crate) fn total(&self, class: usize) -> f64 {
        self.classes[class].total
    }

    /// Σ w x of a class.
    pub(crate) fn sum(&self, class: usize) -> &[f64] {
        &self.classes[class].sum
    }

    /// Σ w x of a class in single precision, which points in the direction of its prototype (eq. 5).
    pub fn direction(&self, class: usize) -> impl Iterator<Item = f32> + use<'_> {
        self.classes[class].sum.iter().map(|&sum| sum as f32)
    }

    /// μ_c.
    pub(super) fn mean(&self, class: usize) -> impl Iterator<Item = f64> + use<'_> {
        let class = &self.classes[class];
        class.sum.iter().map(|sum| sum / class.total)
    }

    /// The mean length of the means of the classes, for base classes known by their direction alone.
    pub fn mean_length(&self) -> f64 {
        let length = |c: usize| self.mean(c).map(|v| v * v).sum::<f64>().sqrt();
        (0..self.n_classes()).map(length).sum::<f64>() / self.n_classes().max(1) as f64
    }

    /// The clean examples to leave out in turn: those whose class has something left without them.
    pub(crate) fn kept_rows(&self, n_base: usize) -> Vec<KeptRow<'_>> {
        const NOTHING: f64 = 1e-6;
        let classes = self.classes.iter().enumerate().filter(|(_, class)| class.total - 1.0 > NOTHING);
        classes
            .flat_map(|(c, class)| {
                class.kept.rows().map(move |row| KeptRow { row, class: c, label: n_base + c })
            })
            .collect()
    }

    /// Σ.
    pub(super) fn within(&self) -> Within {
        let n_classes = self.n_classes().max(1) as f64;
        match &self.rows {
            Rows::Listed(rows) => Within::of_rows(rows, self.dim, n_classes),
            Rows::None => Within::of_rows(&[], self.dim, n_classes),
            Rows::Summed(scatter) => {
                let mut matrix = scatter.clone().finish();
                matrix.iter_mut().for_each(|value| *value /= n_classes);
                Within::of_matrix(matrix, self.dim)
            }
        }
    }

    pub(super) fn spread(&self) -> Spread {
        self.spread.averaged(self.n_classes())
    }
}
