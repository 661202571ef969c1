//! Summary of the draws of a set: means, and paired differences between methods on the same draws.

use labelsieve::evaluation::{Bin, Calibration, Interval};
use serde::Serialize;
use serde_json::Value;

use super::cell::Cell;
use super::classifiers::{self, ClassifierCell, ClassifierRow};
use super::methods::{CLEAN_ONLY, Contender, GCN, ORACLE, SIMPLE};

/// One method with one number of clean examples.
#[derive(Serialize)]
pub struct Row {
    pub shots: usize,
    pub method: String,
    /// The method with its settings.
    pub source: Value,
    pub top_1: Measurement,
    pub top_5: Measurement,
    pub auc: Option<Measurement>,
    /// Expected calibration error.
    pub calibration_error: Option<Interval>,
    /// Over the candidates of all draws, by probability.
    pub reliability: Vec<Bin>,
    /// The share of the gap between clean-only and the oracle that it closes in top-5; `None` where the gap is below half a point.
    pub of_the_way: Option<f64>,
    /// Median over the draws.
    pub seconds_per_class: f64,
    /// Median over the draws of its time relative to gcn in the same draw.
    pub times_gcn: Option<f64>,
    /// Classifiers learned from its scores, beside prototypes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classifiers: Vec<ClassifierRow>,
}

/// A figure by draw, and its differences to the same figure of other methods.
#[derive(Serialize)]
pub struct Measurement {
    #[serde(flatten)]
    pub interval: Interval,
    pub by_draw: Vec<f64>,
    /// The paired difference to gcn.
    pub to_gcn: Option<Interval>,
    /// The paired difference to the best single method, by mean.
    pub to_best: Option<Difference>,
    /// The paired difference to the best of clean-only, beta and similarity, by mean.
    pub to_simple: Option<Difference>,
    /// Whether the whole interval of `to_simple` is below 0.
    pub below_simple: bool,
}

#[derive(Serialize)]
pub struct Difference {
    pub method: String,
    #[serde(flatten)]
    pub interval: Interval,
}

/// The rows of one number of clean examples; `cells` has a list of draws per contender.
pub fn rows(shots: usize, contenders: &[Contender], cells: &[Vec<Cell>], n_classes: usize) -> Vec<Row> {
    let by_draw = |figure: &dyn Fn(&Cell) -> Option<f64>| -> Vec<Vec<f64>> {
        cells.iter().map(|draws| draws.iter().filter_map(figure).collect()).collect()
    };
    let top_1 = by_draw(&|cell| Some(cell.top_1));
    let top_5 = by_draw(&|cell| Some(cell.top_5));
    let auc = by_draw(&|cell| cell.auc);
    let errors = by_draw(&|cell| Some(cell.calibration.as_ref()?.reliability()?.expected_error));
    let seconds = by_draw(&|cell| Some(cell.seconds));
    let gcn = position(contenders, GCN);
    let row = |(i, contender): (usize, &Contender)| Row {
        shots,
        method: contender.name.clone(),
        source: contender.source.json(),
        top_1: Measurement::new(contenders, &top_1, i),
        top_5: Measurement::new(contenders, &top_5, i),
        auc: (!auc[i].is_empty()).then(|| Measurement::new(contenders, &auc, i)),
        calibration_error: (!errors[i].is_empty()).then(|| Interval::of(&errors[i])),
        reliability: pooled(&cells[i]).reliability().map_or(Vec::new(), |found| found.bins),
        of_the_way: of_the_way(contenders, &top_5, i),
        seconds_per_class: median(seconds[i].clone()) / n_classes.max(1) as f64,
        times_gcn: gcn.map(|gcn| median(seconds[i].iter().zip(&seconds[gcn]).map(|(a, b)| a / b).collect())),
        classifiers: classifiers::rows(&of_classifiers(&cells[i])),
    };
    contenders.iter().enumerate().map(row).collect()
}

/// The classifiers of each draw, where they were measured.
fn of_classifiers(draws: &[Cell]) -> Vec<&[ClassifierCell]> {
    draws.iter().map(|cell| cell.classifiers.as_slice()).collect()
}

