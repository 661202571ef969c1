//! Parsing sizes such as `8GiB`.

use std::str::FromStr;

use crate::work::table;

/// A number of bytes: `8GiB`, `512 MiB`, `1.5GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

const UNITS: [(&str, u64); 9] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("b", 1),
];

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteSize, String> {
        let expected = || format!("expected a size such as 8GiB, 512MiB or 2GB, found `{text}`");
        let lower = text.trim().to_ascii_lowercase();
        let (unit, factor) =
            UNITS.iter().find(|(unit, _)| lower.ends_with(unit)).ok_or_else(|| {
                match lower.parse::<f64>() {
                    Ok(_) => format!("expected a unit, e.g. `{}GiB`, found `{text}`", text.trim()),
                    Err(_) => expected(),
                }
            })?;
        let number = lower[..lower.len() - unit.len()].trim_end();
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let value: f64 = number.parse().ok().filter(|_| is_plain).ok_or_else(expected)?;
        let bytes = value * *factor as f64;
        match bytes {
            bytes if bytes < 1.0 => Err(format!("expected a size above zero, found `{text}`")),
            bytes if bytes > u64::MAX as f64 / 2.0 => Err(format!("`{text}` is more than any machine has")),
            bytes => Ok(ByteSize(bytes as u64)),
        }
    }
}

impl std::fmt::Display for ByteSize {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&table::bytes(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_in_any_case_and_without_one_nothing_is_guessed() {
        for (text, bytes) in [
            ("8GiB", 8 << 30),
            ("512 MiB", 512 << 20),
            ("1.5gb", 1_500_000_000),
            ("2TB", 2_000_000_000_000),
            ("64kib", 65_536),
            ("100B", 100),
            (" 1 KB ", 1000),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
        let refused = |text: &str| text.parse::<ByteSize>().unwrap_err();
        assert_eq!(refused("8"), "expected a unit, e.g. `8GiB`, found `8`");
        for text in ["", "GiB", "8Gi", "-8GiB", "8 G B", "infGiB", "1e3GiB", "0x8MiB", "1.2.3GB"] {
            assert!(refused(text).starts_with("expected a size such as 8GiB"), "{text}: {}", refused(text));
        }
        assert_eq!(refused("0GiB"), "expected a size above zero, found `0GiB`");
        assert_eq!(refused("99999999999TiB"), "`99999999999TiB` is more than any machine has");
    }
}
