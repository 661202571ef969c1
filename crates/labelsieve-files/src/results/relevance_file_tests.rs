//! Relevance files, good and bad.

use std::fs::File;

use arrow_array::{ArrayRef, RecordBatch};
use parquet::arrow::ArrowWriter;

use super::*;

fn row(id: &str, class: &str, relevance: f32) -> RelevanceRow {
    RelevanceRow {
        id: id.into(),
        class: class.into(),
        relevance,
        probability: None,
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
    let bytes = ["a.parquet", "b.parquet"].map(|name| {
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
        let message = format!("r.parquet`: row 2: expected a relevance in [0, 1], found {bad}");
        assert!(error.ends_with(&message), "{error}");
        drop(writer);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        write_table(&path, Arc::new(Float32Array::from(vec![0.5, bad])));
        let error = read_relevance(&path).unwrap_err().to_string();
        let message = format!("column `relevance`, row 1: expected a number in [0, 1], found {bad}");
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
    assert!(error.ends_with("column `relevance`: expected numbers in [0, 1], found Utf8"), "{error}");
}

#[test]
fn an_unwritable_output_fails_early() {
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

fn write_columns(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// The same table as pandas, pyarrow, polars and DuckDB write it.
#[test]
fn a_table_that_went_through_other_programs_is_read_as_it_was_meant() {
    use arrow_array::types::Int8Type;
    use arrow_array::*;
    let ids: [ArrayRef; 6] = [
        Arc::new(Int64Array::from(vec![7, 8])),
        Arc::new(Float64Array::from(vec![7.0, 8.0])),
        Arc::new(LargeStringArray::from(vec!["7", "8"])),
        Arc::new(StringViewArray::from(vec!["7", "8"])),
        Arc::new(["7", "8"].into_iter().collect::<DictionaryArray<Int8Type>>()),
        Arc::new(UInt8Array::from(vec![7, 8])),
    ];
    let relevance: [ArrayRef; 6] = [
        Arc::new(Float64Array::from(vec![1.0, 0.25])),
        Arc::new(Float16Array::from_iter_values([1.0, 0.25].map(half::f16::from_f32))),
        Arc::new(Float32Array::from(vec![1.0, 0.25])),
        Arc::new(Float64Array::from(vec![Some(1.0), Some(0.25)])),
        Arc::new(Float32Array::from(vec![1.0, 0.25])),
        Arc::new(Float32Array::from(vec![1.0, 0.25])),
    ];
    let is_clean: [Option<ArrayRef>; 6] = [
        Some(Arc::new(BooleanArray::from(vec![Some(true), None]))),
        Some(Arc::new(Float64Array::from(vec![1.0, f64::NAN]))),
        Some(Arc::new(Int8Array::from(vec![1, 0]))),
        Some(Arc::new(StringArray::from(vec!["True", "False"]))),
        Some(Arc::new(LargeStringArray::from(vec![Some("true"), None]))),
        None,
    ];
    let neighbours: [ArrayRef; 6] = [
        Arc::new(Float64Array::from(vec![f64::NAN, 12.0])),
        Arc::new(Float64Array::from(vec![None, Some(12.0)])),
        Arc::new(Int64Array::from(vec![None, Some(12)])),
        Arc::new(UInt16Array::from(vec![None, Some(12)])),
        Arc::new(Int32Array::from(vec![None, Some(12)])),
        Arc::new(Float32Array::from(vec![None, Some(12.0)])),
    ];
    let similarity: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, 0.5]));
    let nothing: ArrayRef = Arc::new(NullArray::new(2));
    let index: ArrayRef = Arc::new(Int64Array::from(vec![0, 1]));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    for i in 0..6 {
        let mut columns = vec![
            ("relevance", relevance[i].clone()),
            ("class", ids[5 - i].clone()),
            ("id", ids[i].clone()),
            ("reciprocal_neighbours", neighbours[i].clone()),
            ("best_clean_similarity", similarity.clone()),
            ("matched_name", nothing.clone()),
            ("__index_level_0__", index.clone()),
        ];
        columns.extend(is_clean[i].clone().map(|flags| ("is_clean", flags)));
        write_columns(&path, columns);
        let table = read_relevance(&path).unwrap();
        assert_eq!(table.ids, ["7", "8"], "{i}");
        assert_eq!(table.classes, ["7", "8"].iter().collect(), "{i}");
        assert_eq!(table.relevance, [1.0, 0.25], "{i}");
        assert_eq!(table.is_clean, [is_clean[i].is_some(), false], "{i}");
        let reasons = read_relevance_reasons(&path, &[0, 1]).unwrap();
        assert_eq!(reasons[0], RelevanceReasons::default(), "{i}");
        assert_eq!(
            (reasons[1].reciprocal_neighbours, reasons[1].best_clean_similarity),
            (Some(12), Some(0.5))
        );
    }
}

#[test]
fn fractions_and_invalid_flags_are_named_with_their_row() {
    use arrow_array::{Float64Array, Int64Array};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    let id: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let score: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 0.5]));
    let with = |name, column: ArrayRef| {
        write_columns(
            &path,
            vec![("id", id.clone()), ("class", id.clone()), ("relevance", score.clone()), (name, column)],
        );
    };
    with("reciprocal_neighbours", Arc::new(Float64Array::from(vec![1.0, 2.5])));
    let error = read_relevance_reasons(&path, &[1]).unwrap_err().to_string();
    let message =
        "column `reciprocal_neighbours`, row 1: expected an integer from 0 to 4294967295, found 2.5";
    assert!(error.ends_with(message), "{error}");
    with("is_clean", Arc::new(Int64Array::from(vec![0, 2])));
    let error = read_relevance(&path).unwrap_err().to_string();
    assert!(error.ends_with("column `is_clean`, row 1: expected true, false, 1 or 0, found `2`"), "{error}");
}

