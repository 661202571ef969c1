//! The middle column of **Figures 2 and 5** of the paper: the share of a class's candidates with a relevance of at most x.

use super::{Layout, nothing};
use crate::ClassRelevance;
use crate::statistics::{cumulative, mean};
use crate::svg::axes::{Axes, AxisTitles, Panel};
use crate::svg::legend::{Legend, Swatch};
use crate::svg::scale::{Scale, with_separators};
use crate::svg::{Anchor, Area, Canvas, Drawing, Position, style, text};

/// More classes share one panel.
const MAX_PANELS: usize = 12;
/// Steps of a curve, and of the many thin ones.
const STEPS: usize = 100;
const THIN_STEPS: usize = 25;

/// Curves of one panel: all candidates, or the relevant and the irrelevant ones.
struct Curves {
    all: Vec<f32>,
    relevant: Vec<f32>,
    irrelevant: Vec<f32>,
}

impl Curves {
    fn of<'a>(classes: impl IntoIterator<Item = &'a ClassRelevance>) -> Curves {
        let mut curves = Curves { all: Vec::new(), relevant: Vec::new(), irrelevant: Vec::new() };
        for class in classes {
            curves.all.extend(&class.relevance);
            for (&value, &is_relevant) in class.relevance.iter().zip(&class.relevant) {
                if is_relevant { curves.relevant.push(value) } else { curves.irrelevant.push(value) }
            }
        }
        for values in [&mut curves.all, &mut curves.relevant, &mut curves.irrelevant] {
            values.sort_unstable_by(f32::total_cmp);
        }
        curves
    }

    fn draw(&self, canvas: &mut Canvas, axes: &Axes) {
        let mut curve = |class: &str, values: &[f32]| {
            if !values.is_empty() {
                canvas.polyline(class, cumulative(values, STEPS).into_iter().map(|(x, y)| axes.at(x, y)));
            }
        };
        if self.relevant.is_empty() && self.irrelevant.is_empty() {
            return curve(&format!("line {}", style::series(0)), &self.all);
        }
        curve(&format!("line {}", style::series(0)), &self.relevant);
        curve(&format!("line {}{}", style::series(1), style::dashes(1)), &self.irrelevant);
    }
}

pub(super) fn draw(classes: &[ClassRelevance], layout: Layout) -> Drawing {
    if classes.iter().all(|class| class.relevance.is_empty()) {
        return nothing(layout);
    }
    let mut canvas = Canvas::default();
    let mut top = 8.0;
    let many = classes.len() > MAX_PANELS;
    let with_truth = classes.iter().any(|class| !class.relevant.is_empty());
    let names = if with_truth {
        vec!["relevant", "irrelevant"]
    } else if many {
        vec!["all candidates"]
    } else {
        Vec::new()
    };
    if many {
        let at = Position::new(layout.width() - 12.0, top + 14.0);
        canvas.text("muted", at, Anchor::End, "thin: one class each");
    }
    if !names.is_empty() {
        let legend = Legend { swatch: Swatch::PlainLine, names };
        top += legend.draw(&mut canvas, Position::new(4.0, top), layout.width()) + 6.0;
    }
    let draw_classes = if many { overlay } else { panels };
    let height = draw_classes(&mut canvas, classes, layout, top);
    canvas.finish(layout.width(), height)
}

fn panels(canvas: &mut Canvas, classes: &[ClassRelevance], layout: Layout, top: f64) -> f64 {
    let columns = layout.pick(3, 2).min(classes.len());
    let rows = classes.len().div_ceil(columns);
    let cell_width = (layout.width() - 44.0) / columns as f64;
    let cell_height = layout.pick(190.0, 164.0);
    for (position, class) in classes.iter().enumerate() {
        let column = position % columns;
        let row = position / columns;
        let panel = Panel {
            left: 44.0 + cell_width * column as f64,
            top: top + 34.0 + cell_height * row as f64,
            width: (cell_width - 30.0).min(360.0),
            height: cell_height - 66.0,
        };
        let axes = Axes::unit(&panel);
        let name = text::fit(&class.class, 0.9 * panel.width);
        canvas.text("name", Position::new(panel.left, panel.top - 20.0), Anchor::Start, &name);
        let count = format!("{} candidates", with_separators(class.relevance.len() as f64, 0));
        canvas.text("muted", Position::new(panel.left, panel.top - 6.0), Anchor::Start, &count);
        share_axis(canvas, &panel, &axes.up, column == 0);
        panel.horizontal_axis(canvas, &axes.across, 2, "");
        Curves::of([class]).draw(canvas, &axes);
    }
    let bottom = top + cell_height * rows as f64;
    let at = Position::new(layout.width() / 2.0, bottom + 14.0);
    canvas.text("muted", at, Anchor::Middle, "relevance at most");
    bottom + 22.0
}

fn overlay(canvas: &mut Canvas, classes: &[ClassRelevance], layout: Layout, top: f64) -> f64 {
    let height = layout.pick(380.0, 290.0);
    let titles = AxisTitles { horizontal: "relevance at most", vertical: "" };
    let area = Area { left: 2.0, top, width: layout.width() - 14.0, height };
    let panel = Panel::inside(area, 40.0, titles);
    let axes = Axes::unit(&panel);
    share_axis(canvas, &panel, &axes.up, true);
    panel.horizontal_axis(canvas, &axes.across, 5, titles.horizontal);
    for class in classes.iter().filter(|class| !class.relevance.is_empty()) {
        let thin = cumulative(&Curves::of([class]).all, THIN_STEPS);
        canvas.polyline("thin", thin.into_iter().map(|(x, y)| axes.at(x, y)));
    }
    Curves::of(classes).draw(canvas, &axes);
    top + height + 4.0
}

/// 0, 50 and 100 %.
fn share_axis(canvas: &mut Canvas, panel: &Panel, up: &Scale, with_labels: bool) {
    for (share, label) in [(0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")] {
        let y = up.at(share);
        canvas.line("grid", Position::new(panel.left, y), Position::new(panel.right(), y));
        if with_labels {
            canvas.text("tick", Position::new(panel.left - 6.0, y + 4.0), Anchor::End, label);
        }
    }
}

pub(super) fn describe(classes: &[ClassRelevance]) -> String {
    let shown = classes.iter().take(MAX_PANELS).map(|class| {
        let low = class.relevance.iter().filter(|&&value| value <= 0.5).count();
        let mean = mean(class.relevance.iter().copied()).unwrap_or(0.0);
        format!(
            "{}: {} candidates, {low} of them at most 0.5, mean {mean:.2}",
            class.class,
            class.relevance.len()
        )
    });
    let more = classes.len().saturating_sub(MAX_PANELS);
    let more = if more > 0 { format!("; and {more} more classes") } else { String::new() };
    format!("Share of candidates against relevance. {}{more}.", shown.collect::<Vec<_>>().join("; "))
}
