//! Tables of examples: features, and where the file has them, labels and ids.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use crate::clip_retrieval::open_clip_retrieval;
use crate::input::{is_stream, open_seekable};
use crate::parquet_table::open_parquet;
use crate::{ArrayFile, DataError, Ids, Labels, Matrix, Npz, Result};

/// The names under which features and labels are looked for in an `.npz`; the paper's release comes first.
const NPZ_NAMES: [(&str, &str); 3] = [("features_all", "labels_all"), ("features", "labels"), ("X", "y")];

/// Examples as rows; features, labels and ids have equally many.
#[derive(Debug)]
pub struct ExampleTable {
    /// The file or folder.
    pub path: PathBuf,
    /// One row of numbers per example, as stored: not normalised.
    pub features: Matrix,
    /// The class of every example, if known.
    pub labels: Option<Labels>,
    /// The name of every example.
    pub ids: Ids,
}

/// Where in a file to look. By default, under the usual names.
#[derive(Clone, Debug, Default)]
pub struct TableColumns {
    /// Parquet column of the features: `embedding`, `features`, `vector`, or the only list of floats.
    pub embedding: Option<String>,
    /// Parquet column of the class: `class` or `label`.
    pub label: Option<String>,
    /// Parquet column of the name: `id`, `key`, `uid` or `image_path`.
    pub id: Option<String>,
    /// A `.npy` of whole numbers or a text file of one label per line, which then replaces the table's own labels.
    pub labels: Option<PathBuf>,
}

impl ExampleTable {
    /// Opens `.npz`, `.npy`, `.parquet` or a folder that clip-retrieval wrote.
    pub fn open(path: impl AsRef<Path>, columns: &TableColumns) -> Result<ExampleTable> {
        let path = path.as_ref();
        let mut table = match path.is_dir() {
            true => open_clip_retrieval(path, columns)?,
            false => open_file(path, columns)?,
        };
        if let Some(labels_path) = &columns.labels {
            let labels = Labels::open(labels_path)?;
            check_count(labels_path, "labels", labels.len(), path, table.features.rows())?;
            table.labels = Some(labels);
        }
        Ok(table)
    }

    /// Puts the parts together once their row counts agree.
    pub(crate) fn new(
        path: &Path,
        features: Matrix,
        labels: Option<Labels>,
        ids: Option<Vec<String>>,
    ) -> Result<ExampleTable> {
        if let Some(labels) = &labels {
            check_count(path, "labels", labels.len(), features.path(), features.rows())?;
        }
        if let Some(ids) = &ids {
            check_count(path, "ids", ids.len(), features.path(), features.rows())?;
        }
        let ids = ids.map_or(Ids::RowNumbers(features.rows()), Ids::Given);
        Ok(ExampleTable { path: path.to_path_buf(), features, labels, ids })
    }

    /// The number of examples.
    pub fn len(&self) -> usize {
        self.features.rows()
    }

    /// Whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// By the ending of the name; a stream, which may have none, by its first bytes.
fn open_file(path: &Path, columns: &TableColumns) -> Result<ExampleTable> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
    let is_known = ["npz", "npy", "parquet"].contains(&extension);
    if !is_known && !is_stream(path) {
        let expected = ".npz, .npy, .parquet or a clip-retrieval folder";
        return Err(DataError::malformed(path, "file name", expected, format!("`.{extension}`")));
    }
    let mut file = open_seekable(path)?;
    let kind = if is_known { extension } else { kind_of(path, &mut file)? };
    match kind {
        "npz" => open_npz(path, file),
        "npy" => {
            let features = Matrix::from_array(ArrayFile::from_file(path, file)?)?;
            ExampleTable::new(path, features, None, None)
        }
        _ => open_parquet(path, file, columns),
    }
}

fn kind_of(path: &Path, file: &mut File) -> Result<&'static str> {
    let mut start = Vec::new();
    let read = file.take(6).read_to_end(&mut start).and_then(|_| file.rewind());
    read.map_err(DataError::io("read", path))?;
    match start.as_slice() {
        [b'P', b'A', b'R', b'1', ..] => Ok("parquet"),
        [b'P', b'K', ..] => Ok("npz"),
        b"\x93NUMPY" => Ok("npy"),
        [] => Err(DataError::malformed(path, "start of file", "NumPy or Parquet data", "an empty file")),
        _ => {
            let found = format!("the bytes {start:02x?}");
            Err(DataError::malformed(path, "start of file", "NumPy or Parquet data", found))
        }
    }
}

