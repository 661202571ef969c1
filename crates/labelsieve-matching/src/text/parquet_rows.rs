//! Parquet files with text columns, among them the metadata of img2dataset and clip-retrieval.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use labelsieve_files::tables::parquet_columns::guarded;
use labelsieve_files::{DataError, ExpectedFile, Result};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};

use super::cell_text::cell_text;
use super::keep::KeepName;
use super::rows::{BadRow, RowSink, Tally};
use crate::names::TextEncoding;

/// The names of the columns to read.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) id: String,
    pub(super) texts: Vec<String>,
    /// The column in which img2dataset records the result of each download; only `success` has a photo.
    pub(super) status: Option<String>,
    pub(super) encoding: TextEncoding,
    pub(super) keep: Vec<Option<KeepName>>,
}

impl Columns {
    /// One column and nothing else.
    pub(super) fn only(name: &str) -> Columns {
        let texts = Vec::new();
        let keep = Vec::new();
        Columns { id: name.into(), texts, status: None, encoding: TextEncoding::Plain, keep }
    }
}

/// Rows per batch.
const BATCH_ROWS: usize = 8192;

pub(super) fn read_schema(path: &Path, file: File) -> Result<SchemaRef> {
    Ok(read_metadata(path, &file)?.schema().clone())
}

/// Whether a column can hold texts or ids.
pub fn is_textual(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::List(item) | DataType::LargeList(item) => is_textual(item.data_type()),
        DataType::Dictionary(_, value) => is_textual(value),
        other => other.is_integer(),
    }
}

/// Batches of the chosen columns, row group by row group: after damage in one, the next can still be read.
pub(super) struct Batches {
    path: PathBuf,
    file: File,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    /// The remaining groups, with their first rows.
    groups: VecDeque<(usize, u64)>,
    reading: Option<OpenGroup>,
}

/// A row group that is being read.
struct OpenGroup {
    reader: ParquetRecordBatchReader,
    next_row: u64,
}

impl Batches {
    /// The row groups that begin in `extent`. `file` is the open file at `path`, or a copy of it.
    pub(super) fn open(path: &Path, file: File, columns: &Columns, extent: &Range<u64>) -> Result<Batches> {
        let n_bytes = file.metadata().map_err(DataError::io("read", path))?.len();
        let metadata = read_metadata(path, &file)?;
        let keep = columns.keep.iter().flatten().map(|keep| &keep.name);
        let names = columns.texts.iter().chain([&columns.id]).chain(&columns.status).chain(keep);
        let roots = names.filter_map(|name| metadata.schema().index_of(name).ok()).collect::<Vec<_>>();
        let mask = ProjectionMask::roots(metadata.parquet_schema(), roots);
        let mut first_row = 0;
        let mut groups = VecDeque::new();
        for (group, start) in group_starts(metadata.metadata(), n_bytes).into_iter().enumerate() {
            if extent.contains(&start) {
                groups.push_back((group, first_row));
            }
            first_row += claimed_rows(metadata.metadata().row_group(group));
        }
        Ok(Batches { path: path.to_path_buf(), file, metadata, mask, groups, reading: None })
    }

    /// The number of remaining rows according to the file, which has not been verified.
    pub(super) fn claimed_rows(&self) -> u64 {
        let metadata = self.metadata.metadata();
        self.groups.iter().map(|&(group, _)| claimed_rows(metadata.row_group(group))).sum()
    }

    /// The next rows and the index of the first. After an error, continues with the next group.
    pub(super) fn next(&mut self) -> Result<Option<(u64, RecordBatch)>> {
        loop {
            let group = match &mut self.reading {
                Some(group) => group,
                None => match self.groups.pop_front() {
                    None => return Ok(None),
                    Some((group, next_row)) => {
                        let reader = self.read_group(group)?;
                        self.reading.insert(OpenGroup { reader, next_row })
                    }
                },
            };
            match guarded(&self.path, || group.reader.next().transpose()) {
                Ok(Some(batch)) => {
                    let first_row = group.next_row;
                    group.next_row += batch.num_rows() as u64;
                    return Ok(Some((first_row, batch)));
                }
                Ok(None) => self.reading = None,
                Err(error) => {
                    self.reading = None;
                    return Err(error);
                }
            }
        }
    }

