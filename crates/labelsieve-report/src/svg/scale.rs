//! From values to pixels, and the round values at which an axis is labelled.

use crate::AxisScale;

/// Where values or pixels begin and end. Pixels of a vertical axis run backwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) start: f64,
    pub(crate) end: f64,
}

impl Span {
    /// From 0 to 1.
    pub(crate) const UNIT: Span = Span { start: 0.0, end: 1.0 };

    pub(crate) fn new(start: f64, end: f64) -> Span {
        Span { start, end }
    }

    /// From the smallest to the largest of some values, if there are any.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Span> {
        values.into_iter().fold(None, |span: Option<Span>, value| {
            Some(span.map_or(Span::new(value, value), |span| {
                Span::new(span.start.min(value), span.end.max(value))
            }))
        })
    }

    fn length(self) -> f64 {
        self.end - self.start
    }
}

/// Maps a range of values to a range of pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    kind: AxisScale,
    values: Span,
    pixels: Span,
}

impl Scale {
    /// A scale over exactly these values; an empty range is widened.
    pub(crate) fn new(kind: AxisScale, values: Span, pixels: Span) -> Scale {
        Scale { kind, values: widened(kind, values), pixels }
    }

    /// A scale from 0 to 1.
    pub(crate) fn unit(pixels: Span) -> Scale {
        Scale::new(AxisScale::Linear, Span::UNIT, pixels)
    }

    /// A scale that starts and ends at round values, around all of `values`.
    pub(crate) fn around(
        kind: AxisScale,
        values: impl IntoIterator<Item = f64>,
        pixels: Span,
        n_ticks: usize,
    ) -> Scale {
        let exact = widened(kind, Span::of(values).unwrap_or(Span::UNIT));
        let values = match kind {
            AxisScale::Linear => {
                let step = nice_step(exact.length(), n_ticks);
                Span::new((exact.start / step).floor() * step, (exact.end / step).ceil() * step)
            }
            AxisScale::Log => exact,
        };
        Scale { kind, values, pixels }
    }

    /// The pixel of a value.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let position = |value: f64| match self.kind {
            AxisScale::Linear => value,
            AxisScale::Log => value.ln(),
        };
        let low = position(self.values.start);
        let high = position(self.values.end);
        self.pixels.start + (position(value) - low) / (high - low) * self.pixels.length()
    }

    /// The lowest value.
    pub(crate) fn low(&self) -> f64 {
        self.values.start
    }

    /// Round values inside the range, about `count` of them, with their labels.
    pub(crate) fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        let Span { start: low, end: high } = self.values;
        match self.kind {
            AxisScale::Linear => {
                let step = nice_step(high - low, count);
                let decimals = (-step.log10().floor()).max(0.0) as usize;
                let first = (low / step - 1e-9).ceil() as i64;
                let last = (high / step + 1e-9).floor() as i64;
                (first..=last)
                    .map(|i| i as f64 * step)
                    .map(|value| (value, with_separators(value, decimals)))
                    .collect()
            }
            AxisScale::Log => {
                log_ticks(low, high, count).into_iter().map(|value| (value, short(value))).collect()
            }
        }
    }
}

/// A range that is not empty.
fn widened(kind: AxisScale, values: Span) -> Span {
    let Span { start: low, end: high } = values;
    // A range that vanishes in rounding counts as empty too.
    if high - low > 1e-9 * high.abs().max(low.abs()) {
        return values;
    }
    match kind {
        AxisScale::Log => Span::new(low / 2.0, high * 2.0),
        AxisScale::Linear if low == 0.0 => Span::UNIT,
        AxisScale::Linear => Span::new(low - 0.1 * low.abs(), high + 0.1 * high.abs()),
    }
}

