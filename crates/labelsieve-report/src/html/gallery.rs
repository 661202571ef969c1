//! The classes: numbers, a histogram, and the data from which the script builds a ranked gallery when it comes into view.

use std::collections::HashMap;
use std::io::{Result, Write};

use labelsieve_data::RelevanceReasons;
use serde::Serialize;

use super::escape::{escape, json_for_script};
use crate::classes::{Class, ClassNumbers, Classes, sections};
use crate::figures::class_histogram;
use crate::svg::scale::with_separators;
use crate::thumbnails::Thumbnails;

/// Closes what [`heading`] opened.
pub(super) const END: &str =
    "</div>\n</section>\n<dialog id=\"detail\" aria-labelledby=\"detail-h\"></dialog>\n";

/// The start of the section, with its tools.
pub(super) fn heading(classes: &Classes, tag: &str) -> String {
    let with_truth = classes.truth.iter().any(Option::is_some);
    let by_auc = if with_truth { "<option value=\"auc\">lowest AUC</option>" } else { "" };
    let legend = match with_truth {
        true => {
            "<p class=\"legend\"><span class=\"mark yes\" aria-hidden=\"true\">✓</span> belongs to its class \
             <span class=\"mark no\" aria-hidden=\"true\">✗</span> does not. In the histograms, irrelevant candidates (orange) \
             are stacked on relevant ones (blue).</p>"
        }
        false => "",
    };
    format!(
        "<section id=\"classes\" aria-labelledby=\"classes-h\">\n<h2 id=\"classes-h\">Classes{tag}</h2>\n\
         <p>Candidates of each class in order of relevance, most relevant first.</p>\n{legend}\n\
         <noscript><p class=\"notice\">The galleries need JavaScript; tables and figures do not.</p></noscript>\n\
         <div class=\"tools\" role=\"search\" aria-label=\"Classes\"><label>Find a class <input type=\"search\" id=\"search\" \
         autocomplete=\"off\" spellcheck=\"false\" aria-controls=\"class-list\"></label>\
         <label>Sort <select id=\"order\"><option value=\"name\">by name</option><option value=\"n\">most candidates</option>\
         <option value=\"low\">lowest mean relevance</option><option value=\"high\">highest mean relevance</option>{by_auc}</select></label>\
         <output id=\"count\" for=\"search\" aria-live=\"polite\">{n} classes</output></div>\n<div id=\"class-list\">\n",
        n = classes.classes.len(),
    )
}

/// Writes classes one after the other.
pub(crate) struct Galleries<'a> {
    pub(crate) classes: &'a Classes,
    pub(crate) reasons: &'a HashMap<usize, RelevanceReasons>,
    pub(crate) thumbnails: &'a Thumbnails,
    pub(crate) per_class: usize,
}

/// What the script needs of a class. Names are short because they occur thousands of times.
#[derive(Serialize)]
struct Data<'a> {
    lists: Vec<List<'a>>,
}

#[derive(Serialize)]
struct List<'a> {
    title: String,
    items: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    id: &'a str,
    /// Relevance; none for clean examples.
    #[serde(skip_serializing_if = "Option::is_none")]
    r: Option<String>,
    /// Rank, starting at 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    k: Option<usize>,
    /// Whether it belongs to the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    t: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<&'a str>,
    /// Similarity to `best`.
    #[serde(skip_serializing_if = "Option::is_none")]
    sim: Option<String>,
    /// Reciprocal neighbours.
    #[serde(skip_serializing_if = "Option::is_none")]
    nn: Option<u32>,
    /// The picture as a data URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<&'a str>,
}

