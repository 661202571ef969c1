//! The files to read, with their formats and columns, which are determined before the long work starts.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use labelsieve_files::{DataError, Result, Unread};

use super::compression::TextInput;
use super::extent::n_to_read;
use super::folder::list;
use super::keep::KeepColumn;
use super::layout::{FileLayout, ID_NAMES, Layout, lay_out};
use super::scan_summary::DamagedFile;
use crate::names::TextEncoding;

/// The format of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum TextFormat {
    /// Tab-separated YFCC100M metadata, with 23 or 25 fields.
    Yfcc,
    /// Comma-separated with a header line.
    Csv,
    /// Tab-separated with a header line.
    Tsv,
    /// One JSON object per line.
    #[cfg_attr(feature = "clap", value(name = "jsonl"))]
    JsonLines,
    /// Parquet, including that of img2dataset, whose failed downloads are skipped.
    ///
    /// It is img2dataset's if it has the columns `key`, `status` and `caption`.
    Parquet,
}

/// The columns to read. By default, they are chosen by the format and the usual names.
#[derive(Clone, Debug, Default)]
pub struct TextColumns {
    /// The format of every file.
    pub format: Option<TextFormat>,
    /// The column of the id: `id`, `key`, `uid`, `image_path` or `file_name`.
    pub id: Option<String>,
    /// The columns to search, most descriptive first: all of `title`, `description`, `caption`, `text`, `tags` and
    /// `user_tags` that exist.
    pub texts: Vec<String>,
    /// The encoding of texts; YFCC100M is always percent-encoded.
    pub encoding: Option<TextEncoding>,
    /// Columns to copy along with candidates. At least one file must have each.
    pub keep: Vec<KeepColumn>,
}

/// Files to read one after the other, with the same text columns in each.
#[derive(Debug)]
pub struct TextSource {
    pub(super) files: Vec<TextFile>,
    /// Files that cannot be read at all.
    pub(super) damaged: Vec<UnreadableFile>,
    /// The size of all files, as stored.
    pub(super) n_bytes_listed: u64,
    text_columns: Vec<String>,
}

#[derive(Debug)]
pub(super) struct TextFile {
    pub(super) path: PathBuf,
    pub(super) layout: Layout,
    pub(super) n_bytes: Option<u64>,
    pub(super) handle: FileHandle,
    /// Where the file may be cut.
    pub(super) cuts: Cuts,
    /// Its offset in the concatenated files.
    pub(super) start: u64,
    /// The range of bytes in which the rows to read begin.
    pub(super) extent: Range<u64>,
}

/// Where a file may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cuts {
    /// At row ends, after the first row of data.
    Lines {
        /// The offset of that row.
        first_row: u64,
    },
    /// Between row groups.
    Groups,
    /// Nowhere: the file has to be read from start to end.
    Nowhere,
}

/// A file that cannot be read at all.
#[derive(Debug)]
pub(super) struct UnreadableFile {
    pub(super) file: DamagedFile,
    /// Its offset in the concatenated files.
    pub(super) start: u64,
}

/// The input that stays open between inspecting a file and reading it.
pub(super) enum FileHandle {
    /// None: the file can be opened again.
    OnDisk,
    /// A stream, with the bytes read so far put back; taken by its first reader.
    Stream(Box<Mutex<Option<TextInput>>>),
    /// A copy of a stream whose format needs random access.
    Copy(File),
}

impl fmt::Debug for FileHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileHandle::OnDisk => "OnDisk",
            FileHandle::Stream(_) => "Stream",
            FileHandle::Copy(_) => "Copy",
        })
    }
}