/// 1, 2 or 5 times a power of ten, so that about `count` steps make up `range`.
fn nice_step(range: f64, count: usize) -> f64 {
    let rough = range / count.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

/// Powers of ten; also 2 and 5 times each when they fit, only every second or third when they do not.
fn log_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let first = (low.log10() - 1e-9).ceil() as i32;
    let last = (high.log10() + 1e-9).floor() as i32;
    let every = ((last - first + 1).max(1) as usize).div_ceil(count.max(1)) as i32;
    let factors: &[f64] = if last - first < 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    (first - 1..=last)
        .filter(|power| power.rem_euclid(every) == 0)
        .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
        .filter(|value| (low * 0.999..=high * 1.001).contains(value))
        .collect()
}

/// `12,345.6`, with a true minus sign.
pub(crate) fn with_separators(value: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let mut text = String::new();
    if value < 0.0 && digits.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) {
        text.push('−');
    }
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if decimals > 0 {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// `0.001`, `5`, `20k`, `1M`: the round values of a logarithmic axis.
fn short(value: f64) -> String {
    let (value, suffix) = match value {
        v if !(1e-4..1e15).contains(&v) => return format!("{v:.0e}"),
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e4 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let decimals = if value < 1.0 { (-value.log10() - 1e-9).ceil() as usize } else { 0 };
    format!("{}{suffix}", with_separators(value, decimals))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(kind: AxisScale, low: f64, high: f64, count: usize) -> Vec<String> {
        let scale = Scale::new(kind, Span::new(low, high), Span::UNIT);
        scale.ticks(count).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_inside() {
        assert_eq!(labels(AxisScale::Linear, 0.0, 1.0, 2), ["0.0", "0.5", "1.0"]);
        assert_eq!(labels(AxisScale::Linear, 43.0, 71.0, 5), ["50", "60", "70"]);
        assert_eq!(labels(AxisScale::Linear, -1500.0, 1500.0, 3), ["−1,000", "0", "1,000"]);
        assert_eq!(labels(AxisScale::Linear, 0.0, 0.003, 3), ["0.000", "0.001", "0.002", "0.003"]);
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten_or_finer_when_those_are_few() {
        assert_eq!(labels(AxisScale::Log, 0.001, 5.0, 6), ["0.001", "0.01", "0.1", "1"]);
        assert_eq!(labels(AxisScale::Log, 1.0, 20.0, 6), ["1", "2", "5", "10", "20"]);
        assert_eq!(labels(AxisScale::Log, 1.0, 1e8, 5), ["1", "100", "10k", "1M", "100M"]);
    }

    #[test]
    fn pixels_follow_values() {
        let linear = Scale::new(AxisScale::Linear, Span::new(0.0, 10.0), Span::new(100.0, 0.0));
        assert_eq!((linear.at(0.0), linear.at(5.0), linear.at(10.0)), (100.0, 50.0, 0.0));
        let log = Scale::new(AxisScale::Log, Span::new(1.0, 100.0), Span::new(0.0, 2.0));
        assert!((log.at(10.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_scale_around_values_ends_at_round_ones_and_survives_a_single_value() {
        let scale = Scale::around(AxisScale::Linear, [43.0, 71.0], Span::new(0.0, 100.0), 5);
        assert_eq!((scale.at(40.0), scale.at(80.0)), (0.0, 100.0));
        for (kind, value) in [(AxisScale::Linear, 0.0), (AxisScale::Linear, 7.0), (AxisScale::Log, 1e-300)] {
            let scale = Scale::around(kind, [value], Span::new(0.0, 100.0), 5);
            assert!(scale.at(value).is_finite(), "{kind:?} {value}");
            assert!(scale.ticks(5).len() < 20);
        }
    }

    #[test]
    fn numbers_have_separators() {
        assert_eq!(with_separators(1234567.0, 0), "1,234,567");
        assert_eq!(with_separators(-0.04, 1), "0.0");
        assert_eq!(with_separators(-12.34, 1), "−12.3");
        assert_eq!(with_separators(999.0, 0), "999");
    }
}
