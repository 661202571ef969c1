//! Relevance files, good and bad.

use std::fs::File;

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;

use super::*;

fn row(id: &str, class: &str, relevance: f32) -> RelevanceRow {
    RelevanceRow {
        id: id.into(),
        class: class.into(),
        relevance,
        is_clean: relevance == 1.0,
        matched_name: Some("barn owl".into()),
        best_clean: None,
        best_clean_similarity: Some(0.5),
        reciprocal_neighbours: None,
    }
}

fn write_table(path: &Path, relevance: ArrayRef) {
    let id: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let clean: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
    let columns = [("id", id.clone()), ("class", id), ("relevance", relevance), ("is_clean", clean)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn what_is_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    let metadata = [("method".to_owned(), "gcn".to_owned())];
    let mut writer = RelevanceWriter::create(&path, &metadata).unwrap();
    writer.write(&[row("1", "owl", 1.0), row("2", "owl", 0.25)]).unwrap();
    writer.write(&[row("3", "cat", 0.0)]).unwrap();
    writer.finish().unwrap();
    let table = read_relevance(&path).unwrap();
    assert_eq!(table.ids, ["1", "2", "3"]);
    assert_eq!(table.classes, ["owl", "owl", "cat"].iter().collect());
    assert_eq!(table.relevance, [1.0, 0.25, 0.0]);
    assert_eq!(table.is_clean, [true, false, false]);
    assert_eq!(table.metadata, metadata.into());
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = ["a", "b"].map(|name| {
        let path = folder.path().join(name);
        let mut writer = RelevanceWriter::create(&path, &[("k".into(), "v".into())]).unwrap();
        writer.write(&[row("1", "owl", 1.0), row("2", "cat", 0.5)]).unwrap();
        writer.finish().unwrap();
        std::fs::read(path).unwrap()
    });
    assert_eq!(bytes[0], bytes[1]);
}

#[test]
fn a_relevance_outside_its_range_is_refused_with_its_row_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    for bad in [f32::NAN, -0.1, 1.5, f32::INFINITY] {
        let mut writer = RelevanceWriter::create(&path, &[]).unwrap();
        writer.write(&[row("1", "owl", 0.5)]).unwrap();
        let error = writer.write(&[row("2", "owl", 0.5), row("3", "owl", bad)]).unwrap_err().to_string();
        let message = format!("r.parquet`: row 2: expected a relevance from 0 to 1, found {bad}");
        assert!(error.ends_with(&message), "{error}");
        drop(writer);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        write_table(&path, Arc::new(Float32Array::from(vec![0.5, bad])));
        let error = read_relevance(&path).unwrap_err().to_string();
        let message = format!("column `relevance`, row 1: expected a number from 0 to 1, found {bad}");
        assert!(error.ends_with(&message), "{error}");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_relevance_of_another_type_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    write_table(&path, Arc::new(StringArray::from(vec!["high", "low"])));
    let error = read_relevance(&path).unwrap_err().to_string();
    assert!(error.ends_with("column `relevance`: expected numbers from 0 to 1, found Utf8"), "{error}");
}

#[test]
fn an_unwritable_place_fails_at_once() {
    let error = RelevanceWriter::create("/no/such/folder/r.parquet", &[]).map(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write `/no/such/folder/r.parquet`"), "{error}");
}

#[test]
fn a_cut_file_is_refused_at_every_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    let mut writer = RelevanceWriter::create(&path, &[]).unwrap();
    writer.write(&[row("1", "owl", 0.5)]).unwrap();
    writer.finish().unwrap();
    let whole = std::fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(7).chain([whole.len() - 1]) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = read_relevance(&path).unwrap_err().to_string();
        let message =
            if length < 4 { ": expected a Parquet file, found" } else { " is not a readable Parquet file: " };
        assert!(error.contains(&format!("r.parquet`{message}")), "{length}: {error}");
    }
}

#[test]
fn reasons_are_read_for_chosen_rows_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    let mut writer = RelevanceWriter::create(&path, &[]).unwrap();
    // More rows than a batch holds, so that chosen rows lie in different ones.
    let rows: Vec<RelevanceRow> = (0..10_000)
        .map(|i| RelevanceRow {
            matched_name: (i % 2 == 0).then(|| format!("name {i}")),
            reciprocal_neighbours: Some(i),
            ..row(&i.to_string(), "owl", 0.5)
        })
        .collect();
    writer.write(&rows).unwrap();
    writer.finish().unwrap();
    let chosen = [0, 1, 4095, 4096, 9998];
    let reasons = read_relevance_reasons(&path, &chosen).unwrap();
    let names: Vec<Option<&str>> = reasons.iter().map(|reasons| reasons.matched_name.as_deref()).collect();
    assert_eq!(names, [Some("name 0"), None, None, Some("name 4096"), Some("name 9998")]);
    let counts: Vec<Option<u32>> = reasons.iter().map(|reasons| reasons.reciprocal_neighbours).collect();
    assert_eq!(counts, chosen.map(|row| Some(row as u32)));
    assert_eq!((reasons[0].best_clean.as_deref(), reasons[0].best_clean_similarity), (None, Some(0.5)));
    write_table(&path, Arc::new(Float32Array::from(vec![0.5, 0.5])));
    assert_eq!(read_relevance_reasons(&path, &[1]).unwrap(), [RelevanceReasons::default()]);
}