impl Galleries<'_> {
    /// Writes one class; returns how many examples it shows, and how many of them with a picture.
    pub(crate) fn write(&self, out: &mut impl Write, number: usize, class: &Class) -> Result<(usize, usize)> {
        let numbers = self.classes.numbers(class);
        let name = escape(&class.name);
        let attribute = |name: &str, value: Option<f64>| {
            value.map_or(String::new(), |v| format!(" data-{name}=\"{v:.4}\""))
        };
        let histogram = class_histogram::draw(&self.classes.candidates(class)).inline(
            &format!("hist-{number}"),
            &format!("Relevance of the candidates of {}", class.name),
            &describe(&numbers),
        );
        let data = self.data(class);
        let items = || data.lists.iter().flat_map(|list| &list.items);
        let counts = (items().count(), items().filter(|item| item.p.is_some()).count());
        write!(
            out,
            "<article class=\"class\" id=\"class-{number}\" aria-labelledby=\"class-{number}-h\" data-name=\"{name}\" \
             data-n=\"{}\"{}{}>\n<div class=\"about\"><h3 id=\"class-{number}-h\">{name}</h3>\n<p>{}</p>\n{histogram}</div>\n\
             <div class=\"gallery\"></div>\n<script type=\"application/json\">{}</script>\n</article>\n",
            numbers.n_candidates,
            attribute("mean", numbers.mean),
            attribute("auc", numbers.auc),
            escape(&describe(&numbers)),
            json_for_script(&data),
        )?;
        Ok(counts)
    }

    fn data(&self, class: &Class) -> Data<'_> {
        let mut lists = Vec::new();
        if !class.clean.is_empty() {
            let items: Vec<Item<'_>> =
                class.clean.iter().take(self.per_class).map(|&row| self.item(row, None)).collect();
            lists.push(List { title: format!("Clean examples ({})", class.clean.len()), items });
        }
        for section in sections(class.ranked.len(), self.per_class) {
            let (first, last) = (section.ranks.start + 1, section.ranks.end);
            let count = |n: usize| with_separators(n as f64, 0);
            let title = format!(
                "{}, ranks {} to {} of {}",
                section.name,
                count(first),
                count(last),
                count(class.ranked.len())
            );
            lists.push(List {
                title,
                items: section.ranks.map(|rank| self.item(class.ranked[rank], Some(rank + 1))).collect(),
            });
        }
        Data { lists }
    }

    fn item(&self, row: usize, rank: Option<usize>) -> Item<'_> {
        let id = &self.classes.table.ids[row];
        let reasons = self.reasons.get(&row);
        Item {
            id,
            r: rank.map(|_| format!("{:.2}", self.classes.table.relevance[row])),
            k: rank,
            t: rank.and(self.classes.truth[row]),
            title: self.thumbnails.captions.get(id).map(String::as_str),
            name: reasons.and_then(|reasons| reasons.matched_name.as_deref()),
            best: reasons.and_then(|reasons| reasons.best_clean.as_deref()),
            sim: reasons.and_then(|reasons| reasons.best_clean_similarity).map(|s| format!("{s:.2}")),
            nn: reasons.and_then(|reasons| reasons.reciprocal_neighbours),
            p: self.thumbnails.by_id.get(id).map(String::as_str),
        }
    }
}

/// `5 clean examples; 5,971 candidates of total weight 812.4; mean relevance 0.14; 61 % irrelevant; AUC 0.913`
fn describe(numbers: &ClassNumbers) -> String {
    let plural = |n: usize, what: &str| {
        format!("{} {what}{}", with_separators(n as f64, 0), if n == 1 { "" } else { "s" })
    };
    let mut text = plural(numbers.n_clean, "clean example");
    text += &format!(
        "; {} of total weight {}",
        plural(numbers.n_candidates, "candidate"),
        with_separators(numbers.weight, 1)
    );
    if let Some(mean) = numbers.mean {
        text += &format!("; mean relevance {mean:.2}");
    }
    if let Some(noise) = numbers.noise {
        text += &format!("; {:.0} % irrelevant", 100.0 * noise);
    }
    if let Some(auc) = numbers.auc {
        text += &format!("; AUC {auc:.3}");
    }
    text
}
