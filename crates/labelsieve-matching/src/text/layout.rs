//! Detecting the format of a file and choosing the columns to read.

use std::fs::File;
use std::path::Path;

use arrow_schema::DataType;
use labelsieve_files::storage::input::open_seekable;
use labelsieve_files::{ColumnRole, DataError, Result};

use super::compression::TextInput;
use super::delimited::{self, Dialect};
use super::keep::{KeepColumn, KeepName};
use super::line_blocks::{LineBlocks, RowEnd};
use super::source::{Cuts, FileHandle, TextColumns, TextFormat};
use super::{cell_text, json_lines, parquet_rows, rows, yfcc};
use crate::names::TextEncoding;

/// A format with the positions of the chosen columns.
#[derive(Clone, Debug)]
pub(super) enum Layout {
    Yfcc(yfcc::Fields),
    Delimited(delimited::Fields),
    JsonLines(json_lines::Keys),
    Parquet(parquet_rows::Columns),
}

/// The result of inspecting a file.
pub(super) struct FileLayout {
    pub(super) layout: Layout,
    /// The names of all columns.
    pub(super) names: Vec<String>,
    /// The names of the text columns.
    pub(super) texts: Vec<String>,
    pub(super) handle: FileHandle,
    /// The size of the file as stored; unknown for a stream.
    pub(super) n_bytes: Option<u64>,
    pub(super) cuts: Cuts,
}

impl Layout {
    /// Where rows may end; `None` for Parquet, which has no lines.
    pub(super) fn row_end(&self) -> Option<RowEnd> {
        match self {
            Layout::Parquet(_) => None,
            Layout::Delimited(fields) => Some(fields.dialect.row_end()),
            Layout::Yfcc(_) | Layout::JsonLines(_) => Some(RowEnd::Line),
        }
    }
}

pub(super) const ID_NAMES: [&str; 5] = ["id", "key", "uid", "image_path", "file_name"];
const TEXT_NAMES: [&str; 6] = ["title", "description", "caption", "text", "tags", "user_tags"];

/// Inspects a file. Bytes read from a stream are put back.
pub(super) fn lay_out(path: &Path, columns: &TextColumns, id_names: &[&str]) -> Result<FileLayout> {
    let wanted = ColumnRequest { path, columns, id_names };
    let rows = FirstRows::open(path, columns)?;
    let LayoutChoice { layout, names, texts } = match &rows.format {
        DetectedFormat::Parquet(file) => {
            wanted.parquet(file.try_clone().map_err(DataError::io("read", path))?)?
        }
        DetectedFormat::Yfcc => wanted.yfcc()?,
        DetectedFormat::Delimited(dialect) => wanted.delimited(&rows.block, *dialect)?,
        DetectedFormat::JsonLines => wanted.json_lines(json_lines::read_keys(&rows.block))?,
    };
    let n_bytes = rows.n_bytes();
    let cuts = rows.cuts();
    Ok(FileLayout { layout, names, texts, handle: rows.into_handle(), n_bytes, cuts })
}

/// The column names of CSV, TSV, JSON Lines (from its first lines) or Parquet.
pub fn column_names(path: &Path) -> Result<Vec<String>> {
    let rows = FirstRows::open(path, &TextColumns::default())?;
    match rows.format {
        DetectedFormat::Delimited(dialect) => delimited::read_header(path, &rows.block, dialect),
        DetectedFormat::JsonLines => Ok(json_lines::read_keys(&rows.block)),
        DetectedFormat::Yfcc => Ok(yfcc::TEXT_FIELDS.map(String::from).to_vec()),
        DetectedFormat::Parquet(file) => {
            let schema = parquet_rows::read_schema(path, file)?;
            Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
        }
    }
}

/// A file with its detected format and its first rows.
struct FirstRows {
    format: DetectedFormat,
    block: Vec<u8>,
    /// The input including these rows; `None` for Parquet.
    input: Option<TextInput>,
    is_stream: bool,
}

