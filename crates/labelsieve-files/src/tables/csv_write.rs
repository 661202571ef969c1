//! Small tables as CSV.

use std::io::Write;
use std::path::Path;

use crate::{AtomicFile, DataError, Result};

/// Writes a header and rows; the file appears whole or not at all.
pub fn write_csv<'a, const N: usize>(
    path: impl AsRef<Path>,
    header: [&str; N],
    rows: impl Iterator<Item = [&'a str; N]>,
) -> Result<()> {
    let path = path.as_ref();
    write_rows(AtomicFile::create(path)?, header, rows).map_err(DataError::io("write", path))?.commit()
}

/// As [`write_csv`], in memory.
pub fn csv_bytes<'a, const N: usize>(
    header: [&str; N],
    rows: impl Iterator<Item = [&'a str; N]>,
) -> Result<Vec<u8>> {
    write_rows(Vec::new(), header, rows).map_err(DataError::io("write", "CSV"))
}

fn write_rows<'a, W: Write, const N: usize>(
    out: W,
    header: [&str; N],
    rows: impl Iterator<Item = [&'a str; N]>,
) -> std::io::Result<W> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(header)?;
    for row in rows {
        writer.write_record(row)?;
    }
    writer.into_inner().map_err(|error| error.into_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_and_quotes_are_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        write_csv(&path, ["id", "reason"], [["a,b", "say \"no\""], ["c", ""]].into_iter()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "id,reason\n\"a,b\",\"say \"\"no\"\"\"\nc,\n");
    }
}
