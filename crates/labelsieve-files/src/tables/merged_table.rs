//! Merging the rows of several parts into one table, with little memory.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Float32Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use arrow_select::filter::filter_record_batch;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::tables::parquet_columns::guarded;
use crate::tables::table_write::{TableFormat, TableWriter};
use crate::{DataError, PartFile, Result};

/// The rows of a part, from its first to its last.
pub struct PartRows {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    schema: Arc<Schema>,
    /// Decoded rows that have not been returned yet.
    rest: Option<RecordBatch>,
}

impl PartRows {
    /// Starts at the first row.
    pub fn open(part: &PartFile) -> Result<PartRows> {
        let path = part.path.clone();
        let file = ReopeningFile::new(&path)?;
        let builder = guarded(&path, || ParquetRecordBatchReaderBuilder::try_new(file))?;
        let schema = Arc::new(Schema::new(builder.schema().fields().clone())); // without metadata, which belongs to the whole
        let reader = guarded(&path, || builder.build())?;
        Ok(PartRows { path, reader, schema, rest: None })
    }

    /// At most `n` of the next rows; `None` at the end of the part.
    fn next(&mut self, n: usize) -> Result<Option<RecordBatch>> {
        let batch = match self.rest.take() {
            Some(batch) => Some(batch),
            None => guarded(&self.path, || self.reader.next().transpose())?,
        };
        let Some(batch) = batch else { return Ok(None) };
        if batch.num_rows() > n {
            self.rest = Some(batch.slice(n, batch.num_rows() - n));
            return Ok(Some(batch.slice(0, n)));
        }
        Ok(Some(batch))
    }
}

/// A merged table under construction.
pub struct MergedTable {
    writer: TableWriter,
    schema: Arc<Schema>,
}

impl MergedTable {
    /// Starts a file with the columns of these parts, some of which may lack columns of others.
    pub fn create(path: &Path, parts: &[PartRows], metadata: &[(String, String)]) -> Result<MergedTable> {
        let schema = widest(parts)?;
        Ok(MergedTable { writer: TableWriter::create(path, schema.as_ref().clone(), metadata)?, schema })
    }

    /// Writes rows to `stream` as CSV.
    pub fn to_stream(stream: Box<dyn Write + Send>, parts: &[PartRows]) -> Result<MergedTable> {
        let schema = widest(parts)?;
        Ok(MergedTable { writer: TableWriter::to_stream(stream, TableFormat::Csv, &schema), schema })
    }

    /// Copies the next `n` rows of a part, which must be there. A column of numbers that the part lacks is filled with
    /// `missing`.
    pub fn append(&mut self, part: &mut PartRows, n: usize, missing: f32) -> Result<()> {
        let mut n_left = n;
        while n_left > 0 {
            let Some(batch) = part.next(n_left)? else {
                let found = format!("{} of them", n - n_left);
                return Err(DataError::malformed(&part.path, "rows", format!("{n} more rows"), found));
            };
            n_left -= batch.num_rows();
            self.write(&part.path, &batch, missing)?;
        }
        Ok(())
    }

    /// Copies the remaining rows of a part for whose text in `column` `keep` returns true. Returns their number.
    pub fn append_kept(
        &mut self,
        part: &mut PartRows,
        column: &str,
        keep: &mut dyn FnMut(&str) -> bool,
    ) -> Result<usize> {
        let mut n_kept = 0;
        while let Some(batch) = part.next(usize::MAX)? {
            let texts =
                batch.column_by_name(column).and_then(|texts| texts.as_any().downcast_ref::<StringArray>());
            let Some(texts) = texts else {
                let expected = format!("texts in `{column}`");
                return Err(DataError::malformed(&part.path, "columns", expected, "none"));
            };
            let kept: BooleanArray = texts.iter().map(|text| Some(keep(text.unwrap_or_default()))).collect();
            let batch = guarded(&part.path, || filter_record_batch(&batch, &kept))?;
            n_kept += batch.num_rows();
            self.write(&part.path, &batch, f32::NAN)?;
        }
        Ok(n_kept)
    }

    /// Completes the table.
    pub fn finish(self) -> Result<()> {
        self.writer.finish()
    }

    fn write(&mut self, path: &Path, batch: &RecordBatch, missing: f32) -> Result<()> {
        let column = |field: &Arc<Field>| -> Result<ArrayRef> {
            match batch.column_by_name(field.name()) {
                Some(column) if column.data_type() == field.data_type() => Ok(column.clone()),
                Some(column) => {
                    let place = format!("column `{}`", field.name());
                    let expected = field.data_type().to_string();
                    let found = column.data_type().to_string();
                    Err(DataError::malformed(path, place, expected, found))
                }
                None => Ok(Arc::new(Float32Array::from(vec![missing; batch.num_rows()]))),
            }
        };
        let columns = self.schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
        self.writer.write(columns)
    }
}

/// The columns of the part with the most columns.
fn widest(parts: &[PartRows]) -> Result<Arc<Schema>> {
    let widest = parts.iter().max_by_key(|part| part.schema.fields().len()).map(|part| part.schema.clone());
    let schema = widest.unwrap_or_else(|| Arc::new(Schema::empty()));
    for part in parts {
        let foreign = part.schema.fields().iter().find(|field| schema.index_of(field.name()).is_err());
        let lacking = schema.fields().iter().find(|field| {
            let is_there = part.schema.index_of(field.name()).is_ok();
            !is_there && *field.data_type() != arrow_schema::DataType::Float32
        });
        if let Some(field) = foreign.or(lacking) {
            let names = |schema: &Schema| {
                schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ")
            };
            let found = format!("{} (`{}` differs)", names(&part.schema), field.name());
            return Err(DataError::malformed(&part.path, "columns", names(&schema), found));
        }
    }
    Ok(schema)
}

/// A file that is opened again for every read: parts are read side by side, and there may be more of them than a process can
/// have open files.
struct ReopeningFile {
    path: PathBuf,
    len: u64,
}

impl ReopeningFile {
    fn new(path: &Path) -> Result<ReopeningFile> {
        let metadata = std::fs::metadata(path).map_err(DataError::io("read", path))?;
        Ok(ReopeningFile { path: path.to_path_buf(), len: metadata.len() })
    }

    fn open_at(&self, start: u64) -> std::io::Result<File> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(start))?;
        Ok(file)
    }
}

impl Length for ReopeningFile {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for ReopeningFile {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> std::result::Result<BufReader<File>, ParquetError> {
        Ok(BufReader::new(self.open_at(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> std::result::Result<bytes::Bytes, ParquetError> {
        if start.saturating_add(length as u64) > self.len {
            return Err(ParquetError::EOF(format!("expected {length} bytes at {start}")));
        }
        let mut bytes = vec![0; length];
        self.open_at(start)?.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}
