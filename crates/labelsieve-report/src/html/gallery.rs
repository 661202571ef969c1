//! The classes: numbers, a histogram, and the data from which the script builds a ranked gallery when it comes into view.

use std::io::{Result, Write};

use labelsieve::evaluation::{Advice, Doubts};
use labelsieve_files::noun_for;

use super::class_data::{Counts, Sources};
use super::escape::{escape, json_for_script};
use super::review;
use crate::classes::{Class, ClassNumbers, Classes};
use crate::figures::class_histogram;
use crate::svg::scale::with_separators;

/// Closes the elements that [`heading`] opened.
pub(super) const END: &str =
    "</div>\n</section>\n<dialog id=\"detail\" aria-labelledby=\"detail-h\"></dialog>\n";

/// Facts for the text before the first class.
pub(crate) struct Intro<'a> {
    /// Candidates whose pictures are in the file.
    pub(crate) n_pictured: usize,
    /// Whether examples link to their files.
    pub(crate) has_links: bool,
    /// The command that opens these candidates for review.
    pub(crate) review: Option<&'a str>,
}

/// The start of the section, with its tools.
pub(super) fn heading(classes: &Classes, intro: &Intro<'_>, tag: &str) -> String {
    let with_truth = classes.truth.iter().any(Option::is_some);
    let by_auc = if with_truth { "<option value=\"auc\">lowest AUC</option>" } else { "" };
    let legend = if with_truth { TRUTH_LEGEND } else { "" };
    let is_decided = !classes.decided.is_empty();
    let fewest_decisions =
        if is_decided { "<option value=\"decided\">fewest decisions</option>" } else { "" };
    format!(
        "<section id=\"classes\" aria-labelledby=\"classes-h\">\n<h2 id=\"classes-h\">Classes{tag}</h2>\n\
         <p>All candidates of each class in order of relevance, most relevant first. {}</p>\n{legend}\n{}\
         <noscript><p class=\"notice\">The galleries need JavaScript; tables and figures do not.</p></noscript>\n\
         <div class=\"tools\" role=\"search\" aria-label=\"Classes and candidates\"><label>Find <input type=\"search\" id=\"search\" \
         placeholder=\"class, caption or id\" autocomplete=\"off\" spellcheck=\"false\" aria-controls=\"class-list\"></label>\
         <label>Sort <select id=\"order\"><option value=\"name\">by name</option><option value=\"n\">most candidates</option>\
         <option value=\"low\">lowest mean relevance</option><option value=\"high\">highest mean relevance</option>{by_auc}{fewest_decisions}</select></label>{}\
         <output id=\"count\" for=\"search\" aria-live=\"polite\">{}</output></div>\n<div id=\"class-list\">\n",
        pictures(classes, intro),
        intro.review.map(review::html).unwrap_or_default(),
        if is_decided { BY_DECISION } else { "" },
        count(classes.classes.len(), "class"),
    )
}

const TRUTH_LEGEND: &str = "<p class=\"legend\"><span class=\"mark yes\" aria-hidden=\"true\">✓</span> belongs to its class \
                            <span class=\"mark no\" aria-hidden=\"true\">✗</span> does not. In the histograms, irrelevant candidates \
                            (orange) are stacked on relevant ones (blue).</p>";

/// The digits are those of the data.
const BY_DECISION: &str = "<label>Decision <select id=\"decision\"><option value=\"\">any</option>\
                           <option value=\"1\">accepted</option><option value=\"2\">rejected</option>\
                           <option value=\"3\">unsure</option><option value=\"0\">undecided</option></select></label>";

/// The number of candidates with a picture, and how the others are shown.
fn pictures(classes: &Classes, intro: &Intro<'_>) -> String {
    let n_candidates: usize = classes.classes.iter().map(|class| class.ranked.len()).sum();
    let mut text = match intro.n_pictured {
        0 => "This file has no pictures of them; captions and ids are listed.".to_owned(),
        n if n == n_candidates => "This file has pictures of all of them.".to_owned(),
        n => format!(
            "This file has pictures of {} of {}; the others are listed by caption and id.",
            with_separators(n as f64, 0),
            with_separators(n_candidates as f64, 0)
        ),
    };
    if intro.has_links {
        text += " Links to originals work while this file and the pictures stay where they are.";
    }
    text
}

