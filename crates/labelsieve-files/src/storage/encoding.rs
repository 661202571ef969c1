//! Guessing the encoding of text files that are not UTF-8.

use std::fmt;
use std::path::Path;

use crate::{DataError, Result};

/// An encoding other than UTF-8, guessed from a few bytes. Of two guesses for one file, the later variant wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ForeignEncoding {
    /// Single bytes for accented letters.
    Latin1,
    /// The same with curly quotes, dashes and the euro sign.
    Windows1252,
    /// Two bytes per letter, the lower one first.
    Utf16Le,
    /// Two bytes per letter, the higher one first.
    Utf16Be,
    /// UTF-8 with some invalid bytes.
    BrokenUtf8,
    /// None of these.
    Unknown,
}

impl ForeignEncoding {
    /// Guesses the encoding of bytes that are not UTF-8.
    pub fn guess(bytes: &[u8]) -> ForeignEncoding {
        if let Some(encoding) = ForeignEncoding::utf16(bytes) {
            return encoding;
        }
        let mut n_high = 0;
        let mut n_beside_high = 0;
        let mut has_c1 = false;
        for (at, &byte) in bytes.iter().enumerate().filter(|(_, byte)| **byte >= 0x80) {
            n_high += 1;
            has_c1 |= byte < 0xa0;
            n_beside_high += usize::from(at > 0 && bytes[at - 1] >= 0x80);
        }
        let n_broken = bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count();
        let letters =
            bytes.utf8_chunks().map(|chunk| chunk.valid().chars().filter(|c| !c.is_ascii()).count());
        // Bytes of other encodings are valid UTF-8 now and then, by chance.
        if letters.sum::<usize>() > n_broken {
            ForeignEncoding::BrokenUtf8
        } else if 2 * n_beside_high > n_high {
            ForeignEncoding::Unknown // most letters take several bytes: one of the Asian encodings
        } else if has_c1 {
            ForeignEncoding::Windows1252
        } else {
            ForeignEncoding::Latin1
        }
    }

    /// Detects UTF-16 by its byte order mark or by the zeros of its ASCII letters.
    pub fn utf16(start: &[u8]) -> Option<ForeignEncoding> {
        let start = &start[..start.len().min(1024)];
        let zeros = |parity: usize| start.iter().skip(parity).step_by(2).filter(|&&byte| byte == 0).count();
        let many = |n: usize| n > 0 && 4 * n >= start.len(); // half of all pairs
        match start {
            [0xff, 0xfe, ..] => Some(ForeignEncoding::Utf16Le),
            [0xfe, 0xff, ..] => Some(ForeignEncoding::Utf16Be),
            _ if many(zeros(1)) && zeros(0) == 0 => Some(ForeignEncoding::Utf16Le),
            _ if many(zeros(0)) && zeros(1) == 0 => Some(ForeignEncoding::Utf16Be),
            _ => None,
        }
    }

    /// The name for `iconv -f`; `None` where a conversion would only hide the damage.
    pub fn iconv_name(self) -> Option<&'static str> {
        match self {
            ForeignEncoding::Latin1 => Some("ISO-8859-1"),
            ForeignEncoding::Windows1252 => Some("WINDOWS-1252"),
            ForeignEncoding::Utf16Le => Some("UTF-16LE"),
            ForeignEncoding::Utf16Be => Some("UTF-16BE"),
            ForeignEncoding::BrokenUtf8 | ForeignEncoding::Unknown => None,
        }
    }
}

impl fmt::Display for ForeignEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.iconv_name()) {
            (_, Some(name)) => write!(f, "what looks like {name}"),
            (ForeignEncoding::BrokenUtf8, _) => f.write_str("invalid bytes"),
            _ => f.write_str("another encoding"),
        }
    }
}

/// A small file as text, without its byte order mark.
pub fn utf8(path: &Path, bytes: Vec<u8>) -> Result<String> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let bytes = error.as_bytes();
        let valid = &bytes[..error.utf8_error().valid_up_to()];
        let place = format!("line {}", memchr::memchr_iter(b'\n', valid).count() + 1);
        let line =
            bytes[memchr::memrchr(b'\n', valid).map_or(0, |end| end + 1)..].split(|&byte| byte == b'\n');
        let encoding = ForeignEncoding::utf16(bytes).unwrap_or_else(|| {
            line.take(1).map(ForeignEncoding::guess).next().unwrap_or(ForeignEncoding::Unknown)
        });
        DataError::Encoding { path: path.to_path_buf(), place, encoding }
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_guessed_from_a_line() {
        let check =
            |bytes: &[u8], expected| assert_eq!(ForeignEncoding::guess(bytes), expected, "{bytes:x?}");
        check(b"1,caf\xe9 \xe0 la carte", ForeignEncoding::Latin1);
        check(b"1,the \x93best\x94 caf\xe9", ForeignEncoding::Windows1252);
        check(b"\xff\xfe1\0,\0", ForeignEncoding::Utf16Le);
        check(b"\x001\0,\0c\0a\0t", ForeignEncoding::Utf16Be);
        check(b"1,\x94\x4c\x82\xcc\x8e\xca\x90\x5e", ForeignEncoding::Unknown); // Shift-JIS
        check("1,un café à \u{1f600}".as_bytes().split_last().unwrap().1, ForeignEncoding::BrokenUtf8);
    }
}
