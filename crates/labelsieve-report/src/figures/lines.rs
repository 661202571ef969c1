//! Curves over a common axis: **Figure 4** of the paper is accuracy against λ, one curve per k.

use super::{Layout, nothing};
use crate::svg::axes::{Axes, AxisTitles, Panel, widest_label};
use crate::svg::legend::{Legend, Swatch};
use crate::svg::scale::{Scale, Span, with_separators};
use crate::svg::{Anchor, Area, Canvas, Drawing, Position, style, text};
use crate::{Axis, AxisScale, LineSeries, Point};

const LABEL_HEIGHT: f64 = 15.0;

pub(super) fn draw(x: &Axis, y: &Axis, series: &[LineSeries], layout: Layout) -> Drawing {
    let points = || series.iter().flat_map(|series| &series.points);
    if points().next().is_none() {
        return nothing(layout);
    }
    let width = layout.width();
    let height = layout.pick(400.0, 300.0);
    let mut canvas = Canvas::default();
    // Names are beside the ends of their curves where they fit.
    let names_beside = layout == Layout::Wide && series.len() <= 16;
    let beside = if names_beside {
        series.iter().map(|series| text::width(&name_of(series))).fold(0.0, f64::max) + 24.0
    } else {
        12.0
    };
    let mut top = 10.0;
    if !names_beside {
        let names = series.iter().map(|series| series.name.as_str()).collect();
        let legend = Legend { swatch: Swatch::Line, names };
        top += legend.draw(&mut canvas, Position::new(4.0, top), width - 8.0) + 8.0;
    }
    let n_upwards = layout.pick(6, 5);
    let ends = points().flat_map(|p| [p.y - p.half_width.unwrap_or(0.0), p.y + p.half_width.unwrap_or(0.0)]);
    // On a logarithmic axis an interval may reach below the smallest value that can be shown.
    let lowest = points().map(|p| p.y).fold(f64::INFINITY, f64::min);
    let ends: Vec<f64> =
        ends.map(|end| if y.scale == AxisScale::Linear { end } else { end.max(lowest) }).collect();
    let measure = Scale::around(y.scale, ends.iter().copied(), Span::UNIT, n_upwards);
    let area = Area { left: 2.0, top, width: width - beside, height };
    let titles = AxisTitles { horizontal: &x.label, vertical: &y.label };
    let panel = Panel::inside(area, widest_label(&measure, n_upwards), titles);
    let inner = Span::new(panel.left + 10.0, panel.right() - 10.0);
    let axes = Axes {
        across: Scale::new(x.scale, Span::of(points().map(|p| p.x)).unwrap_or(Span::UNIT), inner),
        up: Scale::around(y.scale, ends, panel.upwards(), n_upwards),
    };
    panel.vertical_axis(&mut canvas, &axes.up, n_upwards, &y.label);
    panel.horizontal_axis(&mut canvas, &axes.across, layout.pick(8, 5), &x.label);
    for (number, series) in series.iter().enumerate() {
        curve(&mut canvas, number, &sorted(series), &axes);
    }
    if names_beside {
        names(&mut canvas, series, &panel, &axes, width - beside + 6.0);
    }
    canvas.finish(width, top + height + 4.0)
}

fn curve(canvas: &mut Canvas, number: usize, points: &[Point], axes: &Axes) {
    let colour = style::series(number);
    for point in points {
        if let Some(half) = point.half_width.filter(|half| *half > 0.0) {
            let low = axes.up.at((point.y - half).max(axes.up.low()));
            let high = axes.up.at(point.y + half);
            canvas.whisker(&format!("whisker {colour}"), axes.across.at(point.x), low, high);
        }
    }
    let positions = || points.iter().map(|point| axes.at(point.x, point.y));
    canvas.polyline(&format!("line {colour}{}", style::dashes(number)), positions());
    positions().for_each(|position| canvas.marker(number, position));
}

/// The last point of a curve.
struct CurveEnd<'a> {
    series: &'a LineSeries,
    at: Position,
}

/// The names at the right ends of the curves, moved apart where they would overlap.
fn names(canvas: &mut Canvas, series: &[LineSeries], panel: &Panel, axes: &Axes, left: f64) {
    let mut ends: Vec<CurveEnd> = series
        .iter()
        .filter_map(|series| {
            let end = sorted(series).last().copied()?;
            Some(CurveEnd { series, at: axes.at(end.x, end.y) })
        })
        .collect();
    ends.sort_by(|a, b| a.at.y.total_cmp(&b.at.y));
    let heights: Vec<f64> = ends.iter().map(|end| end.at.y).collect();
    for (end, height) in ends.iter().zip(apart(&heights, panel.top, panel.bottom())) {
        canvas.line("guide", Position::new(end.at.x + 6.0, end.at.y), Position::new(left - 3.0, height));
        canvas.text("name", Position::new(left, height + 4.0), Anchor::Start, &name_of(end.series));
    }
}

/// Ascending positions at least a line apart, as close to the wanted ones as possible, within `top` and `bottom` if they fit.
fn apart(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut places = wanted.to_vec();
    let mut floor = top;
    for place in &mut places {
        *place = place.max(floor);
        floor = *place + LABEL_HEIGHT;
    }
    let mut ceiling = bottom.max(top + LABEL_HEIGHT * places.len().saturating_sub(1) as f64);
    for place in places.iter_mut().rev() {
        *place = place.min(ceiling);
        ceiling = *place - LABEL_HEIGHT;
    }
    places
}

fn name_of(series: &LineSeries) -> String {
    text::fit(&series.name, 170.0)
}

fn sorted(series: &LineSeries) -> Vec<Point> {
    let mut points = series.points.clone();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

pub(super) fn describe(x: &Axis, y: &Axis, series: &[LineSeries]) -> String {
    let curves: Vec<String> = series
        .iter()
        .filter_map(|series| {
            let points = sorted(series);
            let best = points.iter().max_by(|a, b| a.y.total_cmp(&b.y))?;
            let first = points.first()?;
            let last = points.last()?;
            let number = |value: f64| with_separators(value, 1);
            Some(format!(
                "{}: {} at {}, highest {} at {}, {} at {}",
                series.name,
                number(first.y),
                first.x,
                number(best.y),
                best.x,
                number(last.y),
                last.x
            ))
        })
        .collect();
    format!("{} against {}. {}.", y.label, x.label, curves.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_move_apart_and_stay_inside() {
        assert_eq!(apart(&[10.0, 50.0], 0.0, 100.0), [10.0, 50.0]);
        assert_eq!(apart(&[10.0, 12.0], 0.0, 100.0), [10.0, 25.0]);
        assert_eq!(apart(&[99.0, 100.0], 0.0, 100.0), [85.0, 100.0]);
        assert_eq!(apart(&[5.0, 5.0, 5.0], 0.0, 10.0), [0.0, 15.0, 30.0], "too little space: stacked anyway");
    }
}
