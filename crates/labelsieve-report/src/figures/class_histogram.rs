//! The small histogram beside a class: the distribution of its candidates over relevance or probability.

use crate::classes::RatedCandidate;
use crate::statistics::histogram;
use crate::svg::{Anchor, Canvas, Drawing, Position, short, style};

const WIDTH: f64 = 230.0;
const HEIGHT: f64 = 76.0;
const N_BINS: usize = 20;

/// Relevant ones below, irrelevant ones on top of them; those of unknown truth are drawn like relevant ones. `threshold` is a
/// line between those that are kept and the others.
pub(crate) fn draw(candidates: &[RatedCandidate], threshold: Option<f64>) -> Drawing {
    let pick = |wrong: bool| {
        let values = candidates.iter().filter(move |candidate| (candidate.truth == Some(false)) == wrong);
        histogram(values.map(|candidate| candidate.value), N_BINS)
    };
    let right = pick(false);
    let wrong = pick(true);
    let highest = right.iter().zip(&wrong).map(|(a, b)| a + b).max().unwrap_or(0).max(1) as f64;
    let base = HEIGHT - 16.0;
    let top = 4.0;
    let bin = WIDTH / N_BINS as f64;
    let pixels = |count: usize| (base - top) * count as f64 / highest;
    let mut lower = String::new();
    let mut upper = String::new();
    for i in 0..N_BINS {
        let x = i as f64 * bin + 0.5;
        let bar = |path: &mut String, from: f64, height: f64| {
            if height > 0.0 {
                // A bar that is not empty stays visible, however small it is.
                let height = height.max(1.0);
                let w = short(bin - 1.0);
                *path += &format!("M{} {}h{w}v{}h-{w}z", short(x), short(from - height), short(height));
            }
        };
        bar(&mut lower, base, pixels(right[i]));
        bar(&mut upper, base - pixels(right[i]), pixels(wrong[i]));
    }
    let mut canvas = Canvas::default();
    canvas.path(&format!("fill {}", style::series(0)), &lower);
    if !upper.is_empty() {
        canvas.path(&format!("fill {}", style::series(1)), &upper);
    }
    canvas.line("axis", Position::new(0.0, base + 0.5), Position::new(WIDTH, base + 0.5));
    if let Some(threshold) = threshold {
        let x = threshold * WIDTH;
        canvas.line("ink", Position::new(x, 0.0), Position::new(x, base + 3.0));
    }
    for (x, anchor, label) in
        [(0.0, Anchor::Start, "0"), (0.5, Anchor::Middle, "0.5"), (1.0, Anchor::End, "1")]
    {
        canvas.text("tick", Position::new(x * WIDTH, HEIGHT - 2.0), anchor, label);
    }
    canvas.finish(WIDTH, HEIGHT)
}
