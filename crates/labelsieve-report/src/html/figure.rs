//! Figures with their captions, drawn for wide and for narrow screens.

use super::escape::escape;
use super::table::command;
use crate::Figure;
use crate::figures::{Layout, describe, draw};

pub(super) fn html(figure: &Figure, tag: &str) -> String {
    let id = &figure.id;
    let description = describe(figure);
    let drawing = |layout, name: &str| {
        let svg = draw(figure, layout).inline(&format!("figure-{id}-{name}"), &figure.title, &description);
        format!("<div class=\"{name}\">{svg}</div>\n")
    };
    format!(
        "<figure id=\"figure-{id}\" aria-labelledby=\"figure-{id}-h\">\n<h3 id=\"figure-{id}-h\">{}{tag}</h3>\n{}{}\
         <figcaption><p>{}</p>\n{}</figcaption>\n</figure>\n",
        escape(&figure.title),
        drawing(Layout::Wide, "wide"),
        drawing(Layout::Narrow, "narrow"),
        escape(&figure.caption),
        command(figure.command.as_deref()),
    )
}
