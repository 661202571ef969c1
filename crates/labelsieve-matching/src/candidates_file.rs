//! Candidate files: which examples mention which class. Later stages join them with the features by id.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, StringArray};
use arrow_schema::{DataType, Field, Schema};
use labelsieve_files::tables::labels::LabelsBuilder;
use labelsieve_files::tables::parquet_write::{dictionary_column, dictionary_type};
use labelsieve_files::tables::table_read::{Kind, TableFile};
use labelsieve_files::tables::table_write::{TableFormat, TableWriter};
use labelsieve_files::{Labels, Result, Texts};

/// One example whose text mentions a class.
#[derive(Clone, Debug, PartialEq)]
pub struct CandidateRow {
    /// The example.
    pub id: String,
    /// The class that its text mentions.
    pub class: String,
    /// The name of the class as it was found.
    pub matched_name: String,
    /// The part of the text where it was found, e.g. `title`.
    pub field: String,
    /// The clean or test example that this one is a copy of, if copies were searched for.
    pub leak: Option<LeakedExample>,
}

/// A clean or test example that occurs among the candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct LeakedExample {
    /// The example.
    pub id: String,
    /// Cosine of the features of the two; 1 for the same file.
    pub similarity: f32,
}

/// Writes candidates one batch at a time; the file appears in [`CandidateWriter::finish`].
pub struct CandidateWriter {
    writer: TableWriter,
    n_keep: usize,
}

impl CandidateWriter {
    /// Starts a file that will be called `path`; its ending decides between Parquet and CSV. `metadata` is kept in a
    /// Parquet file as key-value pairs.
    pub fn create(path: impl AsRef<Path>, metadata: &[(String, String)]) -> Result<CandidateWriter> {
        CandidateWriter::create_with(path, &[], metadata)
    }

    /// As [`CandidateWriter::create`], with further text columns `keep`.
    pub fn create_with(
        path: impl AsRef<Path>,
        keep: &[String],
        metadata: &[(String, String)],
    ) -> Result<CandidateWriter> {
        let writer = TableWriter::create(path.as_ref(), schema(keep), metadata)?;
        Ok(CandidateWriter { writer, n_keep: keep.len() })
    }

    /// Writes rows to `stream` as CSV.
    pub fn to_stream(stream: Box<dyn Write + Send>, keep: &[String]) -> CandidateWriter {
        let writer = TableWriter::to_stream(stream, TableFormat::Csv, &schema(keep));
        CandidateWriter { writer, n_keep: keep.len() }
    }

    /// The columns of every candidate file.
    pub fn columns() -> Vec<&'static str> {
        COLUMNS.to_vec()
    }

    /// Adds rows.
    pub fn write(&mut self, rows: &[CandidateRow]) -> Result<()> {
        self.write_with(rows, &[])
    }

    /// Adds rows with their values of the `keep` columns. Missing values are null.
    pub fn write_with(&mut self, rows: &[CandidateRow], kept: &[Vec<Option<String>>]) -> Result<()> {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.id))),
            dictionary_column(rows.iter().map(|row| row.class.as_str())),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.matched_name))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.field))),
            Arc::new(StringArray::from_iter(rows.iter().map(|row| row.leak.as_ref().map(|leak| &leak.id)))),
            Arc::new(Float32Array::from_iter(
                rows.iter().map(|row| row.leak.as_ref().map(|leak| leak.similarity)),
            )),
        ];
        for column in 0..self.n_keep {
            let value = |row: usize| kept.get(row)?.get(column)?.as_deref();
            columns.push(Arc::new(StringArray::from_iter((0..rows.len()).map(value))));
        }
        self.writer.write(columns)
    }

    /// Adds metadata that is known only after the last row.
    pub fn add_metadata(&mut self, key: String, value: String) {
        self.writer.add_metadata(key, value);
    }

    /// Completes the file and gives it its name.
    pub fn finish(self) -> Result<()> {
        self.writer.finish()
    }
}

/// A file of candidates; all vectors have one entry per row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateTable {
    /// The file.
    pub path: PathBuf,
    /// The examples.
    pub ids: Texts,
    /// The classes that they mention.
    pub classes: Labels,
    /// The class names that were found in their texts.
    pub matched_names: Labels,
}

