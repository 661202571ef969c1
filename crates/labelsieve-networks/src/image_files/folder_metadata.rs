//! The table beside the images of a folder: `metadata.csv`, `.jsonl` or `.parquet` with a column `file_name`.

use std::path::Path;

use labelsieve_files::{ColumnRole, DataError, Result};
use labelsieve_matching::names::TextEncoding;
use labelsieve_matching::text::{KeptValues, OnBadRow, RowSink, TextColumns, TextSource, column_names, scan};

use super::{ImageColumns, LABEL_NAMES, RowFilter};

/// One image in the table.
pub(super) struct MetadataRow {
    pub(super) file_name: String,
    pub(super) id: Option<String>,
    pub(super) label: Option<String>,
}

/// The rows that pass the filters, in order.
pub(super) fn read_metadata(table: &Path, columns: &ImageColumns) -> Result<Vec<MetadataRow>> {
    let names = column_names(table)?;
    let has = |name: &str| names.iter().any(|present| present == name);
    let label = columns.label.clone();
    let label = label.or_else(|| LABEL_NAMES.into_iter().find(|name| has(name)).map(str::to_owned));
    let wanted = columns.filters.iter().map(|filter| &filter.column).chain(&label).chain(&columns.id);
    let mut texts: Vec<String> = Vec::new();
    for name in wanted {
        if !texts.contains(name) {
            texts.push(name.clone());
        }
    }
    if let Some(missing) =
        ["file_name"].into_iter().chain(texts.iter().map(String::as_str)).find(|name| !has(name))
    {
        let role = match missing {
            "file_name" => ColumnRole::Fixed,
            name if columns.id.as_deref() == Some(name) => ColumnRole::Id,
            name if label.as_deref() == Some(name) => ColumnRole::Label,
            _ => ColumnRole::Filter,
        };
        return Err(DataError::MissingColumn {
            path: table.to_path_buf(),
            role,
            asked: Some(missing.to_owned()),
            expected: format!("`{missing}`"),
            present: names,
        });
    }
    if texts.is_empty() {
        texts.push("file_name".to_owned()); // something has to be read
    }
    let at = |name: &String| texts.iter().position(|text| text == name);
    let plan = ColumnPositions {
        label: label.as_ref().and_then(at),
        id: columns.id.as_ref().and_then(at),
        filters: columns.filters.iter().map(|filter| (at(&filter.column), filter)).collect(),
        n_texts: texts.len(),
    };
    let chosen = TextColumns { id: Some("file_name".to_owned()), texts, ..TextColumns::default() };
    let source = TextSource::open(&[table.to_path_buf()], &chosen)?;
    let mut rows = Vec::new();
    let new_sink = || Collector { plan: &plan, texts: vec![None; plan.n_texts], rows: Vec::new() };
    let take = |collector: &mut Collector<'_>| std::mem::take(&mut collector.rows);
    scan(&source, OnBadRow::Stop, new_sink, take, |block, _| {
        rows.extend(block);
        Ok(())
    })?;
    if let (Some(id), Some(row)) =
        (&columns.id, rows.iter().find(|row| row.id.is_none() && plan.id.is_some()))
    {
        let place = format!("row of `{}`", row.file_name);
        return Err(DataError::malformed(table, place, format!("a value in column `{id}`"), "none"));
    }
    Ok(rows)
}

/// The positions of the columns among the texts of a row.
struct ColumnPositions<'a> {
    label: Option<usize>,
    id: Option<usize>,
    filters: Vec<(Option<usize>, &'a RowFilter)>,
    n_texts: usize,
}

struct Collector<'a> {
    plan: &'a ColumnPositions<'a>,
    texts: Vec<Option<String>>,
    rows: Vec<MetadataRow>,
}

impl RowSink for Collector<'_> {
    fn text(&mut self, column: usize, text: &str, _: TextEncoding) {
        if !text.is_empty() {
            self.texts[column].get_or_insert_with(|| text.to_owned());
        }
    }

    fn end_row(&mut self, file_name: &str, _: &KeptValues<'_>) {
        let text = |at: Option<usize>| at.and_then(|at| self.texts[at].clone());
        if self.plan.filters.iter().all(|(at, filter)| filter.passes(text(*at).as_deref())) {
            let id = text(self.plan.id);
            let label = text(self.plan.label);
            self.rows.push(MetadataRow { file_name: file_name.to_owned(), id, label });
        }
        self.forget_row();
    }

    fn forget_row(&mut self) {
        self.texts.fill(None);
    }
}
