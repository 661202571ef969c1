//! Relevance against ground truth (§5.2 of the paper): two histograms, and the ROC curve.

use super::{Layout, nothing};
use crate::AxisScale;
use crate::statistics::{auc, histogram, mean, roc, thinned};
use crate::svg::axes::{Axes, AxisTitles, Panel};
use crate::svg::legend::{Legend, Swatch};
use crate::svg::scale::{Scale, with_separators};
use crate::svg::{Anchor, Area, Canvas, Drawing, Position, short, style};

const N_BINS: usize = 20;
/// Points of a ROC curve that are drawn.
const MAX_POINTS: usize = 300;

pub(super) fn draw(relevant: &[f32], irrelevant: &[f32], layout: Layout) -> Drawing {
    if relevant.is_empty() && irrelevant.is_empty() {
        return nothing(layout);
    }
    let mut canvas = Canvas::default();
    let named = |name: &str, values: &[f32]| {
        let mean = mean(values.iter().copied()).map_or(String::new(), |mean| format!(", mean {mean:.2}"));
        format!("{name} ({}{mean})", with_separators(values.len() as f64, 0))
    };
    let names = [named("relevant", relevant), named("irrelevant", irrelevant)];
    let legend = Legend { swatch: Swatch::PlainLine, names: names.iter().map(String::as_str).collect() };
    let top = 8.0 + legend.draw(&mut canvas, Position::new(4.0, 8.0), layout.width() - 8.0) + 8.0;
    let width = layout.width() - 10.0;
    let height = 300.0;
    let histogram_area = Area { left: 2.0, top, width: layout.pick(400.0, width), height };
    let roc_area = match layout {
        Layout::Wide => Area { left: 430.0, top, width: layout.width() - 440.0, height },
        Layout::Narrow => Area { left: 2.0, top: top + height + 22.0, width, height },
    };
    histograms(&mut canvas, relevant, irrelevant, histogram_area);
    roc_curve(&mut canvas, relevant, irrelevant, roc_area);
    canvas.finish(layout.width(), roc_area.top + roc_area.height + 4.0)
}

/// Each as a share of its own group, so that the rarer one is visible as well.
fn histograms(canvas: &mut Canvas, relevant: &[f32], irrelevant: &[f32], area: Area) {
    let shares = |values: &[f32]| -> Vec<f64> {
        let counts = histogram(values.iter().copied(), N_BINS);
        counts.iter().map(|&count| 100.0 * count as f64 / values.len().max(1) as f64).collect()
    };
    let both = [shares(relevant), shares(irrelevant)];
    let titles = AxisTitles { horizontal: "relevance", vertical: "share of each group (%)" };
    let panel = Panel::inside(area, 26.0, titles);
    let across = Scale::unit(panel.across());
    let highest = both.iter().flatten().copied().fold(0.0, f64::max);
    let up = Scale::around(AxisScale::Linear, [0.0, highest], panel.upwards(), 5);
    panel.vertical_axis(canvas, &up, 5, titles.vertical);
    for (number, shares) in both.iter().enumerate() {
        if shares.iter().all(|&share| share == 0.0) {
            continue;
        }
        let mut outline = format!("M{} {}", short(across.at(0.0)), short(up.at(0.0)));
        for (bin, &share) in shares.iter().enumerate() {
            let end = across.at((bin + 1) as f64 / N_BINS as f64);
            outline += &format!("V{}H{}", short(up.at(share)), short(end));
        }
        outline += &format!("V{}", short(up.at(0.0)));
        let series = style::series(number);
        canvas.path(&format!("area {series}"), &format!("{outline}Z"));
        canvas.path(&format!("line {series}{}", style::dashes(number)), &outline);
    }
    panel.horizontal_axis(canvas, &across, 5, titles.horizontal);
}

fn roc_curve(canvas: &mut Canvas, relevant: &[f32], irrelevant: &[f32], area: Area) {
    let titles = AxisTitles { horizontal: "irrelevant kept", vertical: "relevant kept" };
    let panel = Panel::inside(area, 26.0, titles);
    let axes = Axes::unit(&panel);
    panel.vertical_axis(canvas, &axes.up, 2, titles.vertical);
    panel.horizontal_axis(canvas, &axes.across, 2, titles.horizontal);
    canvas.line("guide", axes.at(0.0, 0.0), axes.at(1.0, 1.0));
    let at = Position::new(panel.right() - 10.0, panel.bottom() - 14.0);
    match auc(relevant, irrelevant) {
        Some(area) => {
            let curve = thinned(&roc(relevant, irrelevant), MAX_POINTS);
            let positions = curve.into_iter().map(|(x, y)| axes.at(x, y));
            canvas.polyline(&format!("line {}", style::series(2)), positions);
            canvas.text("name halo", at, Anchor::End, &format!("AUC {area:.3}"));
        }
        None => canvas.text("muted halo", at, Anchor::End, "needs both groups"),
    }
}

pub(super) fn describe(relevant: &[f32], irrelevant: &[f32]) -> String {
    let part = |name: &str, values: &[f32]| match mean(values.iter().copied()) {
        Some(mean) => format!("{} {name} candidates of mean relevance {mean:.2}", values.len()),
        None => format!("no {name} candidates"),
    };
    let area = auc(relevant, irrelevant)
        .map_or(String::new(), |area| format!(" Area under the ROC curve: {area:.3}."));
    format!("{} and {}.{area}", part("relevant", relevant), part("irrelevant", irrelevant))
}
