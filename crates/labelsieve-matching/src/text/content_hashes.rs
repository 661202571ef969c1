//! Digests of photo files, which img2dataset stores along with the captions.

use std::path::Path;

use labelsieve_files::storage::input::{is_stream, open_seekable};
use labelsieve_files::{DataError, Result};

use super::folder::expand;
use super::parquet_rows::{Batches, Columns, for_each_text, read_schema};

/// The column of img2dataset and clip-retrieval.
const COLUMN: &str = "sha256";

/// The digest of every row of a Parquet file or of the metadata of a clip-retrieval folder; empty for a row without one. Returns
/// an empty list for files without the column and for other formats.
pub fn read_content_hashes(path: impl AsRef<Path>) -> Result<Vec<String>> {
    let path = path.as_ref();
    if is_stream(path) {
        let found = "a pipe";
        return Err(DataError::malformed(path, "input", "a file, since it is read twice", found));
    }
    if !path.is_dir() && path.extension().is_none_or(|extension| extension != "parquet") {
        return Ok(Vec::new());
    }
    let mut hashes = Vec::new();
    for file in expand(path)? {
        let open = || open_seekable(&file);
        if read_schema(&file, open()?)?.index_of(COLUMN).is_err() {
            return Ok(Vec::new());
        }
        let mut batches = Batches::open(&file, open()?, &Columns::only(COLUMN), &(0..u64::MAX))?;
        while let Some((_, batch)) = batches.next()? {
            for row in 0..batch.num_rows() {
                let mut hash = String::new();
                for_each_text(batch.column(0), row, &mut |text| hash.push_str(text));
                hashes.push(hash);
            }
        }
    }
    Ok(hashes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;

    use super::*;

    fn write(path: &Path, column: &str, values: &[Option<&str>]) {
        let values: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
        let batch = RecordBatch::try_from_iter([(column, values)]).unwrap();
        let file = std::fs::File::create(path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    #[test]
    fn digests_are_read_if_the_column_exists() {
        let folder = tempfile::tempdir().unwrap();
        let [with, without] = ["a.parquet", "b.parquet"].map(|name| folder.path().join(name));
        write(&with, "sha256", &[Some("aa"), None]);
        write(&without, "id", &[Some("1")]);
        assert_eq!(read_content_hashes(&with).unwrap(), ["aa", ""]);
        assert_eq!(read_content_hashes(&without).unwrap(), [""; 0]);
        assert_eq!(read_content_hashes("features.npz").unwrap(), [""; 0]);
    }
}
