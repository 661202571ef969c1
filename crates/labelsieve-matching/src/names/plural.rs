//! English singular and plural forms of a word.
//!
//! The forms are made of the names, which have few words, most of them nouns; texts are not changed. Wrong forms (`dresse` for
//! `dresses`) cost an entry in the automaton and never match.

/// Nouns that do not follow the rules, singular first.
const IRREGULAR: [(&str, &str); 24] = [
    ("calf", "calves"),
    ("child", "children"),
    ("elf", "elves"),
    ("fireman", "firemen"),
    ("fisherman", "fishermen"),
    ("foot", "feet"),
    ("goose", "geese"),
    ("half", "halves"),
    ("hoof", "hooves"),
    ("knife", "knives"),
    ("leaf", "leaves"),
    ("loaf", "loaves"),
    ("man", "men"),
    ("mouse", "mice"),
    ("ox", "oxen"),
    ("person", "people"),
    ("scarf", "scarves"),
    ("shelf", "shelves"),
    ("bookshelf", "bookshelves"),
    ("snowman", "snowmen"),
    ("tooth", "teeth"),
    ("wife", "wives"),
    ("wolf", "wolves"),
    ("woman", "women"),
];

/// `word` first, then its other forms. Words too short to be nouns and words of other scripts have only themselves.
pub(super) fn forms(word: &str) -> Vec<String> {
    let mut forms = vec![word.to_string()];
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) || is_function_word(word) {
        return forms;
    }
    for (singular, plural) in IRREGULAR {
        if word == singular {
            forms.push(plural.to_string());
        } else if word == plural {
            forms.push(singular.to_string());
        }
    }
    if word.ends_with('s') && !word.ends_with("ss") {
        forms.extend(singulars(word));
    }
    // `shoes` is a plural already; `bus`, `iris` and `dress` may be singular.
    if !word.ends_with('s') || ["ss", "us", "is", "as", "ns"].iter().any(|ending| word.ends_with(ending)) {
        forms.extend(plurals(word));
    }
    forms.sort_unstable_by_key(|form| (form != word, form.clone()));
    forms.dedup();
    forms
}

/// Whether a word only connects others, so that it does not describe a photo.
pub(super) fn is_function_word(word: &str) -> bool {
    const FUNCTION_WORDS: [&str; 24] = [
        "a", "an", "and", "as", "at", "by", "de", "for", "from", "in", "into", "la", "le", "of", "off", "on",
        "or", "s", "than", "the", "to", "up", "with", "without",
    ];
    FUNCTION_WORDS.contains(&word)
}

fn plurals(word: &str) -> Vec<String> {
    let hisses = ["s", "x", "z", "ch", "sh"].iter().any(|ending| word.ends_with(ending));
    match word.as_bytes() {
        _ if hisses => vec![format!("{word}es")],
        [.., b'o'] => vec![format!("{word}s"), format!("{word}es")],
        [.., before, b'y'] if !b"aeiou".contains(before) => vec![format!("{}ies", &word[..word.len() - 1])],
        _ => vec![format!("{word}s")],
    }
}

fn singulars(word: &str) -> Vec<String> {
    let mut singulars = vec![word[..word.len() - 1].to_string()];
    if let Some(stem) = word.strip_suffix("ies") {
        singulars.push(format!("{stem}y"));
    } else if let Some(stem) = word.strip_suffix("es") {
        singulars.push(stem.to_string());
    }
    singulars.retain(|singular| singular.len() >= 2);
    singulars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singular_and_plural_find_each_other() {
        let pairs = "cat cats|church churches|dress dresses|box boxes|berry berries|toy toys|bus buses|menu menus|\
                     bikini bikinis|iris irises|potato potatoes|house houses|lens lenses|shoe shoes|wolf wolves|\
                     goose geese|tshirt tshirts|watch watches|canvas canvases";
        for pair in pairs.split('|') {
            let (singular, plural) = pair.split_once(' ').unwrap();
            assert!(forms(singular).contains(&plural.to_string()), "{singular}: {:?}", forms(singular));
            assert!(forms(plural).contains(&singular.to_string()), "{plural}: {:?}", forms(plural));
        }
    }

    #[test]
    fn a_word_is_its_own_first_form() {
        for word in ["cats", "of", "猫", "2cv", "dress", "ox", ""] {
            assert_eq!(forms(word)[0], word);
        }
        assert_eq!(forms("of"), ["of"]);
        assert_eq!(forms("猫"), ["猫"]);
    }
}
