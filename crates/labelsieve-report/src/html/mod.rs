//! One HTML file: hand-written markup, one stylesheet, two short scripts, no network requests.

mod class_data;
pub(crate) mod escape;
mod figure;
mod gallery;
mod originals;
mod review;
mod table;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{Result, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use escape::escape;
use labelsieve_files::noun_for;
use sha2::{Digest, Sha256};

pub(crate) use class_data::Sources;
pub(crate) use gallery::{Intro, write as write_class};
pub(crate) use originals::Originals;

use crate::classes::Classes;
use crate::statistics::mean;
use crate::svg::scale::with_separators;
use crate::svg::style::{self, Theme};
use crate::{Figure, ResultTable, RunInfo};

const CSS: &str = include_str!("report.css");
/// Runs before anything is drawn, so that the page does not flash in the other theme.
const THEME_JS: &str = include_str!("script/theme.js");
/// One script of many files, each an idea of its own; later ones use earlier ones.
const REPORT_JS: &str = concat!(
    include_str!("script/start.js"),
    include_str!("script/theme_button.js"),
    include_str!("script/tables.js"),
    include_str!("script/data.js"),
    include_str!("script/cards.js"),
    include_str!("script/lists.js"),
    include_str!("script/galleries.js"),
    include_str!("script/keys.js"),
    include_str!("script/detail.js"),
    include_str!("script/find.js"),
    include_str!("script/jumps.js"),
    include_str!("script/copy.js"),
    include_str!("script/print.js"),
);

/// The page without its classes, which are written one by one.
pub(crate) struct Page<'a> {
    pub(crate) info: &'a RunInfo,
    pub(crate) tables: &'a [&'a ResultTable],
    pub(crate) figures: &'a [Figure],
    pub(crate) galleries: Option<Galleries<'a>>,
}

/// The classes with their examples.
pub(crate) struct Galleries<'a> {
    pub(crate) sources: &'a Sources<'a>,
    pub(crate) intro: Intro<'a>,
}

impl Page<'_> {
    /// Everything before the galleries.
    pub(crate) fn write_start(&self, out: &mut impl Write) -> Result<()> {
        let css = stylesheet();
        let title = escape(&self.info.title);
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"labelsieve {version}\">\n\
             <title>{title}</title>\n<style>{css}</style>\n<script>{THEME_JS}</script>\n</head>\n<body>\n\
             <a class=\"skip\" href=\"#main\">Skip to the report</a>\n",
            policy = policy(&css),
            version = env!("CARGO_PKG_VERSION"),
        )?;
        self.write_top(out)?;
        writeln!(out, "<main id=\"main\">\n<h1>{title}</h1>")?;
        self.write_summary(out)?;
        match &self.galleries {
            Some(Galleries { sources, intro }) => {
                out.write_all(gallery::folders(sources).as_bytes())?;
                out.write_all(gallery::heading(sources.classes, intro, self.tag()).as_bytes())
            }
            None => Ok(()),
        }
    }

    /// Everything after the galleries.
    pub(crate) fn write_end(&self, out: &mut impl Write) -> Result<()> {
        if self.galleries.is_some() {
            out.write_all(gallery::END.as_bytes())?;
        }
        self.write_tables(out)?;
        self.write_figures(out)?;
        out.write_all(self.about().as_bytes())?;
        write!(
            out,
            "</main>\n<footer><p>Made by labelsieve {}. This file makes no network requests.</p></footer>\n\
             <script>{REPORT_JS}</script>\n</body>\n</html>\n",
            env!("CARGO_PKG_VERSION"),
        )
    }

    fn write_tables(&self, out: &mut impl Write) -> Result<()> {
        if !self.tables.is_empty() {
            writeln!(
                out,
                "<section id=\"tables\" aria-labelledby=\"tables-h\">\n<h2 id=\"tables-h\">Tables{}</h2>",
                self.tag()
            )?;
            let galleries = self.gallery_numbers();
            self.tables
                .iter()
                .try_for_each(|table| out.write_all(table::html(table, &galleries, self.tag()).as_bytes()))?;
            writeln!(out, "</section>")?;
        }
        Ok(())
    }

    fn write_figures(&self, out: &mut impl Write) -> Result<()> {
        if !self.figures.is_empty() {
            writeln!(
                out,
                "<section id=\"figures\" aria-labelledby=\"figures-h\">\n<h2 id=\"figures-h\">Figures{}</h2>",
                self.tag()
            )?;
            self.figures
                .iter()
                .try_for_each(|figure| out.write_all(figure::html(figure, self.tag()).as_bytes()))?;
            writeln!(out, "</section>")?;
        }
        Ok(())
    }

    /// The number of each class's gallery, by the name of the class.
    fn gallery_numbers(&self) -> HashMap<&str, usize> {
        let classes = self.classes().map_or(&[][..], |classes| &classes.classes);
        let names = classes.iter().enumerate();
        names.flat_map(|(number, class)| [(class.key.as_str(), number), (&class.name, number)]).collect()
    }

    fn classes(&self) -> Option<&Classes> {
        self.galleries.as_ref().map(|galleries| galleries.sources.classes)
    }

    fn write_top(&self, out: &mut impl Write) -> Result<()> {
        let mut links = String::new();
        let sections = [
            ("classes", "Classes", self.galleries.is_some()),
            ("tables", "Tables", !self.tables.is_empty()),
            ("figures", "Figures", !self.figures.is_empty()),
            ("about", "How it was made", true),
        ];
        for (id, name, _) in sections.into_iter().filter(|section| section.2) {
            let _ = write!(links, "<a href=\"#{id}\">{name}</a>");
        }
        writeln!(
            out,
            "<header class=\"top\"><span class=\"brand\">Labelsieve</span><nav aria-label=\"Sections\">{links}</nav>\
             <button type=\"button\" id=\"theme\" hidden>Dark</button></header>"
        )
    }

    /// Description, the warning about simulated noise, and the numbers at a glance.
    fn write_summary(&self, out: &mut impl Write) -> Result<()> {
        if self.info.simulated_noise {
            writeln!(
                out,
                "<p class=\"notice\" role=\"note\"><strong>Simulated noise.</strong> The wrong candidates of this run were added \
                 on purpose. Results on them say nothing about candidates found on the web.</p>"
            )?;
        }
        if !self.info.description.is_empty() {
            writeln!(out, "<p class=\"lead\">{}</p>", escape(&self.info.description))?;
        }
        let Some(classes) = self.classes() else { return Ok(()) };
        let tiles: String = tiles(classes)
            .iter()
            .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>"))
            .collect();
        writeln!(out, "<dl class=\"tiles\" aria-label=\"At a glance\">{tiles}</dl>")
    }

    fn about(&self) -> String {
        let mut html = String::from(
            "<section id=\"about\" aria-labelledby=\"about-h\">\n<h2 id=\"about-h\">How it was made</h2>\n",
        );
        for note in &self.info.notes {
            let _ = writeln!(html, "<p>{}</p>", escape(note));
        }
        if !self.info.commands.is_empty() {
            let _ = writeln!(
                html,
                "<h3>Commands</h3>\n<pre tabindex=\"0\"><code>{}</code></pre>",
                escape(&self.info.commands.join("\n"))
            );
        }
        if !self.info.settings.is_empty() {
            let settings: String = self
                .info
                .settings
                .iter()
                .map(|setting| {
                    format!(
                        "<div><dt>{}</dt><dd>{}</dd></div>",
                        escape(&setting.name),
                        escape(&setting.value)
                    )
                })
                .collect();
            let _ = writeln!(html, "<h3>Settings</h3>\n<dl class=\"settings\">{settings}</dl>");
        }
        html + "</section>\n"
    }

    /// Shown wherever noise matters.
    fn tag(&self) -> &'static str {
        if self.info.simulated_noise { " <span class=\"tag\">simulated noise</span>" } else { "" }
    }
}

