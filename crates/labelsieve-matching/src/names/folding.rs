//! Words of any script: case folding, compatibility forms and word boundaries.

use caseless::Caseless;
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// Appends the words of `text`, each followed by a space; `out` must end in a space.
///
/// Equal words come out as equal bytes: NFKC, then full case folding, then NFKC again, as Unicode's `toNFKC_Casefold`.
pub(super) fn push_words(out: &mut Vec<u8>, text: &str) {
    // ASCII separators never combine with adjacent characters, so each run between them is folded on its own, and only runs
    // that need it take the slow path.
    for run in text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric()) {
        if run.is_ascii() {
            out.extend(run.bytes().map(|byte| byte.to_ascii_lowercase()));
        } else {
            push_folded(out, run);
        }
        end_word(out);
    }
}

fn push_folded(out: &mut Vec<u8>, run: &str) {
    let run: String = run.chars().filter(|&c| !is_ignorable(c)).map(keep_signs_apart).collect();
    let folded: String = match is_nfkc_quick(run.chars()) {
        IsNormalized::Yes => run.chars().default_case_fold().collect(),
        _ => run.chars().nfkc().default_case_fold().collect(),
    };
    match is_nfkc_quick(folded.chars()) {
        IsNormalized::Yes => folded.chars().for_each(|c| push_char(out, c)),
        _ => folded.chars().nfkc().for_each(|c| push_char(out, c)),
    }
}

fn push_char(out: &mut Vec<u8>, c: char) {
    if stands_alone(c) {
        end_word(out);
        push_utf8(out, c);
    } else if is_combining_mark(c) {
        if !out.ends_with(b" ") {
            push_utf8(out, c); // a mark without its letter is dropped
        }
    } else if c.is_alphanumeric() {
        if ends_in_lone_character(out) {
            end_word(out);
        }
        push_utf8(out, c);
    } else {
        end_word(out);
    }
}

fn push_utf8(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn end_word(out: &mut Vec<u8>) {
    if !out.ends_with(b" ") {
        out.push(b' ');
    }
}

/// Whether the word under construction is one of [`stands_alone`], perhaps with marks on it.
fn ends_in_lone_character(out: &[u8]) -> bool {
    let word = out.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
    // Only whole characters were written, so the word is valid UTF-8.
    std::str::from_utf8(word).ok().and_then(|word| word.chars().next()).is_some_and(stands_alone)
}

/// Characters that are words of their own: scripts without spaces, where a name may start and end at any character, and
/// pictures.
fn stands_alone(c: char) -> bool {
    matches!(c,
        '\u{0E01}'..='\u{0E30}' | '\u{0E32}'..='\u{0E33}' | '\u{0E40}'..='\u{0E46}'   // Thai
        | '\u{0E81}'..='\u{0EB0}' | '\u{0EB2}'..='\u{0EB3}' | '\u{0EBD}'..='\u{0EC6}' | '\u{0EDC}'..='\u{0EDF}' // Lao
        | '\u{1000}'..='\u{102A}' | '\u{1780}'..='\u{17B3}'                           // Myanmar, Khmer
        | '\u{2600}'..='\u{27BF}' | '\u{1F000}'..='\u{1FAFF}'                         // symbols, emoji
        | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{3096}' | '\u{309D}'..='\u{309F}' // Han marks, Hiragana
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' // Han
        | '\u{20000}'..='\u{3FFFF}'                                                   // Han, later planes
    )
}

/// Characters that change the appearance of a word only: joiners, direction marks, variation selectors.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}'
        | '\u{FEFF}' | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// NFKC would spell the sign out and append it to the preceding word: `Lego™` must not become `legotm`.
fn keep_signs_apart(c: char) -> char {
    if matches!(c, '™' | '℠') { ' ' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut out = b" ".to_vec();
        push_words(&mut out, text);
        assert_eq!(std::str::from_utf8(&out).unwrap(), expected, "{text:?}");
    }

    #[test]
    fn case_is_folded_in_every_script() {
        check("STRASSE straße", " strasse strasse ");
        check("ΣΚΎΛΟΣ σκύλος", " σκύλοσ σκύλοσ ");
        check("СОБАКА Собака", " собака собака ");
        check("İstanbul", " i\u{307}stanbul ");
    }

    #[test]
    fn compatibility_forms_are_one() {
        check("ﬁsh Ｃａｔ", " fish cat ");
        check("cafe\u{301} CAFÉ", " café café ");
        check("m²", " m2 ");
        check("Lego™ bricks", " lego bricks ");
    }

    #[test]
    fn scripts_without_spaces_break_at_every_character() {
        check("黒猫cat", " 黒 猫 cat ");
        check("ねこカフェ", " ね こ カフェ ");
        check("แมว", " แ ม ว ");
        check("고양이 카페", " 고양이 카페 ");
    }

    #[test]
    fn marks_stay_on_their_letters_and_lone_ones_are_dropped() {
        check("שָׁלוֹם", " ש\u{5b8}\u{5c1}לו\u{5b9}ם ");
        check("\u{301}cat", " cat ");
        check("قِطّة", " ق\u{650}ط\u{651}ة ");
    }

    #[test]
    fn emoji_are_words_and_their_selectors_are_not() {
        check("my🐶!", " my 🐶 ");
        check("❤️x", " ❤ x ");
        check("👩\u{200d}🚀", " 👩 🚀 ");
    }

    #[test]
    fn punctuation_of_any_script_separates() {
        check("«cat»—dog。鳥、", " cat dog 鳥 ");
        check("soft\u{ad}hyphen", " softhyphen ");
    }
}