    fn read_group(&self, group: usize) -> Result<ParquetRecordBatchReader> {
        let file = self.file.try_clone().map_err(DataError::io("read", &self.path))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
            .with_projection(self.mask.clone())
            .with_row_groups(vec![group])
            .with_batch_size(BATCH_ROWS);
        guarded(&self.path, || builder.build())
    }
}

fn read_metadata(path: &Path, file: &File) -> Result<ArrowReaderMetadata> {
    let metadata = guarded(path, || ArrowReaderMetadata::load(file, Default::default()));
    metadata.map_err(DataError::unless_other_kind(path, ExpectedFile::Parquet))
}

fn claimed_rows(group: &RowGroupMetaData) -> u64 {
    u64::try_from(group.num_rows()).unwrap_or(0)
}

/// The start of each row group; evenly distributed over the file if its metadata is invalid.
fn group_starts(metadata: &ParquetMetaData, n_bytes: u64) -> Vec<u64> {
    let start = |group: &RowGroupMetaData| {
        let pages = |column: &ColumnChunkMetaData| {
            column.dictionary_page_offset().into_iter().chain([column.data_page_offset()]).min()
        };
        group.columns().iter().filter_map(pages).min().and_then(|start| u64::try_from(start).ok())
    };
    let starts: Option<Vec<u64>> = metadata.row_groups().iter().map(start).collect();
    let n_groups = metadata.num_row_groups() as u64;
    let even = || (0..n_groups).map(|group| n_bytes / n_groups * group).collect();
    starts
        .filter(|starts| starts.is_sorted() && starts.iter().all(|&start| start < n_bytes))
        .unwrap_or_else(even)
}

/// Reads every row of `batch`. A null text is skipped; a null id makes the row malformed.
pub(super) fn read_batch(batch: &RecordBatch, columns: &Columns, sink: &mut impl RowSink, tally: &mut Tally) {
    let find = |name: &String| batch.column_by_name(name);
    let (Some(ids), Some(texts)) =
        (find(&columns.id), columns.texts.iter().map(find).collect::<Option<Vec<_>>>())
    else {
        return; // `batches` projects exactly these columns
    };
    let status = columns.status.as_ref().and_then(find);
    let keep: Vec<_> = columns.keep.iter().map(|keep| find(&keep.as_ref()?.name)).collect();
    for row in 0..batch.num_rows() {
        let mut id = None;
        let mut succeeded = status.is_none();
        if let Some(status) = status {
            for_each_text(status, row, &mut |status| succeeded = status == "success");
        }
        if !succeeded {
            tally.n_skipped += 1;
            continue;
        }
        for_each_text(ids, row, &mut |text| id = Some(text.to_string()));
        let Some(id) = id.filter(|id| !id.is_empty()) else {
            let expected = format!("an id in column `{}`", columns.id);
            tally.add_bad(BadRow::in_table(row as u64, expected, "none"));
            continue;
        };
        for (column, texts) in texts.iter().enumerate() {
            for_each_text(texts, row, &mut |text| sink.text(column, text, columns.encoding));
        }
        sink.end_row(&id, &|column| {
            let encoding = columns.keep[column].as_ref()?.encoding;
            cell_text(keep[column]?, row).map(|text| encoding.decode(&text).into_owned())
        });
        tally.n_rows += 1;
    }
}

/// Calls `visit` with every text of a row: none for null, several for a list.
pub fn for_each_text(array: &ArrayRef, row: usize, visit: &mut dyn FnMut(&str)) {
    if array.is_null(row) {
        return;
    }
    match array.data_type() {
        DataType::Utf8 => visit(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => visit(array.as_string::<i64>().value(row)),
        DataType::Utf8View => visit(array.as_string_view().value(row)),
        DataType::List(_) => for_each_item(&array.as_list::<i32>().value(row), visit),
        DataType::LargeList(_) => for_each_item(&array.as_list::<i64>().value(row), visit),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            if let Some(key) = integer(dictionary.keys(), row) {
                for_each_text(dictionary.values(), key as usize, visit);
            }
        }
        _ => integer(array, row).into_iter().for_each(|number| visit(&number.to_string())),
    }
}

