//! What the files are and which columns to read of them, found out before the long work starts.

use std::path::{Path, PathBuf};

use labelsieve::matching::TextEncoding;

use super::delimited::{self, Dialect};
use super::line_blocks::{LineBlocks, RowEnd};
use super::{json_lines, parquet_rows, rows, yfcc};
use crate::{ColumnRole, DataError, Result};

/// How a file stores its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// The tab-separated metadata of YFCC100M, with 23 or 25 fields.
    Yfcc,
    /// Comma-separated with a header line.
    Csv,
    /// Tab-separated with a header line.
    Tsv,
    /// One JSON object per line.
    JsonLines,
    /// Parquet; columns `key`, `status` and `caption` make it img2dataset's, whose failed downloads are skipped.
    Parquet,
}

/// What to read. By default, what the file's format and column names suggest.
#[derive(Clone, Debug, Default)]
pub struct TextColumns {
    /// The format of every file.
    pub format: Option<TextFormat>,
    /// The column of the id: `id`, `key`, `uid`, `image_path` or `file_name`.
    pub id: Option<String>,
    /// The columns to search, most telling first: all of `title`, `description`, `caption`, `text`, `tags` and
    /// `user_tags` that exist.
    pub texts: Vec<String>,
    /// How texts are written; YFCC100M is percent-encoded in any case.
    pub encoding: Option<TextEncoding>,
}

/// Files to read one after the other, with the same text columns in each.
#[derive(Debug)]
pub struct TextSource {
    pub(super) files: Vec<TextFile>,
    text_columns: Vec<String>,
}

#[derive(Debug)]
pub(super) struct TextFile {
    pub(super) path: PathBuf,
    pub(super) layout: Layout,
    pub(super) n_bytes: u64,
}

/// A format with the positions of the chosen columns.
#[derive(Clone, Debug)]
pub(super) enum Layout {
    Yfcc(Vec<usize>),
    Delimited(delimited::Fields),
    JsonLines(json_lines::Keys),
    Parquet(parquet_rows::Columns),
}

pub(super) const ID_NAMES: [&str; 5] = ["id", "key", "uid", "image_path", "file_name"];
const TEXT_NAMES: [&str; 6] = ["title", "description", "caption", "text", "tags", "user_tags"];

impl TextSource {
    /// Finds every file and looks into it. `inputs` are files, glob patterns, and folders of Parquet files, where a
    /// folder that clip-retrieval wrote stands for its metadata.
    pub fn open(inputs: &[PathBuf], columns: &TextColumns) -> Result<TextSource> {
        let mut files: Vec<TextFile> = Vec::new();
        let mut text_columns: Option<Vec<String>> = None;
        for path in inputs.iter().map(|input| expand(input)).collect::<Result<Vec<_>>>()?.concat() {
            let n_bytes = std::fs::metadata(&path).map_err(DataError::io("open", &path))?.len();
            let (layout, texts) = lay_out(&path, columns)?;
            let expected = text_columns.get_or_insert_with(|| texts.clone());
            if *expected != texts {
                let first = files.first().map_or(path.display(), |file| file.path.display());
                let expected = format!("{} as in `{first}`", expected.join(", "));
                return Err(DataError::malformed(&path, "text columns", expected, texts.join(", ")));
            }
            files.push(TextFile { path, layout, n_bytes });
        }
        Ok(TextSource { files, text_columns: text_columns.unwrap_or_default() })
    }

    /// The names of the text columns; a [`RowSink`](super::RowSink) gets positions in this list.
    pub fn text_columns(&self) -> &[String] {
        &self.text_columns
    }

    /// The files in reading order.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// The size of all files together, as stored.
    pub fn n_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.n_bytes).sum()
    }
}

/// The files that one argument stands for.
pub(super) fn expand(input: &Path) -> Result<Vec<PathBuf>> {
    if input.is_dir() { files_in(input) } else { expand_pattern(input) }
}

/// The paths that a glob pattern stands for, in order; anything else stands for itself.
pub(crate) fn expand_pattern(input: &Path) -> Result<Vec<PathBuf>> {
    let pattern = input.to_str().filter(|text| text.contains(['*', '?', '[']) && !input.exists());
    let Some(pattern) = pattern else { return Ok(vec![input.to_path_buf()]) };
    let paths =
        glob::glob(pattern).map_err(|error| DataError::malformed(input, "pattern", "a glob", error.msg))?;
    let paths = paths.collect::<std::result::Result<Vec<_>, _>>();
    let paths = paths.map_err(|error| DataError::io("read", error.path().to_path_buf())(error.into()))?;
    if paths.is_empty() {
        return Err(DataError::malformed(input, "pattern", "at least one file", "none"));
    }
    Ok(paths)
}

