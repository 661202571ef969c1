//! `report --images`: pictures and captions from wherever the relevance comes from.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StringArray};
use labelsieve_files::{RelevanceRow, RelevanceWriter};
use serde_json::Value;

use crate::common::{bytes, refuses, run, shell};
use crate::embed::{png, write};
use crate::examples::write_parquet;

fn write_relevance(folder: &Path, rows: &[(&str, Option<f32>)]) {
    let mut writer = RelevanceWriter::create(folder.join("R.parquet"), &[]).expect("disk space");
    let row = |(id, relevance): &(&str, Option<f32>)| RelevanceRow {
        id: (*id).into(),
        class: "owl".into(),
        relevance: relevance.unwrap_or(1.0),
        probability: None,
        is_clean: relevance.is_none(),
        matched_name: None,
        best_clean: None,
        best_clean_similarity: None,
        reciprocal_neighbours: None,
    };
    writer.write(&rows.iter().map(row).collect::<Vec<_>>()).expect("disk space");
    writer.finish().expect("disk space");
}

/// The photo recipe: verified photos in a folder per class, candidates with captions in `metadata.csv`.
fn photo_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    write(path, "clean/owl/1.png", &png(1));
    write(path, "photos/1.png", &png(2));
    write(path, "photos/2.png", &png(3));
    let captions =
        b"file_name,caption,tags\n1.png,\"an owl, at night\",night\n2.png,<b>nobody's</b> cat,day\n";
    write(path, "photos/metadata.csv", captions);
    write_relevance(path, &[("owl/1.png", None), ("1.png", Some(0.75)), ("2.png", Some(0.25))]);
    folder
}

/// The data of the page's only class.
fn class_data(folder: &Path, name: &str) -> Value {
    let page = String::from_utf8(bytes(folder, name)).expect("text");
    let start = page.find("<script type=\"application/json\">").expect("data") + 32;
    let length = page[start..].find("</script>").expect("an end");
    serde_json::from_str(&page[start..start + length]).expect("JSON")
}

/// The examples of the page's only class: the list they are in, id, caption, whether they have a picture.
fn shown(folder: &Path, name: &str) -> Vec<(String, String, Option<String>, bool)> {
    let data = class_data(folder, name);
    let mut examples = Vec::new();
    for list in ["clean", "ranked"] {
        let columns = &data[list];
        for (at, id) in columns["id"].as_array().expect("ids").iter().enumerate() {
            let picture = &columns["p"][at.to_string()];
            examples.push((
                list.to_owned(),
                id.as_str().expect("a text").to_owned(),
                columns["caption"][at].as_str().map(str::to_owned),
                picture.as_str().is_some_and(|uri| uri.starts_with("data:image/")),
            ));
        }
    }
    examples
}

fn example(
    list: &str,
    id: &str,
    caption: Option<&str>,
    has_picture: bool,
) -> (String, String, Option<String>, bool) {
    (list.to_owned(), id.to_owned(), caption.map(str::to_owned), has_picture)
}

#[test]
fn clean_photos_and_captions_are_shown() {
    let folder = photo_folder();
    let folder = folder.path();
    let done = run(folder, "report R.parquet --images clean photos -o r.html").ok();
    assert!(done.err.contains("3 examples shown, 3 of them with a picture and 2 with a caption"), "{done:?}");
    assert!(!done.err.contains("warning"), "{done:?}");
    let [clean, first, second] = &shown(folder, "r.html")[..] else { panic!("three examples") };
    assert_eq!(*clean, example("clean", "owl/1.png", None, true));
    assert_eq!((&first.1[..], &first.2, first.3), ("1.png", &Some("an owl, at night".to_owned()), true));
    assert_eq!(
        (&second.1[..], &second.2, second.3),
        ("2.png", &Some("<b>nobody's</b> cat".to_owned()), true)
    );
    let page = String::from_utf8(bytes(folder, "r.html")).expect("text");
    assert!(!page.contains("<b>nobody"), "texts are not markup");
    assert!(page.contains("data-name=\"owl\""));
}

#[test]
fn pictures_in_files_are_linked_and_those_in_tars_are_not() {
    let folder = photo_folder();
    let folder = folder.path();
    shell(folder, "mkdir out && cd photos && tar cf ../shard.tar 2.png && rm 2.png").ok();
    write(folder, "photos/owl #3.png", &png(3));
    let rows = [("owl/1.png", None), ("1", Some(0.75)), ("owl #3.png", Some(0.5)), ("2", Some(0.25))];
    write_relevance(folder, &rows);
    let line = "report R.parquet --images clean photos shard.tar -o out/r.html --json";
    let done = run(folder, line).ok().json();
    assert_eq!((&done["n_pictures"], &done["n_links"]), (&4.into(), &3.into()));
    let data = class_data(folder, "out/r.html");
    // By the number of the folder where the id says the rest, else in full; the last is in the tar.
    assert_eq!(data["clean"]["to"], serde_json::json!([0]));
    assert_eq!(data["ranked"]["to"], serde_json::json!(["../photos/1.png", 1, null]));
    let page = String::from_utf8(bytes(folder, "out/r.html")).expect("text");
    assert!(page.contains("id=\"folders\">[\"../clean/\",\"../photos/\"]</script>"));
}