enum DetectedFormat {
    Yfcc,
    Delimited(Dialect),
    JsonLines,
    /// With random access: the file itself or a copy of a stream.
    Parquet(File),
}

impl FirstRows {
    fn open(path: &Path, columns: &TextColumns) -> Result<FirstRows> {
        let named = columns.format.or_else(|| by_name(path));
        if named == Some(TextFormat::Parquet) {
            let is_stream = labelsieve_files::is_stream(path);
            return Ok(FirstRows::parquet(open_seekable(path)?, is_stream));
        }
        let input = TextInput::open(path)?;
        let is_stream = input.len().is_none();
        let (format, input) = match named {
            Some(format) => (format, input),
            None => by_content(input, columns)?,
        };
        let (format, row_end) = match format {
            TextFormat::Parquet if is_stream => return Ok(FirstRows::parquet(input.into_file()?, is_stream)),
            TextFormat::Parquet => return Ok(FirstRows::parquet(open_seekable(path)?, is_stream)),
            TextFormat::Yfcc => (DetectedFormat::Yfcc, RowEnd::Line),
            TextFormat::JsonLines => (DetectedFormat::JsonLines, RowEnd::Line),
            TextFormat::Csv => (DetectedFormat::Delimited(Dialect::Csv), Dialect::Csv.row_end()),
            TextFormat::Tsv => (DetectedFormat::Delimited(Dialect::Tsv), Dialect::Tsv.row_end()),
        };
        let (block, input) = LineBlocks::first_rows(input, row_end)?;
        Ok(FirstRows { format, block, input: Some(input), is_stream })
    }

    fn parquet(file: File, is_stream: bool) -> FirstRows {
        FirstRows { format: DetectedFormat::Parquet(file), block: Vec::new(), input: None, is_stream }
    }

    fn n_bytes(&self) -> Option<u64> {
        match (&self.format, &self.input) {
            (DetectedFormat::Parquet(file), _) => file.metadata().ok().map(|metadata| metadata.len()),
            (_, input) => input.as_ref().and_then(TextInput::len),
        }
    }

    fn cuts(&self) -> Cuts {
        match &self.input {
            None => Cuts::Groups,
            Some(input) if self.is_stream || input.is_compressed() => Cuts::Nowhere,
            Some(input) => {
                let n_header = match self.format {
                    DetectedFormat::Delimited(dialect) => delimited::header_len(&self.block, dialect),
                    _ => 0,
                };
                Cuts::Lines { first_row: input.n_mark() + n_header }
            }
        }
    }

    /// Files are opened again when they are read: there may be more of them than can be open at once.
    fn into_handle(self) -> FileHandle {
        match (self.format, self.input) {
            _ if !self.is_stream => FileHandle::OnDisk,
            (DetectedFormat::Parquet(file), _) => FileHandle::Copy(file),
            (_, input) => FileHandle::Stream(Box::new(std::sync::Mutex::new(input))),
        }
    }
}

/// The format by the extension, if it is known.
fn by_name(path: &Path) -> Option<TextFormat> {
    match extension(path)?.as_str() {
        "csv" => Some(TextFormat::Csv),
        "jsonl" | "ndjson" => Some(TextFormat::JsonLines),
        "parquet" => Some(TextFormat::Parquet),
        _ => None,
    }
}

