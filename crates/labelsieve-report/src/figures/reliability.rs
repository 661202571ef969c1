//! Probabilities against the truth: a curve on the diagonal is calibrated, one below it is overconfident.

use labelsieve::evaluation::Bin;

use super::{Layout, nothing};
use crate::ReliabilitySeries;
use crate::svg::axes::{Axes, AxisTitles, Panel};
use crate::svg::legend::{Legend, Swatch};
use crate::svg::scale::{Scale, with_separators};
use crate::svg::{Anchor, Area, Canvas, Drawing, Position, style};

/// Steps of both axes.
const STEPS: usize = 5;
/// Height of the bars that count candidates.
const COUNTS: f64 = 56.0;

pub(super) fn draw(series: &[ReliabilitySeries], layout: Layout) -> Drawing {
    let filled: Vec<&ReliabilitySeries> = series.iter().filter(|series| n(series) > 0).collect();
    if filled.is_empty() {
        return nothing(layout);
    }
    let mut canvas = Canvas::default();
    let names: Vec<String> = filled.iter().map(|series| name(series)).collect();
    let legend = Legend { swatch: Swatch::Line, names: names.iter().map(String::as_str).collect() };
    let top = 8.0 + legend.draw(&mut canvas, Position::new(4.0, 8.0), layout.width() - 8.0) + 8.0;
    let side = layout.pick(400.0, layout.width() - 10.0);
    let titles = AxisTitles { horizontal: "probability", vertical: "share that belongs" };
    let area = Area { left: 2.0, top, width: side, height: side - 20.0 };
    let panel = Panel::inside(area, 26.0, titles);
    let axes = Axes::unit(&panel);
    panel.vertical_axis(&mut canvas, &axes.up, STEPS, titles.vertical);
    let with_counts = filled.len() == 1; // bars of several would hide each other
    let title = if with_counts { "" } else { titles.horizontal };
    panel.horizontal_axis(&mut canvas, &axes.across, STEPS, title);
    canvas.line("guide", axes.at(0.0, 0.0), axes.at(1.0, 1.0));
    for (number, series) in filled.iter().enumerate() {
        let positions = || {
            let bins = series.bins.iter().filter(|bin| bin.n > 0);
            bins.map(|bin| axes.at(bin.mean, bin.share))
        };
        canvas.polyline(&format!("line {}{}", style::series(number), style::dashes(number)), positions());
        positions().for_each(|position| canvas.marker(number, position));
    }
    let mut height = top + side - 16.0;
    if with_counts {
        counts(&mut canvas, &filled[0].bins, &panel, &axes.across, height);
        height += COUNTS + 24.0;
    }
    canvas.finish(layout.width(), height + 4.0)
}

/// The number of candidates by probability, below the curve: a point of few candidates is not reliable.
fn counts(canvas: &mut Canvas, bins: &[Bin], panel: &Panel, across: &Scale, top: f64) {
    let most = bins.iter().map(|bin| bin.n).max().unwrap_or(0).max(1) as f64;
    let base = top + COUNTS;
    let mut tallest = None;
    for bin in bins.iter().filter(|bin| bin.n > 0) {
        let left = across.at(bin.from.clamp(0.0, 1.0));
        let right = across.at(bin.to.clamp(0.0, 1.0));
        let height = ((COUNTS - 14.0) * bin.n as f64 / most).max(1.0);
        let width = (right - left - 1.0).max(1.0);
        let area = Area { left: left + 0.5, top: base - height, width, height };
        canvas.rect(&format!("fill {}", style::series(0)), area);
        if bin.n as f64 == most {
            tallest.get_or_insert((left + right) / 2.0);
        }
    }
    if let Some(middle) = tallest {
        // Inside the panel, whichever bar it is.
        let (x, anchor) = match middle {
            x if x < panel.left + 30.0 => (panel.left, Anchor::Start),
            x if x > panel.right() - 30.0 => (panel.right(), Anchor::End),
            x => (x, Anchor::Middle),
        };
        canvas.text("tick", Position::new(x, base - COUNTS + 11.0), anchor, &with_separators(most, 0));
    }
    panel.level(canvas, base + 0.5);
    let at = Position::new((panel.left + panel.right()) / 2.0, base + 16.0);
    canvas.text("muted", at, Anchor::Middle, "probability; candidates");
}

pub(super) fn describe(series: &[ReliabilitySeries]) -> String {
    let told = series.iter().filter(|series| n(series) > 0).map(|series| {
        let bins = series.bins.iter().filter(|bin| bin.n > 0);
        let bins = bins.map(|bin| format!("{:.2} predicted, {:.2} true of {}", bin.mean, bin.share, bin.n));
        format!("{}: {}.", name(series), bins.collect::<Vec<_>>().join("; "))
    });
    told.collect::<Vec<_>>().join(" ")
}

/// `auto (1,234 candidates, expected error 0.042)`
fn name(series: &ReliabilitySeries) -> String {
    let n = n(series) as f64;
    let error: f64 = series.bins.iter().map(|bin| bin.n as f64 * (bin.mean - bin.share).abs()).sum();
    format!(
        "{} ({} candidates, expected error {:.3})",
        series.name,
        with_separators(n, 0),
        error / n.max(1.0)
    )
}

fn n(series: &ReliabilitySeries) -> usize {
    series.bins.iter().map(|bin| bin.n).sum()
}
