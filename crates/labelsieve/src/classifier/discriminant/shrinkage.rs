//! γ: how far Σ is drawn towards a multiple of the unit matrix.

use std::fmt;
use std::str::FromStr;

use super::within::Within;

/// The least γ, so that S can be inverted.
pub(super) const MIN_SHRINKAGE: f64 = 1e-3;

/// Values of γ that left-out examples are tried with.
pub(super) const GRID: [f64; 7] = [0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0];

/// How γ is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Shrinkage {
    /// By left-out clean examples, drawn towards Ledoit and Wolf's value with few of them.
    #[default]
    Auto,
    /// The value of least expected squared error (Ledoit and Wolf, 2004).
    LedoitWolf,
    /// The oracle approximating shrinkage of Chen et al. (2010).
    Oas,
    /// By left-out clean examples alone.
    LeftOut,
    /// This value.
    Fixed(f64),
}

impl fmt::Display for Shrinkage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shrinkage::Auto => f.write_str("auto"),
            Shrinkage::LedoitWolf => f.write_str("ledoit-wolf"),
            Shrinkage::Oas => f.write_str("oas"),
            Shrinkage::LeftOut => f.write_str("left-out"),
            Shrinkage::Fixed(gamma) => write!(f, "{gamma}"),
        }
    }
}

impl FromStr for Shrinkage {
    type Err = String;

    fn from_str(text: &str) -> Result<Shrinkage, String> {
        match text {
            "auto" => return Ok(Shrinkage::Auto),
            "ledoit-wolf" => return Ok(Shrinkage::LedoitWolf),
            "oas" => return Ok(Shrinkage::Oas),
            "left-out" => return Ok(Shrinkage::LeftOut),
            _ => (),
        }
        match text.parse() {
            Ok(gamma) if gamma > 0.0 && gamma <= 1.0 => Ok(Shrinkage::Fixed(gamma)),
            _ => Err(format!(
                "expected auto, ledoit-wolf, oas, left-out, or a number above 0 and at most 1, found `{text}`"
            )),
        }
    }
}

/// ½ (ln(γ/γ₀) / 0.35)²: few left-out examples must not move γ far from where it starts.
pub(super) fn penalty(gamma: f64, start: f64) -> f64 {
    const WIDTH: f64 = 0.35;
    0.5 * ((gamma / start).ln() / WIDTH).powi(2)
}

/// How the rows √v (x − μ_c) spread, Σ v = 1 over all classes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread {
    dim: usize,
    /// Σ v².
    squared_weights: f64,
    /// Σ v² ‖x − μ_c‖⁴.
    fourth_moment: f64,
}

impl Spread {
    /// Over no rows, of `dim` numbers each.
    pub fn new(dim: usize) -> Spread {
        Spread { dim, ..Spread::default() }
    }

    /// Adds an example with this share of its class's weight, and the share times its squared distance to the mean.
    pub fn add(&mut self, share: f64, squared_distance: f64) {
        self.squared_weights += share * share;
        self.fourth_moment += squared_distance.powi(2);
    }

    /// Every class with the same share.
    pub fn averaged(&self, n_classes: usize) -> Spread {
        let squared = (n_classes.max(1) as f64).powi(2);
        Spread {
            dim: self.dim,
            squared_weights: self.squared_weights / squared,
            fourth_moment: self.fourth_moment / squared,
        }
    }

    /// The number of rows of equal weight that would be as sure.
    fn n_effective(&self) -> f64 {
        if self.squared_weights > 0.0 { 1.0 / self.squared_weights } else { 0.0 }
    }

    /// min(b², δ²) / δ², with δ² = ‖Σ − (tr Σ / d) I‖² and b² = Σ v² ‖z zᵀ − Σ‖², the expected squared error of Σ.
    pub fn ledoit_wolf(&self, within: &Within) -> f64 {
        let squares = within.squares();
        let from_unit = squares - within.trace().powi(2) / self.dim as f64;
        let error = self.fourth_moment - squares * self.squared_weights;
        if from_unit <= 0.0 { 1.0 } else { (error / from_unit).clamp(0.0, 1.0) }
    }

    /// ((1 − 2/d) tr Σ² + tr² Σ) / ((n + 1 − 2/d)(tr Σ² − tr² Σ / d)).
    pub fn oas(&self, within: &Within) -> f64 {
        let d = self.dim as f64;
        let squares = within.squares();
        let squared_trace = within.trace().powi(2);
        let below = (self.n_effective() + 1.0 - 2.0 / d) * (squares - squared_trace / d);
        if below <= 0.0 { 1.0 } else { (((1.0 - 2.0 / d) * squares + squared_trace) / below).clamp(0.0, 1.0) }
    }

    /// γ₀: Ledoit and Wolf's value is best for Σ; S⁻¹ needs more of it the fewer rows there are for d columns.
    pub fn start(&self, within: &Within) -> f64 {
        let rows_wanted = 1.0 + self.dim as f64 / self.n_effective().max(1.0);
        (self.ledoit_wolf(within) * rows_wanted).clamp(MIN_SHRINKAGE, 1.0)
    }
}
