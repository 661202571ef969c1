//! S⁻¹ by a Cholesky factorisation: rows z(x) with ‖z(x) − z(y)‖² = (x − y)ᵀ S⁻¹ (x − y).

use labelsieve_numerics::kernels::Cholesky;

use super::within::Within;

/// S = (1 − γ) Σ + γ (tr Σ / d) I, factored.
///
/// In the span of Q, z(x) = L⁻¹ Q x with L Lᵀ = (1 − γ) C + γ (tr Σ / d) I; outside it S is γ (tr Σ / d) I alone, so what
/// Q leaves of x is divided by the root of that.
#[derive(Clone, Debug)]
pub struct Whitening {
    within: Within,
    /// 1 − γ.
    within_share: f64,
    factor: Cholesky,
    /// 1 / √(γ tr Σ / d).
    outside: f64,
}

impl Whitening {
    /// Where Σ is zero, S is a multiple of the unit matrix.
    pub fn new(within: &Within, gamma: f64) -> Whitening {
        let rank = within.rank();
        let trace = within.trace();
        let is_flat = trace <= 0.0;
        let mean_variance = if is_flat { 1.0 } else { trace } / within.dim() as f64;
        let gamma = if is_flat { 1.0 } else { gamma };
        // What rounding may leave: Σ is a sum of f32 products, so it may be this far from positive semidefinite.
        let mut ridge = gamma * mean_variance;
        loop {
            let mut matrix: Vec<f64> = within.matrix().iter().map(|value| (1.0 - gamma) * value).collect();
            (0..rank).for_each(|i| matrix[i * rank + i] += ridge);
            if let Some(factor) = Cholesky::new(matrix, rank) {
                let within_share = 1.0 - gamma;
                return Whitening {
                    within: within.clone(),
                    within_share,
                    factor,
                    outside: 1.0 / ridge.sqrt(),
                };
            }
            ridge *= 2.0;
        }
    }

    /// Σ.
    pub fn within(&self) -> &Within {
        &self.within
    }

    /// 1 − γ, the share of Σ in S.
    pub fn within_share(&self) -> f64 {
        self.within_share
    }

    /// Numbers per row z.
    pub fn width(&self) -> usize {
        match self.within.basis() {
            None => self.within.dim(),
            Some(_) => self.within.rank() + self.within.dim(),
        }
    }

    /// z(x) for each row x.
    pub fn whiten(&self, rows: &[f64]) -> Vec<f64> {
        let dim = self.within.dim();
        let mut inside = self.within.coordinates(rows);
        if self.within.basis().is_none() {
            self.factor.solve_lower(&mut inside);
            return inside;
        }
        let rank = self.within.rank();
        let spanned = self.within.expanded(&inside);
        self.factor.solve_lower(&mut inside);
        let n = rows.len() / dim;
        let mut whitened = Vec::with_capacity(n * self.width());
        for (i, row) in rows.chunks_exact(dim).enumerate() {
            whitened.extend_from_slice(&inside[i * rank..(i + 1) * rank]);
            match spanned.get(i * dim..(i + 1) * dim) {
                Some(spanned) => {
                    whitened.extend(row.iter().zip(spanned).map(|(x, inside)| (x - inside) * self.outside));
                }
                None => whitened.extend(row.iter().map(|x| x * self.outside)), // nothing is spanned
            }
        }
        whitened
    }

    /// S⁻¹ x from z(x), for each row.
    pub fn solved(&self, whitened: &[f64]) -> Vec<f64> {
        if self.within.basis().is_none() {
            let mut rows = whitened.to_vec();
            self.factor.solve_upper(&mut rows);
            return rows;
        }
        let rank = self.within.rank();
        let dim = self.within.dim();
        let mut inside: Vec<f64> =
            whitened.chunks_exact(self.width()).flat_map(|z| z[..rank].iter().copied()).collect();
        self.factor.solve_upper(&mut inside);
        let mut rows = self.within.expanded(&inside);
        rows.resize(whitened.len() / self.width() * dim, 0.0);
        for (row, z) in rows.chunks_exact_mut(dim).zip(whitened.chunks_exact(self.width())) {
            row.iter_mut().zip(&z[rank..]).for_each(|(row, rest)| *row += rest * self.outside);
        }
        rows
    }
}
