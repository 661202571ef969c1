//! Run directories, good and bad.

use super::*;

fn table() -> ResultTable {
    ResultTable {
        id: "top-1".into(),
        title: "Top-1 accuracy".into(),
        command: Some("labelsieve bench".into()),
        columns: vec![TableColumn::new("k = 1").in_group("novel"), TableColumn::new("note")],
        rows: vec![
            TableRow::new("GCN", vec![Cell::mean(67.8, 0.1), Cell::Text("ours".into())]),
            TableRow::new("clean only", vec![Cell::number(45.3), Cell::Empty]),
        ],
        ..ResultTable::default()
    }
}

fn figure(id: &str, data: FigureKind) -> Figure {
    Figure { id: id.into(), title: id.into(), caption: String::new(), command: None, data }
}

fn lines(x: f64, y: f64) -> FigureKind {
    let points = vec![Point { x: 1.0, y: 2.0, half_width: Some(0.5) }, Point { x, y, half_width: None }];
    let series = vec![LineSeries { name: "k = 1".into(), points }];
    FigureKind::Lines { x: Axis::log("λ"), y: Axis::linear("accuracy (%)"), series }
}

fn run() -> (tempfile::TempDir, RunDirectory) {
    let folder = tempfile::tempdir().unwrap();
    let mut info = RunInfo::new("A run").setting("λ", 0.5).setting("k", 5);
    info.class_names.insert("n01".into(), "owl".into());
    let run = RunDirectory::create(folder.path().join("run"), info).unwrap();
    (folder, run)
}

#[test]
fn what_is_written_is_read_back() {
    let (_folder, run) = run();
    assert_eq!(RunDirectory::open(run.path()).unwrap(), run);
    assert_eq!(
        (run.tables().unwrap(), run.figures().unwrap()),
        (vec![], vec![]),
        "all but run.json is optional"
    );
    run.write_tables(&[table()]).unwrap();
    assert_eq!(run.tables().unwrap(), [table()]);
    let bars = vec![BarSeries { name: "GCN".into(), values: vec![Some(1.0), None], half_widths: vec![] }];
    let classes =
        vec![ClassRelevance { class: "owl".into(), relevance: vec![0.5, 1.0], relevant: vec![true, false] }];
    let figures = [
        figure("lines", lines(3.0, -1.0)),
        figure(
            "bars",
            FigureKind::Bars {
                groups: vec!["1".into(), "2".into()],
                x_label: "k".into(),
                y: Axis::linear("%"),
                series: bars,
            },
        ),
        figure("cumulative", FigureKind::CumulativeRelevance { classes }),
        figure("roc", FigureKind::Separation { relevant: vec![0.75], irrelevant: vec![] }),
        figure(
            "sizes",
            FigureKind::PoolSizes {
                classes: vec![PoolSize { class: "owl".into(), candidates: 7, gain: Some(0.1) }],
                gain_label: "gain".into(),
            },
        ),
    ];
    run.write_figures(&figures).unwrap();
    assert_eq!(run.figures().unwrap(), figures);
}

#[test]
fn cells_are_plain_in_json() {
    let cells = serde_json::to_string(&table().rows[0].cells).unwrap();
    assert_eq!(cells, r#"[{"mean":67.8,"half_width":0.1},"ours"]"#);
    assert_eq!(serde_json::to_string(&Cell::Empty).unwrap(), "null");
}

/// `text` in place of `name` must be refused with a message that ends so.
fn refuses(name: &str, text: &str, message: &str) {
    let (_folder, run) = run();
    std::fs::write(run.path().join(name), text).unwrap();
    let opened = RunDirectory::open(run.path());
    let error = opened.and_then(|run| run.tables().and(run.figures().map(|_| ()))).unwrap_err().to_string();
    assert!(error.contains(name) && error.ends_with(message), "{error}");
}

#[test]
fn broken_json_is_refused_with_its_line() {
    refuses(
        "run.json",
        "{\"format\": 1,\n\"title\": \"x\"",
        "EOF while parsing an object at line 2 column 12",
    );
    refuses(
        "run.json",
        r#"{"format": 2, "title": "x"}"#,
        "`format`: expected 1, found 2; was it written by another version?",
    );
    refuses("run.json", r#"{"format": 1, "title": " "}"#, "`title`: expected a title, found none");
    refuses("run.json", r#"{"format": 1, "title": "x", "titel": 1}"#, "`notes` at line 1 column 35");
    refuses("tables.json", "[7]", "expected struct ResultTable at line 1 column 2");
    let cell =
        r#"[{"id": "t", "title": "", "columns": [{"name": "c"}], "rows": [{"label": "r", "cells": [7]}]}]"#;
    refuses("tables.json", cell, "expected a cell: an object with `mean`, text or null at line 1 column 90");
}

#[test]
fn rows_that_do_not_fit_their_columns_are_refused_with_their_place() {
    let row =
        r#"[{"id": "t", "title": "", "columns": [{"name": "c"}], "rows": [{"label": "GCN", "cells": []}]}]"#;
    refuses("tables.json", row, "table `t`, row 0 (`GCN`): expected 1 cells, one per column, found 0");
    let wide = r#"[{"id": "t", "title": "", "columns": [{"name": "c", "decimals": 200}], "rows": []}]"#;
    refuses("tables.json", wide, "table `t`, column `c`, `decimals`: expected 0 to 9, found 200");
}

#[test]
fn ids_that_would_leave_the_folder_are_refused() {
    let (_folder, run) = run();
    for id in ["", "../x", "a/b", "a b", "é", &"x".repeat(81)] {
        let error = run.write_tables(&[ResultTable { id: id.into(), ..table() }]).unwrap_err().to_string();
        assert!(error.contains("tables.json`: table 0, `id`: expected 1 to 80 of the characters"), "{error}");
    }
    let twice = [table(), ResultTable { id: "TOP-1".into(), ..table() }];
    let error = run.write_tables(&twice).unwrap_err().to_string();
    assert!(error.ends_with("table 1, `id`: expected distinct ids, found `TOP-1` again"), "{error}");
}

#[test]
fn numbers_that_cannot_be_drawn_are_refused_before_they_are_written() {
    let (_folder, run) = run();
    let mut bad = table();
    bad.rows[1].cells[0] = Cell::number(f64::NAN);
    let error = run.write_tables(&[bad]).unwrap_err().to_string();
    assert!(
        error.ends_with("row 1 (`clean only`), column `k = 1`: expected a finite number, found NaN"),
        "{error}"
    );
    let check = |data: FigureKind, message: &str| {
        let error = run.write_figures(&[figure("f", data)]).unwrap_err().to_string();
        assert!(error.ends_with(message), "{error}");
    };
    check(lines(f64::INFINITY, 0.0), "series `k = 1`, point 1: expected a finite number, found inf");
    check(lines(0.0, 0.0), "point 1, `x`: expected a positive number on a logarithmic axis, found 0");
    let relevant = vec![0.5, 1.5];
    check(
        FigureKind::Separation { relevant, irrelevant: vec![] },
        "figure `f`, `relevant`, number 1: expected a relevance in [0, 1], found 1.5",
    );
    assert!(!run.path().join("figures.json").exists() && !run.path().join("tables.json").exists());
}