impl TextSource {
    /// Finds and inspects every file. `inputs` are files, pipes, `-` for standard input, glob patterns, and folders: of Parquet
    /// files, of clip-retrieval, whose metadata is read, or of images with a `metadata.csv`, `.jsonl` or `.parquet`, where the id
    /// of an image is its `file_name`.
    ///
    /// A damaged file among others is set aside; [`scan`](super::scan) reports it.
    pub fn open(inputs: &[PathBuf], columns: &TextColumns) -> Result<TextSource> {
        let mut files: Vec<TextFile> = Vec::new();
        let mut damaged = Vec::new();
        let mut first_error = None;
        let mut text_columns: Option<Vec<String>> = None;
        let mut start = 0;
        let mut keeps = KeepCheck::default();
        for input in inputs {
            for file in list(input)? {
                let path = file.path;
                let id_names = file.id.as_ref().map_or(&ID_NAMES[..], std::slice::from_ref);
                let layout = match lay_out(&path, columns, id_names) {
                    Ok(layout) => layout,
                    Err(error) => {
                        let n_bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
                        let unread = Unread::Bytes { n: n_bytes, of: n_bytes };
                        let Some(file) = DamagedFile::from_error(&error, unread) else { return Err(error) };
                        damaged.push(UnreadableFile { file, start });
                        first_error.get_or_insert(error);
                        start += n_bytes;
                        continue;
                    }
                };
                let FileLayout { layout, names, texts, handle, n_bytes, cuts } = layout;
                let expected = text_columns.get_or_insert_with(|| texts.clone());
                if *expected != texts {
                    let first = files.first().map_or(path.display(), |file| file.path.display());
                    let expected = format!("{} as in `{first}`", expected.join(", "));
                    return Err(DataError::malformed(&path, "text columns", expected, texts.join(", ")));
                }
                keeps.add(&columns.keep, names, &texts);
                files.push(TextFile { path, layout, n_bytes, handle, cuts, start, extent: 0..u64::MAX });
                start += n_bytes.unwrap_or(0);
            }
        }
        if files.is_empty()
            && let Some(error) = first_error
        {
            return Err(error);
        }
        keeps.check(&columns.keep, &files)?;
        let text_columns = text_columns.unwrap_or_default();
        Ok(TextSource { files, damaged, n_bytes_listed: start, text_columns })
    }

    /// The names of the text columns; a [`RowSink`](super::RowSink) gets positions in this list.
    pub fn text_columns(&self) -> &[String] {
        &self.text_columns
    }

    /// The files in reading order, followed by unreadable ones.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let damaged = self.damaged.iter().map(|aside| aside.file.path.as_path());
        self.files.iter().map(|file| file.path.as_path()).chain(damaged)
    }

    /// The number of stored bytes to read; unknown if one of the files is a stream.
    pub fn n_bytes(&self) -> Option<u64> {
        self.files.iter().map(TextFile::n_to_read).sum()
    }
}

/// Checks that every column to keep exists in some file.
#[derive(Default)]
struct KeepCheck {
    found: Vec<usize>,
    /// All columns of all files.
    names: Vec<String>,
}

impl KeepCheck {
    fn add(&mut self, keep: &[KeepColumn], names: Vec<String>, texts: &[String]) {
        let has = |column: &KeepColumn| column.find(&names, texts).is_some();
        self.found.extend(keep.iter().enumerate().filter(|(_, column)| has(column)).map(|(at, _)| at));
        for name in names {
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
    }

    fn check(self, keep: &[KeepColumn], files: &[TextFile]) -> Result<()> {
        let Some(at) = (0..keep.len()).find(|at| !self.found.contains(at)) else { return Ok(()) };
        let path = files.first().map(|file| file.path.clone()).unwrap_or_default();
        Err(keep[at].missing(path, self.names))
    }
}

impl TextFile {
    /// The number of stored bytes to read; unknown for a stream.
    pub(super) fn n_to_read(&self) -> Option<u64> {
        let n_bytes = self.n_bytes?;
        let extent = self.extent.start..self.extent.end.min(n_bytes);
        Some(match (self.cuts, self.layout.row_end()) {
            (Cuts::Nowhere, _) => n_bytes,
            (Cuts::Lines { .. }, Some(row_end)) => n_to_read(row_end, &extent),
            _ => extent.end - extent.start,
        })
    }
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
        let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
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
        assert!(error.ends_with("column `width`: expected text or integers, found Float32"), "{error}");
        let error = TextSource::open(&[first, second], &TextColumns::default()).unwrap_err().to_string();
        assert!(error.contains("b.parquet`: text columns: expected title as in `"), "{error}");
    }
}
