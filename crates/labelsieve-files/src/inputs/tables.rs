//! Tables of examples: opening them, reading rows, finding rows by class and by id.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use labelsieve::Features;
use labelsieve_numerics::Scratch;

use crate::work::{Context, Error, Monitor, Result, Words, option, words};
use crate::{ExampleTable, Ids, Labels, TableColumns};

/// A table of examples on disk, and how to read it.
#[derive(Clone, Debug)]
pub struct Table {
    /// `.npz`, `.npy`, `.parquet` or a clip-retrieval folder.
    pub path: PathBuf,
    /// The names of its columns and the file of its labels, where they differ from the defaults.
    pub columns: TableColumns,
}

impl Table {
    /// A table with the usual columns.
    pub fn new(path: impl Into<PathBuf>) -> Table {
        Table { path: path.into(), columns: TableColumns::default() }
    }

    /// The files that [`Table::open`] reads.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        [&self.path].into_iter().chain(&self.columns.labels).map(PathBuf::as_path)
    }

    /// Opens it, and logs where ids come from if not from the file itself.
    pub fn open(&self, monitor: &dyn Monitor) -> Result<ExampleTable> {
        let table = ExampleTable::open(&self.path, &self.columns)?;
        if let Some(beside) = &table.ids_table {
            let path = self.path.display();
            let beside = beside.display();
            monitor.detail(&format!("ids and classes of `{path}` come from `{beside}`"));
        }
        Ok(table)
    }
}

/// Reads rows of a table as features. A large class is memory-mapped if its rows are consecutive in the file.
pub fn load(table: &ExampleTable, rows: &[usize]) -> Result<Features> {
    let dim = table.features.cols().max(1);
    if let Some(numbers) = table.features.lend(rows)
        && let Ok(features) = Features::shared(numbers, dim)
    {
        return Ok(features);
    }
    let mut data = vec![0f32; rows.len() * dim];
    table.features.read_rows(rows, &mut data)?; // reports the position of an invalid number
    Features::new(data, dim).with_context(|| format!("cannot use `{}`", table.path.display()))
}

/// As [`load`] with little memory: rows that cannot be memory-mapped are copied to scratch space.
pub fn load_in(table: &ExampleTable, rows: &[usize], scratch: &dyn Scratch) -> Result<Features> {
    const AT_ONCE: usize = 1 << 20; // numbers
    let dim = table.features.cols().max(1);
    if let Some(numbers) = table.features.lend_in_place(rows)
        && let Ok(Some(features)) = Features::lent(numbers, dim)
    {
        return Ok(features);
    }
    let mut data = scratch.floats(rows.len() * dim)?;
    let rows_at_once = (AT_ONCE / dim).max(1);
    for (start, rows) in (0..).step_by(rows_at_once * dim).zip(rows.chunks(rows_at_once)) {
        let part = start..start + rows.len() * dim;
        table.features.read_rows(rows, &mut (*data).as_mut()[part.clone()])?;
        data.release(part);
    }
    Features::in_pages(data, dim).with_context(|| format!("cannot use `{}`", table.path.display()))
}

/// The labels of a table; the hint of the error is to give them with `how`, e.g. an option.
pub fn labels_of(table: &ExampleTable, how: impl Into<Words>) -> Result<&Labels> {
    table.labels.as_ref().ok_or_else(|| {
        let how: Words = how.into();
        Error::input(
            format!("`{}` contains no classes", table.path.display()),
            words![
                "give them with ",
                how,
                ", as an array `labels_all` in .npz, or as a column `class` in Parquet (of another name with ",
                option("label_column"),
                ")"
            ],
        )
    })
}

/// The rows of each class, in the order of its names.
pub fn rows_by_class(labels: &Labels) -> Vec<(String, Vec<usize>)> {
    let mut rows: Vec<(String, Vec<usize>)> =
        labels.names.iter().map(|name| (name.clone(), Vec::new())).collect();
    for (row, &code) in labels.codes.iter().enumerate() {
        rows[code as usize].1.push(row);
    }
    rows
}

/// The row of each id of a table. Duplicate ids are refused, since joins by id would be ambiguous.
pub fn rows_by_id(table: &ExampleTable) -> Result<RowsById<'_>> {
    let ids = match &table.ids {
        Ids::Given(ids) => ids,
        Ids::RowNumbers(numbers) | Ids::WithTexts { numbers, .. } => return Ok(RowsById::Numbers(*numbers)),
    };
    let mut rows = HashMap::with_capacity(ids.len());
    for (row, id) in ids.iter().enumerate() {
        check_id(table, row, id, rows.insert(id.as_str(), row))?;
    }
    Ok(RowsById::Names(rows))
}

/// A lookup from ids to rows.
pub enum RowsById<'a> {
    /// Row numbers serve as ids.
    Numbers(usize),
    /// Rows by the ids of the table.
    Names(HashMap<&'a str, usize>),
}

impl RowsById<'_> {
    /// The row of an id.
    pub fn get(&self, id: &str) -> Option<usize> {
        match self {
            RowsById::Numbers(n) => id.parse().ok().filter(|row| row < n),
            RowsById::Names(rows) => rows.get(id).copied(),
        }
    }
}

/// Refuses an id that is empty or was seen before.
pub fn check_id(table: &ExampleTable, row: usize, id: &str, earlier: Option<usize>) -> Result<()> {
    let refused = |found: String| {
        Err(Error::input(
            format!("`{}`: row {row}: expected a unique id, found {found}", table.path.display()),
            words![
                "relevance is stored by id; choose another column with ",
                option("id_column"),
                ", or remove duplicates"
            ],
        ))
    };
    match earlier {
        _ if id.is_empty() => refused("an empty one".to_owned()),
        Some(first) => refused(format!("`{id}`, also the id of row {first}")),
        None => Ok(()),
    }
}
