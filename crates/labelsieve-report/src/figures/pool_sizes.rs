//! **Figure 3** of the paper: candidates per class, classes per size, gain per size.

use labelsieve::evaluation::{GroupGain, SizeGroup, gain_by_pool_size};

use super::{Layout, nothing};
use crate::svg::axes::{Panel, widest_label};
use crate::svg::scale::{Scale, with_separators};
use crate::svg::{Anchor, Canvas, Drawing, style, text};
use crate::{AxisScale, PoolSize};

const PANEL_HEIGHT: f64 = 250.0;
const N_TICKS: usize = 4;

pub(super) fn draw(classes: &[PoolSize], gain_label: &str, layout: Layout) -> Drawing {
    if classes.is_empty() {
        return nothing(layout);
    }
    let gains = gain_groups(classes);
    let n_panels = if gains.is_empty() { 2 } else { 3 };
    let columns = layout.pick(n_panels, 1);
    let gap = 18.0;
    let cell = (layout.width() - 8.0 - gap * (columns - 1) as f64) / columns as f64;
    let corner = |number: usize| {
        let (column, row) = (number % columns, number / columns);
        (2.0 + (cell + gap) * column as f64, 12.0 + (PANEL_HEIGHT + 24.0) * row as f64)
    };
    let mut canvas = Canvas::default();
    let size = (cell, PANEL_HEIGHT);
    candidates_per_class(&mut canvas, classes, corner(0), size);
    let counts: Vec<(String, f64)> =
        size_groups(classes).iter().map(|group| (short_range(group), group.n_classes as f64)).collect();
    bars(&mut canvas, &counts, "classes", 0, corner(1), size);
    if !gains.is_empty() {
        let gains: Vec<(String, f64)> =
            gains.iter().map(|gain| (short_range(&gain.group), gain.mean_gain)).collect();
        let label = if gain_label.is_empty() { "mean gain" } else { gain_label };
        bars(&mut canvas, &gains, label, 2, corner(2), size);
    }
    canvas.finish(layout.width(), corner(n_panels - 1).1 + PANEL_HEIGHT + 6.0)
}

fn candidates_per_class(canvas: &mut Canvas, classes: &[PoolSize], corner: (f64, f64), size: (f64, f64)) {
    let mut sizes: Vec<usize> = classes.iter().map(|class| class.candidates).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let n_empty = sizes.iter().filter(|&&size| size == 0).count();
    sizes.truncate(sizes.len() - n_empty);
    let highest = sizes.first().copied().unwrap_or(1) as f64;
    let lowest = sizes.last().copied().unwrap_or(1) as f64;
    let floor = 10f64.powf(lowest.log10().floor());
    let range = (floor, highest.max(floor * 10.0));
    let measure = Scale::new(AxisScale::Log, range, (0.0, 1.0));
    let titles = ("classes, largest first", "candidates");
    let panel = Panel::inside(corner, size, widest_label(&measure, 6), titles);
    let up = Scale::new(AxisScale::Log, range, panel.upwards());
    let across = Scale::new(
        AxisScale::Linear,
        (1.0, classes.len().max(2) as f64),
        (panel.left + 4.0, panel.right() - 4.0),
    );
    panel.vertical_axis(canvas, &up, 6, titles.1);
    panel.horizontal_axis(canvas, &across, N_TICKS, titles.0);
    let every = sizes.len().div_ceil(400).max(1);
    let places: Vec<(f64, f64)> = sizes
        .iter()
        .enumerate()
        .filter(|(rank, _)| rank % every == 0 || rank + 1 == sizes.len())
        .map(|(rank, &size)| (across.at((rank + 1) as f64), up.at(size as f64)))
        .collect();
    canvas.polyline(&format!("line {}", style::series(0)), places.iter().copied());
    if places.len() <= 30 {
        places.iter().for_each(|&place| canvas.marker(0, place));
    }
    if n_empty > 0 {
        let note = format!("{n_empty} with no candidates");
        canvas.text("muted halo", (panel.right() - 4.0, panel.top + 12.0), Anchor::End, &note);
    }
}