/// Writes one class; returns the counts of what it shows.
pub(crate) fn write(
    out: &mut impl Write,
    sources: &Sources<'_>,
    number: usize,
    class: &Class,
) -> Result<Counts> {
    let numbers = sources.classes.numbers(class);
    let name = escape(&class.name);
    let attribute =
        |name: &str, value: Option<f64>| value.map_or(String::new(), |v| format!(" data-{name}=\"{v:.4}\""));
    let histogram = class_histogram::draw(&sources.classes.candidates(class), None).inline(
        &format!("hist-{number}"),
        &format!("Relevance of the candidates of {}", class.name),
        &describe(&numbers),
    );
    let kept = numbers.advice.map_or(String::new(), |advice| {
        let probabilities = sources.classes.probabilities(class);
        let words = advised(&advice, probabilities.len());
        let histogram = class_histogram::draw(&probabilities, Some(advice.threshold)).inline(
            &format!("likely-{number}"),
            &format!("Probability of the candidates of {}, with the advised threshold", class.name),
            &words,
        );
        format!("\n<p class=\"advice\">{}</p>\n{histogram}", escape(&words))
    });
    let data = sources.data(class);
    write!(
        out,
        "<article class=\"class\" id=\"class-{number}\" aria-labelledby=\"class-{number}-h\" data-name=\"{name}\" \
         data-n=\"{}\" data-decided=\"{}\"{}{}>\n<div class=\"about\"><h3 id=\"class-{number}-h\" tabindex=\"-1\">{name}</h3>\n<p>{}</p>\n{}{histogram}{kept}</div>\n\
         <div class=\"gallery\"></div>\n<script type=\"application/json\">{}</script>\n</article>\n",
        numbers.n_candidates,
        numbers.decided.total(),
        attribute("mean", numbers.mean),
        attribute("auc", numbers.auc),
        escape(&describe(&numbers)),
        doubted(&numbers.doubts),
        json_for_script(&data),
    )?;
    Ok(data.counts())
}

/// The folders of originals, once for all classes.
pub(super) fn folders(sources: &Sources<'_>) -> String {
    let folders = json_for_script(&sources.originals.folders());
    format!("<script type=\"application/json\" id=\"folders\">{folders}</script>\n")
}

/// `5 clean examples; 5,971 candidates of total weight 812.4; mean relevance 0.14; 61 % irrelevant; AUC 0.913; 3 accepted`
fn describe(numbers: &ClassNumbers) -> String {
    let mut text = count(numbers.n_clean, "clean example");
    text += match numbers.n_texts {
        0 => "",
        n if n == numbers.n_clean => " (the text of the name)",
        _ => " (one is the text of the name)",
    };
    text += &format!(
        "; {} of total weight {}",
        count(numbers.n_candidates, "candidate"),
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
    for (name, n) in numbers.decided.named().into_iter().filter(|(_, n)| *n > 0) {
        text += &format!("; {} {name}", with_separators(n as f64, 0));
    }
    text
}

/// `Keep those with a probability of 0.55 or more: 47 of 120 candidates, about 91 % of them right, about 83 % of all right ones.`
fn advised(advice: &Advice, n_candidates: usize) -> String {
    let percent = |share: f64| format!("about {:.0} %", 100.0 * share);
    let Some(right) = advice.share_right else {
        return "By their probability, no candidate is more likely right than wrong.".to_owned();
    };
    let found = advice.share_found.map_or(String::new(), |f| format!(", {} of all right ones", percent(f)));
    format!(
        "Keep those with a probability of {:.2} or more: {} of {}, {} of them right{found}.",
        advice.threshold,
        with_separators(advice.n_kept as f64, 0),
        count(n_candidates, "candidate"),
        percent(right)
    )
}

/// Badges for a class whose relevance is not reliable.
fn doubted(doubts: &Doubts) -> String {
    const HELP: &str = "More candidates or a few decisions help.";
    let badge = |name: &str, why: &str| {
        format!("<p class=\"doubt\"><span class=\"tag\">{name}</span> {why} {HELP}</p>\n")
    };
    let flat = doubts.is_flat.then(|| badge("flat", "Relevance barely separates these candidates."));
    let small = doubts.small_pool.map(|neighbours| {
        let why = format!("Barely more candidates than the {neighbours} neighbours of each in the graph.");
        badge("small pool", &why)
    });
    [flat, small].into_iter().flatten().collect()
}

/// A readable number with its noun.
fn count(n: usize, noun: &str) -> String {
    format!("{} {}", with_separators(n as f64, 0), noun_for(n, noun))
}
