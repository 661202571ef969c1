//! Relevance against ground truth (§5.2 of the paper): two histograms, and the ROC curve.

use super::{Layout, nothing};
use crate::AxisScale;
use crate::statistics::{auc, histogram, mean, roc, thinned};
use crate::svg::axes::Panel;
use crate::svg::legend::{self, Swatch};
use crate::svg::scale::{Scale, with_separators};
use crate::svg::{Anchor, Canvas, Drawing, short, style};

const N_BINS: usize = 20;
/// Points of a ROC curve that are drawn.
const MOST_POINTS: usize = 300;

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
    let entries = [(0, names[0].as_str()), (1, names[1].as_str())];
    let legend = legend::draw(&mut canvas, (4.0, 8.0), layout.width() - 8.0, Swatch::PlainLine, &entries);
    let top = 8.0 + legend + 8.0;
    let height = 300.0;
    let side_by_side = layout == Layout::Wide;
    let left_width = if side_by_side { 400.0 } else { layout.width() - 10.0 };
    histograms(&mut canvas, relevant, irrelevant, (2.0, top), (left_width, height));
    let (corner, size) = match side_by_side {
        true => ((430.0, top), (layout.width() - 440.0, height)),
        false => ((2.0, top + height + 22.0), (layout.width() - 10.0, height)),
    };
    roc_curve(&mut canvas, relevant, irrelevant, corner, size);
    canvas.finish(layout.width(), corner.1 + size.1 + 4.0)
}

/// Each as a share of its own group, so that the rarer one is visible as well.
fn histograms(
    canvas: &mut Canvas,
    relevant: &[f32],
    irrelevant: &[f32],
    corner: (f64, f64),
    size: (f64, f64),
) {
    let shares = |values: &[f32]| -> Vec<f64> {
        let counts = histogram(values.iter().copied(), N_BINS);
        counts.iter().map(|&count| 100.0 * count as f64 / values.len().max(1) as f64).collect()
    };
    let both = [shares(relevant), shares(irrelevant)];
    let panel = Panel::inside(corner, size, 26.0, ("relevance", "share of each group (%)"));
    let across = Scale::unit(panel.across());
    let highest = both.iter().flatten().copied().fold(0.0, f64::max);
    let up = Scale::around(AxisScale::Linear, [0.0, highest], panel.upwards(), 5);
    panel.vertical_axis(canvas, &up, 5, "share of each group (%)");
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
    panel.horizontal_axis(canvas, &across, 5, "relevance");
}

fn roc_curve(
    canvas: &mut Canvas,
    relevant: &[f32],
    irrelevant: &[f32],
    corner: (f64, f64),
    size: (f64, f64),
) {
    let panel = Panel::inside(corner, size, 26.0, ("irrelevant kept", "relevant kept"));
    let (across, up) = (Scale::unit(panel.across()), Scale::unit(panel.upwards()));
    panel.vertical_axis(canvas, &up, 2, "relevant kept");
    panel.horizontal_axis(canvas, &across, 2, "irrelevant kept");
    canvas.line("guide", (across.at(0.0), up.at(0.0)), (across.at(1.0), up.at(1.0)));
    let at = (panel.right() - 10.0, panel.bottom() - 14.0);
    match auc(relevant, irrelevant) {
        Some(area) => {
            let curve = thinned(&roc(relevant, irrelevant), MOST_POINTS);
            let places = curve.into_iter().map(|(x, y)| (across.at(x), up.at(y)));
            canvas.polyline(&format!("line {}", style::series(2)), places);
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
