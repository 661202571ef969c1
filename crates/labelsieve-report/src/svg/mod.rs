//! A small SVG writer: shapes carry classes, and one stylesheet colours them in the page and in files of their own.

pub(crate) mod axes;
pub(crate) mod legend;
pub(crate) mod scale;
pub(crate) mod style;
pub(crate) mod text;

use std::fmt::Write;

use crate::html::escape::escape;

/// A point of a picture, from its upper left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Position {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

impl Position {
    pub(crate) fn new(x: f64, y: f64) -> Position {
        Position { x, y }
    }
}

/// A rectangle of a picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A picture under construction. Lengths are CSS pixels.
#[derive(Default)]
pub(crate) struct Canvas {
    body: String,
}

/// The side of a text that lies at its position.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Canvas {
    pub(crate) fn line(&mut self, class: &str, from: Position, to: Position) {
        self.push(format_args!(
            r#"<line class="{class}" x1="{}" y1="{}" x2="{}" y2="{}"/>"#,
            short(from.x),
            short(from.y),
            short(to.x),
            short(to.y)
        ));
    }

    pub(crate) fn rect(&mut self, class: &str, area: Area) {
        self.push(format_args!(
            r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}"/>"#,
            short(area.left),
            short(area.top),
            short(area.width),
            short(area.height)
        ));
    }

    pub(crate) fn polyline(&mut self, class: &str, points: impl IntoIterator<Item = Position>) {
        let mut path = String::new();
        for Position { x, y } in points {
            let _ = write!(path, "{}{} {}", if path.is_empty() { "M" } else { "L" }, short(x), short(y));
        }
        self.path(class, &path);
    }

    pub(crate) fn path(&mut self, class: &str, path: &str) {
        self.push(format_args!(r#"<path class="{class}" d="{path}"/>"#));
    }

    pub(crate) fn text(&mut self, class: &str, at: Position, anchor: Anchor, text: &str) {
        self.turned_text(class, at, anchor, 0.0, text);
    }

    /// A text turned by `degrees` around its position.
    pub(crate) fn turned_text(
        &mut self,
        class: &str,
        at: Position,
        anchor: Anchor,
        degrees: f64,
        text: &str,
    ) {
        let x = short(at.x);
        let y = short(at.y);
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let turn = match degrees {
            0.0 => String::new(),
            degrees => format!(r#" transform="rotate({} {x} {y})""#, short(degrees)),
        };
        let text = escape(text);
        self.push(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}"{turn}>{text}</text>"#
        ));
    }

    /// The marker of series `number`: shapes differ, so that colour is not needed.
    pub(crate) fn marker(&mut self, number: usize, at: Position) {
        let x = short(at.x);
        let y = short(at.y);
        let path = match number % 6 {
            0 => format!("M{x} {y}m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z"),
            1 => format!("M{x} {y}m-3.3-3.3h6.6v6.6h-6.6z"),
            2 => format!("M{x} {y}m0-4.4l4.2 7.4h-8.4z"),
            3 => format!("M{x} {y}m0-4.6l4.6 4.6l-4.6 4.6l-4.6-4.6z"),
            4 => format!("M{x} {y}m0 4.4l4.2-7.4h-8.4z"),
            _ => format!("M{x} {y}m-1.4-4.4h2.8v3h3v2.8h-3v3h-2.8v-3h-3v-2.8h3z"),
        };
        self.path(&format!("fill {}", style::series(number)), &path);
    }

    /// A whisker from `low` to `high`.
    pub(crate) fn whisker(&mut self, class: &str, x: f64, low: f64, high: f64) {
        let x = short(x);
        let low = short(low);
        let high = short(high);
        self.path(class, &format!("M{x} {low}V{high}M{x} {low}m-3 0h6M{x} {high}m-3 0h6"));
    }

    fn push(&mut self, shape: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{shape}");
    }

    /// Completes the picture.
    pub(crate) fn finish(self, width: f64, height: f64) -> Drawing {
        Drawing { body: self.body, width, height }
    }
}

/// A finished picture.
pub(crate) struct Drawing {
    body: String,
    width: f64,
    height: f64,
}

impl Drawing {
    /// For a page that has the stylesheet of figures. `id` is unique in the page.
    pub(crate) fn inline(&self, id: &str, title: &str, description: &str) -> String {
        format!(
            "<svg class=\"fig\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\">\n\
             <title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n{}</svg>",
            escape(title),
            escape(description),
            self.body,
            w = short(self.width),
            h = short(self.height),
        )
    }

    /// For its own file, with its heading inside.
    pub(crate) fn standalone(&self, title: &str, description: &str) -> String {
        const HEAD: f64 = 30.0;
        let w = short(self.width);
        let h = short(self.height + HEAD);
        let heading = text::fit(title, (self.width - 24.0) / 1.25);
        format!(
            "{STANDALONE_START}\
             viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\">\n<title id=\"t\">{}</title>\n<desc id=\"d\">{}</desc>\n\
             <style>{}</style>\n<rect class=\"paper\" width=\"{w}\" height=\"{h}\"/>\n\
             <text class=\"heading\" x=\"4\" y=\"22\">{}</text>\n<g transform=\"translate(0 {HEAD})\">\n{}</g>\n</svg>\n",
            escape(title),
            escape(description),
            style::standalone(),
            escape(&heading),
            self.body,
        )
    }
}

/// The first bytes of a figure in its own file, by which it is recognised.
pub(crate) const STANDALONE_START: &str =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fig\" role=\"img\" aria-labelledby=\"t d\" ";

/// A coordinate with at most one decimal: a tenth of a pixel is fine enough.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0").unwrap_or(&text) {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!([1.0, 0.25, -0.01, 1234.56].map(short), ["1", "0.2", "0", "1234.6"]);
    }

    #[test]
    fn a_drawing_is_well_formed_whatever_its_texts() {
        let mut canvas = Canvas::default();
        canvas.text("label", Position::new(1.0, 2.0), Anchor::Middle, "<b>&\"'\u{0}\u{8}]]>");
        (0..7).for_each(|number| canvas.marker(number, Position::new(10.0, 20.0)));
        canvas.whisker("whisker", 5.0, 1.0, 9.0);
        let drawing = canvas.finish(100.0, 50.0);
        let file = drawing.standalone("a <script> & more", "\u{1f}");
        let document = roxmltree::Document::parse(&file).unwrap();
        let title = document.descendants().find(|node| node.has_tag_name("title"));
        assert_eq!(title.and_then(|title| title.text()), Some("a <script> & more"));
        let names: Vec<&str> = document
            .root_element()
            .children()
            .filter(|n| n.is_element())
            .map(|n| n.tag_name().name())
            .collect();
        assert_eq!(names, ["title", "desc", "style", "rect", "text", "g"]);
        roxmltree::Document::parse(&drawing.inline("f", "<t>", "<d>")).unwrap();
    }
}
