//! The rows of the tables.

use labelsieve::Method;
use labelsieve::evaluation::{self, GroupGain, Interval, Trial};
use labelsieve::relevance::{Beta, LabelPropagation, Linear, Similarity};
use labelsieve_files::work::table::percent;
use labelsieve_report::{Cell, Number};

use super::cells::class_top_1;
use super::{CellResult, Setting, Source, TuningResult, gcn, mlp};

/// A row of the ablation table: the source at each k, e.g. gcn with the λ chosen for it.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: &'static str,
    /// By shot.
    pub sources: Vec<Source>,
}

/// The rows with prototypes. Without tuning, `lambda` gives λ by shot, and there is no β*.
pub fn prototype_rows(
    n_shots: usize,
    tuned: Option<&TuningResult>,
    lambda: &dyn Fn(usize) -> f32,
) -> Vec<Row> {
    let row = |name: &'static str, source: &dyn Fn(usize) -> Source| Row {
        name,
        sources: (0..n_shots).map(source).collect(),
    };
    let fixed = |name: &'static str, method: Method| row(name, &|_| Source::Scored(method.clone()));
    let chosen = |trials: Option<&Vec<Vec<Trial<f32>>>>, shot: usize| match trials {
        Some(trials) => trials[shot][0].setting,
        None => lambda(shot),
    };
    let mut rows = vec![
        row("clean only", &|_| Source::CleanOnly),
        fixed("similarity", Method::Similarity(Similarity {})),
        fixed("β = 1", Method::Beta(Beta::default())),
    ];
    rows.extend(
        tuned.map(|tuned| {
            row("β*", &|s| Source::Scored(Method::Beta(Beta { beta: tuned.beta[s][0].setting })))
        }),
    );
    rows.extend([
        fixed("linear", Method::Linear(Linear::default())),
        fixed("label propagation", Method::LabelPropagation(LabelPropagation::default())),
        row("mlp", &|s| mlp(chosen(tuned.map(|tuned| &tuned.mlp_lambda), s)).into()),
        row("gcn", &|s| gcn(chosen(tuned.map(|tuned| &tuned.gcn_lambda), s)).into()),
    ]);
    rows
}

/// Every setting of every row.
pub fn settings_of(rows: &[Row]) -> Vec<Setting> {
    let settings_of_row = |row: &Row| {
        row.sources
            .iter()
            .cloned()
            .enumerate()
            .map(|(shot, source)| Setting { shot, source })
            .collect::<Vec<_>>()
    };
    rows.iter().flat_map(settings_of_row).collect()
}

/// Mean and 95 % interval over the episodes of each shot.
pub fn intervals<'a>(
    by_shot: impl IntoIterator<Item = &'a [CellResult]>,
    value: impl Fn(&CellResult) -> f64,
) -> Vec<Interval> {
    by_shot.into_iter().map(|cells| Interval::of(&cells.iter().map(&value).collect::<Vec<_>>())).collect()
}

/// The gain of each class in top-1 from `without` to `with`.
pub fn class_gains(with: &[CellResult], without: &[CellResult]) -> Vec<f64> {
    class_top_1(with).iter().zip(class_top_1(without)).map(|(with, without)| with - without).collect()
}

/// The same by number of candidates.
pub fn gain_by_pool_size(with: &[CellResult], without: &[CellResult], sizes: &[usize]) -> Vec<GroupGain> {
    evaluation::gain_by_pool_size(sizes, &class_gains(with, without))
}

/// `67.8 ± 0.4`, in per cent, or `67.8` for a single value.
pub fn cell(interval: &Interval) -> String {
    let half = interval.half_width.map_or(String::new(), |half| format!(" ± {}", percent(half)));
    format!("{}{half}", percent(interval.mean))
}

/// The same for the tables of a run directory.
pub fn table_cell(interval: &Interval) -> Cell {
    let half_width = interval.half_width.map(|half| 100.0 * half);
    Cell::Number(Number { mean: 100.0 * interval.mean, half_width })
}

/// The caption of a table of means over `n` of a `unit`, e.g. `episode`.
pub fn means_over(n: usize, unit: &str) -> String {
    match n {
        1 => format!("A single {unit}, so no interval"),
        _ => format!("Mean and 95 % interval over {n} {unit}s"),
    }
}

/// `method`, then one column per shot.
pub fn shot_header(shots: &[usize]) -> Vec<String> {
    std::iter::once("method".to_owned()).chain(shots.iter().map(|k| format!("k = {k}"))).collect()
}

/// Groups as lines of a table.
pub fn gain_lines(groups: &[GroupGain]) -> Vec<String> {
    let rows: Vec<Vec<String>> = groups
        .iter()
        .map(|g| vec![g.group.range(), g.group.n_classes.to_string(), format!("{:+.1}", 100.0 * g.mean_gain)])
        .collect();
    labelsieve_files::work::table::layout(&["candidates", "classes", "gain"], &rows)
}
