//! Small tables as CSV.

use std::path::Path;

use crate::{AtomicFile, DataError, Result};

/// Writes a header and rows; the file appears whole or not at all.
pub fn write_csv<'a, const N: usize>(
    path: impl AsRef<Path>,
    header: [&str; N],
    rows: impl Iterator<Item = [&'a str; N]>,
) -> Result<()> {
    let path = path.as_ref();
    let mut writer = csv::Writer::from_writer(AtomicFile::create(path)?);
    let failed = |error: csv::Error| DataError::io("write", path)(error.into());
    writer.write_record(header).map_err(failed)?;
    for row in rows {
        writer.write_record(row).map_err(failed)?;
    }
    writer.into_inner().map_err(|error| DataError::io("write", path)(error.into_error()))?.commit()
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
