//! Principal components: fewer numbers per feature, chosen on base classes.

use rayon::prelude::*;

use crate::covariance::Covariance;
use crate::eigen::leading;
use crate::error::{Error, Result, Setting};
use crate::weights::NamedTensor;

/// A projection of features onto the directions of largest variance, without whitening.
#[derive(Clone, Debug, PartialEq)]
pub struct Pca {
    /// The mean of the features it was fitted on, d numbers.
    mean: Vec<f32>,
    /// width × d, unit rows, by descending variance. The entry of largest magnitude in each is positive.
    components: Vec<f32>,
    /// The variance along each component.
    variances: Vec<f32>,
    /// The share of the whole variance that the components keep.
    kept: f32,
}

impl Pca {
    /// Fits `width` components, at most as many as features have numbers.
    pub fn fit(covariance: Covariance, width: usize) -> Result<Pca> {
        let (mean, matrix) = covariance.finish()?;
        let d = mean.len();
        if width == 0 || width > d {
            let expected = format!("1 to {d}, the width of the features");
            return Err(Error::Setting { name: Setting::PcaWidth, expected, found: width.to_string() });
        }
        let total: f64 = (0..d).map(|i| matrix[i * d + i]).sum();
        let eigen = leading(matrix, d, width);
        let kept = eigen.values.iter().sum::<f64>() / total;
        let components = eigen.vectors.iter().flat_map(|vector| {
            let sign = sign(vector);
            vector.iter().map(move |value| (sign * value) as f32)
        });
        Ok(Pca {
            components: components.collect(),
            mean: mean.iter().map(|&value| value as f32).collect(),
            variances: eigen.values.iter().map(|&value| value.max(0.0) as f32).collect(),
            kept: if total > 0.0 { kept as f32 } else { 1.0 },
        })
    }

    /// Numbers per feature before.
    pub fn dim(&self) -> usize {
        self.mean.len()
    }

    /// Numbers per feature after.
    pub fn width(&self) -> usize {
        self.variances.len()
    }

    /// The share of the whole variance that is kept, from 0 to 1.
    pub fn kept(&self) -> f32 {
        self.kept
    }

    /// Projects rows of [`Pca::dim`] numbers and scales them to unit length; a row equal to the mean becomes zero.
    pub fn apply(&self, rows: &[f32]) -> Result<Vec<f32>> {
        let d = self.dim();
        let width = self.width();
        if !rows.len().is_multiple_of(d) {
            return Err(Error::Shape {
                what: "features".to_owned(),
                expected: format!("rows of {d}, the width the PCA was fitted on"),
                found: format!("{} numbers", rows.len()),
            });
        }
        let mut out = vec![0.0; rows.len() / d * width];
        out.par_chunks_mut(width).zip(rows.par_chunks(d)).for_each_init(
            || vec![0.0; d],
            |shifted: &mut Vec<f32>, (out, row)| {
                shifted.iter_mut().zip(row.iter().zip(&self.mean)).for_each(|(s, (x, mean))| *s = x - mean);
                for (out, component) in out.iter_mut().zip(self.components.chunks_exact(d)) {
                    *out = dot(shifted, component);
                }
                to_unit_length(out);
            },
        );
        Ok(out)
    }

    /// As named tensors, for a file.
    pub fn tensors(&self) -> Vec<NamedTensor> {
        let d = self.dim();
        let width = self.width();
        vec![
            ("pca.mean".to_owned(), vec![d], self.mean.clone()),
            ("pca.components".to_owned(), vec![width, d], self.components.clone()),
            ("pca.variances".to_owned(), vec![width], self.variances.clone()),
            ("pca.kept".to_owned(), vec![1], vec![self.kept]),
        ]
    }

    /// From named tensors; `None` when none of them is one of a PCA.
    pub fn from_tensors(tensors: &[NamedTensor]) -> Result<Option<Pca>> {
        let find = |name: &str| tensors.iter().find(|(found, _, _)| found == name);
        if find("pca.components").is_none() {
            return Ok(None);
        }
        let read = |name: &str, shape: &dyn Fn(&[usize]) -> bool, expected: &str| match find(name) {
            Some((_, found, values)) if shape(found) => check_finite(name, values).map(|()| values.clone()),
            other => Err(Error::Shape {
                what: format!("tensor `{name}`"),
                expected: expected.to_owned(),
                found: other.map_or("none".to_owned(), |(_, shape, _)| format!("{shape:?}")),
            }),
        };
        let mean = read("pca.mean", &|shape| shape.len() == 1 && shape[0] > 0, "one row")?;
        let variances = read("pca.variances", &|shape| shape.len() == 1 && shape[0] > 0, "one row")?;
        let d = mean.len();
        let width = variances.len();
        let components = read(
            "pca.components",
            &|shape| shape == [width, d],
            &format!("[{width}, {d}], to match mean and variances"),
        )?;
        let kept = read("pca.kept", &|shape| shape == [1], "[1]")?[0];
        Ok(Some(Pca { mean, components, variances, kept }))
    }
}

