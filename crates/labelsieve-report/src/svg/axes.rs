//! The frame of a plot: its position, grid and labels.

use super::scale::{Scale, Span};
use super::{Anchor, Area, Canvas, Position, text};

/// A rectangle for data, surrounded by its labels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// The titles of both axes; an empty one takes no space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisTitles<'a> {
    pub(crate) horizontal: &'a str,
    pub(crate) vertical: &'a str,
}

/// The scales of both axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axes {
    pub(crate) across: Scale,
    pub(crate) up: Scale,
}

impl Axes {
    /// From 0 to 1 both ways.
    pub(crate) fn unit(panel: &Panel) -> Axes {
        Axes { across: Scale::unit(panel.across()), up: Scale::unit(panel.upwards()) }
    }

    /// The position of a pair of values.
    pub(crate) fn at(&self, x: f64, y: f64) -> Position {
        Position::new(self.across.at(x), self.up.at(y))
    }
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
    pub(crate) fn across(&self) -> Span {
        Span::new(self.left, self.right())
    }

    /// Pixels from bottom to top.
    pub(crate) fn upwards(&self) -> Span {
        Span::new(self.bottom(), self.top)
    }

    /// The rest of an area inside its axes. Tick labels of the vertical axis are at most `tick_width` wide.
    pub(crate) fn inside(area: Area, tick_width: f64, titles: AxisTitles<'_>) -> Panel {
        let beside = tick_width + 10.0 + if titles.vertical.is_empty() { 0.0 } else { TITLE_ROOM };
        let below = TICK_ROOM + if titles.horizontal.is_empty() { 0.0 } else { TITLE_ROOM };
        Panel {
            left: area.left + beside,
            top: area.top,
            width: (area.width - beside).max(10.0),
            height: (area.height - below).max(10.0),
        }
    }

    /// Horizontal grid lines with labels on the left.
    pub(crate) fn vertical_axis(&self, canvas: &mut Canvas, scale: &Scale, count: usize, title: &str) {
        let mut widest = 0f64;
        for (value, label) in scale.ticks(count) {
            let y = scale.at(value);
            canvas.line("grid", Position::new(self.left, y), Position::new(self.right(), y));
            canvas.text("tick", Position::new(self.left - 8.0, y + 4.0), Anchor::End, &label);
            widest = widest.max(text::width(&label));
        }
        if !title.is_empty() {
            let at = Position::new(self.left - widest - 16.0, self.top + self.height / 2.0);
            let title = text::fit(title, self.height + 30.0);
            canvas.turned_text("muted", at, Anchor::Middle, -90.0, &title);
        }
    }

    /// The base line with labels below.
    pub(crate) fn horizontal_axis(&self, canvas: &mut Canvas, scale: &Scale, count: usize, title: &str) {
        self.base_line(canvas);
        for (value, label) in scale.ticks(count) {
            let x = scale.at(value);
            let base = self.bottom();
            canvas.line("axis", Position::new(x, base), Position::new(x, base + 4.0));
            canvas.text("tick", Position::new(x, base + 17.0), Anchor::Middle, &label);
        }
        self.horizontal_title(canvas, title, TICK_ROOM);
    }

    pub(crate) fn base_line(&self, canvas: &mut Canvas) {
        self.level(canvas, self.bottom());
    }

    /// A line of the axis across the panel at this height of the picture.
    pub(crate) fn level(&self, canvas: &mut Canvas, y: f64) {
        canvas.line("axis", Position::new(self.left, y), Position::new(self.right(), y));
    }

    /// The title below labels of this height.
    pub(crate) fn horizontal_title(&self, canvas: &mut Canvas, title: &str, labels_height: f64) {
        if !title.is_empty() {
            let at = Position::new(self.left + self.width / 2.0, self.bottom() + labels_height + 15.0);
            canvas.text("muted", at, Anchor::Middle, &text::fit(title, self.width + 60.0));
        }
    }
}

/// The widest label of an axis.
pub(crate) fn widest_label(scale: &Scale, count: usize) -> f64 {
    scale.ticks(count).iter().map(|(_, label)| text::width(label)).fold(0.0, f64::max)
}