/// The integer in a row; `None` in columns of another type, which [`is_textual`] has refused.
fn integer(array: &dyn Array, row: usize) -> Option<i128> {
    Some(match array.data_type() {
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
        _ => return None,
    })
}

fn for_each_item(items: &ArrayRef, visit: &mut dyn FnMut(&str)) {
    (0..items.len()).for_each(|item| for_each_text(items, item, visit));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::{DictionaryArray, Int64Array, StringArray};
    use parquet::arrow::ArrowWriter;

    use super::super::rows::tests::Notes;
    use super::*;

    fn columns() -> Columns {
        let texts = vec!["caption".into(), "tags".into()];
        let status = Some("status".into());
        let keep = Vec::new();
        Columns { id: "key".into(), texts, status, encoding: TextEncoding::Plain, keep }
    }

    fn batch() -> RecordBatch {
        let mut tags = ListBuilder::new(StringBuilder::new());
        tags.append_value([Some("a"), Some("b c")]);
        tags.append_null();
        tags.append_value([Some("lost")]);
        tags.append_value::<[Option<&str>; 0], _>([]);
        let caption: DictionaryArray<Int32Type> =
            [Some("cat"), None, Some("cat"), Some("dog")].into_iter().collect();
        RecordBatch::try_from_iter([
            ("key", Arc::new(Int64Array::from(vec![Some(1), Some(2), Some(3), None])) as ArrayRef),
            ("caption", Arc::new(caption)),
            ("tags", Arc::new(tags.finish())),
            (
                "status",
                Arc::new(StringArray::from(vec!["success", "success", "failed_to_download", "success"])),
            ),
        ])
        .unwrap()
    }

    fn file() -> Vec<u8> {
        let batch = batch();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        file
    }

    #[test]
    fn rows_come_with_lists_and_without_failed_downloads() {
        let mut notes = Notes::default();
        let mut tally = Tally::default();
        read_batch(&batch(), &columns(), &mut notes, &mut tally);
        assert_eq!(notes.rows, ["1: 0=cat 1=a 1=b c", "2:"]);
        assert_eq!((tally.n_rows, tally.n_skipped), (2, 1));
        assert_eq!(tally.first_bad, [BadRow::in_table(3, "an id in column `key`", "none")]);
    }

    #[test]
    fn a_file_is_read_back_with_only_the_chosen_columns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("00000.parquet");
        std::fs::write(&path, file()).unwrap();
        let columns = Columns { status: None, texts: vec!["tags".into()], ..columns() };
        let mut batches = Batches::open(&path, File::open(&path).unwrap(), &columns, &(0..u64::MAX)).unwrap();
        assert_eq!(batches.claimed_rows(), 4);
        let (_, batch) = batches.next().unwrap().unwrap();
        assert_eq!((batch.num_columns(), batch.num_rows()), (2, 4));
        assert!(batches.next().unwrap().is_none());
    }

    proptest::proptest! {
        #[test]
        fn a_damaged_file_is_read_or_refused(position in 0usize..4096, value: u8) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.parquet");
            let mut bytes = file();
            let position = position % bytes.len();
            bytes[position] = value;
            std::fs::write(&path, bytes).unwrap();
            let file = File::open(&path).unwrap();
            if let Ok(mut batches) = Batches::open(&path, file, &columns(), &(0..u64::MAX)) {
                while let Ok(Some((_, batch))) = batches.next() {
                    read_batch(&batch, &columns(), &mut Notes::default(), &mut Tally::default());
                }
            }
        }

        #[test]
        fn any_bytes_are_refused(bytes: Vec<u8>) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.parquet");
            for bytes in [bytes.clone(), [b"PAR1", &bytes[..], b"\x10\0\0\0PAR1"].concat()] {
                std::fs::write(&path, bytes).unwrap();
                proptest::prop_assert!(read_schema(&path, File::open(&path).unwrap()).is_err());
            }
        }
    }
}
