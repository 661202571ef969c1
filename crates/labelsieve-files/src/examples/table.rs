//! Tables of examples: features, and where the file has them, labels and ids.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use crate::examples::clip_retrieval::open_clip_retrieval;
use crate::storage::input::{is_stream, open_seekable};
use crate::tables::ids_table::{ids_table_of, read_ids_table};
use crate::tables::parquet_table::open_parquet;
use crate::{
    ArrayFile, DataError, Dtype, ExpectedFile, FileKind, Ids, Labels, Matrix, Npz, Result, ScratchFolder,
};

/// The names of features and labels in an `.npz`, in the order in which they are tried; the paper's release comes first.
const NPZ_NAMES: [(&str, &str); 3] = [("features_all", "labels_all"), ("features", "labels"), ("X", "y")];

/// The member of an `.npz` with the fingerprint of the network, as UTF-8 bytes.
pub const NETWORK_MEMBER: &str = "network";
/// The metadata key of the same in Parquet files: of features, and of results computed from them.
pub const NETWORK_KEY: &str = "labelsieve.network";

/// Examples as rows; features, labels and ids have the same number of rows.
#[derive(Debug)]
pub struct ExampleTable {
    /// The file or folder.
    pub path: PathBuf,
    /// One row of numbers per example, as stored: not normalised.
    pub features: Matrix,
    /// The class of every example, if known.
    pub labels: Option<Labels>,
    /// The id of every example.
    pub ids: Ids,
    /// The fingerprint of the network that computed the features (name and digest), where the file has it.
    pub network: Option<String>,
    /// The table beside a `.npz` or `.npy` that ids, classes or network came from.
    pub ids_table: Option<PathBuf>,
}

/// The columns to read. By default, those with the usual names.
#[derive(Clone, Debug, Default)]
pub struct TableColumns {
    /// Parquet column of the features: `embedding`, `features`, `vector`, or the only list of floats.
    pub embedding: Option<String>,
    /// Parquet column of the class: `class` or `label`.
    pub label: Option<String>,
    /// Parquet column of the id: `id`, `key`, `uid` or `image_path`.
    pub id: Option<String>,
    /// A `.npy` of integers or a text file with one label per line, which replaces the table's own labels.
    pub labels: Option<PathBuf>,
    /// Where to store the features of a Parquet file; by default, in memory.
    pub spill: Option<Spill>,
}

/// Temporary storage for features that do not fit in memory.
#[derive(Clone, Debug)]
pub struct Spill {
    /// The folder.
    pub scratch: ScratchFolder,
    /// Features of more bytes are stored there.
    pub above: u64,
}

impl ExampleTable {
    /// Opens `.npz`, `.npy`, `.parquet` or a clip-retrieval folder.
    pub fn open(path: impl AsRef<Path>, columns: &TableColumns) -> Result<ExampleTable> {
        let path = path.as_ref();
        let mut table = if !path.is_dir() {
            open_file(path, columns)?
        } else if path.join("img_emb").is_dir() {
            open_clip_retrieval(path, columns)?
        } else {
            return Err(not_features(path, "no ending"));
        };
        if let Some(labels_path) = &columns.labels {
            let labels = Labels::open(labels_path)?;
            check_count(labels_path, "labels", labels.len(), path, table.features.rows())?;
            table.labels = Some(labels);
        }
        Ok(table)
    }

    /// Checks that all parts have the same number of rows.
    pub fn new(
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
        let path = path.to_path_buf();
        Ok(ExampleTable { path, features, labels, ids, network: None, ids_table: None })
    }