/// The Parquet files of a folder; numbered ones in the order of their numbers.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let metadata = folder.join("metadata");
    let folder = if metadata.is_dir() { &metadata } else { folder };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(DataError::io("read", folder))? {
        let path = entry.map_err(DataError::io("read", folder))?.path();
        if path.extension().is_some_and(|extension| extension == "parquet") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(DataError::malformed(folder, "folder", "Parquet files", "none"));
    }
    let number = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
        stem.rsplit('_').next().and_then(|number| number.parse::<u64>().ok())
    };
    files.sort_by_cached_key(|path| (number(path), path.clone()));
    Ok(files)
}

fn lay_out(path: &Path, columns: &TextColumns) -> Result<(Layout, Vec<String>)> {
    let encoding = columns.encoding.unwrap_or(TextEncoding::Plain);
    match columns.format.map_or_else(|| guess(path), Ok)? {
        TextFormat::Yfcc => lay_out_yfcc(path, columns),
        TextFormat::Csv => lay_out_delimited(path, columns, Dialect::Csv, encoding),
        TextFormat::Tsv => lay_out_delimited(path, columns, Dialect::Tsv, encoding),
        TextFormat::JsonLines => {
            let chosen = choose(path, columns, &json_lines::read_keys(path)?)?;
            let keys = json_lines::Keys { id: chosen.id, texts: chosen.texts.clone(), encoding };
            Ok((Layout::JsonLines(keys), chosen.texts))
        }
        TextFormat::Parquet => lay_out_parquet(path, columns, encoding),
    }
}

/// By the ending of the name; a file without a telling one by its first line.
fn guess(path: &Path) -> Result<TextFormat> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("").to_ascii_lowercase();
    let name = [".gz", ".bz2", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("csv") => return Ok(TextFormat::Csv),
        Some("jsonl" | "ndjson") => return Ok(TextFormat::JsonLines),
        Some("parquet") => return Ok(TextFormat::Parquet),
        _ => {}
    }
    let mut block = Vec::new();
    LineBlocks::open(path, RowEnd::Line)?.next(&mut block)?;
    let is_yfcc = rows::numbered_lines(&block).next().is_some_and(|(_, line)| yfcc::is_yfcc(line));
    match name.ends_with(".tsv") {
        _ if is_yfcc => Ok(TextFormat::Yfcc),
        true => Ok(TextFormat::Tsv),
        false => {
            let expected =
                ".csv, .tsv, .jsonl, .parquet, or lines of 23 or 25 tab-separated fields (YFCC100M)";
            Err(DataError::UnknownFormat { path: path.to_path_buf(), expected })
        }
    }
}

/// The columns of a table with names in it: CSV, TSV, JSON Lines (by its first lines) or Parquet.
pub(crate) fn column_names(path: &Path) -> Result<Vec<String>> {
    match guess(path)? {
        TextFormat::Csv => delimited::read_header(path, Dialect::Csv),
        TextFormat::Tsv => delimited::read_header(path, Dialect::Tsv),
        TextFormat::JsonLines => json_lines::read_keys(path),
        TextFormat::Yfcc => Ok(yfcc::TEXT_FIELDS.map(String::from).to_vec()),
        TextFormat::Parquet => {
            let schema = parquet_rows::read_schema(path)?;
            Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
        }
    }
}

fn lay_out_yfcc(path: &Path, columns: &TextColumns) -> Result<(Layout, Vec<String>)> {
    if let Some(id) = columns.id.as_deref().filter(|&id| id != "id" && id != "photo_id") {
        return Err(DataError::malformed(
            path,
            "id column",
            "`photo_id`, as YFCC100M has it",
            format!("`{id}`"),
        ));
    }
    let texts = match columns.texts.as_slice() {
        [] => yfcc::DEFAULT_TEXT_FIELDS.map(String::from).to_vec(),
        texts => texts.to_vec(),
    };
    let position = |name: &String| {
        yfcc::TEXT_FIELDS.iter().position(|field| field == name).ok_or_else(|| {
            DataError::malformed(path, "text column", yfcc::TEXT_FIELDS.join(", "), format!("`{name}`"))
        })
    };
    Ok((Layout::Yfcc(texts.iter().map(position).collect::<Result<_>>()?), texts))
}

fn lay_out_delimited(
    path: &Path,
    columns: &TextColumns,
    dialect: Dialect,
    encoding: TextEncoding,
) -> Result<(Layout, Vec<String>)> {
    let header = delimited::read_header(path, dialect)?;
    let chosen = choose(path, columns, &header)?;
    let positions = |names: &[String]| -> Vec<usize> {
        names.iter().filter_map(|name| header.iter().position(|column| column == name)).collect()
    };
    let fields = delimited::Fields {
        dialect,
        n_fields: header.len(),
        id: positions(std::slice::from_ref(&chosen.id))[0],
        texts: positions(&chosen.texts),
        encoding,
    };
    Ok((Layout::Delimited(fields), chosen.texts))
}

