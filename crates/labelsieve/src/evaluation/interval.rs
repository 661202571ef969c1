//! The mean over episodes with its confidence interval.

use serde::{Deserialize, Serialize};

/// A mean and the half-width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width; none for a single value, which has no spread.
    pub half_width: Option<f64>,
}

impl Interval {
    /// From independent values, by Student's t: mean ± t · deviation / √n.
    pub fn of(values: &[f64]) -> Interval {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n.max(1) as f64;
        if n < 2 {
            return Interval { mean, half_width: None };
        }
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        Interval { mean, half_width: Some(student_t(n - 1) * (variance / n as f64).sqrt()) }
    }
}

/// The 97.5 % quantile of Student's t with `freedom` degrees of freedom: the usual table, then Cornish and Fisher's
/// expansion around the normal quantile.
fn student_t(freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    if let Some(&t) = TABLE.get(freedom - 1) {
        return t;
    }
    let z = 1.959_964f64;
    let n = freedom as f64;
    let z3 = z.powi(3);
    let z5 = z.powi(5);
    let z7 = z.powi(7);
    z + (z3 + z) / (4.0 * n)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_episodes_use_students_t() {
        // Mean 3, deviation √2.5, t = 2.776 for 4 degrees of freedom.
        let interval = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(interval.mean, 3.0);
        assert!((interval.half_width.unwrap() - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn one_value_has_no_width_and_none_has_no_mean_but_zero() {
        assert_eq!(Interval::of(&[7.0]), Interval { mean: 7.0, half_width: None });
        assert_eq!(Interval::of(&[]), Interval { mean: 0.0, half_width: None });
    }

    #[test]
    fn quantiles_beyond_the_table_agree_with_published_ones() {
        for (freedom, t) in [(11, 2.201), (20, 2.086), (30, 2.042), (100, 1.984), (599, 1.964)] {
            assert!((student_t(freedom) - t).abs() < 1e-3, "{freedom}: {}", student_t(freedom));
        }
    }
}
