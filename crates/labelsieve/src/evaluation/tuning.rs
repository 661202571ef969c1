//! Selection of settings on validation classes.

use serde::{Deserialize, Serialize};

use crate::error::Result;

/// λ values of the paper's figure.
pub const LAMBDAS: [f32; 8] = [0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0];
/// β values tried for β*.
pub const BETAS: [f32; 7] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0];

/// A setting and its score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial<T> {
    /// The setting.
    pub setting: T,
    /// Its score; higher is better.
    pub score: f64,
}

/// Tries every setting in order; the best comes first, earlier ones win ties, the rest keep their order.
pub fn best<T: Clone>(settings: &[T], mut score: impl FnMut(&T) -> Result<f64>) -> Result<Vec<Trial<T>>> {
    let mut trials = Vec::with_capacity(settings.len());
    for setting in settings {
        trials.push(Trial { setting: setting.clone(), score: score(setting)? });
    }
    if let Some(winner) =
        (0..trials.len()).reduce(|a, b| if trials[b].score > trials[a].score { b } else { a })
    {
        trials[..=winner].rotate_right(1);
    }
    Ok(trials)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_best_wins() {
        let trials = best(&[1, 2, 3, 4], |&x| Ok([0.1, 0.7, 0.7, 0.3][x - 1])).unwrap();
        assert_eq!(trials.iter().map(|t| t.setting).collect::<Vec<_>>(), [2, 1, 3, 4]);
    }
}