    /// Adds ids, classes and network from the table beside the file, if there is one, where the file itself lacks them.
    fn with_ids_table(mut self) -> Result<ExampleTable> {
        let Some(table) = read_ids_table(&self.path)? else { return Ok(self) };
        let path = ids_table_of(&self.path);
        check_count(&path, "rows", table.ids.len(), &self.path, self.features.rows())?;
        if let Ids::RowNumbers(_) = self.ids {
            self.ids = Ids::Given(table.ids);
        }
        self.labels = self.labels.or(table.labels);
        self.network = self.network.or(table.network);
        self.ids_table = Some(path);
        Ok(self)
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

/// The error for a file without one of the extensions of features.
fn not_features(path: &Path, extension: &str) -> DataError {
    match FileKind::of(path) {
        Some(found) => {
            DataError::WrongKind { path: path.to_path_buf(), wanted: ExpectedFile::Features, found }
        }
        None => DataError::malformed(
            path,
            "file name",
            ExpectedFile::Features.to_string(),
            format!("`.{extension}`"),
        ),
    }
}

/// Opens a file by its extension, or a stream without one by its first bytes.
fn open_file(path: &Path, columns: &TableColumns) -> Result<ExampleTable> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
    let is_known = ["npz", "npy", "parquet"].contains(&extension);
    if !is_known && !is_stream(path) {
        std::fs::metadata(path).map_err(DataError::io("open", path))?;
        return Err(not_features(path, extension));
    }
    let mut file = open_seekable(path)?;
    let kind = if is_known { extension } else { kind_of(path, &mut file)? };
    let other_kind = || DataError::unless_other_kind(path, ExpectedFile::Features);
    match kind {
        "npz" => open_npz(path, file).map_err(other_kind())?.with_ids_table(),
        "npy" => {
            let array = ArrayFile::from_file(path, file).and_then(Matrix::from_array);
            ExampleTable::new(path, array.map_err(other_kind())?, None, None)?.with_ids_table()
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
    let labels = if archive.contains(labels) {
        Some(Labels::from_ints(&archive.array(labels)?.read_ints()?))
    } else {
        None
    };
    let ids = if archive.contains("ids") {
        Some(archive.array("ids")?.read_ints()?.iter().map(i64::to_string).collect())
    } else {
        None
    };
    let mut table = ExampleTable::new(path, features, labels, ids)?;
    if archive.contains(NETWORK_MEMBER) {
        table.network = read_text(&archive.array(NETWORK_MEMBER)?)?;
    }
    Ok(table)
}

/// The text in an array of bytes; `None` if the array is empty or does not contain UTF-8.
fn read_text(array: &ArrayFile) -> Result<Option<String>> {
    const MAX_BYTES: usize = 1000; // a name and a digest; anything longer is not ours
    if array.header().dtype != Dtype::U8 || !(1..=MAX_BYTES).contains(&array.header().len()) {
        return Ok(None);
    }
    let bytes: Vec<u8> = array.read_ints()?.into_iter().map(|byte| byte as u8).collect();
    Ok(String::from_utf8(bytes).ok())
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
    fn an_npy_takes_its_labels_from_a_second_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let ints = folder.path().join("y.npy");
        let lines = folder.path().join("y.txt");
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
    fn ids_and_classes_come_from_the_table_beside_the_numbers() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["x.npz", "x.npy"] {
            let path = folder.path().join(name);
            if name == "x.npz" {
                let writer = NpzWriter::create(&path).unwrap().f32("X", &[2, 1], &[1.0; 2]).unwrap();
                writer.finish().unwrap();
            } else {
                write_npy_f32(File::create(&path).unwrap(), &[2, 1], &[1.0; 2]).unwrap();
            }
            std::fs::write(ids_table_of(&path), "id,class\n\"a,b\",owl\nc,cat\n").unwrap();
            let table = open(&path).unwrap();
            assert_eq!(table.ids, Ids::Given(vec!["a,b".into(), "c".into()]));
            assert_eq!(table.labels, Some(["owl", "cat"].iter().collect()));
            assert_eq!(table.ids_table, Some(ids_table_of(&path)));

            let lines = folder.path().join("y.txt");
            std::fs::write(&lines, "1\n2\n").unwrap();
            let columns = TableColumns { labels: Some(lines), ..TableColumns::default() };
            let own = ExampleTable::open(&path, &columns).unwrap();
            assert_eq!(own.labels, Some(["1", "2"].iter().collect()), "labels given apart win");
            assert_eq!(own.ids.get(1), "c");

            std::fs::write(ids_table_of(&path), "id,class\na,owl\n").unwrap();
            let error = open(&path).unwrap_err().to_string();
            assert!(
                error.contains(&format!("{name}.ids.csv`: rows: expected 2, one per row of `")),
                "{error}"
            );
            assert!(error.ends_with(&format!("{name}`, found 1")), "{error}");
        }
    }

    #[test]
    fn an_unknown_extension_is_answered_with_the_known_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        assert!(matches!(open(&path), Err(DataError::Io { .. })), "missing file");
        std::fs::write(&path, "1,2\n").unwrap();
        let error = open(&path).unwrap_err().to_string();
        let message =
            "expected features (.npz, .npy, .parquet or a clip-retrieval folder), found a text file";
        assert!(error.ends_with(message), "{error}");
        std::fs::write(&path, [0, 1]).unwrap();
        assert!(open(&path).unwrap_err().to_string().ends_with("clip-retrieval folder), found `.csv`"));
    }
}
