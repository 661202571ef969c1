//! The bytes of a log of decisions.
//!
//! The file is an opening line and then records: length (four bytes, little-endian), CRC-32 of length and payload,
//! payload. The payload of the first record is the number of rows in the table when the log was started; each further one
//! holds the rows of one `append`, as JSON.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::DecisionRow;
use crate::{DataError, Result, counted};

const OPENING: &[u8] = b"labelsieve decisions 1\n";
const PREFIX_LEN: usize = 8;

#[derive(Serialize, Deserialize)]
struct Start {
    n_rows_in_table: usize,
}

/// The contents of the complete records of a log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// The number of rows in the table when the log was started; `None` if a kill came before it was recorded.
    pub(super) n_rows_in_table: Option<usize>,
    /// The decisions, earliest first.
    pub(super) rows: Vec<DecisionRow>,
    /// The end of the last complete record.
    pub(super) end: u64,
}

/// The beginning of a log beside a table of `n_rows_in_table` rows.
pub(super) fn start(path: &Path, n_rows_in_table: usize) -> Result<Vec<u8>> {
    let mut bytes = OPENING.to_vec();
    bytes.extend(record(path, &Start { n_rows_in_table })?);
    Ok(bytes)
}

/// The record of one `append`.
pub(super) fn rows(path: &Path, rows: &[DecisionRow]) -> Result<Vec<u8>> {
    record(path, &rows)
}

fn record(path: &Path, value: &impl Serialize) -> Result<Vec<u8>> {
    let payload = serde_json::to_vec(value).map_err(|error| DataError::io("write", path)(error.into()))?;
    let Ok(length) = u32::try_from(payload.len()) else {
        let found = format!("{} bytes", payload.len());
        return Err(DataError::malformed(path, "record", "less than 4 GiB", found));
    };
    let length = length.to_le_bytes();
    Ok([&length, &checksum(length, &payload).to_le_bytes(), &payload[..]].concat())
}

/// Reads the complete records of a log. An incomplete record at the end, from a kill or a power loss, is ignored; damage
/// elsewhere is an error, since complete records follow it.
pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Contents> {
    let mut contents = Contents::default();
    let Some(mut rest) = bytes.strip_prefix(OPENING) else {
        let n_same = bytes.iter().zip(OPENING).take_while(|(a, b)| a == b).count();
        return if bytes[n_same..].iter().all(|&byte| byte == 0) {
            Ok(contents) // the first write was cut short
        } else {
            Err(DataError::malformed(path, "first line", "a log of decisions", "another file"))
        };
    };
    contents.end = OPENING.len() as u64;
    while let Some((payload, after)) = whole_record(rest) {
        let place = || format!("byte {}", contents.end);
        let unreadable =
            |error: serde_json::Error| DataError::malformed(path, place(), "decisions", format!("`{error}`"));
        if contents.n_rows_in_table.is_none() {
            let start: Start = serde_json::from_slice(payload).map_err(unreadable)?;
            contents.n_rows_in_table = Some(start.n_rows_in_table);
        } else {
            let rows: Vec<DecisionRow> = serde_json::from_slice(payload).map_err(unreadable)?;
            contents.rows.extend(rows);
        }
        contents.end += (rest.len() - after.len()) as u64;
        rest = after;
    }
    if is_damaged(rest) {
        let found = format!("damage after {}", counted(contents.rows.len(), "whole decision"));
        Err(DataError::malformed(path, format!("byte {}", contents.end), "a whole record", found))
    } else {
        Ok(contents)
    }
}

/// The payload of the record at the start of `bytes`, and what comes after it.
fn whole_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (expected, rest) = rest.split_first_chunk::<4>()?;
    let (payload, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (checksum(*length, payload) == u32::from_le_bytes(*expected)).then_some((payload, rest))
}

/// Whether anything but zeros follows the incomplete record at the start of `bytes`: an interrupted write is the last, and
/// a power loss may leave zeros in its place. Its length may itself be damaged, so complete records are searched for
/// everywhere.
fn is_damaged(bytes: &[u8]) -> bool {
    let length = bytes.first_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length) as usize);
    let has_more = bytes.get(PREFIX_LEN + length..).is_some_and(|after| after.iter().any(|&byte| byte != 0));
    // The four bytes of a length in the middle of JSON text are beyond any end of file, so few checksums are computed.
    has_more || (1..bytes.len()).any(|at| whole_record(&bytes[at..]).is_some())
}

fn checksum(length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str) -> DecisionRow {
        let [id, class, by, at] = [id, "owl", "ann", ""].map(str::to_owned);
        DecisionRow { id, class, decision: None, by, at }
    }

    fn two_records() -> Vec<u8> {
        let path = Path::new("d.log");
        [
            start(path, 3).unwrap(),
            rows(path, &[row("a"), row("b")]).unwrap(),
            rows(path, &[row("c")]).unwrap(),
        ]
        .concat()
    }

    #[test]
    fn a_log_cut_anywhere_keeps_its_whole_records() {
        let whole = two_records();
        let mut counts = Vec::new();
        for length in 0..=whole.len() {
            let contents = read(Path::new("d.log"), &whole[..length]).unwrap();
            assert!([row("a"), row("b"), row("c")].starts_with(&contents.rows));
            assert!(contents.end <= length as u64);
            counts.push(contents.rows.len());
            // Space that the system had set aside and not yet filled.
            let zeros = [&whole[..length], &[0; 100]].concat();
            assert_eq!(read(Path::new("d.log"), &zeros).unwrap().rows, contents.rows);
        }
        assert!(counts.is_sorted());
        counts.dedup();
        assert_eq!(counts, [0, 2, 3]);
    }

    #[test]
    fn damage_before_whole_records_is_an_error_that_says_where() {
        let mut bytes = two_records();
        let at = bytes.windows(3).position(|window| window == b"\"b\"").unwrap();
        bytes[at + 1] = b'x';
        let error = read(Path::new("d.log"), &bytes).unwrap_err().to_string();
        let expected = "expected a whole record, found damage after 0 whole decisions";
        assert!(error.starts_with("`d.log`: byte ") && error.ends_with(expected), "{error}");
    }

    #[test]
    fn a_damaged_length_before_whole_records_is_an_error_too() {
        let whole = two_records();
        let second = start(Path::new("d.log"), 3).unwrap().len();
        for length in [u32::MAX, 1 << 20, (whole.len() - second) as u32, 1] {
            let mut bytes = whole.clone();
            bytes[second..second + 4].copy_from_slice(&length.to_le_bytes());
            let error = read(Path::new("d.log"), &bytes).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`d.log`: byte {second}: ")), "{length}: {error}");
        }
    }

    #[test]
    fn another_file_is_refused() {
        let error = read(Path::new("d.log"), b"12:03 started").unwrap_err().to_string();
        assert_eq!(error, "`d.log`: first line: expected a log of decisions, found another file");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
            cut in 0_usize..200,
        ) {
            let _ = read(Path::new("d.log"), &bytes);
            let whole = two_records();
            let _ = read(Path::new("d.log"), &[&whole[..cut.min(whole.len())], &bytes].concat());
        }
    }
}
