//! From the data of a figure to a drawing, one file per kind.

mod bars;
pub(crate) mod class_histogram;
mod cumulative;
mod lines;
mod pool_sizes;
mod reliability;
mod separation;

use self::bars::BarChart;
use crate::svg::{Anchor, Canvas, Drawing, Position};
use crate::{Figure, FigureKind};

/// Figures are drawn twice, since shrinking one for a phone would make its labels unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// For a screen or paper.
    Wide,
    /// For a phone.
    Narrow,
}

impl Layout {
    pub(crate) fn width(self) -> f64 {
        match self {
            Layout::Wide => 720.0,
            Layout::Narrow => 340.0,
        }
    }

    fn pick<T>(self, wide: T, narrow: T) -> T {
        match self {
            Layout::Wide => wide,
            Layout::Narrow => narrow,
        }
    }
}

/// Draws a figure.
pub(crate) fn draw(figure: &Figure, layout: Layout) -> Drawing {
    match &figure.data {
        FigureKind::Lines { x, y, series } => lines::draw(x, y, series, layout),
        FigureKind::Bars { groups, x_label, y, series } => {
            BarChart { groups, x_label, y, series }.draw(layout)
        }
        FigureKind::CumulativeRelevance { classes } => cumulative::draw(classes, layout),
        FigureKind::Separation { relevant, irrelevant } => separation::draw(relevant, irrelevant, layout),
        FigureKind::Reliability { series } => reliability::draw(series, layout),
        FigureKind::PoolSizes { classes, gain_label } => pool_sizes::draw(classes, gain_label, layout),
    }
}

/// The content of a figure in words, for readers who cannot see it.
pub(crate) fn describe(figure: &Figure) -> String {
    match &figure.data {
        FigureKind::Lines { x, y, series } => lines::describe(x, y, series),
        FigureKind::Bars { groups, x_label, y, series } => BarChart { groups, x_label, y, series }.describe(),
        FigureKind::CumulativeRelevance { classes } => cumulative::describe(classes),
        FigureKind::Separation { relevant, irrelevant } => separation::describe(relevant, irrelevant),
        FigureKind::Reliability { series } => reliability::describe(series),
        FigureKind::PoolSizes { classes, .. } => pool_sizes::describe(classes),
    }
}

/// A drawing that says there is nothing to draw.
fn nothing(layout: Layout) -> Drawing {
    let mut canvas = Canvas::default();
    canvas.text("muted", Position::new(layout.width() / 2.0, 44.0), Anchor::Middle, "no data");
    canvas.finish(layout.width(), 80.0)
}

#[cfg(test)]
mod tests;
