//! Untrusted text inside our markup.

use serde::Serialize;

/// A text for the inside of an element or of a quoted attribute, in HTML and in XML. Control characters, which XML
/// cannot represent, become U+FFFD.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            '\r' => out.push('\n'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A value as JSON for the inside of a `<script>`: nothing in it can end the element or start a comment.
pub(crate) fn json_for_script(value: &impl Serialize) -> String {
    // Our own types: no maps with non-string keys, no numbers out of range.
    let json = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(
            escape("<a href='x'>\"&amp;\"</a>"),
            "&lt;a href=&#39;x&#39;&gt;&quot;&amp;amp;&quot;&lt;/a&gt;"
        );
        assert_eq!(escape("a\u{0}b\u{1b}c\r\n"), "a\u{fffd}b\u{fffd}c\n\n");
        assert_eq!(escape("日本 λ ±"), "日本 λ ±");
    }

    #[test]
    fn json_cannot_leave_its_script() {
        let hostile = ["</script><script>alert(1)</script>", "<!--<script>", "]]>"];
        let json = json_for_script(&hostile);
        assert!(!json.contains('<'), "{json}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), hostile);
    }
}