/// The extension in lower case, without that of a compression.
fn extension(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = [".gz", ".bz2", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    name.rsplit_once('.').map(|(_, extension)| extension.to_string())
}

/// The format by the first bytes and the first line.
fn by_content(input: TextInput, columns: &TextColumns) -> Result<(TextFormat, TextInput)> {
    if input.starts_with(b"PAR1") {
        return Ok((TextFormat::Parquet, input));
    }
    let (block, input) = LineBlocks::first_rows(input, RowEnd::Line)?;
    let path = input.path();
    let Some((_, line)) = rows::numbered_lines(&block).next() else {
        return Err(DataError::malformed(path, "input", "rows of text", "an empty file"));
    };
    let has_known_column = |dialect| {
        let known = |name: &String| {
            let usual = ID_NAMES.iter().chain(&TEXT_NAMES).any(|usual| usual == name);
            usual || columns.id.as_ref() == Some(name) || columns.texts.contains(name)
        };
        delimited::read_header(path, line, dialect).is_ok_and(|names| names.iter().any(known))
    };
    if yfcc::is_yfcc(line) {
        Ok((TextFormat::Yfcc, input))
    } else if extension(path).as_deref() == Some("tsv") {
        Ok((TextFormat::Tsv, input))
    } else if line.starts_with(b"{") {
        Ok((TextFormat::JsonLines, input))
    } else if line.contains(&b'\t') && has_known_column(Dialect::Tsv) {
        Ok((TextFormat::Tsv, input))
    } else if has_known_column(Dialect::Csv) {
        Ok((TextFormat::Csv, input))
    } else {
        let expected = ".csv, .tsv, .jsonl, .parquet, or lines of 23 or 25 tab-separated fields (YFCC100M)";
        Err(DataError::UnknownFormat { path: path.to_path_buf(), expected })
    }
}

/// The requested columns of a file.
struct ColumnRequest<'a> {
    path: &'a Path,
    columns: &'a TextColumns,
    id_names: &'a [&'a str],
}

/// The layout for the requested columns.
struct LayoutChoice {
    layout: Layout,
    names: Vec<String>,
    texts: Vec<String>,
}

/// The names of the chosen columns.
struct ChosenColumns {
    id: String,
    texts: Vec<String>,
    /// One for each column to keep, if the file has it.
    keep: Vec<Option<KeepName>>,
}

