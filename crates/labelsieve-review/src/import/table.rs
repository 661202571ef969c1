//! A table with a row per example, whatever its columns are called.

use std::path::Path;

use labelsieve_files::tables::table_read::{Kind, TableFile};
use labelsieve_files::{DataError, DecisionRow, Result};

use super::moment::normalised;
use super::words::Answer;
use super::{ImportOptions, ImportedDecisions};

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<ImportedDecisions> {
    let file = TableFile::open(path)?;
    let name = |given: &Option<String>, usual: &str| given.clone().unwrap_or_else(|| usual.to_owned());
    let names = [
        (name(&options.id, "id"), "--id-column"),
        (name(&options.class, "class"), "--class-column"),
        (name(&options.decision, "decision"), "--decision-column"),
    ];
    if let Some((missing, option)) = names.iter().find(|(name, _)| !file.has(name)) {
        let expected = format!("a column `{missing}` ({option} names another)");
        return Err(DataError::malformed(path, "columns", expected, file.columns().join(", ")));
    }
    let mut wanted: Vec<(&str, Kind)> =
        names.iter().map(|(name, _)| (name.as_str(), Kind::OptionalText)).collect();
    let notes =
        ["by", "at"].into_iter().filter(|note| file.has(note) && names.iter().all(|(name, _)| name != note));
    wanted.extend(notes.map(|note| (note, Kind::OptionalText)));
    let mut found = ImportedDecisions::default();
    file.for_each_batch(&wanted, |columns| {
        let texts = columns.iter().map(|column| column.optional_texts()).collect::<Result<Vec<_>>>()?;
        let n_rows = columns.first().map_or(0, |column| column.array.len());
        (0..n_rows).for_each(|row| {
            let cell = |column: usize| texts[column][row].clone().unwrap_or_default();
            let note = |name: &str| {
                let column = columns.iter().skip(3).position(|column| column.name == name);
                column.map_or(String::new(), |column| cell(column + 3))
            };
            let (id, class, word) = (cell(0), cell(1), cell(2));
            let said = match options.words.meaning(&word) {
                // Tags come in one cell, with commas between them.
                Answer::Unknown => match options.words.of_tags(word.split(',')) {
                    Answer::Nothing => Answer::Unknown,
                    said => said,
                },
                said => said,
            };
            match said {
                _ if id.is_empty() || class.is_empty() => {
                    found
                        .not_understood
                        .push(format!("row {}: no id or no class", columns[0].first_row + row));
                }
                Answer::Nothing => found.n_undecided += 1,
                Answer::Unknown => {
                    let place = columns[0].first_row + row;
                    found.not_understood.push(format!("row {place} (`{id}` of `{class}`): `{word}`"));
                }
                Answer::Withdrawn | Answer::Decided(_) => {
                    let (by, at) = (note("by"), normalised(&note("at")));
                    found.push(DecisionRow { id, class, decision: said.decision(), by, at });
                }
            }
        });
        Ok(())
    })?;
    Ok(found)
}