/// Reads a file of candidates: Parquet, or CSV by its extension.
pub fn read_candidates(path: impl AsRef<Path>) -> Result<CandidateTable> {
    let path = path.as_ref();
    let mut ids = Texts::default();
    let mut classes = LabelsBuilder::default();
    let mut matched_names = LabelsBuilder::default();
    let wanted = ["id", "class", "matched_name"].map(|name| (name, Kind::Text));
    TableFile::open(path)?.for_each_batch(&wanted, |columns| {
        let [id, class, matched_name] = columns else { unreachable!("as many columns as names") };
        id.append_texts(&mut ids)?;
        class.for_each_given_text(&mut |text| classes.push(text))?;
        matched_name.for_each_given_text(&mut |text| matched_names.push(text))
    })?;
    let classes = classes.finish();
    let matched_names = matched_names.finish();
    Ok(CandidateTable { path: path.to_path_buf(), ids, classes, matched_names })
}

const COLUMNS: [&str; 6] = ["id", "class", "matched_name", "field", "leak_of", "leak_similarity"];

fn schema(keep: &[String]) -> Schema {
    let [id, class, matched_name, field, leak_of, leak_similarity] = COLUMNS;
    let mut fields = vec![
        Field::new(id, DataType::Utf8, false),
        Field::new(class, dictionary_type(), false),
        Field::new(matched_name, DataType::Utf8, false),
        Field::new(field, DataType::Utf8, false),
        Field::new(leak_of, DataType::Utf8, true),
        Field::new(leak_similarity, DataType::Float32, true),
    ];
    fields.extend(keep.iter().map(|name| Field::new(name, DataType::Utf8, true)));
    Schema::new(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use labelsieve_files::RelevanceWriter;

    fn row(id: &str, class: &str, matched_name: &str) -> CandidateRow {
        let [id, class, matched_name, field] = [id, class, matched_name, "title"].map(str::to_owned);
        CandidateRow { id, class, matched_name, field, leak: None }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.parquet");
        let mut writer = CandidateWriter::create(&path, &[]).unwrap();
        writer.write(&[row("7", "n2", "barn owl"), row("8", "n1", "cat")]).unwrap();
        writer.write(&[]).unwrap();
        writer.write(&[row("7", "n1", "tabby")]).unwrap();
        writer.finish().unwrap();
        let table = read_candidates(&path).unwrap();
        assert_eq!(table.ids, ["7", "8", "7"]);
        assert_eq!(table.classes, ["n2", "n1", "n1"].iter().collect());
        assert_eq!(table.matched_names, ["barn owl", "cat", "tabby"].iter().collect());
    }

    #[test]
    fn columns_to_keep_come_last_and_are_ignored_by_readers() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["c.parquet", "c.csv"] {
            let path = folder.path().join(name);
            let keep = ["url".to_owned(), "note".to_owned()];
            let mut writer = CandidateWriter::create_with(&path, &keep, &[]).unwrap();
            let kept = [vec![Some("http://a".to_owned()), None], vec![None, Some("b, c".to_owned())]];
            writer.write_with(&[row("7", "n2", "owl"), row("8", "n1", "cat")], &kept).unwrap();
            writer.finish().unwrap();
            assert_eq!(read_candidates(&path).unwrap().ids, ["7", "8"], "{name}");
        }
        let text = std::fs::read_to_string(folder.path().join("c.csv")).unwrap();
        let expected = "id,class,matched_name,field,leak_of,leak_similarity,url,note\n\
                        7,n2,owl,title,,,http://a,\n8,n1,cat,title,,,,\"b, c\"\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_file_without_candidates_is_a_valid_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.parquet");
        CandidateWriter::create(&path, &[]).unwrap().finish().unwrap();
        assert_eq!(read_candidates(&path).unwrap().ids.len(), 0);
    }

    #[test]
    fn an_unfinished_file_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = CandidateWriter::create(folder.path().join("c.parquet"), &[]).unwrap();
        writer.write(&[row("7", "n2", "barn owl")]).unwrap();
        drop(writer);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn rows_without_a_matched_name_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.parquet");
        let row = labelsieve_files::RelevanceRow {
            id: "a".into(),
            class: "b".into(),
            relevance: 0.5,
            probability: None,
            is_clean: false,
            matched_name: None,
            best_clean: None,
            best_clean_similarity: None,
            reciprocal_neighbours: None,
        };
        let mut writer = RelevanceWriter::create(&path, &[]).unwrap();
        writer.write(&[row]).unwrap();
        writer.finish().unwrap();
        let error = read_candidates(&path).unwrap_err().to_string();
        assert!(error.ends_with("column `matched_name`, row 0: expected a value, found null"), "{error}");
    }
}