impl ColumnRequest<'_> {
    fn encoding(&self) -> TextEncoding {
        self.columns.encoding.unwrap_or(TextEncoding::Plain)
    }

    fn yfcc(&self) -> Result<LayoutChoice> {
        if let Some(id) = self.columns.id.as_ref().filter(|&id| id != "id" && id != "photo_id") {
            return Err(self.unknown(ColumnRole::Id, id, &["photo_id".to_string()]));
        }
        let texts = match self.columns.texts.as_slice() {
            [] => yfcc::DEFAULT_TEXT_FIELDS.map(String::from).to_vec(),
            texts => texts.to_vec(),
        };
        let position = |name: &String| {
            let position = yfcc::TEXT_FIELDS.iter().position(|field| field == name);
            position.ok_or_else(|| self.unknown(ColumnRole::Text, name, &yfcc::TEXT_FIELDS.map(String::from)))
        };
        let names = yfcc::names_like(&self.columns.keep);
        let field = |column: &KeepColumn| column.find(&names, &texts).and_then(|name| yfcc::field(name));
        let fields = yfcc::Fields {
            texts: texts.iter().map(position).collect::<Result<_>>()?,
            keep: self.columns.keep.iter().map(field).collect(),
        };
        Ok(LayoutChoice { layout: Layout::Yfcc(fields), names, texts })
    }

    fn json_lines(&self, names: Vec<String>) -> Result<LayoutChoice> {
        let ChosenColumns { id, texts, keep } = self.choose(&names)?;
        let keys = json_lines::Keys { id, texts: texts.clone(), encoding: self.encoding(), keep };
        Ok(LayoutChoice { layout: Layout::JsonLines(keys), names, texts })
    }

    fn delimited(&self, block: &[u8], dialect: Dialect) -> Result<LayoutChoice> {
        let header = delimited::read_header(self.path, block, dialect)?;
        let chosen = self.choose(&header)?;
        let positions = |names: &[String]| -> Vec<usize> {
            names.iter().filter_map(|name| header.iter().position(|column| column == name)).collect()
        };
        let position =
            |keep: &KeepName| Some((header.iter().position(|column| *column == keep.name)?, keep.encoding));
        let fields = delimited::Fields {
            dialect,
            n_fields: header.len(),
            id: positions(std::slice::from_ref(&chosen.id))[0],
            texts: positions(&chosen.texts),
            encoding: self.encoding(),
            keep: chosen.keep.iter().map(|keep| position(keep.as_ref()?)).collect(),
        };
        Ok(LayoutChoice { layout: Layout::Delimited(fields), texts: chosen.texts, names: header })
    }

    fn parquet(&self, file: File) -> Result<LayoutChoice> {
        let path = self.path;
        let schema = parquet_rows::read_schema(path, file)?;
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let chosen = self.choose(&names)?;
        let is_img2dataset = ["key", "status", "caption"].iter().all(|name| schema.index_of(name).is_ok());
        let check = |name: &String, expected: &str, fits: fn(&DataType) -> bool| {
            let field = schema.fields().iter().find(|field| field.name() == name);
            match field.filter(|field| !fits(field.data_type())) {
                None => Ok(()),
                Some(field) => {
                    let place = format!("column `{name}`");
                    let found = field.data_type().to_string();
                    Err(DataError::malformed(path, place, expected, found))
                }
            }
        };
        for name in chosen.texts.iter().chain([&chosen.id]) {
            check(name, "text or integers", parquet_rows::is_textual)?;
        }
        for keep in chosen.keep.iter().flatten() {
            check(&keep.name, "text, numbers, dates or lists of these", cell_text::has_text_form)?;
        }
        let columns = parquet_rows::Columns {
            id: chosen.id,
            texts: chosen.texts.clone(),
            status: is_img2dataset.then(|| "status".to_string()),
            encoding: self.encoding(),
            keep: chosen.keep,
        };
        Ok(LayoutChoice { layout: Layout::Parquet(columns), texts: chosen.texts, names })
    }

    /// Chooses the requested columns, or else those with the usual names.
    fn choose(&self, names: &[String]) -> Result<ChosenColumns> {
        let has = |name: &str| names.iter().any(|present| present == name);
        if let Some(name) = self.columns.texts.iter().find(|name| !has(name)) {
            return Err(self.unknown(ColumnRole::Text, name, names));
        }
        if let Some(name) = self.columns.id.as_ref().filter(|name| !has(name)) {
            return Err(self.unknown(ColumnRole::Id, name, names));
        }
        let usual = || self.id_names.iter().find(|name| has(name)).map(|name| name.to_string());
        let id = self.columns.id.clone().or_else(usual);
        let id = id.ok_or_else(|| self.missing(ColumnRole::Id, self.id_names, names))?;
        let mut texts = self.columns.texts.clone();
        if texts.is_empty() {
            texts = TEXT_NAMES.into_iter().filter(|name| has(name)).map(String::from).collect();
        }
        if texts.is_empty() {
            return Err(self.missing(ColumnRole::Text, &TEXT_NAMES, names));
        }
        let keep = |column: &KeepColumn| {
            let name = column.find(names, &texts)?.clone();
            let encoding = if texts.contains(&name) { self.encoding() } else { TextEncoding::Plain };
            Some(KeepName { name, encoding })
        };
        let keep = self.columns.keep.iter().map(keep).collect();
        Ok(ChosenColumns { id, texts, keep })
    }

    /// The error for a requested column that does not exist.
    fn unknown(&self, role: ColumnRole, asked: &str, columns: &[String]) -> DataError {
        DataError::MissingColumn {
            path: self.path.to_path_buf(),
            role,
            asked: Some(asked.to_owned()),
            expected: format!("`{asked}`"),
            present: columns.to_vec(),
        }
    }

    /// The error for a file without any of the usual columns.
    fn missing(&self, role: ColumnRole, usual: &[&str], columns: &[String]) -> DataError {
        let what = if role == ColumnRole::Id { "an id" } else { "a text" };
        DataError::MissingColumn {
            path: self.path.to_path_buf(),
            role,
            asked: None,
            expected: format!("{what} under {}", usual.join(", ")),
            present: columns.to_vec(),
        }
    }
}
