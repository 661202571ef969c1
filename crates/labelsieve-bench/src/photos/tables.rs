//! Tables of accuracy: in the terminal, and in the run directory.

use labelsieve::evaluation::{Interval, RelevanceAnalysis, Trial};
use labelsieve_files::work::table::layout;
use labelsieve_report::{Cell, ResultTable, TableColumn, TableRow};

use super::fine_tune::Schedule;
use super::measure::{Outcome, RowResult};
use crate::protocol::{CellResult, TuningResult, cell, intervals, shot_header, table_cell};

/// A figure that a table shows of each cell.
#[derive(Clone, Copy)]
pub struct Metric {
    pub id: &'static str,
    pub title: &'static str,
    value: fn(&CellResult) -> Option<f64>,
}

pub const METRICS: [Metric; 4] = [
    Metric { id: "novel-top-1", title: "top-1 on novel classes", value: |r| Some(r.novel_top_1) },
    Metric { id: "novel-top-5", title: "top-5 on novel classes", value: |r| Some(r.novel_top_5) },
    Metric { id: "all-top-1", title: "top-1 on all classes", value: |r| r.all_top_1 },
    Metric { id: "all-top-5", title: "top-5 on all classes", value: |r| r.all_top_5 },
];

/// The heading of the tables of one backbone and one set of candidates.
pub struct Heading {
    /// Short, for ids of tables and figures.
    pub id: String,
    /// For readers, e.g. `resnet10, any-word (57 % noise)`.
    pub title: String,
    pub caption: String,
    pub command: String,
}

impl Metric {
    fn of(&self, row: &RowResult) -> Option<Vec<Interval>> {
        let known = row.cells.iter().flatten().all(|cell| (self.value)(cell).is_some());
        let value = |cell: &CellResult| (self.value)(cell).unwrap_or(0.0);
        known.then(|| intervals(row.cells.iter().map(Vec::as_slice), value))
    }
}

/// Every metric that was measured, for the terminal.
pub fn lines(outcome: &Outcome, shots: &[usize], heading: &Heading) -> Vec<String> {
    let header = shot_header(shots);
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut lines = Vec::new();
    for metric in METRICS {
        let line = |row: &RowResult| {
            let cells = metric.of(row)?.iter().map(cell).collect::<Vec<_>>();
            Some([vec![row.name.clone()], cells].concat())
        };
        let rows: Vec<Vec<String>> = outcome.rows.iter().filter_map(line).collect();
        if rows.is_empty() {
            continue;
        }
        lines.extend([String::new(), format!("{}: {}, %", heading.title, metric.title)]);
        lines.extend(layout(&header, &rows));
    }
    lines.extend(separation_lines(outcome, shots));
    lines
}

fn separation_lines(outcome: &Outcome, shots: &[usize]) -> Vec<String> {
    let title = "Relevance of gcn: mean over relevant, over irrelevant candidates, ROC-AUC";
    let rows: Vec<Vec<String>> = shots
        .iter()
        .zip(&outcome.separation)
        .map(|(k, episodes)| {
            let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.2}"));
            let [relevant, irrelevant, auc] = separation_means(episodes).map(number);
            vec![format!("k = {k}"), relevant, irrelevant, auc]
        })
        .collect();
    let table = layout(&["", "relevant", "irrelevant", "AUC"], &rows);
    [String::new(), title.to_owned()].into_iter().chain(table).collect()
}

/// Mean over episodes of the three figures; `None` where an episode lacks one.
fn separation_means(episodes: &[RelevanceAnalysis]) -> [Option<f64>; 3] {
    let mean = |value: fn(&RelevanceAnalysis) -> Option<f64>| {
        let values = episodes.iter().map(value).collect::<Option<Vec<f64>>>()?;
        Some(values.iter().sum::<f64>() / values.len().max(1) as f64)
    };
    [mean(|a| a.mean_relevant), mean(|a| a.mean_irrelevant), mean(|a| a.auc)]
}

