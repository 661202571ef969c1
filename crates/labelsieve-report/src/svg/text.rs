//! How wide a text will be, roughly: the fonts are the reader's, so this errs on the wide side.

/// Size of all text in figures, in pixels.
pub(crate) const TEXT_SIZE: f64 = 12.0;

/// The width of a text in pixels.
pub(crate) fn width(text: &str) -> f64 {
    text.chars().map(width_of_char).sum::<f64>() * TEXT_SIZE
}

/// The text, truncated to a width with an ellipsis if necessary.
pub(crate) fn fit(text: &str, max_width: f64) -> String {
    if width(text) <= max_width {
        return text.to_owned();
    }
    let mut left = max_width - width("…");
    let kept: String = text
        .chars()
        .take_while(|&c| {
            left -= width_of_char(c) * TEXT_SIZE;
            left >= 0.0
        })
        .collect();
    format!("{}…", kept.trim_end())
}

/// In units of the font size.
fn width_of_char(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | ' ' | '(' | ')' | '[' | ']' => 0.32,
        'f' | 't' | 'r' | '-' | '/' | 'I' | '"' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '—' => 0.95,
        'A'..='Z' => 0.72,
        '\u{2000}'..='\u{2bff}' => 0.65,   // dashes, the minus sign, arrows
        c if (c as u32) >= 0x1100 => 1.05, // scripts with square characters
        _ => 0.59,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_letters_are_wider_than_narrow_ones() {
        assert!(width("mmm") > 2.0 * width("iii"));
        assert!(width("日本") > width("ab"));
        assert_eq!(width(""), 0.0);
    }

    #[test]
    fn a_text_is_cut_only_when_it_does_not_fit() {
        assert_eq!(fit("owl", 100.0), "owl");
        let cut = fit("a very long name of a class", 60.0);
        assert!(cut.ends_with('…') && cut.starts_with("a very") && width(&cut) <= 60.0, "{cut}");
        assert_eq!(fit("owl", 0.0), "…");
    }
}
