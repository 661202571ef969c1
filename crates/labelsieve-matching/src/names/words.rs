//! Text as a sequence of comparable words.
//!
//! Names and texts are normalised in the same way, so that spellings of the same words become equal: case is folded,
//! compatibility forms are unified (NFKC), HTML is removed, and everything that is neither letter nor digit separates words. The result is one byte string, ` golden retriever `, with a space before and after every word:
//! "contains the whole words of a name" is then plain substring search for the name's own byte string.

use std::borrow::Cow;

use super::{folding, html};

/// The encoding of texts in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextEncoding {
    /// Plain text.
    Plain,
    /// As in a URL: `%C3%A9` for `é` and `+` for a space (YFCC100M).
    Percent,
}

impl TextEncoding {
    /// Decodes a text.
    pub fn decode(self, text: &str) -> Cow<'_, str> {
        match self {
            TextEncoding::Plain => Cow::Borrowed(text),
            TextEncoding::Percent => Cow::Owned(percent_decode(text)),
        }
    }
}

/// Separates texts in a [`WordBuffer`]. Names do not contain it, so no match spans two texts.
const TEXT_END: u8 = b'\n';

/// The words of one or more texts, ready to be searched. Its memory is reused.
#[derive(Default)]
pub(super) struct WordBuffer {
    bytes: Vec<u8>,
    stripped: String,
}

impl WordBuffer {
    /// ` word word \n word `: spaces around every word, a line break between texts.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Appends the words of one text.
    pub(super) fn push(&mut self, text: &str, encoding: TextEncoding) {
        if !self.bytes.is_empty() {
            self.bytes.push(TEXT_END);
        }
        self.bytes.push(b' ');
        if push_simple(&mut self.bytes, text.as_bytes(), encoding) {
            return;
        }
        let decoded = encoding.decode(text);
        html::strip(&decoded, &mut self.stripped);
        folding::push_words(&mut self.bytes, &self.stripped);
    }
}

/// The words of a name as `golden retriever`: without the outer spaces.
pub(super) fn words_of(name: &str) -> String {
    let mut buffer = WordBuffer::default();
    buffer.push(name, TextEncoding::Plain);
    String::from_utf8_lossy(buffer.bytes()).trim().to_string()
}

/// Marks bytes that need the slow path. Other ASCII bytes map to themselves in lower case or to a space.
const COMPLEX: u8 = 0;
const PLAIN_TABLE: [u8; 256] = byte_table(TextEncoding::Plain);
const PERCENT_TABLE: [u8; 256] = byte_table(TextEncoding::Percent);

const fn byte_table(encoding: TextEncoding) -> [u8; 256] {
    let mut table = [COMPLEX; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            letter @ (b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9') => letter.to_ascii_lowercase(),
            b'&' | b'<' => COMPLEX,
            b'%' if matches!(encoding, TextEncoding::Percent) => COMPLEX,
            _ => b' ',
        };
        byte += 1;
    }
    table
}

/// The fast path: ASCII without HTML. At the first byte that needs more, it restores `out` and returns false.
fn push_simple(out: &mut Vec<u8>, text: &[u8], encoding: TextEncoding) -> bool {
    let table = match encoding {
        TextEncoding::Plain => &PLAIN_TABLE,
        TextEncoding::Percent => &PERCENT_TABLE,
    };
    let start = out.len();
    out.resize(start + text.len() + 1, b' ');
    // Every byte is written and the length grows only when it is not a repeated space: no branch to mispredict
    // at the end of every word.
    let words = &mut out[start..];
    let mut n_written = 0;
    let mut last = b' ';
    let mut position = 0;
    while position < text.len() {
        let mut byte = table[text[position] as usize];
        position += 1;
        if byte == COMPLEX {
            byte = match escaped(text, position - 1, encoding) {
                Some(byte) if table[byte as usize] != COMPLEX => table[byte as usize],
                _ => {
                    out.truncate(start);
                    return false;
                }
            };
            position += 2;
        }
        words[n_written] = byte;
        n_written += usize::from((byte != b' ') | (last != b' '));
        last = byte;
    }
    let n_written = n_written + usize::from(last != b' '); // `resize` left a space there
    out.truncate(start + n_written);
    true
}

/// Decodes an escape such as `%41` at `position`.
fn escaped(text: &[u8], position: usize, encoding: TextEncoding) -> Option<u8> {
    let &[b'%', high, low] = text.get(position..position + 3)? else { return None };
    let digit = |byte: u8| (byte as char).to_digit(16);
    match encoding {
        TextEncoding::Plain => None,
        TextEncoding::Percent => Some((digit(high)? * 16 + digit(low)?) as u8),
    }
}

/// Undoes URL encoding. A `%` that does not start an escape stays; bytes that are not UTF-8 become U+FFFD, a word break.
fn percent_decode(text: &str) -> String {
    let text = text.as_bytes();
    let mut bytes = Vec::with_capacity(text.len());
    let mut position = 0;
    while position < text.len() {
        match escaped(text, position, TextEncoding::Percent) {
            Some(byte) => {
                bytes.push(byte);
                position += 3;
            }
            None => {
                bytes.push(if text[position] == b'+' { b' ' } else { text[position] });
                position += 1;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, encoding: TextEncoding, expected: &str) {
        let mut buffer = WordBuffer::default();
        buffer.push(text, encoding);
        assert_eq!(std::str::from_utf8(buffer.bytes()).unwrap(), expected, "{text:?}");
    }

    #[test]
    fn words_stand_between_single_spaces() {
        check("", TextEncoding::Plain, " ");
        check("  --  ", TextEncoding::Plain, " ");
        check("Cat", TextEncoding::Plain, " cat ");
        check("IMG_0042 (Golden-Retriever)!", TextEncoding::Plain, " img 0042 golden retriever ");
        check("50% wool+silk", TextEncoding::Plain, " 50 wool silk ");
    }

    #[test]
    fn html_is_removed_and_its_entities_are_read() {
        check("<a href=\"http://cats.com\">Dog</a> &amp; caf&eacute;", TextEncoding::Plain, " dog café ");
        check("fish &lt;b&gt; chips", TextEncoding::Plain, " fish b chips ");
        check("I <3 cats", TextEncoding::Plain, " i 3 cats ");
        check("a < b & c", TextEncoding::Plain, " a b c ");
    }

    #[test]
    fn percent_encoding_is_undone() {
        check("Golden+Retriever%21", TextEncoding::Percent, " golden retriever ");
        check("caf%C3%A9+%E7%8C%AB", TextEncoding::Percent, " café 猫 ");
        check("%3Cb%3Echurch%3C%2Fb%3E", TextEncoding::Percent, " church ");
        check("100%+wool%", TextEncoding::Percent, " 100 wool ");
        check("%zz+cat%4", TextEncoding::Percent, " zz cat 4 ");
        check("broken+%C3+cat", TextEncoding::Percent, " broken cat ");
    }

    #[test]
    fn texts_are_kept_apart() {
        let mut buffer = WordBuffer::default();
        buffer.push("black", TextEncoding::Plain);
        buffer.push("bear", TextEncoding::Plain);
        assert_eq!(buffer.bytes(), b" black \n bear ");
    }
}
