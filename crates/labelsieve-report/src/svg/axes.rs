//! The frame of a plot: its position, grid and labels.

use super::scale::Scale;
use super::{Anchor, Canvas, text};

/// A rectangle for data, surrounded by its labels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Space for an axis title below or beside the tick labels.
const TITLE_ROOM: f64 = 20.0;
/// Space for the tick labels below a plot.
const TICK_ROOM: f64 = 20.0;

impl Panel {
    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Pixels from left to right.
    pub(crate) fn across(&self) -> (f64, f64) {
        (self.left, self.right())
    }

    /// Pixels from bottom to top.
    pub(crate) fn upwards(&self) -> (f64, f64) {
        (self.bottom(), self.top)
    }

    /// What remains of a box inside its axes. Tick labels of the vertical axis are at most `tick_width` wide; empty
    /// titles take no space.
    pub(crate) fn inside(
        (left, top): (f64, f64),
        (width, height): (f64, f64),
        tick_width: f64,
        titles: (&str, &str),
    ) -> Panel {
        let beside = tick_width + 10.0 + if titles.1.is_empty() { 0.0 } else { TITLE_ROOM };
        let below = TICK_ROOM + if titles.0.is_empty() { 0.0 } else { TITLE_ROOM };
        Panel {
            left: left + beside,
            top,
            width: (width - beside).max(10.0),
            height: (height - below).max(10.0),
        }
    }

    /// Horizontal grid lines with labels on the left.
    pub(crate) fn vertical_axis(&self, canvas: &mut Canvas, scale: &Scale, count: usize, title: &str) {
        let mut widest = 0f64;
        for (value, label) in scale.ticks(count) {
            let y = scale.at(value);
            canvas.line("grid", (self.left, y), (self.right(), y));
            canvas.text("tick", (self.left - 8.0, y + 4.0), Anchor::End, &label);
            widest = widest.max(text::width(&label));
        }
        if !title.is_empty() {
            let at = (self.left - widest - 16.0, self.top + self.height / 2.0);
            let title = text::fit(title, self.height + 30.0);
            canvas.turned_text("muted", at, Anchor::Middle, -90.0, &title);
        }
    }

    /// The base line with labels below.
    pub(crate) fn horizontal_axis(&self, canvas: &mut Canvas, scale: &Scale, count: usize, title: &str) {
        self.base_line(canvas);
        for (value, label) in scale.ticks(count) {
            let x = scale.at(value);
            canvas.line("axis", (x, self.bottom()), (x, self.bottom() + 4.0));
            canvas.text("tick", (x, self.bottom() + 17.0), Anchor::Middle, &label);
        }
        self.horizontal_title(canvas, title, TICK_ROOM);
    }

    pub(crate) fn base_line(&self, canvas: &mut Canvas) {
        canvas.line("axis", (self.left, self.bottom()), (self.right(), self.bottom()));
    }

    /// The title below labels of this height.
    pub(crate) fn horizontal_title(&self, canvas: &mut Canvas, title: &str, labels_height: f64) {
        if !title.is_empty() {
            let at = (self.left + self.width / 2.0, self.bottom() + labels_height + 15.0);
            canvas.text("muted", at, Anchor::Middle, &text::fit(title, self.width + 60.0));
        }
    }
}

/// The widest label of an axis.
pub(crate) fn widest_label(scale: &Scale, count: usize) -> f64 {
    scale.ticks(count).iter().map(|(_, label)| text::width(label)).fold(0.0, f64::max)
}
