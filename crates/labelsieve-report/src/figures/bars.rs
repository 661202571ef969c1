//! Bars side by side, e.g. one group per k and one bar per method.

use super::{Layout, nothing};
use crate::svg::axes::{AxisTitles, Panel, widest_label};
use crate::svg::legend::{Legend, Swatch};
use crate::svg::scale::{Scale, Span, with_separators};
use crate::svg::{Anchor, Area, Canvas, Drawing, Position, style, text};
use crate::{Axis, AxisScale, BarSeries};

const N_TICKS: usize = 5;
/// The largest number of bars that are labelled with their values.
const FEW_BARS: usize = 10;

/// The data of the figure.
pub(super) struct BarChart<'a> {
    pub(super) groups: &'a [String],
    /// The title of the horizontal axis.
    pub(super) x_label: &'a str,
    pub(super) y: &'a Axis,
    pub(super) series: &'a [BarSeries],
}

/// The place of a group on the horizontal axis.
struct Slot {
    middle: f64,
    width: f64,
}

impl BarChart<'_> {
    pub(super) fn draw(&self, layout: Layout) -> Drawing {
        if self.groups.is_empty()
            || self.series.iter().all(|series| series.values.iter().flatten().next().is_none())
        {
            return nothing(layout);
        }
        let width = layout.width();
        let height = layout.pick(340.0, 260.0);
        let mut canvas = Canvas::default();
        let mut top = 10.0;
        if self.series.len() > 1 {
            let names = self.series.iter().map(|series| series.name.as_str()).collect();
            let legend = Legend { swatch: Swatch::Box, names };
            top += legend.draw(&mut canvas, Position::new(4.0, top), width - 8.0) + 10.0;
        }
        let ends: Vec<f64> = self.series.iter().flat_map(ends).chain([0.0]).collect();
        let measure = Scale::around(AxisScale::Linear, ends.iter().copied(), Span::UNIT, N_TICKS);
        let area = Area { left: 2.0, top, width: width - 8.0, height };
        let titles = AxisTitles { horizontal: self.x_label, vertical: &self.y.label };
        let panel = Panel::inside(area, widest_label(&measure, N_TICKS), titles);
        let up = Scale::around(AxisScale::Linear, ends, panel.upwards(), N_TICKS);
        panel.vertical_axis(&mut canvas, &up, N_TICKS, &self.y.label);
        let labels_height = self.draw_groups(&mut canvas, &panel, &up, layout);
        panel.level(&mut canvas, up.at(0.0));
        panel.horizontal_title(&mut canvas, self.x_label, labels_height);
        canvas.finish(width, top + height + labels_height - 20.0 + 4.0)
    }

    /// Draws the bars and the names of their groups; returns the height of the names.
    fn draw_groups(&self, canvas: &mut Canvas, panel: &Panel, up: &Scale, layout: Layout) -> f64 {
        let slot_width = panel.width / self.groups.len() as f64;
        let widest = self.groups.iter().map(|group| text::width(group)).fold(0.0, f64::max);
        // Labels that would overlap are rotated, and the picture grows to make space.
        let is_turned = widest > slot_width - 8.0;
        let with_values = self.groups.len() * self.series.len() <= layout.pick(FEW_BARS, FEW_BARS / 2);
        for (position, group) in self.groups.iter().enumerate() {
            let slot = Slot { middle: panel.left + slot_width * (position as f64 + 0.5), width: slot_width };
            self.draw_bars(canvas, position, &slot, up, with_values);
            if is_turned {
                let at = Position::new(slot.middle + 4.0, panel.bottom() + 14.0);
                canvas.turned_text("tick", at, Anchor::End, -35.0, &text::fit(group, 110.0));
            } else {
                let at = Position::new(slot.middle, panel.bottom() + 17.0);
                canvas.text("tick", at, Anchor::Middle, group);
            }
        }
        if is_turned { (widest.min(110.0) * 0.6 + 16.0).max(20.0) } else { 20.0 }
    }

    fn draw_bars(&self, canvas: &mut Canvas, position: usize, slot: &Slot, up: &Scale, with_values: bool) {
        let bar = (slot.width * 0.8 / self.series.len() as f64).min(44.0);
        let left = slot.middle - bar * self.series.len() as f64 / 2.0;
        for (number, series) in self.series.iter().enumerate() {
            let Some(value) = series.values[position] else { continue };
            let base = up.at(0.0);
            let end = up.at(value);
            let x = left + bar * number as f64;
            let gap = if bar > 5.0 { 1.0 } else { 0.0 };
            let area = Area {
                left: x + gap,
                top: base.min(end),
                width: bar - 2.0 * gap,
                height: (base - end).abs(),
            };
            canvas.rect(&format!("fill {}", style::series(number)), area);
            let half = half_width(series, position);
            if half > 0.0 && bar > 4.0 {
                canvas.whisker("whisker ink", x + bar / 2.0, up.at(value - half), up.at(value + half));
            }
            if with_values {
                let y = if value < 0.0 { up.at(value - half) + 15.0 } else { up.at(value + half) - 6.0 };
                let label = with_separators(value, decimals(value));
                canvas.text("tick halo", Position::new(x + bar / 2.0, y), Anchor::Middle, &label);
            }
        }
    }

    pub(super) fn describe(&self) -> String {
        let series: Vec<String> = self
            .series
            .iter()
            .map(|series| {
                let values: Vec<String> = self
                    .groups
                    .iter()
                    .zip(&series.values)
                    .filter_map(|(group, value)| {
                        value.map(|v| format!("{group}: {}", with_separators(v, decimals(v))))
                    })
                    .collect();
                format!("{}: {}", series.name, values.join(", "))
            })
            .collect();
        format!("{}. {}.", self.y.label, series.join("; "))
    }
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

/// Integers have no decimals.
fn decimals(value: f64) -> usize {
    if value.fract() == 0.0 { 0 } else { 1 }
}
