//! Summary over all cells of all sets: how much worse than the best a method can be.

use labelsieve_files::work::table::layout;
use serde::Serialize;

use super::summary::Row;

/// One method over all cells.
#[derive(Serialize)]
pub struct Overall {
    pub method: String,
    pub n_cells: usize,
    /// Cells in which it is significantly below the best of clean-only, beta and similarity, in top-1.
    pub n_below_simple: usize,
    /// Difference in top-1 to the best single method of a cell: mean over the cells, and the lowest.
    pub mean_to_best: f64,
    pub least_to_best: f64,
    /// The cell of the lowest difference.
    pub least_at: String,
}

/// The methods in the order of the tables; `sets` are names and rows.
pub fn rows<'a>(sets: impl Iterator<Item = (&'a str, &'a [Row])>) -> Vec<Overall> {
    let mut found: Vec<Overall> = Vec::new();
    for (set, row) in sets.flat_map(|(set, rows)| rows.iter().map(move |row| (set, row))) {
        let Some(to_best) = row.top_1.to_best.as_ref().map(|to| to.interval.mean) else { continue };
        let place = found.iter().position(|overall| overall.method == row.method).unwrap_or_else(|| {
            found.push(Overall::of(&row.method));
            found.len() - 1
        });
        let overall = &mut found[place];
        if to_best < overall.least_to_best {
            overall.least_to_best = to_best;
            overall.least_at = format!("{set}, k = {}", row.shots);
        }
        let n = overall.n_cells as f64;
        overall.mean_to_best = (overall.mean_to_best * n + to_best) / (n + 1.0);
        overall.n_cells += 1;
        overall.n_below_simple += usize::from(row.top_1.below_simple);
    }
    found
}

impl Overall {
    fn of(method: &str) -> Overall {
        Overall {
            method: method.to_owned(),
            n_cells: 0,
            n_below_simple: 0,
            mean_to_best: 0.0,
            least_to_best: f64::INFINITY,
            least_at: String::new(),
        }
    }
}

pub fn table(rows: &[Overall]) -> Vec<String> {
    let line = |row: &Overall| {
        vec![
            row.method.clone(),
            row.n_cells.to_string(),
            row.n_below_simple.to_string(),
            format!("{:+.1}", 100.0 * row.mean_to_best),
            format!("{:+.1} ({})", 100.0 * row.least_to_best, row.least_at),
        ]
    };
    let header = ["all sets", "cells", "↓", "top-1 to the best single method", "least"];
    layout(&header, &rows.iter().map(line).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::cell::Cell;
    use super::super::methods::Contender;
    use super::super::summary;
    use super::*;

    #[test]
    fn the_worst_cell_is_named() {
        let contenders = ["beta", "gcn"].map(|name| Contender::parse(name).unwrap());
        let rows_of = |k: usize, beta: f64, gcn: f64| {
            let cell = |top_1| Cell {
                top_1,
                top_5: 1.0,
                auc: None,
                calibration: None,
                seconds: 1.0,
                classifiers: Vec::new(),
            };
            summary::rows(k, &contenders, &[vec![cell(beta)], vec![cell(gcn)]], 1)
        };
        let easy = rows_of(1, 0.5, 0.75);
        let hard = rows_of(5, 0.75, 0.25);
        let found = rows([("easy", easy.as_slice()), ("hard", hard.as_slice())].into_iter());
        let brief: Vec<_> =
            found.iter().map(|row| (row.method.as_str(), row.least_to_best, row.mean_to_best)).collect();
        assert_eq!(brief, [("beta", -0.25, -0.125), ("gcn", -0.5, -0.25)]);
        assert_eq!((found[1].least_at.as_str(), found[1].n_cells), ("hard, k = 5", 2));
    }
}