/// Names and values of the tiles.
fn tiles(classes: &Classes) -> Vec<(String, String)> {
    let count = |n: usize, noun: &str| (noun_for(n, noun), with_separators(n as f64, 0));
    let n_clean = classes.table.is_clean.iter().filter(|clean| **clean).count();
    let candidates = classes.classes.iter().flat_map(|class| classes.candidates(class));
    let known = classes.by_truth();
    let mut tiles = vec![
        count(classes.classes.len(), "class"),
        count(n_clean, "clean example"),
        count(classes.table.ids.len() - n_clean, "candidate"),
    ];
    let tile = |name: &str, value: String| (name.to_owned(), value);
    tiles.extend(
        mean(candidates.map(|candidate| candidate.value))
            .map(|mean| tile("mean relevance", format!("{mean:.2}"))),
    );
    tiles.extend(known.noise().map(|noise| tile("irrelevant", format!("{:.0} %", 100.0 * noise))));
    tiles.extend(known.auc().map(|area| tile("AUC, all classes", format!("{area:.3}"))));
    if !classes.decided.is_empty() {
        let counts = classes.decided.count_all().named();
        tiles.extend(counts.map(|(name, n)| tile(name, with_separators(n as f64, 0))));
    }
    tiles
}

fn stylesheet() -> String {
    let light = style::variables(Theme::Light);
    let dark = style::variables(Theme::Dark);
    let themes = format!(
        ":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         @media screen{{:root[data-theme=dark]{{{dark}}}}}\n" // paper is white
    );
    themes + CSS + &style::rules()
}

/// Only our own style and scripts, known by their hashes, and pictures inside the file.
fn policy(css: &str) -> String {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
    format!(
        "default-src 'none'; img-src data:; style-src {}; script-src {} {}; base-uri 'none'; form-action 'none'",
        hash(css),
        hash(THEME_JS),
        hash(REPORT_JS)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_parts_cannot_end_the_elements_they_stand_in() {
        for part in [stylesheet().as_str(), THEME_JS, REPORT_JS] {
            assert!(
                !part.contains("</") && !part.contains("<!--"),
                "written into <style> or <script> as it is"
            );
            assert!(!part.contains('\r'), "HTML would turn it into a line feed, and the hash would not fit");
        }
        assert!(
            policy("x").starts_with("default-src 'none'; img-src data:; style-src 'sha256-LXEWQrcmsEQBYnyp")
        );
    }
}
