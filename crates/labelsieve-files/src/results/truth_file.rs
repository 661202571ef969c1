//! Ground truth: which candidates really belong to their class.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{BooleanArray, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::tables::labels::LabelsBuilder;
use crate::tables::parquet_write::{dictionary_column, dictionary_type};
use crate::tables::table_read::{Kind, TableFile};
use crate::tables::table_write::TableWriter;
use crate::{Labels, Result, Texts};

/// A file with the columns `id`, `class` and `relevant`; all vectors have one entry per row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthTable {
    /// The file.
    pub path: PathBuf,
    /// The candidates.
    pub ids: Texts,
    /// The classes whose pools they are in.
    pub classes: Labels,
    /// Whether they belong there.
    pub relevant: Vec<bool>,
}

/// One candidate whose truth is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthRow {
    /// The candidate.
    pub id: String,
    /// The class in whose pool it is.
    pub class: String,
    /// Whether it belongs there.
    pub relevant: bool,
}

/// Writes a truth file; it appears in [`TruthWriter::finish`].
pub struct TruthWriter {
    writer: TableWriter,
}

impl TruthWriter {
    /// Starts a file that will be called `path`; its ending decides between Parquet and CSV.
    pub fn create(path: impl AsRef<Path>) -> Result<TruthWriter> {
        let schema = Schema::new(vec![
            Field::new("id", DataType::Utf8, false),
            Field::new("class", dictionary_type(), false),
            Field::new("relevant", DataType::Boolean, false),
        ]);
        Ok(TruthWriter { writer: TableWriter::create(path.as_ref(), schema, &[])? })
    }

    /// Adds rows.
    pub fn write(&mut self, rows: &[TruthRow]) -> Result<()> {
        self.writer.write(vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.id))),
            dictionary_column(rows.iter().map(|row| row.class.as_str())),
            Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.relevant)))),
        ])
    }

    /// Completes the file and gives it its name.
    pub fn finish(self) -> Result<()> {
        self.writer.finish()
    }
}

/// Reads which candidates are relevant, from Parquet or CSV: `relevant` is true or false, or 1 or 0.
pub fn read_truth(path: impl AsRef<Path>) -> Result<TruthTable> {
    let path = path.as_ref();
    let mut ids = Texts::default();
    let mut classes = LabelsBuilder::default();
    let mut relevant = Vec::new();
    let wanted = [("id", Kind::Text), ("class", Kind::Text), ("relevant", Kind::Flag)];
    TableFile::open(path)?.for_each_batch(&wanted, |columns| {
        let [id, class, truth] = columns else { unreachable!("as many columns as names") };
        id.append_texts(&mut ids)?;
        class.for_each_given_text(&mut |text| classes.push(text))?;
        truth.check_nulls()?;
        relevant.extend(truth.flags()?.into_iter().flatten());
        Ok(())
    })?;
    Ok(TruthTable { path: path.to_path_buf(), ids, classes: classes.finish(), relevant })
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array, ArrayRef, Int64Array};

    use super::*;

    fn read_with(relevant: ArrayRef) -> Result<TruthTable> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("truth.parquet");
        let fields =
            [("id", DataType::Utf8), ("class", DataType::Utf8), ("relevant", relevant.data_type().clone())];
        let schema = Schema::new(fields.map(|(name, kind)| Field::new(name, kind, false)).to_vec());
        let mut writer = TableWriter::create(&path, schema, &[]).unwrap();
        let text = |values: [&str; 2]| Arc::new(StringArray::from(values.to_vec()));
        writer.write(vec![text(["a", "b"]), text(["owl", "cat"]), relevant]).unwrap();
        writer.finish().unwrap();
        read_truth(&path)
    }

    #[test]
    fn flags_may_be_booleans_or_numbers() {
        let truth = read_with(Arc::new(BooleanArray::from(vec![true, false]))).unwrap();
        assert_eq!((truth.relevant, truth.classes.get(0)), (vec![true, false], "owl"));
        assert_eq!(read_with(Arc::new(Int64Array::from(vec![0, 1]))).unwrap().relevant, [false, true]);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("truth.parquet");
        let mut writer = TruthWriter::create(&path).unwrap();
        let row = |id: &str, relevant| TruthRow { id: id.into(), class: "owl".into(), relevant };
        writer.write(&[row("a", true)]).unwrap();
        writer.write(&[row("b", false)]).unwrap();
        writer.finish().unwrap();
        let truth = read_truth(&path).unwrap();
        assert_eq!(truth.ids, ["a", "b"]);
        assert_eq!(truth.relevant, [true, false]);
        assert_eq!(truth.classes, ["owl", "owl"].iter().collect());
    }

    #[test]
    fn anything_else_is_named_with_its_row() {
        let error = read_with(Arc::new(Int64Array::from(vec![1, 2]))).unwrap_err().to_string();
        assert!(
            error.ends_with("column `relevant`, row 1: expected true, false, 1 or 0, found `2`"),
            "{error}"
        );
    }
}
