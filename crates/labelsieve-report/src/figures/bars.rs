//! Bars side by side, e.g. one group per k and one bar per method.

use super::{Layout, nothing};
use crate::svg::axes::{Panel, widest_label};
use crate::svg::legend::{self, Swatch};
use crate::svg::scale::{Scale, with_separators};
use crate::svg::{Anchor, Canvas, Drawing, style, text};
use crate::{Axis, AxisScale, BarSeries};

const N_TICKS: usize = 5;
/// The largest number of bars that are labelled with their values.
const FEW_BARS: usize = 10;

pub(super) fn draw(
    groups: &[String],
    x_label: &str,
    y: &Axis,
    series: &[BarSeries],
    layout: Layout,
) -> Drawing {
    if groups.is_empty() || series.iter().all(|series| series.values.iter().flatten().next().is_none()) {
        return nothing(layout);
    }
    let (width, height) = (layout.width(), layout.pick(340.0, 260.0));
    let mut canvas = Canvas::default();
    let mut top = 10.0;
    if series.len() > 1 {
        let entries: Vec<(usize, &str)> = series.iter().map(|s| s.name.as_str()).enumerate().collect();
        top += legend::draw(&mut canvas, (4.0, top), width - 8.0, Swatch::Box, &entries) + 10.0;
    }
    let ends: Vec<f64> = series.iter().flat_map(ends).chain([0.0]).collect();
    let measure = Scale::around(AxisScale::Linear, ends.iter().copied(), (0.0, 1.0), N_TICKS);
    let mut panel = Panel::inside(
        (2.0, top),
        (width - 8.0, height),
        widest_label(&measure, N_TICKS),
        (x_label, &y.label),
    );
    let slot = panel.width / groups.len() as f64;
    let widest = groups.iter().map(|group| text::width(group)).fold(0.0, f64::max);
    // Labels that would overlap are rotated, and the plot shrinks to make space.
    let turned = widest > slot - 8.0;
    let labels_height = if turned { (widest.min(110.0) * 0.6 + 16.0).max(20.0) } else { 20.0 };
    let height = height + labels_height - 20.0;
    panel.height = panel.height.max(10.0);
    let up = Scale::around(AxisScale::Linear, ends, panel.upwards(), N_TICKS);
    panel.vertical_axis(&mut canvas, &up, N_TICKS, &y.label);
    let with_values = groups.len() * series.len() <= layout.pick(FEW_BARS, FEW_BARS / 2);
    for (position, group) in groups.iter().enumerate() {
        let middle = panel.left + slot * (position as f64 + 0.5);
        group_of_bars(&mut canvas, series, position, (middle, slot), &up, with_values);
        match turned {
            true => {
                let at = (middle + 4.0, panel.bottom() + 14.0);
                canvas.turned_text("tick", at, Anchor::End, -35.0, &text::fit(group, 110.0));
            }
            false => canvas.text("tick", (middle, panel.bottom() + 17.0), Anchor::Middle, group),
        }
    }
    canvas.line("axis", (panel.left, up.at(0.0)), (panel.right(), up.at(0.0)));
    panel.horizontal_title(&mut canvas, x_label, labels_height);
    canvas.finish(width, top + height + 4.0)
}

fn ends(series: &BarSeries) -> impl Iterator<Item = f64> {
    series
        .values
        .iter()
        .enumerate()
        .filter_map(|(position, value)| value.map(|value| (position, value)))
        .flat_map(|(position, value)| {
            let half = half_width(series, position);
            [value - half, value + half]
        })
}

fn half_width(series: &BarSeries, position: usize) -> f64 {
    series.half_widths.get(position).copied().flatten().unwrap_or(0.0)
}

fn group_of_bars(
    canvas: &mut Canvas,
    series: &[BarSeries],
    position: usize,
    (middle, slot): (f64, f64),
    up: &Scale,
    with_values: bool,
) {
    let bar = (slot * 0.8 / series.len() as f64).min(44.0);
    let left = middle - bar * series.len() as f64 / 2.0;
    for (number, series) in series.iter().enumerate() {
        let Some(value) = series.values[position] else { continue };
        let (from, to) = (up.at(0.0), up.at(value));
        let x = left + bar * number as f64;
        let gap = if bar > 5.0 { 1.0 } else { 0.0 };
        canvas.rect(
            &format!("fill {}", style::series(number)),
            (x + gap, from.min(to)),
            (bar - 2.0 * gap, (from - to).abs()),
        );
        let half = half_width(series, position);
        if half > 0.0 && bar > 4.0 {
            canvas.whisker("whisker ink", x + bar / 2.0, up.at(value - half), up.at(value + half));
        }
        if with_values {
            let end = if value < 0.0 { up.at(value - half) + 15.0 } else { up.at(value + half) - 6.0 };
            let label = with_separators(value, decimals(value));
            canvas.text("tick halo", (x + bar / 2.0, end), Anchor::Middle, &label);
        }
    }
}

/// Integers have no decimals.
fn decimals(value: f64) -> usize {
    if value.fract() == 0.0 { 0 } else { 1 }
}

pub(super) fn describe(groups: &[String], y: &Axis, series: &[BarSeries]) -> String {
    let series: Vec<String> = series
        .iter()
        .map(|series| {
            let values: Vec<String> = groups
                .iter()
                .zip(&series.values)
                .filter_map(|(group, value)| {
                    value.map(|v| format!("{group}: {}", with_separators(v, decimals(v))))
                })
                .collect();
            format!("{}: {}", series.name, values.join(", "))
        })
        .collect();
    format!("{}. {}.", y.label, series.join("; "))
}
