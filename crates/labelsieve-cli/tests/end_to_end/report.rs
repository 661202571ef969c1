//! `report`: run directories and relevance files as HTML and SVG.

use std::path::Path;

use labelsieve_files::{RelevanceRow, RelevanceWriter};
use labelsieve_networks::image_files::{ThumbnailRow, ThumbnailWriter};
use labelsieve_report::{
    Axis, Cell, Figure, FigureKind, LineSeries, Point, ResultTable, RunDirectory, RunInfo, TableColumn,
    TableRow,
};

use crate::common::{bytes, listing, refuses, run};
use crate::examples::{task_folder, write_truth};

const HOSTILE: &str = "</script><script>alert('x')</script>";

/// A white PNG of one pixel, as Python's zlib packs it.
const PIXEL: &[u8] = &[
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 31,
    21, 196, 137, 0, 0, 0, 11, 73, 68, 65, 84, 120, 156, 99, 248, 15, 4, 0, 9, 251, 3, 253, 251, 94, 107, 43,
    0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
];

fn text(folder: &Path, name: &str) -> String {
    String::from_utf8(bytes(folder, name)).expect("text")
}

fn write_run(folder: &Path) -> RunDirectory {
    let run = RunDirectory::create(folder.join("run"), RunInfo::new(HOSTILE)).expect("disk space");
    run.write_tables(&[ResultTable {
        id: "t".into(),
        title: "Accuracy".into(),
        columns: vec![TableColumn::new("k = 1")],
        rows: vec![
            TableRow::new("clean only", vec![Cell::mean(45.3, 0.65)]),
            TableRow::new("GCN", vec![Cell::mean(67.8, 0.1)]),
        ],
        ..ResultTable::default()
    }])
    .expect("a sound table");
    let points = [(0.01, 67.0), (0.1, 70.0)].map(|(x, y)| Point { x, y, half_width: None }).to_vec();
    run.write_figures(&[Figure {
        id: "lambda".into(),
        title: "Accuracy against λ".into(),
        caption: String::new(),
        command: None,
        data: FigureKind::Lines {
            x: Axis::log("λ"),
            y: Axis::linear("accuracy"),
            series: vec![LineSeries { name: "k = 1".into(), points }],
        },
    }])
    .expect("a sound figure");
    let row = |id: &str, relevance: f32| RelevanceRow {
        id: id.into(),
        class: HOSTILE.into(),
        relevance,
        probability: None,
        is_clean: relevance == 1.0,
        matched_name: None,
        best_clean: None,
        best_clean_similarity: None,
        reciprocal_neighbours: None,
    };
    let mut writer = RelevanceWriter::create(run.relevance_path(), &[]).expect("disk space");
    writer.write(&[row("a", 1.0), row("b", 0.25), row("c", 0.75)]).expect("disk space");
    writer.finish().expect("disk space");
    let mut writer = ThumbnailWriter::create(run.thumbnails_path()).expect("disk space");
    let picture = |id: &str, image: &[u8]| ThumbnailRow { id: id.into(), image: image.to_vec(), title: None };
    writer
        .write(&[picture("b", PIXEL), picture("c", b"no picture"), picture("z", PIXEL)])
        .expect("disk space");
    writer.finish().expect("disk space");
    run
}

#[test]
fn a_run_becomes_one_page_and_its_figures_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write_run(folder);
    let said = run(folder, "report run -o report.html --figures figures").ok().err;
    let message = "2 tables, 2 figures, 1 class, 3 examples shown, 1 of them with a picture";
    assert!(said.contains(message), "{said}");
    assert!(said.contains("warning: skipped unreadable pictures: `c` (neither JPEG"), "{said}");
    assert_eq!(listing(&folder.join("figures")), ["cumulative-relevance.svg", "lambda.svg"]);
    let page = text(folder, "report.html");
    assert!(page.contains("<strong>67.8</strong>") && page.contains("data:image/png;base64,iVBOR"));
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http://") && !outside.contains("https://"), "nothing from elsewhere");
    let svg = text(folder, "figures/lambda.svg");
    assert!(svg.starts_with("<svg xmlns=") && svg.contains("prefers-color-scheme:dark"));
    run(folder, "report run -o again.html --threads 1").ok();
    assert_eq!(bytes(folder, "again.html"), page.as_bytes(), "same run, same bytes");
}

#[test]
fn texts_of_a_run_cannot_become_scripts() {
    let folder = tempfile::tempdir().expect("a folder");
    write_run(folder.path());
    run(folder.path(), "report run -o report.html").ok();
    let page = text(folder.path(), "report.html");
    assert!(!page.contains("<script>alert"), "neither as text nor as data");
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(&#39;x&#39;)"), "but as text");
    // Theme, page, folders of originals and the data of one class: each opened and closed once.
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (4, 4));
}

