//! Parquet tables, good and bad.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{
    FixedSizeListArray, Float64Array, Int64Array, LargeListArray, ListArray, RecordBatch, StringArray,
};
use half::f16;
use parquet::arrow::ArrowWriter;

use super::*;
use crate::{Ids, ScratchFolder};

fn write(path: &Path, columns: &[(&str, ArrayRef)]) {
    let batch = RecordBatch::try_from_iter(columns.iter().cloned()).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn lists(rows: &[Option<Vec<Option<f32>>>]) -> ArrayRef {
    Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows.iter().cloned()))
}

fn open(path: &Path) -> Result<ExampleTable> {
    ExampleTable::open(path, &TableColumns::default())
}

fn temporary() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    (folder, path)
}

#[test]
fn every_kind_of_list_gives_the_same_matrix() {
    let values: Vec<Option<f32>> = [1.5, -2.0, 0.25, 4.0].map(Some).to_vec();
    let rows = || values.chunks(2).map(|row| Some(row.to_vec()));
    let halves =
        rows().map(|row| row.map(|row| row.into_iter().map(|v| v.map(f16::from_f32)).collect::<Vec<_>>()));
    let doubles =
        rows().map(|row| row.map(|row| row.into_iter().map(|v| v.map(f64::from)).collect::<Vec<_>>()));
    let columns: [ArrayRef; 4] = [
        Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows())),
        Arc::new(LargeListArray::from_iter_primitive::<Float64Type, _, _>(doubles)),
        Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows(), 2)),
        Arc::new(FixedSizeListArray::from_iter_primitive::<Float16Type, _, _>(halves, 2)),
    ];
    for column in columns {
        let (folder, path) = temporary();
        let prices: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
        write(&path, &[("price", prices), ("clip", column)]);
        let scratch = ScratchFolder::new(folder.path(), 0).unwrap();
        let to_disk = |above: u64| Some(Spill { scratch: scratch.clone(), above });
        for (spill, in_memory) in [(None, 16), (to_disk(16), 16), (to_disk(15), 0)] {
            let table =
                ExampleTable::open(&path, &TableColumns { spill, ..TableColumns::default() }).unwrap();
            let mut out = [0.0; 4];
            table.features.read_rows(&[1, 0], &mut out).unwrap();
            assert_eq!(out, [0.25, 4.0, 1.5, -2.0]);
            assert_eq!(table.features.bytes_in_memory(), in_memory);
            assert_eq!((table.labels, table.ids), (None, Ids::RowNumbers(2)));
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "scratch files have no names");
    }
}

#[test]
fn labels_and_ids_are_found_by_their_usual_or_given_names() {
    let (_folder, path) = temporary();
    let embedding = lists(&[Some(vec![Some(1.0)]), Some(vec![Some(2.0)])]);
    let classes: ArrayRef = Arc::new(StringArray::from(vec!["owl", "cat"]));
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![70, 5]));
    write(&path, &[("id", ids), ("embedding", embedding), ("class", classes)]);
    let table = open(&path).unwrap();
    assert_eq!(table.labels, Some(["owl", "cat"].iter().collect()));
    assert_eq!(table.ids.get(0), "70");
    let columns = TableColumns { label: Some("id".into()), ..TableColumns::default() };
    let table = ExampleTable::open(&path, &columns).unwrap();
    assert_eq!(table.labels, Some(["70", "5"].iter().collect()));
    assert_eq!(table.ids.get(0), "70");
}

#[test]
fn many_batches_and_row_groups_are_joined_in_order() {
    let (_folder, path) = temporary();
    let rows: Vec<_> = (0..10_000).map(|i| Some(vec![Some(i as f32), Some(1.0)])).collect();
    write(&path, &[("embedding", lists(&rows))]);
    let table = open(&path).unwrap();
    let mut out = [0.0; 4];
    table.features.read_rows(&[9_999, 4_096], &mut out).unwrap();
    assert_eq!(out, [9_999.0, 1.0, 4_096.0, 1.0]);
}

#[test]
fn rows_that_do_not_form_a_matrix_are_named() {
    let good = || Some(vec![Some(1.0), Some(2.0)]);
    for (rows, message) in [
        (vec![good(), Some(vec![Some(1.0)])], "row 1: expected 2 numbers as in row 0, found 1"),
        (vec![Some(vec![])], "row 0: expected numbers, found 0"),
        (vec![good(), good(), None], "row 2: expected a value, found null"),
        (vec![good(), Some(vec![Some(1.0), None])], "row 1: expected numbers, found null"),
    ] {
        let (_folder, path) = temporary();
        write(&path, &[("embedding", lists(&rows))]);
        let error = open(&path).unwrap_err().to_string();
        assert!(error.ends_with(&format!("t.parquet`: column `embedding`, {message}")), "{error}");
    }
}

#[test]
fn a_missing_column_is_answered_with_those_present() {
    let (_folder, path) = temporary();
    let names: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    write(&path, &[("caption", names.clone()), ("url", names)]);
    let error = open(&path).unwrap_err().to_string();
    assert!(error.ends_with("exactly one list of floats, found caption, url"), "{error}");
    let columns = TableColumns { embedding: Some("caption".into()), ..TableColumns::default() };
    let error = ExampleTable::open(&path, &columns).unwrap_err().to_string();
    assert!(error.ends_with("column `caption`: expected lists of floats, found Utf8"), "{error}");
    let columns = TableColumns { embedding: Some("clip".into()), ..TableColumns::default() };
    let error = ExampleTable::open(&path, &columns).unwrap_err().to_string();
    assert!(error.ends_with("columns: expected `clip`, found caption, url"), "{error}");
}

#[test]
fn a_cut_file_is_refused_at_every_length() {
    let (_folder, path) = temporary();
    write(&path, &[("embedding", lists(&[Some(vec![Some(1.0)])]))]);
    let whole = std::fs::read(&path).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = open(&path).unwrap_err().to_string();
        let message =
            if length < 4 { ": expected a Parquet file, found" } else { " is not a readable Parquet file: " };
        assert!(error.contains(&format!("t.parquet`{message}")), "{length}: {error}");
    }
}
