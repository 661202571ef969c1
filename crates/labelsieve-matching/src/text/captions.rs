//! Captions: one text for each of some wanted examples.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use labelsieve_files::Result;

use super::layout::{ID_NAMES, column_names};
use super::{KeptValues, OnBadRow, RowSink, TextColumns, TextSource, scan};
use crate::names::TextEncoding;

/// The usual names of a caption column, the most descriptive first.
pub const CAPTION_NAMES: [&str; 4] = ["caption", "title", "text", "description"];

/// The first text of each example for which `wanted` is true: from the chosen columns in their order, else from those with the
/// usual names. Unreadable rows and blank texts are skipped.
pub fn read_captions(
    inputs: &[PathBuf],
    columns: &TextColumns,
    wanted: &(dyn Fn(&str) -> bool + Sync),
) -> Result<HashMap<String, String>> {
    let source = TextSource::open(inputs, columns)?;
    let mut order: Vec<usize> = (0..source.text_columns().len()).collect();
    if columns.texts.is_empty() {
        let usual = |&at: &usize| CAPTION_NAMES.iter().position(|name| *name == source.text_columns()[at]);
        order.sort_by_key(|at| usual(at).unwrap_or(usize::MAX));
    }
    let mut captions = HashMap::new();
    let new_sink =
        || Collector { wanted, order: &order, texts: vec![None; order.len()], captions: Vec::new() };
    let take = |collector: &mut Collector<'_>| std::mem::take(&mut collector.captions);
    scan(&source, OnBadRow::Skip, new_sink, take, |found, _| {
        for (id, caption) in found {
            captions.entry(id).or_insert(caption);
        }
        Ok(())
    })?;
    Ok(captions)
}

/// Whether a table has the chosen columns, or else a caption and an id under the usual names.
pub fn has_captions(table: &Path, columns: &TextColumns) -> Result<bool> {
    let names = column_names(table)?;
    let has = |name: &str| names.iter().any(|present| present == name);
    let has_id = columns.id.as_deref().map_or_else(|| ID_NAMES.into_iter().any(has), has);
    let has_text = match columns.texts.as_slice() {
        [] => CAPTION_NAMES.into_iter().any(has),
        texts => texts.iter().all(|name| has(name)),
    };
    Ok(has_id && has_text)
}

struct Collector<'a> {
    wanted: &'a (dyn Fn(&str) -> bool + Sync),
    /// Text columns, the most descriptive first.
    order: &'a [usize],
    /// Of the current row, by column.
    texts: Vec<Option<String>>,
    captions: Vec<(String, String)>,
}

impl RowSink for Collector<'_> {
    fn text(&mut self, column: usize, text: &str, encoding: TextEncoding) {
        if self.texts[column].is_none() && !text.trim().is_empty() {
            self.texts[column] = Some(encoding.decode(text).trim().to_owned());
        }
    }

    fn end_row(&mut self, id: &str, _: &KeptValues<'_>) {
        if (self.wanted)(id)
            && let Some(text) = self.order.iter().find_map(|&column| self.texts[column].take())
        {
            self.captions.push((id.to_owned(), text));
        }
        self.forget_row();
    }

    fn forget_row(&mut self) {
        self.texts.fill(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captions(text: &str, columns: &TextColumns) -> Vec<(String, String)> {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("metadata.csv");
        std::fs::write(&table, text).unwrap();
        let found = read_captions(&[table], columns, &|id| id != "b.jpg").unwrap();
        let mut found: Vec<(String, String)> = found.into_iter().collect();
        found.sort();
        found
    }

    #[test]
    fn each_wanted_example_gets_its_most_descriptive_text() {
        let text =
            "file_name,title,caption\na.jpg,IMG_1, an owl \nb.jpg,IMG_2,a cat\nc.jpg,IMG_3, \nd.jpg,,\n";
        let pair = |id: &str, text: &str| (id.to_owned(), text.to_owned());
        let usual = captions(text, &TextColumns::default());
        assert_eq!(usual, [pair("a.jpg", "an owl"), pair("c.jpg", "IMG_3")]);
        let title = TextColumns { texts: vec!["title".into()], ..TextColumns::default() };
        assert_eq!(captions(text, &title), [pair("a.jpg", "IMG_1"), pair("c.jpg", "IMG_3")]);
    }

    #[test]
    fn a_table_of_classes_has_no_captions() {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("metadata.csv");
        std::fs::write(&table, "file_name,label\n").unwrap();
        let usual = TextColumns::default();
        assert!(!has_captions(&table, &usual).unwrap());
        let chosen = TextColumns { texts: vec!["label".into()], ..TextColumns::default() };
        assert!(has_captions(&table, &chosen).unwrap());
        std::fs::write(&table, "file_name,text\n").unwrap();
        assert!(has_captions(&table, &usual).unwrap());
        assert!(!has_captions(&table, &chosen).unwrap());
    }
}