#[test]
fn a_relevance_file_alone_is_enough_and_truth_adds_to_it() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    run(folder, "score --clean C.npz --pool N.npz --method gcn -o R.parquet").ok();
    write_truth(&task, folder.join("T.parquet"));
    run(folder, "report R.parquet -o plain.html").ok();
    let plain = text(folder, "plain.html");
    assert!(plain.contains("id=\"figure-cumulative-relevance\"") && plain.contains("id=\"class-5\""));
    assert!(!plain.contains("AUC") && !plain.contains("id=\"figure-relevance-and-truth\""));
    for setting in [
        "<dt>method.method</dt><dd>gcn</dd>",
        "<dt>method.training.learning_rate</dt><dd>0.1</dd>",
        "<dt>λ</dt><dd>default, by the number of clean examples: ",
    ] {
        assert!(plain.contains(setting), "settings of the run that wrote it: no {setting}");
    }
    run(folder, "report R.parquet --truth T.parquet --per-class 8 -o truth.html").ok();
    let page = text(folder, "truth.html");
    assert!(page.contains("id=\"figure-relevance-and-truth\"") && page.contains("AUC, all classes"));
    let parts = "\"shown\":[[\"Most relevant\",0,4],[\"Middle\",60,62],[\"Least relevant\",118,120]]";
    assert!(page.contains(parts), "pictures of both ends and of the middle");
    let shown = |line: &str| run(folder, line).ok().json()["n_examples"].clone();
    let all = shown("report R.parquet --per-class all -o all.html --json");
    assert_eq!(shown("report R.parquet --per-class 8 -o some.html --json"), all, "with a picture or without");
    assert!(text(folder, "all.html").contains("[[\"All candidates\",0,120]]"));
    refuses(
        folder,
        "report R.parquet --per-class most -o r.html",
        &["expected a non-negative integer or `all`"],
    );
    let measured = run(folder, "evaluate --relevance R.parquet --truth T.parquet --json").ok().json();
    let auc = measured["relevance"]["all"]["auc"].as_f64().expect("an area");
    assert!(page.contains(&format!("AUC {auc:.3}")), "the same area as `evaluate` finds: {auc}");
}

#[test]
fn what_is_no_run_is_refused() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    let run_directory = write_run(folder);
    std::fs::create_dir(folder.join("empty")).expect("disk space");
    refuses(
        folder,
        "report empty -o r.html",
        &["`empty` is not a run directory: run.json is missing", "hint: "],
    );
    refuses(
        folder,
        "report none -o r.html",
        &["cannot open `none`", "hint: `none` does not exist in the current folder"],
    );
    refuses(folder, "report C.npz -o r.html", &["`C.npz`: expected a Parquet file, found a NumPy archive"]);
    refuses(folder, "report run", &["--output"]);
    refuses(folder, "report run -o none/r.html", &["cannot write `none/r.html`"]);
    refuses(
        folder,
        "report run -o run/relevance.parquet",
        &["cannot write `run/relevance.parquet`: the extension must be .html or .htm"],
    );
    refuses(
        folder,
        "report run --images C.npz -o r.html",
        &["`C.npz`: expected images (a folder, .parquet, .tar", "found a NumPy archive", "hint: "],
    );
    run(folder, "score --clean C.npz --pool N.npz --method gcn -o R.parquet").ok();
    let message = ["rows: expected candidates of `R.parquet`, with the same `id` and `class`, found none"];
    let other = folder.join("other.parquet");
    let mut writer = labelsieve_files::TruthWriter::create(&other).expect("disk space");
    let row = labelsieve_files::TruthRow { id: "x".into(), class: "y".into(), relevant: true };
    writer.write(&[row]).expect("disk space");
    writer.finish().expect("disk space");
    refuses(folder, "report R.parquet --truth other.parquet -o r.html", &message);
    std::fs::write(run_directory.path().join("tables.json"), "[{\"id\": 7}]").expect("disk space");
    refuses(
        folder,
        "report run -o r.html",
        &["`run/tables.json` is not a readable run file: ", "line 1 column 9"],
    );
}

#[test]
fn decisions_are_marked_and_counted_and_the_review_is_a_command_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(
        folder.join("relevance.csv"),
        "id,class,relevance,is_clean,decision\na,owl,1,true,\nb,owl,1,false,accept\nc,owl,0.5,false,\n",
    )
    .expect("disk space");
    let line = "report relevance.csv -o r.html --json";
    assert_eq!(run(folder, line).ok().json()["n_decisions"], 1, "those in the relevance file");
    let page = text(folder, "r.html");
    assert!(page.contains("<h1>Relevance</h1>"), "not of relevance");
    assert!(page.contains("\"d\":\"10\"") && page.contains("<dt>accepted</dt><dd>1</dd>"));
    assert!(page.contains("labelsieve review relevance.csv -o decisions.parquet</code>"));

    let decisions = "id,class,decision\nb,owl,reject\nc,owl,unsure\nx,owl,accept\n";
    std::fs::write(folder.join("mine.csv"), decisions).expect("disk space");
    let done = run(folder, &format!("{line} --decisions mine.csv")).ok();
    assert!(
        done.err.contains("warning: 1 decision about examples that are not candidates here: `x` of `owl`"),
        "{done:?}"
    );
    let page = text(folder, "r.html");
    assert!(page.contains("\"d\":\"23\"") && page.contains("; 1 rejected; 1 unsure</p>"), "the file wins");
    assert!(page.contains("labelsieve review relevance.csv -o mine.csv</code>"));
    for name in ["clean.parquet", "pool.parquet"] {
        std::fs::write(folder.join(name), "").expect("disk space");
    }
    run(folder, line).ok();
    let command =
        "labelsieve review relevance.csv --clean clean.parquet --pool pool.parquet -o decisions.parquet";
    assert!(text(folder, "r.html").contains(command), "with the features that lie beside it");
    std::fs::write(folder.join("other.csv"), "id,class,decision\nx,owl,accept\n").expect("disk space");
    let message = ["`other.csv`: rows: expected candidates of `relevance.csv`"];
    refuses(folder, "report relevance.csv --decisions other.csv -o s.html", &message);
    refuses(folder, "report relevance.csv --decisions other.csv --figures f", &["--decisions"]);
}
