//! The tensors of a network by name, as in weight files.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::learner::Snapshot;
use crate::network::{Network, Role};

/// A name, the sizes (outermost first) and the numbers.
pub type NamedTensor = (String, Vec<usize>, Vec<f32>);

/// All tensors of a snapshot, without momentum.
pub fn to_tensors(network: &Network, snapshot: &Snapshot) -> Result<Vec<NamedTensor>> {
    let tensors = snapshot.tensors(network)?.into_iter();
    Ok(tensors
        .map(|(parameter, range)| (parameter.name, parameter.shape, snapshot.values[range].to_vec()))
        .collect())
}

/// The snapshot that `tensors` describe, for a classifier of `n_classes` classes (0: the network alone). Every tensor of
/// the network must be there with its shape, and no other; left out are classifiers of others (`fc.*`, `_fc.*`), its
/// counters (`*.num_batches_tracked`), a PCA (`pca.*`), what is subtracted from features (`centre.*`) and, for 0 classes, our classifier.
pub fn from_tensors(network: &Network, n_classes: usize, tensors: Vec<NamedTensor>) -> Result<Snapshot> {
    let mut by_name: BTreeMap<String, (Vec<usize>, Vec<f32>)> = tensors
        .into_iter()
        .filter(|(name, _, _)| !is_foreign(name) && (n_classes > 0 || !name.starts_with("classifier.")))
        .map(|(name, shape, values)| (name, (shape, values)))
        .collect();
    let mut values = Vec::new();
    for parameter in network.parameters(n_classes) {
        let what = || format!("tensor `{}`", parameter.name);
        let expected = || sizes(&parameter.shape);
        let Some((shape, found)) = by_name.remove(&parameter.name) else {
            return Err(Error::Shape { what: what(), expected: expected(), found: "none".to_owned() });
        };
        if shape != parameter.shape || found.len() != parameter.len() {
            return Err(Error::Shape { what: what(), expected: expected(), found: sizes(&shape) });
        }
        let is_bad =
            |value: &f32| !value.is_finite() || (parameter.role == Role::RunningVariance && *value < 0.0);
        if let Some(at) = found.iter().position(is_bad) {
            let what = format!("{}, number {at}", what());
            let expected = match parameter.role {
                Role::RunningVariance => "a variance",
                _ => "a finite number",
            };
            return Err(Error::Shape { what, expected: expected.to_owned(), found: found[at].to_string() });
        }
        values.extend(found);
    }
    if let Some((name, (shape, _))) = by_name.pop_first() {
        return Err(Error::Shape {
            what: format!("tensor `{name}`"),
            expected: "none of this name in the network".to_owned(),
            found: sizes(&shape),
        });
    }
    Ok(Snapshot { n_classes, momentum: vec![0.0; values.len()], values })
}

fn is_foreign(name: &str) -> bool {
    ["fc.", "_fc.", "pca.", "centre."].iter().any(|prefix| name.starts_with(prefix))
        || name.ends_with("num_batches_tracked")
}

pub(crate) fn sizes(shape: &[usize]) -> String {
    match shape {
        [] => "a single number".to_owned(),
        [only] => format!("{only} numbers"),
        _ => shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("×"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::{Architecture, Stem};

    fn resnet() -> Network {
        Architecture::ResNet10.network(32, 32, Stem::Photo).unwrap()
    }

    fn tensors() -> Vec<NamedTensor> {
        to_tensors(&resnet(), &Snapshot::initial(&resnet(), 3, 7)).unwrap()
    }

    #[test]
    fn a_snapshot_survives_being_named() {
        let snapshot = Snapshot::initial(&resnet(), 3, 7);
        assert_eq!(from_tensors(&resnet(), 3, tensors()).unwrap(), snapshot);
        let alone = from_tensors(&resnet(), 0, tensors()).unwrap();
        assert_eq!(alone, Snapshot::initial(&resnet(), 0, 7));
    }

    #[test]
    fn torchvisions_extras_are_left_out() {
        let mut tensors = tensors();
        tensors.push(("fc.weight".to_owned(), vec![1000, 512], vec![0.0; 512_000]));
        tensors.push(("bn1.num_batches_tracked".to_owned(), vec![], vec![5.0]));
        assert!(from_tensors(&resnet(), 0, tensors).is_ok());
    }

    #[test]
    fn missing_unknown_and_misshaped_tensors_are_named() {
        let message = |change: &dyn Fn(&mut Vec<NamedTensor>)| {
            let mut tensors = tensors();
            change(&mut tensors);
            from_tensors(&resnet(), 3, tensors).unwrap_err().to_string()
        };
        assert_eq!(message(&|t| drop(t.remove(0))), "tensor `conv1.weight`: expected 64×3×7×7, found none");
        assert_eq!(
            message(&|t| t[0] = ("conv1.weight".to_owned(), vec![64, 3, 3, 3], vec![0.0; 1728])),
            "tensor `conv1.weight`: expected 64×3×7×7, found 64×3×3×3"
        );
        assert_eq!(
            message(&|t| t.push(("layer1.1.conv1.weight".to_owned(), vec![2], vec![0.0; 2]))),
            "tensor `layer1.1.conv1.weight`: expected none of this name in the network, found 2 numbers"
        );
        assert_eq!(
            message(&|t| t[0].2[5] = f32::NAN),
            "tensor `conv1.weight`, number 5: expected a finite number, found NaN"
        );
        let variance = |t: &mut Vec<NamedTensor>| {
            t.iter_mut().find(|(name, _, _)| name == "bn1.running_var").unwrap().2[1] = -1.0;
        };
        assert_eq!(message(&variance), "tensor `bn1.running_var`, number 1: expected a variance, found -1");
    }
}
