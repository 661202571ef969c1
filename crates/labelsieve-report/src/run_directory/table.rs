//! `tables.json`: results as rows and columns.

use std::path::Path;

use labelsieve_files::{DataError, Result};
use serde::{Deserialize, Serialize};

use super::{check_finite, check_ids};

/// A table of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultTable {
    /// Short name, unique among the tables: letters, digits, `-` and `_`.
    pub id: String,
    /// The heading.
    pub title: String,
    /// The meaning of the numbers and how to read them.
    #[serde(default)]
    pub caption: String,
    /// The command that made it.
    #[serde(default)]
    pub command: Option<String>,
    /// The columns beside the label of each row.
    pub columns: Vec<TableColumn>,
    /// The rows, with one cell per column.
    pub rows: Vec<TableRow>,
}

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableColumn {
    /// Its heading, e.g. `k = 1`.
    pub name: String,
    /// The heading above it and its neighbours of the same group, e.g. `top-1`.
    #[serde(default)]
    pub group: Option<String>,
    /// Which of its values is highlighted.
    #[serde(default)]
    pub best: Best,
    /// Digits after the decimal point.
    #[serde(default = "one_decimal")]
    pub decimals: u8,
}

/// Which value of a column is the best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Best {
    /// None is highlighted.
    None,
    /// The highest, as with accuracy.
    #[default]
    Highest,
    /// The lowest, as with time.
    Lowest,
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableRow {
    /// The subject of the row, e.g. a method.
    pub label: String,
    /// Consecutive rows of the same group share a heading, e.g. `few clean, many noisy`.
    #[serde(default)]
    pub group: Option<String>,
    /// An upper bound or published figures: shown, but never highlighted as best.
    #[serde(default)]
    pub reference: bool,
    /// One per column.
    pub cells: Vec<Cell>,
}

/// A cell of a table: a number, text, or nothing. In JSON `{"mean": 67.8, "half_width": 0.1}`, `"text"`, `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a cell: an object with `mean`, text or null")]
pub enum Cell {
    /// A number, with the half width of its 95 % interval if it is a mean.
    Number(Number),
    /// Anything else.
    Text(String),
    /// Nothing.
    #[default]
    Empty,
}

/// The number in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    /// The value.
    pub mean: f64,
    /// Half the width of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_width: Option<f64>,
}

impl Cell {
    /// A plain number.
    pub fn number(value: f64) -> Cell {
        Cell::Number(Number { mean: value, half_width: None })
    }

    /// A mean and the half width of its 95 % interval.
    pub fn mean(mean: f64, half_width: f64) -> Cell {
        Cell::Number(Number { mean, half_width: Some(half_width) })
    }

    /// The number in it, if there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Cell::Number(number) => Some(number.mean),
            _ => None,
        }
    }
}

impl TableColumn {
    /// A column of numbers with one decimal, the highest of which is best.
    pub fn new(name: impl Into<String>) -> TableColumn {
        TableColumn { name: name.into(), decimals: one_decimal(), ..TableColumn::default() }
    }

    /// The same column in a group.
    pub fn in_group(self, group: impl Into<String>) -> TableColumn {
        TableColumn { group: Some(group.into()), ..self }
    }
}

impl TableRow {
    /// A row with its cells.
    pub fn new(label: impl Into<String>, cells: Vec<Cell>) -> TableRow {
        TableRow { label: label.into(), cells, ..TableRow::default() }
    }
}

fn one_decimal() -> u8 {
    1
}

pub(super) fn check_all(path: &Path, tables: &[ResultTable]) -> Result<()> {
    check_ids(path, "table", tables.iter().map(|table| table.id.as_str()))?;
    tables.iter().try_for_each(|table| check(path, table))
}

fn check(path: &Path, table: &ResultTable) -> Result<()> {
    let id = &table.id;
    if let Some(column) = table.columns.iter().find(|column| column.decimals > 9) {
        let place = format!("table `{id}`, column `{}`, `decimals`", column.name);
        return Err(DataError::malformed(path, place, "0 to 9", column.decimals.to_string()));
    }
    for (number, row) in table.rows.iter().enumerate() {
        if row.cells.len() != table.columns.len() {
            let place = format!("table `{id}`, row {number} (`{}`)", row.label);
            let expected = format!("{} cells, one per column", table.columns.len());
            return Err(DataError::malformed(path, place, expected, row.cells.len().to_string()));
        }
        for (cell, column) in row.cells.iter().zip(&table.columns) {
            let Cell::Number(cell) = cell else { continue };
            let place = || format!("table `{id}`, row {number} (`{}`), column `{}`", row.label, column.name);
            check_finite(path, place, &[cell.mean, cell.half_width.unwrap_or(0.0)])?;
            if let Some(width) = cell.half_width.filter(|width| *width < 0.0) {
                return Err(DataError::malformed(
                    path,
                    place(),
                    "a non-negative half width",
                    width.to_string(),
                ));
            }
        }
    }
    Ok(())
}
