//! **Figure 3** of the paper: candidates per class, classes per size, gain per size.

use labelsieve::evaluation::{GroupGain, SizeGroup, gain_by_pool_size};

use super::{Layout, nothing};
use crate::svg::axes::{Axes, AxisTitles, Panel, widest_label};
use crate::svg::scale::{Scale, Span, with_separators};
use crate::svg::{Anchor, Area, Canvas, Drawing, Position, style, text};
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
    let area = |number: usize| Area {
        left: 2.0 + (cell + gap) * (number % columns) as f64,
        top: 12.0 + (PANEL_HEIGHT + 24.0) * (number / columns) as f64,
        width: cell,
        height: PANEL_HEIGHT,
    };
    let mut canvas = Canvas::default();
    candidates_per_class(&mut canvas, classes, area(0));
    let groups = size_groups(classes);
    let counts =
        groups.iter().map(|group| SizeBar { name: short_range(group), value: group.n_classes as f64 });
    SizeBars { title: "classes", series: 0, bars: counts.collect() }.draw(&mut canvas, area(1));
    if !gains.is_empty() {
        let bars = gains.iter().map(|gain| SizeBar { name: short_range(&gain.group), value: gain.mean_gain });
        let title = if gain_label.is_empty() { "mean gain" } else { gain_label };
        SizeBars { title, series: 2, bars: bars.collect() }.draw(&mut canvas, area(2));
    }
    canvas.finish(layout.width(), area(n_panels - 1).top + PANEL_HEIGHT + 6.0)
}

fn candidates_per_class(canvas: &mut Canvas, classes: &[PoolSize], area: Area) {
    let mut sizes: Vec<usize> = classes.iter().map(|class| class.candidates).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let n_empty = sizes.iter().filter(|&&size| size == 0).count();
    sizes.truncate(sizes.len() - n_empty);
    let highest = sizes.first().copied().unwrap_or(1) as f64;
    let lowest = sizes.last().copied().unwrap_or(1) as f64;
    let floor = 10f64.powf(lowest.log10().floor());
    let range = Span::new(floor, highest.max(floor * 10.0));
    let measure = Scale::new(AxisScale::Log, range, Span::UNIT);
    let titles = AxisTitles { horizontal: "classes, largest first", vertical: "candidates" };
    let panel = Panel::inside(area, widest_label(&measure, 6), titles);
    let ranks = Span::new(1.0, classes.len().max(2) as f64);
    let inner = Span::new(panel.left + 4.0, panel.right() - 4.0);
    let axes = Axes {
        across: Scale::new(AxisScale::Linear, ranks, inner),
        up: Scale::new(AxisScale::Log, range, panel.upwards()),
    };
    panel.vertical_axis(canvas, &axes.up, 6, titles.vertical);
    panel.horizontal_axis(canvas, &axes.across, N_TICKS, titles.horizontal);
    let every = sizes.len().div_ceil(400).max(1);
    let positions: Vec<Position> = sizes
        .iter()
        .enumerate()
        .filter(|(rank, _)| rank % every == 0 || rank + 1 == sizes.len())
        .map(|(rank, &size)| axes.at((rank + 1) as f64, size as f64))
        .collect();
    canvas.polyline(&format!("line {}", style::series(0)), positions.iter().copied());
    if positions.len() <= 30 {
        positions.iter().for_each(|&position| canvas.marker(0, position));
    }
    if n_empty > 0 {
        let note = format!("{n_empty} with no candidates");
        let at = Position::new(panel.right() - 4.0, panel.top + 12.0);
        canvas.text("muted halo", at, Anchor::End, &note);
    }
}

/// One bar per size group, with its value.
struct SizeBars<'a> {
    title: &'a str,
    /// The number of the series, for its colour.
    series: usize,
    bars: Vec<SizeBar>,
}

/// The bar of a size group.
struct SizeBar {
    name: String,
    value: f64,
}

impl SizeBars<'_> {
    fn draw(&self, canvas: &mut Canvas, area: Area) {
        let with_label = |value: f64| value * 1.08; // space for the values at the ends of the bars
        let ends = || self.bars.iter().map(|bar| bar.value).chain([0.0]).map(with_label);
        let measure = Scale::around(AxisScale::Linear, ends(), Span::UNIT, N_TICKS);
        let titles = AxisTitles { horizontal: "candidates per class", vertical: self.title };
        let panel = Panel::inside(area, widest_label(&measure, N_TICKS), titles);
        let up = Scale::around(AxisScale::Linear, ends(), panel.upwards(), N_TICKS);
        panel.vertical_axis(canvas, &up, N_TICKS, titles.vertical);
        let slot = panel.width / self.bars.len() as f64;
        let is_turned = self.bars.iter().any(|bar| text::width(&bar.name) > slot - 4.0);
        for (position, bar) in self.bars.iter().enumerate() {
            let middle = panel.left + slot * (position as f64 + 0.5);
            bar.draw(canvas, &up, middle, slot, self.series);
            if is_turned {
                let at = Position::new(middle + 4.0, panel.bottom() + 13.0);
                canvas.turned_text("tick", at, Anchor::End, -28.0, &bar.name);
            } else {
                let at = Position::new(middle, panel.bottom() + 17.0);
                canvas.text("tick", at, Anchor::Middle, &bar.name);
            }
        }
        panel.level(canvas, up.at(0.0));
        panel.horizontal_title(canvas, titles.horizontal, if is_turned { 26.0 } else { 20.0 });
    }
}

impl SizeBar {
    /// Draws the bar in the middle of its slot.
    fn draw(&self, canvas: &mut Canvas, up: &Scale, middle: f64, slot: f64, series: usize) {
        let base = up.at(0.0);
        let end = up.at(self.value);
        let width = (slot * 0.7).min(48.0);
        let area = Area { left: middle - width / 2.0, top: base.min(end), width, height: (base - end).abs() };
        canvas.rect(&format!("fill {}", style::series(series)), area);
        let decimals = if self.value.fract() == 0.0 { 0 } else { 1 };
        let label = with_separators(self.value, decimals);
        if text::width(&label) < slot {
            let y = if self.value < 0.0 { end + 14.0 } else { end - 5.0 };
            canvas.text("tick halo", Position::new(middle, y), Anchor::Middle, &label);
        }
    }
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
