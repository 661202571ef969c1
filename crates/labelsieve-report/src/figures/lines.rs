//! Curves over a common axis: **Figure 4** of the paper is accuracy against λ, one curve per k.

use super::{Layout, nothing};
use crate::svg::axes::{Panel, widest_label};
use crate::svg::legend::{self, Swatch};
use crate::svg::scale::{Scale, with_separators};
use crate::svg::{Anchor, Canvas, Drawing, style, text};
use crate::{Axis, LineSeries, Point};

const LABEL_HEIGHT: f64 = 15.0;

pub(super) fn draw(x: &Axis, y: &Axis, series: &[LineSeries], layout: Layout) -> Drawing {
    let points = || series.iter().flat_map(|series| &series.points);
    if points().next().is_none() {
        return nothing(layout);
    }
    let (width, height) = (layout.width(), layout.pick(400.0, 300.0));
    let mut canvas = Canvas::default();
    // Names are beside the ends of their curves where they fit.
    let names_beside = layout == Layout::Wide && series.len() <= 16;
    let beside = match names_beside {
        true => series.iter().map(|s| text::width(&name_of(s))).fold(0.0, f64::max) + 24.0,
        false => 12.0,
    };
    let mut top = 10.0;
    if !names_beside {
        let entries: Vec<(usize, &str)> = series.iter().map(|s| s.name.as_str()).enumerate().collect();
        top += legend::draw(&mut canvas, (4.0, top), width - 8.0, Swatch::Line, &entries) + 8.0;
    }
    let (n_across, n_upwards) = (layout.pick(8, 5), layout.pick(6, 5));
    let ends = points().flat_map(|p| [p.y - p.half_width.unwrap_or(0.0), p.y + p.half_width.unwrap_or(0.0)]);
    // On a logarithmic axis an interval may reach below the smallest value that can be shown.
    let lowest = points().map(|p| p.y).fold(f64::INFINITY, f64::min);
    let ends: Vec<f64> =
        ends.map(|end| if y.scale == Default::default() { end } else { end.max(lowest) }).collect();
    let measure = Scale::around(y.scale, ends.iter().copied(), (0.0, 1.0), n_upwards);
    let panel = Panel::inside(
        (2.0, top),
        (width - beside, height),
        widest_label(&measure, n_upwards),
        (&x.label, &y.label),
    );
    let up = Scale::around(y.scale, ends, panel.upwards(), n_upwards);
    let (low, high) =
        points().map(|p| p.x).fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
    let across = Scale::new(x.scale, (low, high), (panel.left + 10.0, panel.right() - 10.0));
    panel.vertical_axis(&mut canvas, &up, n_upwards, &y.label);
    panel.horizontal_axis(&mut canvas, &across, n_across, &x.label);
    for (number, series) in series.iter().enumerate() {
        curve(&mut canvas, number, &sorted(series), &across, &up);
    }
    if names_beside {
        names(&mut canvas, series, &panel, &across, &up, width - beside + 6.0);
    }
    canvas.finish(width, top + height + 4.0)
}

fn curve(canvas: &mut Canvas, number: usize, points: &[Point], across: &Scale, up: &Scale) {
    let colour = style::series(number);
    for point in points {
        if let Some(half) = point.half_width.filter(|half| *half > 0.0) {
            let low = up.at((point.y - half).max(up.low()));
            canvas.whisker(&format!("whisker {colour}"), across.at(point.x), low, up.at(point.y + half));
        }
    }
    let places = || points.iter().map(|point| (across.at(point.x), up.at(point.y)));
    canvas.polyline(&format!("line {colour}{}", style::dashes(number)), places());
    places().for_each(|place| canvas.marker(number, place));
}

/// The names at the right ends of the curves, moved apart where they would overlap.
fn names(canvas: &mut Canvas, series: &[LineSeries], panel: &Panel, across: &Scale, up: &Scale, left: f64) {
    let mut ends: Vec<(usize, f64, f64)> = series
        .iter()
        .enumerate()
        .filter_map(|(number, series)| {
            sorted(series).last().map(|end| (number, across.at(end.x), up.at(end.y)))
        })
        .collect();
    ends.sort_by(|a, b| a.2.total_cmp(&b.2));
    let places = apart(&ends.iter().map(|end| end.2).collect::<Vec<_>>(), panel.top, panel.bottom());
    for (&(number, x, y), place) in ends.iter().zip(places) {
        canvas.line("guide", (x + 6.0, y), (left - 3.0, place));
        canvas.text("name", (left, place + 4.0), Anchor::Start, &name_of(&series[number]));
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
            let (first, last) = (points.first()?, points.last()?);
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