fn check_finite(name: &str, values: &[f32]) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(at) => Err(Error::Shape {
            what: format!("tensor `{name}`, number {at}"),
            expected: "a finite number".to_owned(),
            found: values[at].to_string(),
        }),
    }
}

/// Scales a row to unit length; a row of zeros stays.
pub fn to_unit_length(row: &mut [f32]) {
    let length = row.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>().sqrt();
    if length > 0.0 {
        row.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
    }
}

/// The sign of an eigenvector is arbitrary: its entry of largest magnitude (the first of equals) is made positive.
fn sign(vector: &[f64]) -> f64 {
    let largest =
        vector.iter().fold(0.0, |most: f64, value| if value.abs() > most.abs() { *value } else { most });
    if largest < 0.0 { -1.0 } else { 1.0 }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<16>();
    let (b, b_rest) = b.as_chunks::<16>();
    let mut sums = [0.0; 16];
    for (a, b) in a.iter().zip(b) {
        for i in 0..16 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The features that `tests/golden/make_pca.py` makes.
    fn features() -> Vec<f32> {
        (0..40 * 12)
            .map(|i| (((i * i * 7 + i * 13) % 101) as f32 / 101.0 - 0.3) * (1.0 + (i % 12) as f32))
            .collect()
    }

    fn fitted(width: usize) -> Pca {
        let mut covariance = Covariance::new(12);
        covariance.add(&features()).unwrap();
        Pca::fit(covariance, width).unwrap()
    }

    #[test]
    fn components_and_projections_are_those_of_numpys_svd() {
        let path = format!("{}/tests/golden/pca.json", env!("CARGO_MANIFEST_DIR"));
        let golden: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let pca = fitted(5);
        let projected = pca.apply(&features()).unwrap();
        for (name, found) in [
            ("mean", &pca.mean),
            ("components", &pca.components),
            ("variances", &pca.variances),
            ("projected", &projected),
        ] {
            let expected: Vec<f64> = serde_json::from_value(golden[name].clone()).unwrap();
            assert_eq!(found.len(), expected.len(), "{name}");
            let worst =
                found.iter().zip(&expected).map(|(&a, b)| (f64::from(a) - b).abs()).fold(0.0, f64::max);
            assert!(worst < 2e-6, "{name}: {worst}");
        }
        assert!((f64::from(pca.kept()) - golden["kept"].as_f64().unwrap()).abs() < 1e-6);
    }

    #[test]
    fn what_is_saved_comes_back() {
        let pca = fitted(3);
        assert_eq!(Pca::from_tensors(&pca.tensors()).unwrap(), Some(pca.clone()));
        assert_eq!(Pca::from_tensors(&[]).unwrap(), None);
        let mut tensors = pca.tensors();
        tensors[0].1 = vec![11];
        tensors[0].2.pop();
        let error = Pca::from_tensors(&tensors).unwrap_err().to_string();
        assert_eq!(
            error,
            "tensor `pca.components`: expected [3, 11], to match mean and variances, found [3, 12]"
        );
    }

    #[test]
    fn numbers_that_are_none_are_refused_with_their_place() {
        for (tensor, name) in [(0, "mean"), (1, "components"), (2, "variances"), (3, "kept")] {
            let mut tensors = fitted(3).tensors();
            let at = tensors[tensor].2.len() - 1;
            tensors[tensor].2[at] = f32::NAN;
            let error = Pca::from_tensors(&tensors).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("tensor `pca.{name}`, number {at}: expected a finite number, found NaN")
            );
        }
    }

    #[test]
    fn widths_that_do_not_fit_are_refused() {
        let mut covariance = Covariance::new(12);
        covariance.add(&features()).unwrap();
        let error = Pca::fit(covariance, 13).unwrap_err().to_string();
        assert_eq!(error, "width of the PCA: expected 1 to 12, the width of the features, found 13");
        assert!(fitted(12).apply(&[0.0; 13]).is_err());
    }
}