fn open_npz(path: &Path, file: File) -> Result<ExampleTable> {
    let mut archive = Npz::from_file(path, file)?;
    let Some((features, labels)) = NPZ_NAMES.into_iter().find(|(features, _)| archive.contains(features))
    else {
        let expected = "an array `features_all`, `features` or `X`";
        let found = format!("the arrays {}", archive.names().join(", "));
        return Err(DataError::malformed(path, "archive", expected, found));
    };
    let features = Matrix::from_array(archive.array(features)?)?;
    let labels = match archive.contains(labels) {
        true => Some(Labels::from_ints(&archive.array(labels)?.read_ints()?)),
        false => None,
    };
    let ids = match archive.contains("ids") {
        true => Some(archive.array("ids")?.read_ints()?.iter().map(i64::to_string).collect()),
        false => None,
    };
    ExampleTable::new(path, features, labels, ids)
}

fn check_count(path: &Path, what: &str, count: usize, features: &Path, rows: usize) -> Result<()> {
    if count == rows {
        return Ok(());
    }
    let expected = format!("{rows}, one per row of `{}`", features.display());
    Err(DataError::malformed(path, what, expected, count.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NpzWriter, write_npy_f32, write_npy_i64};

    fn open(path: &Path) -> Result<ExampleTable> {
        ExampleTable::open(path, &TableColumns::default())
    }

    #[test]
    fn the_papers_archive_opens_with_labels_and_row_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.npz");
        let writer = NpzWriter::create(&path).unwrap().f32("features_all", &[3, 2], &[1.0; 6]).unwrap();
        writer.i64("labels_all", &[3], &[10, 9, 10]).unwrap().finish().unwrap();
        let table = open(&path).unwrap();
        assert_eq!((table.len(), table.features.cols()), (3, 2));
        assert_eq!(table.labels.unwrap().names, ["9", "10"]);
        assert_eq!(table.ids, Ids::RowNumbers(3));
    }

    #[test]
    fn other_names_and_ids_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.npz");
        let writer = NpzWriter::create(&path).unwrap().f32("X", &[2, 1], &[1.0; 2]).unwrap();
        writer.i64("ids", &[2], &[77, 5]).unwrap().finish().unwrap();
        let table = open(&path).unwrap();
        assert_eq!(table.labels, None);
        assert_eq!(table.ids.get(0), "77");
    }

    #[test]
    fn labels_that_do_not_match_the_rows_are_refused_with_both_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.npz");
        let writer = NpzWriter::create(&path).unwrap().f32("features", &[3, 2], &[1.0; 6]).unwrap();
        writer.i64("labels", &[2], &[0, 1]).unwrap().finish().unwrap();
        let error = open(&path).unwrap_err().to_string();
        assert!(error.contains("train.npz`: labels: expected 3, one per row of `"), "{error}");
        assert!(error.ends_with("features.npy`, found 2"), "{error}");
    }

    #[test]
    fn an_archive_without_features_lists_what_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.npz");
        NpzWriter::create(&path).unwrap().i64("labels_all", &[2], &[0, 1]).unwrap().finish().unwrap();
        let error = open(&path).unwrap_err().to_string();
        let message = "expected an array `features_all`, `features` or `X`, found the arrays labels_all";
        assert!(error.ends_with(message), "{error}");
    }

    #[test]
    fn a_npy_takes_its_labels_from_a_second_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, ints, lines) =
            (folder.path().join("x.npy"), folder.path().join("y.npy"), folder.path().join("y.txt"));
        write_npy_f32(File::create(&path).unwrap(), &[2, 1], &[1.0; 2]).unwrap();
        write_npy_i64(File::create(&ints).unwrap(), &[2], &[4, 2]).unwrap();
        std::fs::write(&lines, "owl\nowl\ncat\n").unwrap();
        assert_eq!(open(&path).unwrap().labels, None);
        let columns = TableColumns { labels: Some(ints), ..TableColumns::default() };
        assert_eq!(ExampleTable::open(&path, &columns).unwrap().labels.unwrap().get(0), "4");
        let columns = TableColumns { labels: Some(lines), ..TableColumns::default() };
        let error = ExampleTable::open(&path, &columns).unwrap_err().to_string();
        assert!(error.contains("y.txt`: labels: expected 2, one per row of `"), "{error}");
        assert!(error.ends_with("x.npy`, found 3"), "{error}");
    }

    #[test]
    fn an_unknown_extension_is_answered_with_the_known_ones() {
        let error = open(Path::new("x.csv")).unwrap_err().to_string();
        let message = "expected .npz, .npy, .parquet or a clip-retrieval folder, found `.csv`";
        assert_eq!(error, format!("`x.csv`: file name: {message}"));
    }
}