#[test]
fn csv_is_read_back_bit_by_bit_and_other_peoples_csv_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.csv");
    let rows: Vec<RelevanceRow> = (1..5000_u32)
        .map(|i| RelevanceRow {
            matched_name: (i % 2 == 0).then(|| format!("\"{i}\",\nowl")),
            reciprocal_neighbours: (i % 3 == 0).then_some(i),
            best_clean_similarity: Some(1.0 / i as f32),
            is_clean: i % 5 == 0,
            ..row(&format!(" {i}\r"), "a, b", 1.0 / (i as f32 + 0.1))
        })
        .collect();
    let mut writer = RelevanceWriter::create(&path, &[("lost".into(), "in CSV".into())]).unwrap();
    rows.chunks(700).for_each(|rows| writer.write(rows).unwrap());
    writer.finish().unwrap();
    let table = read_relevance(&path).unwrap();
    assert!(table.ids.iter().eq(rows.iter().map(|row| row.id.as_str())));
    assert!(table.relevance.iter().eq(rows.iter().map(|row| &row.relevance)), "to the bit");
    assert!(table.is_clean.iter().eq(rows.iter().map(|row| &row.is_clean)));
    let reasons = read_relevance_reasons(&path, &[0, 4997]).unwrap();
    for (reasons, row) in reasons.iter().zip([&rows[0], &rows[4997]]) {
        assert_eq!((&reasons.matched_name, &reasons.best_clean), (&row.matched_name, &row.best_clean));
        assert_eq!(reasons.best_clean_similarity, row.best_clean_similarity);
        assert_eq!(reasons.reciprocal_neighbours, row.reciprocal_neighbours);
    }
    // As pandas writes it: an index, True and False, 12.0, another order, a byte order mark.
    let pandas = "\u{feff},class,id,reciprocal_neighbours,is_clean,relevance\n0,owl,a,12.0,True,1\n1,owl,b,,False,0.5\n";
    std::fs::write(&path, pandas).unwrap();
    let table = read_relevance(&path).unwrap();
    assert_eq!((table.ids.len(), table.is_clean, table.relevance), (2, vec![true, false], vec![1.0, 0.5]));
    assert_eq!(read_relevance_reasons(&path, &[0]).unwrap()[0].reciprocal_neighbours, Some(12));
}

#[test]
fn mistakes_in_a_csv_are_named_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.csv");
    for (text, message) in [
        ("", "line 1: expected a header with column names, found an empty file"),
        ("id,class\n", "line 1: expected a column `relevance`, found the columns id, class"),
        ("id,class,relevance\na,owl\n", "line 2: expected 3 fields, as in the header, found 2"),
        ("id,class,relevance\na,owl,much\n", "line 2, column `relevance`: expected a number, found `much`"),
        ("id,class,relevance\na,owl,1\nb,owl,\n", "column `relevance`, row 1: expected a value, found null"),
        ("id,class,relevance\na,owl,2\n", "column `relevance`, row 0: expected a number in [0, 1], found 2"),
        (
            "id,class,relevance,is_clean\na,owl,1,maybe\n",
            "line 2, column `is_clean`: expected true, false, 1 or 0, found `maybe`",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = read_relevance(&path).unwrap_err().to_string();
        assert!(error.ends_with(message), "{error}");
    }
    std::fs::write(&path, b"id,class,relevance\na,\xff,1\n").unwrap();
    let error = read_relevance(&path).unwrap_err().to_string();
    assert!(error.ends_with("line 2: expected text in UTF-8, found other bytes"), "{error}");
}