#[test]
fn missing_and_doubtful_pictures_are_counted_and_named() {
    let folder = photo_folder();
    let folder = folder.path();
    write_relevance(folder, &[("owl/1.png", None), ("1.png", Some(0.75)), ("9.png", Some(0.25))]);
    // `clean/owl/1.png` is not the candidate `1.png`, though it is called so too.
    let done = run(folder, "report R.parquet --images photos -o r.html").ok();
    let warning = "warning: 2 examples have no picture, 1 of them clean: `owl/1.png`, `9.png`";
    assert!(
        done.err.contains(warning) && done.err.contains("hint: ") && done.err.contains("--images"),
        "{done:?}"
    );
    let pictures = shown(folder, "r.html").into_iter().map(|(_, id, _, has_picture)| (id, has_picture));
    let expected = [("owl/1.png", false), ("1.png", true), ("9.png", false)];
    assert_eq!(pictures.collect::<Vec<_>>(), expected.map(|(id, has)| (id.to_owned(), has)));

    write(folder, "photos/owl/1.png", &png(7));
    let done = run(folder, "report R.parquet --images clean photos -o r.html").ok();
    assert!(done.err.contains("warning: 1 id matches several pictures, one of which is shown: `owl/1.png`"));
    let done = run(folder, "report R.parquet -o r.html").ok();
    assert!(!done.err.contains("warning"), "pictures were not requested: {done:?}");
}

#[test]
fn tars_parquet_files_and_tables_of_texts_are_sources_too() {
    let folder = photo_folder();
    let folder = folder.path();
    write(folder, "shard/1.txt", b"an owl in a tar\n");
    write(folder, "shard/1.png", &png(2));
    shell(folder, "cd shard && tar cf ../shard.tar 1.png 1.txt").ok();
    let texts = |texts: &[&str]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
    let images: BinaryArray = [Some(png(3)), Some(b"broken".to_vec())].into_iter().collect();
    let columns = [
        ("key", texts(&["2", "3"])),
        ("title", texts(&["in a table", "lost"])),
        ("jpg", Arc::new(images) as _),
    ];
    write_parquet(folder.join("table.parquet"), columns);
    write_relevance(folder, &[("owl/1.png", None), ("1", Some(0.75)), ("2", Some(0.5)), ("3", Some(0.25))]);
    let line = "report R.parquet --images clean shard.tar table.parquet -o r.html";
    let done = run(folder, line).ok();
    assert!(done.err.contains("warning: skipped unreadable pictures: `3` (neither"), "{done:?}");
    assert!(!done.err.contains("no picture"), "{done:?}");
    let found: Vec<_> =
        shown(folder, "r.html").into_iter().map(|(_, id, caption, _)| (id, caption)).collect();
    let pair = |id: &str, caption: Option<&str>| (id.to_owned(), caption.map(str::to_owned));
    let expected = [
        pair("owl/1.png", None),
        pair("1", Some("an owl in a tar")),
        pair("2", Some("in a table")),
        pair("3", Some("lost")),
    ];
    assert_eq!(found, expected);

    write(folder, "texts.csv", b"id,text\n1,from a file\nowl/1.png,verified\n");
    run(folder, &format!("{line} --text texts.csv")).ok();
    let found: Vec<_> = shown(folder, "r.html").into_iter().map(|(_, _, caption, _)| caption).collect();
    assert_eq!(found, [Some("verified".to_owned()), Some("from a file".to_owned()), None, None]);

    write_relevance(folder, &[("1.png", Some(0.5))]);
    let line = "report R.parquet --images clean photos -o r.html --text-column";
    run(folder, &format!("{line} tags")).ok();
    assert_eq!(shown(folder, "r.html")[0].2.as_deref(), Some("night"));
    let parts = ["metadata.csv`: columns: expected `tag`", "hint: did you mean `--text-column tags`?"];
    refuses(folder, &format!("{line} tag").replace("r.html", "s.html"), &parts);
    let parts = ["cannot open `photo`", "did you mean `photos`?"];
    refuses(folder, "report R.parquet --images clean photo -o s.html", &parts);
}
