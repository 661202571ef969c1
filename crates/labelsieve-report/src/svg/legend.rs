//! Legends.

use super::{Anchor, Area, Canvas, Position, style, text};

/// The look of the entries of a legend.
#[derive(Clone, Copy)]
pub(crate) enum Swatch {
    /// A piece of a curve with its marker.
    Line,
    /// A filled square.
    Box,
    /// A piece of a curve without marker.
    PlainLine,
}

/// The names of the series of a figure, in rows.
pub(crate) struct Legend<'a> {
    pub(crate) swatch: Swatch,
    /// The name of each series, in the order of their colours.
    pub(crate) names: Vec<&'a str>,
}

const ROW: f64 = 20.0;
const SWATCH: f64 = 26.0;
const GAP: f64 = 18.0;

impl Legend<'_> {
    /// Draws the entries in rows from a corner and returns the height used.
    pub(crate) fn draw(&self, canvas: &mut Canvas, corner: Position, width: f64) -> f64 {
        let mut x = corner.x;
        let mut y = corner.y;
        for (number, name) in self.names.iter().enumerate() {
            let name = text::fit(name, width - SWATCH);
            let needed = SWATCH + text::width(&name);
            if x > corner.x && x + needed > corner.x + width {
                x = corner.x;
                y += ROW;
            }
            let middle = y + ROW / 2.0;
            self.draw_swatch(canvas, number, Position::new(x, middle));
            canvas.text("", Position::new(x + SWATCH, middle + 4.0), Anchor::Start, &name);
            x += needed + GAP;
        }
        if self.names.is_empty() { 0.0 } else { y + ROW - corner.y }
    }

    fn draw_swatch(&self, canvas: &mut Canvas, number: usize, at: Position) {
        let series = style::series(number);
        match self.swatch {
            Swatch::Box => {
                let area = Area { left: at.x + 6.0, top: at.y - 6.0, width: 12.0, height: 12.0 };
                canvas.rect(&format!("fill {series}"), area);
            }
            Swatch::Line | Swatch::PlainLine => {
                let class = format!("line {series}{}", style::dashes(number));
                canvas.line(&class, at, Position::new(at.x + 20.0, at.y));
            }
        }
        if matches!(self.swatch, Swatch::Line) {
            canvas.marker(number, Position::new(at.x + 10.0, at.y));
        }
    }
}
