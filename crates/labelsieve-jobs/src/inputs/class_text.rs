//! Texts of classes as clean examples: the row of a class name, made by the text tower of the network whose image tower made
//! the photos' rows, is one more clean example of the class.
//!
//! It enters as it is. Texts and photos of CLIP and its kin lie apart, so a text is similar to all photos in a low degree, but
//! most to those that it describes ([docs/class-text.md](../../../../docs/class-text.md)).

use std::path::Path;

use labelsieve_files::work::{Error, Result, command, option, words};
use labelsieve_files::{ExampleTable, TableColumns, is_text_id};
use serde::Serialize;

use super::pools::Pools;

/// How many classes have a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TextCounts {
    /// Classes with a text among their clean examples.
    pub n_classes: usize,
    /// Those of them that have nothing else: no clean photo.
    pub n_text_only: usize,
}

impl TextCounts {
    /// Of all classes.
    pub fn of(pools: &Pools) -> TextCounts {
        let is_text = |row: usize| is_text_id(&pools.clean.ids.get(row));
        let with = pools.classes.iter().filter(|class| class.clean.iter().any(|&row| is_text(row)));
        let only = with.clone().filter(|class| class.clean.iter().all(|&row| is_text(row)));
        TextCounts { n_classes: with.count(), n_text_only: only.count() }
    }
}

/// Opens a file of class texts: rows with classes, whatever their ids.
pub fn open(path: &Path) -> Result<ExampleTable> {
    let table = ExampleTable::open(path, &TableColumns::default())?;
    let missing = if table.is_empty() {
        "rows"
    } else if table.labels.is_none() {
        "classes"
    } else {
        return Ok(table.as_class_texts());
    };
    Err(Error::input(
        format!("the class texts in `{}` contain no {missing}", path.display()),
        words!["make them with ", command("embed-text")],
    ))
}

/// Clean photos with the texts behind them.
pub fn behind(photos: Option<ExampleTable>, texts: Option<ExampleTable>) -> Result<ExampleTable> {
    let (photos, texts) = match (photos.filter(|photos| texts.is_none() || !photos.is_empty()), texts) {
        (None, None) => {
            return Err(Error::input(
                "no clean examples",
                words!["give ", option("clean"), ", ", option("class_text"), ", or both"],
            ));
        }
        (None, Some(texts)) => return Ok(texts),
        (Some(photos), None) if photos.is_empty() => {
            return Err(Error::input(
                format!("`{}` contains no examples", photos.path.display()),
                "every class needs at least one clean example",
            ));
        }
        (Some(photos), None) => return Ok(photos),
        (Some(photos), Some(texts)) => (photos, texts),
    };
    if photos.features.cols() != texts.features.cols() {
        return Err(Error::input(
            format!(
                "the texts in `{}` have {} columns, but the clean examples in `{}` have {}",
                texts.path.display(),
                texts.features.cols(),
                photos.path.display(),
                photos.features.cols()
            ),
            "texts and photos must be embedded with the two towers of one network",
        ));
    }
    Ok(photos.with_texts(texts)?)
}
