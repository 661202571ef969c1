//! Tables: sortable with JavaScript, complete without it.

use std::collections::HashMap;
use std::fmt::Write;

use super::escape::escape;
use crate::svg::scale::with_separators;
use crate::{Best, Cell, Number, ResultTable, TableColumn, TableRow};

/// Longer tables are folded.
const MANY_ROWS: usize = 30;
/// The headings of wider tables are turned on phones.
const MANY_COLUMNS: usize = 4;

/// A table; rows named like a class in `galleries` link to the gallery with that number.
pub(super) fn html(table: &ResultTable, galleries: &HashMap<&str, usize>, tag: &str) -> String {
    let id = &table.id;
    let title = escape(&table.title);
    let mut html = format!(
        "<section class=\"result\" id=\"table-{id}\" aria-labelledby=\"table-{id}-h\">\n<h3 id=\"table-{id}-h\">{title}{tag}</h3>\n"
    );
    let folded = table.rows.len() > MANY_ROWS;
    if folded {
        let _ = writeln!(html, "<details><summary>Show {} rows</summary>", table.rows.len());
    }
    let many = if table.columns.len() > MANY_COLUMNS { " many" } else { "" };
    let _ = writeln!(
        html,
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{title}, table\">\n<table class=\"sortable{many}\">\n\
         <caption><span>{}</span></caption>\n<thead>{}</thead>",
        escape(&table.caption),
        head(&table.columns)
    );
    let best: Vec<Option<f64>> = (0..table.columns.len()).map(|column| best(table, column)).collect();
    for rows in table.rows.chunk_by(|a, b| a.group == b.group) {
        html.push_str("<tbody>\n");
        if let Some(group) = &rows[0].group {
            let _ = writeln!(
                html,
                "<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{}\">{}</th></tr>",
                table.columns.len() + 1,
                escape(group)
            );
        }
        rows.iter().for_each(|row| html.push_str(&row_html(row, galleries, &table.columns, &best)));
        html.push_str("</tbody>\n");
    }
    html.push_str("</table>\n</div>\n");
    if folded {
        html.push_str("</details>\n");
    }
    html + &command(table.command.as_deref()) + "</section>\n"
}

/// The command behind a table or figure.
pub(super) fn command(command: Option<&str>) -> String {
    command.map_or(String::new(), |command| {
        format!("<p class=\"command\"><code>{}</code></p>\n", escape(command))
    })
}

/// One row of names, below a row of groups if there are any.
fn head(columns: &[TableColumn]) -> String {
    let mut head = String::from("<tr>");
    let grouped = columns.iter().any(|column| column.group.is_some());
    if grouped {
        head.push_str("<td></td>");
        for group in columns.chunk_by(|a, b| a.group == b.group) {
            let width = group.len();
            let name = escape(group[0].group.as_deref().unwrap_or(""));
            let _ = if name.is_empty() {
                write!(head, "<td colspan=\"{width}\"></td>")
            } else {
                write!(head, "<th scope=\"colgroup\" class=\"over\" colspan=\"{width}\">{name}</th>")
            };
        }
        head.push_str("</tr>\n<tr>");
    }
    head.push_str("<th scope=\"col\" class=\"first\">Name</th>");
    for column in columns {
        let _ = write!(head, "<th scope=\"col\">{}</th>", escape(&column.name));
    }
    head + "</tr>"
}

fn row_html(
    row: &TableRow,
    galleries: &HashMap<&str, usize>,
    columns: &[TableColumn],
    best: &[Option<f64>],
) -> String {
    let class = if row.reference { " class=\"reference\"" } else { "" };
    let label = match galleries.get(row.label.as_str()) {
        Some(number) => format!("<a href=\"#class-{number}\">{}</a>", escape(&row.label)),
        None => escape(&row.label),
    };
    let mut html = format!("<tr{class}><th scope=\"row\">{label}</th>");
    for ((cell, column), best) in row.cells.iter().zip(columns).zip(best) {
        let _ = match cell {
            Cell::Empty => write!(html, "<td></td>"),
            Cell::Text(text) => write!(html, "<td class=\"text\">{}</td>", escape(text)),
            Cell::Number(number) => {
                let best = if row.reference { None } else { *best };
                html.push_str(&number_html(number, usize::from(column.decimals), best));
                Ok(())
            }
        };
    }
    html + "</tr>\n"
}

/// A cell with a number, highlighted if it is the best of its column.
fn number_html(number: &Number, decimals: usize, best: Option<f64>) -> String {
    let mean = with_separators(number.mean, decimals);
    let half = number.half_width.map_or(String::new(), |half| {
        format!(" <small>±&nbsp;{}</small>", with_separators(half, decimals.max(1)))
    });
    let value = number.mean;
    // Values that print the same are highlighted together.
    if best.is_some_and(|best| with_separators(best, decimals) == mean) {
        format!(
            "<td data-value=\"{value}\" class=\"best\"><strong>{mean}</strong>{half}<span class=\"sr\"> (best)</span></td>"
        )
    } else {
        format!("<td data-value=\"{value}\">{mean}{half}</td>")
    }
}

/// The best value of a column, if there are at least two to choose from.
fn best(table: &ResultTable, column: usize) -> Option<f64> {
    let rows = table.rows.iter().filter(|row| !row.reference);
    let values: Vec<f64> = rows.filter_map(|row| row.cells[column].value()).collect();
    if values.len() < 2 {
        return None;
    }
    match table.columns[column].best {
        Best::None => None,
        Best::Highest => values.into_iter().max_by(f64::total_cmp),
        Best::Lowest => values.into_iter().min_by(f64::total_cmp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> ResultTable {
        let row = |label: &str, value: f64| TableRow::new(label, vec![Cell::mean(value, 0.25), Cell::Empty]);
        ResultTable {
            id: "t".into(),
            title: "<T>".into(),
            columns: vec![TableColumn::new("k = 1").in_group("top-1"), TableColumn::new("note")],
            rows: vec![
                row("a", 41.0),
                row("b & c", 52.04),
                row("d", 51.96),
                TableRow { reference: true, ..row("oracle", 60.0) },
            ],
            ..ResultTable::default()
        }
    }

    #[test]
    fn the_best_value_is_marked_and_not_by_looks_alone() {
        let html = html(&table(), &HashMap::new(), "");
        assert_eq!(html.matches("class=\"best\"").count(), 2, "52.0 twice, as printed: {html}");
        assert!(
            html.contains("<strong>52.0</strong> <small>±&nbsp;0.2</small><span class=\"sr\"> (best)</span>"),
            "{html}"
        );
        assert!(
            html.contains("<tr class=\"reference\"><th scope=\"row\">oracle</th><td data-value=\"60\">60.0"),
            "{html}"
        );
    }

    #[test]
    fn names_are_text() {
        let html = html(&table(), &HashMap::new(), "");
        assert!(html.contains("&lt;T&gt;") && html.contains("b &amp; c") && !html.contains("<T>"), "{html}");
    }

    #[test]
    fn a_row_named_like_a_class_links_to_its_gallery() {
        let html = html(&table(), &HashMap::from([("b & c", 7)]), "");
        assert!(html.contains("<a href=\"#class-7\">b &amp; c</a>"), "{html}");
        assert_eq!(html.matches("<a ").count(), 1);
    }

    #[test]
    fn a_column_alone_in_its_table_has_no_best_value() {
        let mut table = table();
        table.rows.truncate(1);
        assert!(!html(&table, &HashMap::new(), "").contains("class=\"best\""));
        table.columns[0].best = Best::None;
        assert_eq!(best(&table, 0), None);
    }
}
