//! The data of a class for the script, column by column: all its candidates in a few bytes each, since there may be
//! hundreds of thousands of them. `script/data.js` reads it.

use std::collections::{BTreeMap, HashMap};

use labelsieve_files::{RelevanceReasons, decision_code};
use serde::Serialize;

use super::originals::{Address, Originals};
use crate::classes::{Class, Classes, sections};
use crate::thumbnails::Thumbnails;

/// Where the data of the examples come from.
pub(crate) struct Sources<'a> {
    pub(crate) classes: &'a Classes,
    /// One per row of the relevance table.
    pub(crate) reasons: &'a [RelevanceReasons],
    pub(crate) thumbnails: &'a Thumbnails,
    pub(crate) originals: &'a Originals<'a>,
    /// Candidates of a class that are shown with a picture.
    pub(crate) per_class: usize,
}

/// A class.
#[derive(Serialize)]
pub(super) struct ClassData<'a> {
    clean: Columns<'a>,
    /// Clean examples that are shown: the first.
    clean_shown: usize,
    /// Candidates, most relevant first.
    ranked: Columns<'a>,
    /// Parts of the ranking that are shown with pictures: name, first and last + 1.
    shown: Vec<(&'static str, usize, usize)>,
    /// Class names that were found in texts.
    names: Vec<&'a str>,
    /// Ids of closest clean examples.
    bests: Vec<&'a str>,
}

/// Examples; a column is empty if it says nothing about any of them. The names are short because every class has them.
#[derive(Default, Serialize)]
struct Columns<'a> {
    id: Vec<&'a str>,
    /// Relevance in hundredths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    r: Vec<u8>,
    /// Probability in hundredths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    q: Vec<Option<u8>>,
    /// Whether it belongs to the class: a letter each, `y`, `n` or `-`.
    #[serde(skip_serializing_if = "String::is_empty")]
    t: String,
    /// The decision: a digit each, 0 none, 1 accept, 2 reject, 3 unsure.
    #[serde(skip_serializing_if = "String::is_empty")]
    d: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    caption: Vec<Option<&'a str>>,
    /// The place in `names`, or -1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    name: Vec<i32>,
    /// The place in `bests`, or -1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    best: Vec<i32>,
    /// Similarity to it in hundredths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sim: Vec<Option<i16>>,
    /// Reciprocal neighbours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nn: Vec<Option<u32>>,
    /// The address of the original.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    to: Vec<Option<Address>>,
    /// Pictures as data URIs, by place.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    p: BTreeMap<usize, &'a str>,
}

/// Numbers of examples shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) examples: usize,
    pub(crate) pictures: usize,
    pub(crate) links: usize,
}

impl<'a> Sources<'a> {
    pub(super) fn data(&self, class: &Class) -> ClassData<'a> {
        let mut names = NumberedTexts::default();
        let mut bests = NumberedTexts::default();
        let clean_shown = class.clean.len().min(self.per_class);
        let mut clean = self.examples(&class.clean);
        self.add_pictures(&mut clean, &class.clean, 0..clean_shown);

        let mut ranked = self.examples(&class.ranked);
        let rows = || class.ranked.iter().copied();
        ranked.r = rows().map(|row| (100.0 * self.classes.table.relevance[row]).round() as u8).collect();
        let hundredths = |value: f32| (100.0 * value).round() as u8;
        let probability = self.classes.table.probability.as_ref();
        ranked.q = unless_empty(rows().map(|row| probability.and_then(|p| p[row]).map(hundredths)));
        let letter = |truth: Option<bool>| truth.map_or('-', |truth| if truth { 'y' } else { 'n' });
        ranked.t = rows().map(|row| letter(self.classes.truth[row])).collect();
        if ranked.t.chars().all(|letter| letter == '-') {
            ranked.t.clear();
        }
        if self.classes.decided.count(rows()).total() > 0 {
            ranked.d =
                rows().map(|row| char::from(b'0' + decision_code(self.classes.decided.get(row)))).collect();
        }
        let reasons = |row: usize| &self.reasons[row];
        let place =
            |numbered: &mut NumberedTexts<'a>, text: Option<&'a str>| text.map(|text| numbered.place(text));
        let name = rows().map(|row| place(&mut names, reasons(row).matched_name.as_deref()));
        ranked.name = unless_empty(name).into_iter().map(|place| place.unwrap_or(-1)).collect();
        let best = rows().map(|row| place(&mut bests, reasons(row).best_clean.as_deref()));
        ranked.best = unless_empty(best).into_iter().map(|place| place.unwrap_or(-1)).collect();
        let hundredths = |similarity: f32| (100.0 * similarity).round() as i16;
        ranked.sim = unless_empty(rows().map(|row| reasons(row).best_clean_similarity.map(hundredths)));
        ranked.nn = unless_empty(rows().map(|row| reasons(row).reciprocal_neighbours));

        let sections = sections(class.ranked.len(), self.per_class);
        for section in &sections {
            self.add_pictures(&mut ranked, &class.ranked, section.ranks.clone());
        }
        let shown = sections.iter().map(|part| (part.name, part.ranks.start, part.ranks.end)).collect();
        ClassData { clean, clean_shown, ranked, shown, names: names.texts, bests: bests.texts }
    }

    /// The columns that clean examples and candidates share.
    fn examples(&self, rows: &[usize]) -> Columns<'a> {
        let ids = || rows.iter().map(|&row| &self.classes.table.ids[row]);
        Columns {
            id: ids().collect(),
            caption: unless_empty(ids().map(|id| self.thumbnails.captions.get(id).map(String::as_str))),
            to: unless_empty(ids().map(|id| self.originals.address(id))),
            ..Columns::default()
        }
    }

    fn add_pictures(&self, columns: &mut Columns<'a>, rows: &[usize], places: std::ops::Range<usize>) {
        let picture = |place: usize| {
            let uri = self.thumbnails.by_id.get(&self.classes.table.ids[rows[place]])?;
            Some((place, uri.as_str()))
        };
        columns.p.extend(places.filter_map(picture));
    }
}

impl ClassData<'_> {
    pub(super) fn counts(&self) -> Counts {
        let lists = [&self.clean, &self.ranked];
        Counts {
            examples: lists.iter().map(|list| list.id.len()).sum(),
            pictures: lists.iter().map(|list| list.p.len()).sum(),
            links: lists.iter().map(|list| list.to.iter().flatten().count()).sum(),
        }
    }
}

/// A column, empty if all its values are missing.
fn unless_empty<T>(values: impl Iterator<Item = Option<T>>) -> Vec<Option<T>> {
    let values: Vec<Option<T>> = values.collect();
    if values.iter().all(Option::is_none) { Vec::new() } else { values }
}

/// Texts that occur many times, kept once.
#[derive(Default)]
struct NumberedTexts<'a> {
    texts: Vec<&'a str>,
    places: HashMap<&'a str, i32>,
}

impl<'a> NumberedTexts<'a> {
    fn place(&mut self, text: &'a str) -> i32 {
        *self.places.entry(text).or_insert_with(|| {
            self.texts.push(text);
            self.texts.len() as i32 - 1
        })
    }
}
