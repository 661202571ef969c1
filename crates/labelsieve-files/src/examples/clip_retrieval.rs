//! The folder that clip-retrieval writes: `img_emb/img_emb_{i}.npy` beside `metadata/metadata_{i}.parquet`, where row r
//! of one belongs to row r of the other.

use std::path::{Path, PathBuf};

use crate::examples::table::{ExampleTable, TableColumns};
use crate::tables::labels::LabelsBuilder;
use crate::tables::parquet_columns::ParquetFile;
use crate::tables::parquet_table::read_names;
use crate::{DataError, Matrix, Result};

/// Opens all parts as one table, in the order of their numbers.
pub fn open_clip_retrieval(folder: &Path, columns: &TableColumns) -> Result<ExampleTable> {
    let mut matrices = Vec::new();
    let mut labels = Some(LabelsBuilder::default());
    let mut ids = Some(Vec::new());
    for (number, features_path) in numbered_parts(folder)? {
        let matrix = Matrix::open(&features_path)?;
        let metadata_path = folder.join("metadata").join(format!("metadata_{number}.parquet"));
        let names = read_names(ParquetFile::open(&metadata_path)?, columns, None, |_| Ok(()))?;
        if names.rows != matrix.rows() {
            let expected = format!("{}, as in `{}`", matrix.rows(), features_path.display());
            return Err(DataError::malformed(metadata_path, "rows", expected, names.rows.to_string()));
        }
        matrices.push(matrix);
        // A column counts only if every part has it.
        labels = labels.zip(names.labels).map(|(mut all, part)| {
            (0..part.len()).for_each(|row| all.push(part.get(row)));
            all
        });
        ids = ids.zip(names.ids).map(|(mut all, part)| {
            all.extend(part);
            all
        });
    }
    ExampleTable::new(folder, Matrix::stack(folder, matrices)?, labels.map(LabelsBuilder::finish), ids)
}

/// The embedding files with the text of their numbers (which may be zero-padded), in numeric order.
fn numbered_parts(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let embeddings = folder.join("img_emb");
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(&embeddings).map_err(DataError::io("read", &embeddings))? {
        let path = entry.map_err(DataError::io("read", &embeddings))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let number = name.strip_prefix("img_emb_").and_then(|name| name.strip_suffix(".npy"));
        if let Some(number) = number.map(str::to_owned)
            && let Ok(position) = number.parse::<u64>()
        {
            parts.push((position, number, path));
        }
    }
    if parts.is_empty() {
        return Err(DataError::malformed(embeddings, "folder", "files `img_emb_{number}.npy`", "none"));
    }
    parts.sort();
    Ok(parts.into_iter().map(|(_, number, path)| (number, path)).collect())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;

    use super::*;
    use crate::write_npy_f32;

    fn write_part(folder: &Path, number: &str, values: &[f32], paths: &[&str]) {
        for name in ["img_emb", "metadata"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        let features = File::create(folder.join(format!("img_emb/img_emb_{number}.npy"))).unwrap();
        write_npy_f32(features, &[values.len(), 1], values).unwrap();
        let paths: ArrayRef = Arc::new(StringArray::from(paths.to_vec()));
        let batch = RecordBatch::try_from_iter([("image_path", paths)]).unwrap();
        let metadata = File::create(folder.join(format!("metadata/metadata_{number}.parquet"))).unwrap();
        let mut writer = ArrowWriter::try_new(metadata, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    fn open(folder: &Path) -> Result<ExampleTable> {
        ExampleTable::open(folder, &TableColumns::default())
    }

    #[test]
    fn parts_are_joined_in_the_order_of_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        write_part(folder.path(), "10", &[10.0], &["k"]);
        write_part(folder.path(), "9", &[9.0, 9.5], &["i", "j"]);
        let table = open(folder.path()).unwrap();
        let mut out = [0.0; 3];
        table.features.read_rows(&[0, 1, 2], &mut out).unwrap();
        assert_eq!(out, [9.0, 9.5, 10.0]);
        assert_eq!(table.ids, crate::Ids::Given(vec!["i".into(), "j".into(), "k".into()]));
        assert_eq!(table.labels, None);
    }

    #[test]
    fn row_counts_that_differ_are_refused_with_both_files_and_counts() {
        let folder = tempfile::tempdir().unwrap();
        write_part(folder.path(), "0", &[1.0, 2.0], &["a"]);
        let error = open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("metadata_0.parquet`: rows: expected 2, as in `"), "{error}");
        assert!(error.ends_with("img_emb_0.npy`, found 1"), "{error}");
    }

    #[test]
    fn a_folder_without_embeddings_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert!(open(folder.path()).unwrap_err().to_string().ends_with("found a folder without `img_emb`"));
        std::fs::create_dir(folder.path().join("img_emb")).unwrap();
        let error = open(folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("folder: expected files `img_emb_{number}.npy`, found none"), "{error}");
        write_part(folder.path(), "0", &[1.0], &["a"]);
        std::fs::remove_file(folder.path().join("metadata/metadata_0.parquet")).unwrap();
        assert!(open(folder.path()).unwrap_err().to_string().contains("metadata_0.parquet"));
    }
}
