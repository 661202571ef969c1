//! Removing HTML from texts: descriptions often contain links and entities.

/// Writes `text` without tags and with entities decoded into `out`, replacing its contents.
///
/// A tag becomes a space, since `one<br>two` are two words. Tags are removed first: an encoded `&lt;b&gt;` is text about a tag.
pub(super) fn strip(text: &str, out: &mut String) {
    out.clear();
    let mut rest = text;
    while let Some(open) = memchr::memchr(b'<', rest.as_bytes()) {
        out.push_str(&rest[..open]);
        out.push(' ');
        rest = &rest[open + tag_length(&rest[open..]).unwrap_or(1)..];
    }
    out.push_str(rest);
    if memchr::memchr(b'&', out.as_bytes()).is_some() {
        let decoded = html_escape::decode_html_entities(out.as_str()).into_owned();
        *out = decoded;
    }
}

/// The length of the tag or comment that `text` starts with; `None` for a `<` that opens neither, as in `I <3 cats`.
fn tag_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.starts_with(b"<!--") {
        return text.find("-->").map(|end| end + 3);
    }
    let opens_tag = matches!(bytes.get(1), Some(b'a'..=b'z' | b'A'..=b'Z' | b'/' | b'!'));
    if opens_tag { memchr::memchr(b'>', bytes).map(|end| end + 1) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut out = "left over".to_string();
        strip(text, &mut out);
        assert_eq!(out, expected, "{text:?}");
    }

    #[test]
    fn tags_and_comments_leave_a_space() {
        check("one<br/>two", "one two");
        check("<!-- a > b -->seen", " seen");
        check("</p>end", " end");
    }

    #[test]
    fn a_lone_angle_bracket_is_not_a_tag() {
        check("<3 <", " 3  ");
        check("never <closed", "never  closed");
    }

    #[test]
    fn entities_are_decoded_once_and_unknown_ones_stay() {
        check("&#39;&#x41;&eacute;&nope;&amp;lt;", "'Aé&nope;&lt;");
    }
}