fn lay_out_parquet(
    path: &Path,
    columns: &TextColumns,
    encoding: TextEncoding,
) -> Result<(Layout, Vec<String>)> {
    let schema = parquet_rows::read_schema(path)?;
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let chosen = choose(path, columns, &names)?;
    let is_img2dataset = ["key", "status", "caption"].iter().all(|name| schema.index_of(name).is_ok());
    for name in chosen.texts.iter().chain([&chosen.id]) {
        let field = schema.fields().iter().find(|field| field.name() == name);
        if let Some(field) = field.filter(|field| !parquet_rows::is_textual(field.data_type())) {
            let place = format!("column `{name}`");
            return Err(DataError::malformed(
                path,
                place,
                "text or whole numbers",
                field.data_type().to_string(),
            ));
        }
    }
    let columns = parquet_rows::Columns {
        id: chosen.id,
        texts: chosen.texts.clone(),
        status: is_img2dataset.then(|| "status".to_string()),
        encoding,
    };
    Ok((Layout::Parquet(columns), chosen.texts))
}

struct Chosen {
    id: String,
    texts: Vec<String>,
}

/// The asked-for columns, or the usual ones among those that exist.
fn choose(path: &Path, columns: &TextColumns, names: &[String]) -> Result<Chosen> {
    let has = |name: &str| names.iter().any(|present| present == name);
    let missing = |role: ColumnRole, asked: Option<&String>, expected: String| DataError::MissingColumn {
        path: path.to_path_buf(),
        role,
        asked: asked.cloned(),
        expected,
        present: names.to_vec(),
    };
    let texts = columns.texts.iter().map(|name| (ColumnRole::Text, name));
    for (role, name) in texts.chain(columns.id.iter().map(|name| (ColumnRole::Id, name))) {
        if !has(name) {
            return Err(missing(role, Some(name), format!("`{name}`")));
        }
    }
    let id = columns.id.clone().or_else(|| ID_NAMES.into_iter().find(|name| has(name)).map(String::from));
    let id =
        id.ok_or_else(|| missing(ColumnRole::Id, None, format!("an id under {}", ID_NAMES.join(", "))))?;
    let mut texts = columns.texts.clone();
    if texts.is_empty() {
        texts = TEXT_NAMES.into_iter().filter(|name| has(name)).map(String::from).collect();
    }
    if texts.is_empty() {
        return Err(missing(ColumnRole::Text, None, format!("a text under {}", TEXT_NAMES.join(", "))));
    }
    Ok(Chosen { id, texts })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float32Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;

    use super::super::rows::tests::Notes;
    use super::super::{OnBadRow, scan};
    use super::*;

    fn write_parquet(path: &Path, columns: &[(&str, &[&str])]) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let array = |values: &[&str]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
        let columns = columns.iter().map(|(name, values)| (*name, array(values)));
        let numbers =
            Arc::new(Float32Array::from(vec![0.5; columns.clone().next().unwrap().1.len()])) as ArrayRef;
        let batch = RecordBatch::try_from_iter(columns.chain([("width", numbers)])).unwrap();
        let mut writer =
            ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    fn rows(path: &Path) -> Vec<String> {
        let source = TextSource::open(&[path.to_path_buf()], &TextColumns::default()).unwrap();
        let mut rows = Vec::new();
        let take = |notes: &mut Notes| std::mem::take(&mut notes.rows);
        let collect = |block, _| {
            rows.extend::<Vec<String>>(block);
            Ok(())
        };
        scan(&source, OnBadRow::Stop, Notes::default, take, collect).unwrap();
        rows
    }

    #[test]
    fn a_clip_retrieval_folder_is_read_in_the_order_of_its_numbers() {
        let folder = tempfile::tempdir().unwrap();
        for number in ["10", "9"] {
            let path = folder.path().join(format!("metadata/metadata_{number}.parquet"));
            write_parquet(&path, &[("image_path", &[number]), ("caption", &["a cat"])]);
        }
        assert_eq!(rows(folder.path()), ["9: 0=a cat", "10: 0=a cat"]);
    }

    #[test]
    fn failed_downloads_of_img2dataset_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let columns: [(&str, &[&str]); 3] =
            [("key", &["0", "1"]), ("caption", &["a", "b"]), ("status", &["success", "failed_to_download"])];
        write_parquet(&folder.path().join("00000.parquet"), &columns);
        assert_eq!(rows(folder.path()), ["0: 0=a"]);
    }

    #[test]
    fn columns_that_hold_no_text_and_files_that_differ_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["a.parquet", "b.parquet"].map(|name| folder.path().join(name));
        write_parquet(&first, &[("id", &["0"]), ("title", &["a"])]);
        write_parquet(&second, &[("id", &["0"]), ("caption", &["a"])]);
        let columns = TextColumns { texts: vec!["width".into()], ..TextColumns::default() };
        let error = TextSource::open(std::slice::from_ref(&first), &columns).unwrap_err().to_string();
        assert!(error.ends_with("column `width`: expected text or whole numbers, found Float32"), "{error}");
        let error = TextSource::open(&[first, second], &TextColumns::default()).unwrap_err().to_string();
        assert!(error.contains("b.parquet`: text columns: expected title as in `"), "{error}");
    }
}
