//! Legends.

use super::{Anchor, Canvas, style, text};

/// How the entries of a legend look.
#[derive(Clone, Copy)]
pub(crate) enum Swatch {
    /// A piece of a curve with its marker.
    Line,
    /// A filled square.
    Box,
    /// A piece of a curve without marker.
    PlainLine,
}

const ROW: f64 = 20.0;
const SWATCH: f64 = 26.0;
const GAP: f64 = 18.0;

/// Draws the entries in rows from `(left, top)` and returns the height used. Entry: number of the series and its name.
pub(crate) fn draw(
    canvas: &mut Canvas,
    (left, top): (f64, f64),
    width: f64,
    swatch: Swatch,
    entries: &[(usize, &str)],
) -> f64 {
    let (mut x, mut y) = (left, top);
    for (number, name) in entries {
        let name = text::fit(name, width - SWATCH);
        let needed = SWATCH + text::width(&name);
        if x > left && x + needed > left + width {
            x = left;
            y += ROW;
        }
        let middle = y + ROW / 2.0;
        let series = style::series(*number);
        match swatch {
            Swatch::Box => canvas.rect(&format!("fill {series}"), (x + 6.0, middle - 6.0), (12.0, 12.0)),
            Swatch::Line | Swatch::PlainLine => {
                let class = format!("line {series}{}", style::dashes(*number));
                canvas.line(&class, (x, middle), (x + 20.0, middle));
            }
        }
        if matches!(swatch, Swatch::Line) {
            canvas.marker(*number, (x + 10.0, middle));
        }
        canvas.text("", (x + SWATCH, middle + 4.0), Anchor::Start, &name);
        x += needed + GAP;
    }
    if entries.is_empty() { 0.0 } else { y + ROW - top }
}