/// One bar per size group, with its value.
fn bars(
    canvas: &mut Canvas,
    groups: &[(String, f64)],
    title: &str,
    number: usize,
    corner: (f64, f64),
    size: (f64, f64),
) {
    let ends = || groups.iter().map(|group| group.1).chain([0.0]);
    let with_label = |value: f64| value * 1.08; // space for the values at the ends of the bars
    let measure = Scale::around(AxisScale::Linear, ends().map(with_label), (0.0, 1.0), N_TICKS);
    let panel = Panel::inside(corner, size, widest_label(&measure, N_TICKS), ("candidates per class", title));
    let up = Scale::around(AxisScale::Linear, ends().map(with_label), panel.upwards(), N_TICKS);
    panel.vertical_axis(canvas, &up, N_TICKS, title);
    let slot = panel.width / groups.len() as f64;
    let turned = groups.iter().any(|(name, _)| text::width(name) > slot - 4.0);
    for (position, (name, value)) in groups.iter().enumerate() {
        let middle = panel.left + slot * (position as f64 + 0.5);
        let (from, to) = (up.at(0.0), up.at(*value));
        let bar = (slot * 0.7).min(48.0);
        canvas.rect(
            &format!("fill {}", style::series(number)),
            (middle - bar / 2.0, from.min(to)),
            (bar, (from - to).abs()),
        );
        let decimals = if value.fract() == 0.0 { 0 } else { 1 };
        let end = if *value < 0.0 { to + 14.0 } else { to - 5.0 };
        let label = with_separators(*value, decimals);
        if text::width(&label) < slot {
            canvas.text("tick halo", (middle, end), Anchor::Middle, &label);
        }
        match turned {
            true => {
                canvas.turned_text("tick", (middle + 4.0, panel.bottom() + 13.0), Anchor::End, -28.0, name)
            }
            false => canvas.text("tick", (middle, panel.bottom() + 17.0), Anchor::Middle, name),
        }
    }
    canvas.line("axis", (panel.left, up.at(0.0)), (panel.right(), up.at(0.0)));
    panel.horizontal_title(canvas, "candidates per class", if turned { 26.0 } else { 20.0 });
}

fn size_groups(classes: &[PoolSize]) -> Vec<SizeGroup> {
    let counts: Vec<u64> = classes.iter().map(|class| class.candidates as u64).collect();
    SizeGroup::by_digits(&counts).into_iter().filter(|group| group.n_classes > 0).collect()
}

/// Only classes whose gain is known.
fn gain_groups(classes: &[PoolSize]) -> Vec<GroupGain> {
    let (sizes, gains): (Vec<usize>, Vec<f64>) =
        classes.iter().filter_map(|class| class.gain.map(|gain| (class.candidates, gain))).unzip();
    gain_by_pool_size(&sizes, &gains)
}

/// `0`, `1–9`, `10+`, `100+`, `1k+`: groups of powers of ten are named by their lower end.
fn short_range(group: &SizeGroup) -> String {
    match group.from {
        0 => "0".to_owned(),
        1 => "1–9".to_owned(),
        from if from >= 1_000_000 => format!("{}M+", from / 1_000_000),
        from if from >= 1_000 => format!("{}k+", from / 1_000),
        from => format!("{from}+"),
    }
}

pub(super) fn describe(classes: &[PoolSize]) -> String {
    let counts: Vec<String> =
        size_groups(classes).iter().map(|g| format!("{} with {}", g.n_classes, g.range())).collect();
    let gains: Vec<String> =
        gain_groups(classes).iter().map(|g| format!("{:+.1} for {}", g.mean_gain, g.group.range())).collect();
    let gains = if gains.is_empty() { String::new() } else { format!(" Mean gain: {}.", gains.join(", ")) };
    format!("{} classes by number of candidates: {}.{gains}", classes.len(), counts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(candidates: usize, gain: Option<f64>) -> PoolSize {
        PoolSize { class: "c".into(), candidates, gain }
    }

    #[test]
    fn gains_average_only_over_classes_where_they_are_known() {
        let classes = [class(5, Some(1.0)), class(7, Some(3.0)), class(8, None), class(2000, None)];
        let gains = gain_groups(&classes);
        assert_eq!((gains.len(), gains[0].mean_gain, gains[0].group.n_classes), (1, 2.0, 2));
        let names: Vec<String> = size_groups(&classes).iter().map(short_range).collect();
        assert_eq!(names, ["1–9", "1k+"]);
        let text = describe(&classes);
        assert_eq!(
            text,
            "4 classes by number of candidates: 3 with 1–9, 1 with 1000–9999. Mean gain: +2.0 for 1–9."
        );
    }
}