#[test]
fn decisions_are_a_column_of_their_own_where_there_are_any() {
    let folder = tempfile::tempdir().unwrap();
    let rows = [row("a", "owl", 1.0), row("b", "owl", 0.0), row("c", "owl", 0.5)];
    let decisions = [Some(Decision::Accept), Some(Decision::Reject), None];
    let columns = OptionalColumns { decision: true, ..OptionalColumns::default() };
    for name in ["r.parquet", "r.csv"] {
        let path = folder.path().join(name);
        let mut writer = RelevanceWriter::create_with(&path, columns, &[]).unwrap();
        writer.write_decided(&rows, &decisions).unwrap();
        writer.write(&rows[..1]).unwrap();
        writer.finish().unwrap();
        let read = read_relevance(&path).unwrap();
        assert_eq!(read.decisions, Some([&decisions[..], &[None]].concat()), "{name}");
    }
    let path = folder.path().join("bad.csv");
    std::fs::write(&path, "id,class,relevance,decision\na,owl,0.5,keep\n").unwrap();
    let error = read_relevance(&path).unwrap_err().to_string();
    let expected = "column `decision`, row 0: expected `accept`, `reject`, `unsure` or nothing, found `keep`";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn probabilities_stand_beside_the_relevance_where_there_are_any() {
    let folder = tempfile::tempdir().unwrap();
    let with = |id: &str, probability| RelevanceRow { probability, ..row(id, "owl", 0.5) };
    let rows = [with("a", Some(1.0)), with("b", Some(1.0 / 3.0)), with("c", None)];
    for decision in [false, true] {
        for name in ["r.parquet", "r.csv"] {
            let path = folder.path().join(name);
            let columns = OptionalColumns { probability: true, decision };
            let mut writer = RelevanceWriter::create_with(&path, columns, &[]).unwrap();
            writer.write(&rows).unwrap();
            writer.finish().unwrap();
            let names = TableFile::open(&path).unwrap().columns();
            assert_eq!(names[..5], ["id", "class", "relevance", "probability", "is_clean"], "{name}");
            assert_eq!(names.contains(&"decision".to_owned()), decision);
            let table = read_relevance(&path).unwrap();
            assert_eq!(table.probability, Some(vec![Some(1.0), Some(1.0 / 3.0), None]), "to the bit");
            assert_eq!((table.relevance, table.is_clean), (vec![0.5; 3], vec![false; 3]));
            let reasons = read_relevance_reasons(&path, &[1]).unwrap();
            assert_eq!(reasons[0].matched_name.as_deref(), Some("barn owl"));
        }
    }
    let path = folder.path().join("without.parquet");
    let mut writer = RelevanceWriter::create(&path, &[]).unwrap();
    writer.write(&rows).unwrap();
    writer.finish().unwrap();
    assert_eq!(read_relevance(&path).unwrap().probability, None);
}

#[test]
fn an_invalid_probability_is_refused_with_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    let columns = OptionalColumns { probability: true, ..OptionalColumns::default() };
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let halves: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 0.5]));
    let with = |probability: ArrayRef| {
        let columns =
            [("id", &texts), ("class", &texts), ("relevance", &halves), ("probability", &probability)];
        write_columns(&path, columns.map(|(name, array)| (name, array.clone())).into());
        read_relevance(&path).unwrap_err().to_string()
    };
    for bad in [f32::NAN, -0.1, 1.5, f32::INFINITY] {
        let mut writer = RelevanceWriter::create_with(folder.path().join("w.parquet"), columns, &[]).unwrap();
        let wrong = RelevanceRow { probability: Some(bad), ..row("2", "owl", 0.5) };
        let error = writer.write(&[row("1", "owl", 0.5), wrong]).unwrap_err().to_string();
        assert!(error.ends_with(&format!("row 1: expected a probability in [0, 1], found {bad}")), "{error}");
        let error = with(Arc::new(Float32Array::from(vec![Some(0.5), Some(bad)])));
        let message = "column `probability`, row 1: expected a number in [0, 1], or nothing, found";
        assert!(error.ends_with(&format!("{message} {bad}")), "{error}");
    }
    let error = with(Arc::new(StringArray::from(vec!["likely", "unlikely"])));
    assert!(error.ends_with("column `probability`: expected numbers in [0, 1], found Utf8"), "{error}");
    let path = folder.path().join("r.csv");
    for (cell, message) in [
        ("nan", "column `probability`, row 0: expected a number in [0, 1], or nothing, found NaN"),
        ("2", "column `probability`, row 0: expected a number in [0, 1], or nothing, found 2"),
        ("likely", "line 2, column `probability`: expected a number, found `likely`"),
    ] {
        std::fs::write(&path, format!("id,class,relevance,probability\na,owl,0.5,{cell}\n")).unwrap();
        let error = read_relevance(&path).unwrap_err().to_string();
        assert!(error.ends_with(message), "{error}");
    }
}
