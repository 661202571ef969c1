//! Every clean example as the discriminant without it would classify it.

use super::Moments;
use super::sums::ClassSums;
use super::whitening::Whitening;
use super::within::products;
use crate::classifier::left_out::{KeptRow, LeftOut};

/// Examples at a time, so that products with many classes need little memory.
const BLOCK: usize = 256;

/// Leaves out one example at a time.
///
/// Without x, of weight 1, the mean of its class is μ' = (W μ − x)/(W − 1), and with the class's share of Σ as it was,
///
/// ```text
/// S' = S − β u uᵀ      u = x − μ      β = (1 − γ) / (K (W − 1))
/// (x − y)ᵀ S'⁻¹ (x − y) = q + β t² / (1 − β uᵀS⁻¹u)      q = (x − y)ᵀ S⁻¹ (x − y)      t = uᵀ S⁻¹ (x − y)
/// ```
///
/// so that nothing is factored again. For its own class, x − μ' = W/(W − 1) u.
pub(super) fn left_out(
    moments: &Moments,
    sums: &ClassSums,
    rows: &[KeptRow],
    whitening: &Whitening,
) -> LeftOut {
    let width = whitening.width();
    let n_classes = moments.n_classes();
    let means = whitening.whiten(&moments.means);
    let of_means: Vec<f64> = means.chunks_exact(width).map(|mean| dot(mean, mean)).collect();
    let mut scores = Vec::with_capacity(rows.len() * n_classes);
    let mut distances = Vec::with_capacity(rows.len());
    for rows in rows.chunks(BLOCK) {
        let values: Vec<f64> = rows.iter().flat_map(|kept| kept.row.iter().map(|&x| f64::from(x))).collect();
        let examples = whitening.whiten(&values);
        let of_own = |kept: &KeptRow| means[kept.label * width..(kept.label + 1) * width].to_vec();
        let own_means: Vec<f64> = rows.iter().flat_map(of_own).collect();
        let cross = products(&examples, &means, width); // z(x)·z(μ_c)
        let between = products(&own_means, &means, width); // z(μ)·z(μ_c)
        for (i, kept) in rows.iter().enumerate() {
            let own = kept.label;
            let x = &examples[i * width..(i + 1) * width];
            let of_x = dot(x, x);
            let cross = &cross[i * n_classes..(i + 1) * n_classes];
            let between = &between[i * n_classes..(i + 1) * n_classes];
            let total = sums.total(kept.class);
            let beta = whitening.within_share() / (moments.n_pooled as f64 * (total - 1.0));
            let squared = (of_x - 2.0 * cross[own] + of_means[own]).max(0.0); // uᵀS⁻¹u
            let rest = (1.0 - beta * squared).max(f64::EPSILON);
            let mut nearest = f64::INFINITY;
            for c in 0..n_classes {
                let distance = if c == own {
                    (total / (total - 1.0)).powi(2) * squared / rest
                } else {
                    let plain = (of_x - 2.0 * cross[c] + of_means[c]).max(0.0);
                    let along = of_x - cross[c] - cross[own] + between[c];
                    plain + beta * along * along / rest
                };
                scores.push((-0.5 * distance) as f32);
                nearest = nearest.min(distance);
            }
            distances.push(nearest.sqrt() as f32);
        }
    }
    let labels = rows.iter().map(|kept| kept.label).collect();
    LeftOut { labels, scores, distances, n_classes }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