impl Measurement {
    /// Contender `i` among all; `values` has a list of draws for each.
    fn new(contenders: &[Contender], values: &[Vec<f64>], i: usize) -> Measurement {
        let to = |j: usize| paired(&values[i], &values[j]);
        let best_of = |may: &dyn Fn(&Contender) -> bool| {
            let among = (0..contenders.len()).filter(|&j| may(&contenders[j]) && !values[j].is_empty());
            let best = among.reduce(|a, b| if mean(&values[b]) > mean(&values[a]) { b } else { a })?;
            Some(Difference { method: contenders[best].name.clone(), interval: to(best)? })
        };
        let to_simple = best_of(&|other| SIMPLE.contains(&other.name.as_str()));
        let is_below =
            |to: &Difference| to.interval.half_width.is_some_and(|half| to.interval.mean + half < 0.0);
        Measurement {
            interval: Interval::of(&values[i]),
            by_draw: values[i].clone(),
            to_gcn: position(contenders, GCN).and_then(to),
            to_best: best_of(&Contender::is_single),
            below_simple: to_simple.as_ref().is_some_and(is_below),
            to_simple,
        }
    }
}

/// The mean of the differences on the same draws with its interval; `None` unless both were measured on all draws.
fn paired(these: &[f64], those: &[f64]) -> Option<Interval> {
    let differences: Vec<f64> = these.iter().zip(those).map(|(a, b)| a - b).collect();
    (these.len() == those.len() && !these.is_empty()).then(|| Interval::of(&differences))
}

fn position(contenders: &[Contender], name: &str) -> Option<usize> {
    contenders.iter().position(|contender| contender.name == name)
}

fn of_the_way(contenders: &[Contender], top_5: &[Vec<f64>], i: usize) -> Option<f64> {
    let of = |name: &str| position(contenders, name).map(|j| mean(&top_5[j]));
    let from = of(CLEAN_ONLY)?;
    let to = of(ORACLE)?;
    const MIN_GAP: f64 = 0.005; // the share of a smaller gap is mostly noise
    (to - from >= MIN_GAP).then(|| (mean(&top_5[i]) - from) / (to - from))
}

fn pooled(draws: &[Cell]) -> Calibration {
    let mut all = Calibration::default();
    draws.iter().filter_map(|cell| cell.calibration.as_ref()).for_each(|one| all.merge(one));
    all
}

fn mean(values: &[f64]) -> f64 {
    Interval::of(values).mean
}

/// The median, the lower one of an even number of values; 0 without values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contenders(names: &[&str]) -> Vec<Contender> {
        names.iter().map(|name| Contender::parse(name).unwrap()).collect()
    }

    #[test]
    fn a_paired_interval_is_that_of_the_differences() {
        // Differences 1, 2, 3: mean 2, deviation 1, t = 4.303 for 2 degrees of freedom. The values themselves spread widely.
        let interval = paired(&[11.0, 52.0, 93.0], &[10.0, 50.0, 90.0]).unwrap();
        assert_eq!(interval.mean, 2.0);
        assert!((interval.half_width.unwrap() - 4.303 / 3f64.sqrt()).abs() < 1e-9);
        assert!(paired(&[1.0, 2.0], &[1.0]).is_none() && paired(&[], &[]).is_none());
    }

    #[test]
    fn only_what_is_surely_below_the_best_simple_method_is_marked() {
        let names = contenders(&["clean-only", "beta", "similarity", "gcn", "mlp"]);
        let low = vec![0.2, 0.3, 0.4];
        let values = [low.clone(), vec![0.5, 0.6, 0.7], low, vec![0.41, 0.5, 0.59], vec![0.3, 0.9, 0.6]];
        let of = |i: usize| Measurement::new(&names, &values, i);
        let gcn = of(3);
        assert_eq!(gcn.to_simple.as_ref().unwrap().method, "beta");
        assert!((gcn.to_simple.unwrap().interval.mean + 0.1).abs() < 1e-9);
        assert!(gcn.below_simple, "0.09 to 0.11 below in every draw");
        assert!(!of(4).below_simple, "as low on average, and sometimes far above");
        assert!(!of(1).below_simple, "the best itself");
        assert_eq!(gcn.to_best.unwrap().method, "beta");
    }

    #[test]
    fn the_share_of_the_way_goes_from_clean_only_to_the_oracle() {
        let names = contenders(&["clean-only", "gcn", "oracle"]);
        let way = |clean, gcn, oracle| of_the_way(&names, &[vec![clean], vec![gcn], vec![oracle]], 1);
        assert!((way(0.5, 0.8, 0.9).unwrap() - 0.75).abs() < 1e-9);
        assert!(way(0.5, 0.4, 0.9).unwrap() < 0.0);
        assert_eq!(way(0.9, 0.95, 0.901), None, "nothing to gain");
        assert_eq!(of_the_way(&names[..2], &[vec![0.5], vec![0.8]], 1), None);
    }

    #[test]
    fn the_median_of_an_even_number_is_the_lower_one() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!((median(vec![4.0, 1.0]), median(Vec::new())), (1.0, 0.0));
    }
}