/// The tables of the run directory: accuracy, chosen settings, and relevance against ground truth.
pub fn result_tables(outcome: &Outcome, shots: &[usize], heading: &Heading) -> Vec<ResultTable> {
    let columns: Vec<TableColumn> = shots.iter().map(|k| TableColumn::new(format!("k = {k}"))).collect();
    let mut tables: Vec<ResultTable> = METRICS
        .iter()
        .filter_map(|metric| {
            let row = |row: &RowResult| {
                let cells = metric.of(row)?.iter().map(table_cell).collect();
                Some(TableRow { reference: row.is_bound, ..TableRow::new(row.name.clone(), cells) })
            };
            let rows: Vec<TableRow> = outcome.rows.iter().filter_map(row).collect();
            (!rows.is_empty()).then(|| ResultTable {
                id: format!("{}-{}", metric.id, heading.id),
                title: format!("{}: {} (%)", heading.title, metric.title),
                caption: heading.caption.clone(),
                command: Some(heading.command.clone()),
                columns: columns.clone(),
                rows,
            })
        })
        .collect();
    tables.extend(outcome.tuned.as_ref().map(|tuned| chosen_table(outcome, tuned, shots, heading)));
    tables.push(separation_table(outcome, shots, heading));
    tables
}

fn chosen_table(outcome: &Outcome, tuned: &TuningResult, shots: &[usize], heading: &Heading) -> ResultTable {
    let plain = |k: &usize| TableColumn {
        best: labelsieve_report::Best::None,
        ..TableColumn::new(format!("k = {k}"))
    };
    let numbers = |trials: &[Vec<Trial<f32>>]| {
        trials.iter().map(|trials| Cell::Text(trials[0].setting.to_string())).collect::<Vec<_>>()
    };
    let mut rows = vec![
        TableRow::new("λ of gcn", numbers(&tuned.gcn_lambda)),
        TableRow::new("λ of mlp", numbers(&tuned.mlp_lambda)),
        TableRow::new("β*", numbers(&tuned.beta)),
    ];
    for (name, chosen) in &outcome.cosine {
        let cells = chosen
            .iter()
            .map(|trial| Cell::Text(format!("{} × {}", trial.setting.batch_size, trial.setting.epochs)));
        rows.push(TableRow::new(format!("{name}: batch × epochs"), cells.collect()));
    }
    if !outcome.schedules.is_empty() {
        let cell = |trial: &Trial<Schedule>| {
            let Schedule { rate, epochs } = trial.setting;
            Cell::Text(format!("{rate} × {epochs}"))
        };
        let cells = outcome.schedules.iter().map(cell).collect();
        rows.push(TableRow::new("gcn, fine-tuned: rate × epochs", cells));
    }
    ResultTable {
        id: format!("chosen-{}", heading.id),
        title: format!("{}: settings chosen on the tuning classes", heading.title),
        caption: "The tuning classes are the novel classes at even positions in alphabetical order."
            .to_owned(),
        command: Some(heading.command.clone()),
        columns: shots.iter().map(plain).collect(),
        rows,
    }
}

fn separation_table(outcome: &Outcome, shots: &[usize], heading: &Heading) -> ResultTable {
    let column = |name: &str| TableColumn {
        decimals: 2,
        best: labelsieve_report::Best::None,
        ..TableColumn::new(name)
    };
    let cell = |value: Option<f64>| value.map_or(Cell::Empty, Cell::number);
    let rows = shots.iter().zip(&outcome.separation).map(|(k, episodes)| {
        TableRow::new(format!("k = {k}"), separation_means(episodes).map(cell).to_vec())
    });
    ResultTable {
        id: format!("separation-{}", heading.id),
        title: format!("{}: relevance of gcn against ground truth", heading.title),
        caption:
            "Mean relevance of relevant and irrelevant candidates and area under the ROC curve, over all \
                  candidates of the reported classes, averaged over episodes."
                .to_owned(),
        command: Some(heading.command.clone()),
        columns: ["relevant", "irrelevant", "AUC"].map(column).to_vec(),
        rows: rows.collect(),
    }
}
