//! The matcher against captions by hand, and against a naive matcher that shares only the Unicode tables with it.

use labelsieve_matching::names::{
    ClassEntry, ClassList, ComparedMatch, MatchRule, Matcher, NameWarning, TextEncoding,
};
use proptest::prelude::*;

fn class(id: &str, names: &[&str], exclude: &[&str]) -> ClassEntry {
    let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    ClassEntry { id: id.into(), display_name: id.into(), names: owned(names), exclude: owned(exclude) }
}

/// The classes found in an example with the given texts, as `id:name@column`.
fn found(classes: &[ClassEntry], rule: MatchRule, texts: &[&str]) -> Vec<String> {
    let list = ClassList::new(classes.to_vec()).unwrap();
    let matcher = Matcher::new(&list, rule).unwrap();
    let mut searcher = matcher.searcher();
    for (column, text) in texts.iter().enumerate() {
        searcher.push(column, text, TextEncoding::Plain);
    }
    let mut found = Vec::new();
    searcher.take_found(|hit| {
        let class = &classes[hit.class];
        found.push(format!("{}:{}@{}", class.id, class.names[hit.name], hit.column));
    });
    found
}

#[test]
fn captions_in_several_scripts_name_their_classes() {
    let check = |name: &str, caption: &str| {
        let expected = vec![format!("c:{name}@0")];
        assert_eq!(found(&[class("c", &[name], &[])], MatchRule::Phrase, &[caption]), expected, "{caption}");
    };
    check("café", "Un CAFÉ à Paris");
    check("café", "un cafe\u{301} à Paris");
    check("Straße", "IN DER STRASSE");
    check("golden_retriever", "My Golden-Retriever, 2 years");
    check("jack-o'-lantern", "Jack O Lantern on the porch");
    check("σκύλος", "Ο ΜΙΚΡΌΣ ΣΚΎΛΟΣ");
    check("собака", "Моя СОБАКА гуляет");
    check("猫", "黒猫がいる");
    check("柴犬", "かわいい柴犬です");
    check("고양이", "귀여운 고양이 사진");
    check("แมว", "รูปแมวน่ารัก");
    check("قطة", "صورة قطة جميلة");
    check("כלב", "תמונה של כלב חמוד");
    check("🐶", "look at him 🐶🐶!!");
    check("❤️", "❤ this");
    check("cat", "ＣＡＴ");
    check("fish &amp; chips", "Fish &amp; Chips <b>again</b>");
}

#[test]
fn letters_inside_other_words_do_not_count() {
    let check = |name: &str, caption: &str| {
        assert_eq!(found(&[class("c", &[name], &[])], MatchRule::Phrase, &[caption]), [""; 0], "{caption}");
    };
    check("cat", "concatenate category");
    check("cat", "cats");
    check("крот", "микротом");
    check("café", "cafe");
    check("golden retriever", "golden labrador retriever");
    check("cat", "<a href='cat.html'>dog</a>");
}

#[test]
fn each_rule_widens_the_phrase_in_its_own_way() {
    let classes = [class("shoe", &["running shoe"], &[])];
    let check = |rule, caption: &str, expected: bool| {
        assert_eq!(!found(&classes, rule, &[caption]).is_empty(), expected, "{rule:?} {caption:?}");
    };
    check(MatchRule::Phrase, "a running shoe", true);
    check(MatchRule::Phrase, "two running shoes", false);
    check(MatchRule::Plural, "two running shoes", true);
    check(MatchRule::Plural, "shoes for running", false);
    check(MatchRule::AnyWord, "shoes for walking", true);
    check(MatchRule::AnyWord, "horseshoe", false);
    check(MatchRule::Substring, "trunning shoelace", true);
    check(MatchRule::Substring, "shoe", false);
}

#[test]
fn an_example_gets_each_of_its_classes_once_with_the_first_field_and_name() {
    let classes =
        [class("dog", &["dog", "puppy"], &[]), class("cat", &["cat"], &[]), class("cow", &["cow"], &[])];
    let found = found(&classes, MatchRule::Phrase, &["a puppy and a dog", "dog, cat, puppy cat"]);
    assert_eq!(found, ["dog:dog@0", "cat:cat@1"]);
}

#[test]
fn an_excluded_name_anywhere_outweighs_every_name() {
    let classes = [class("bird", &["crane"], &["crane fly"]), class("fly", &["crane fly"], &[])];
    let check = |rule, texts: &[&str], expected: &[&str]| assert_eq!(found(&classes, rule, texts), expected);
    check(MatchRule::Phrase, &["crane", "no crane fly here"], &["fly:crane fly@1"]);
    check(MatchRule::Phrase, &["crane"], &["bird:crane@0"]);
    check(MatchRule::AnyWord, &["crane"], &["bird:crane@0", "fly:crane fly@0"]);
    check(MatchRule::AnyWord, &["crane flies"], &["fly:crane fly@0"]);
}

/// The matches of a comparing matcher by each of its rules, as positions of classes.
fn compared(classes: &[ClassEntry], texts: &[&str]) -> (Vec<usize>, Vec<usize>) {
    let list = ClassList::new(classes.to_vec()).unwrap();
    let matcher = Matcher::comparing(&list, MatchRule::Phrase, MatchRule::Plural).unwrap();
    assert!(matcher.compares());
    let mut asked = Vec::new();
    let mut wider = Vec::new();
    let mut searcher = matcher.searcher();
    texts.iter().enumerate().for_each(|(column, text)| searcher.push(column, text, TextEncoding::Plain));
    searcher.take_compared(|class| match class {
        ComparedMatch::Asked(found) => asked.push(found.class),
        ComparedMatch::Wider(class) => wider.push(class),
    });
    (asked, wider)
}

#[test]
fn a_comparison_says_what_the_wider_rule_would_find() {
    let classes = [class("bird", &["crane"], &["crane fly"]), class("cat", &["cat"], &[])];
    assert_eq!(compared(&classes, &["a crane", "two cats"]), (vec![0], vec![0, 1]));
    // The plural widens what is excluded, too.
    assert_eq!(compared(&classes, &["a crane among crane flies"]), (vec![0], vec![]));
}

#[test]
fn no_name_runs_from_one_text_into_the_next() {
    let classes = [class("bear", &["black bear"], &[])];
    for rule in [MatchRule::Phrase, MatchRule::Plural, MatchRule::Substring] {
        assert_eq!(found(&classes, rule, &["black", "bear"]), [""; 0]);
    }
}

#[test]
fn overlapping_names_are_all_found() {
    let classes = [class("a", &["red fox"], &[]), class("b", &["fox hound"], &[]), class("c", &["fox"], &[])];
    assert_eq!(
        found(&classes, MatchRule::Phrase, &["red fox hound"]),
        ["a:red fox@0", "b:fox hound@0", "c:fox@0"]
    );
}

#[test]
fn shared_and_impossible_names_are_reported() {
    let list = ClassList::new(vec![
        class("bird", &["Crane", "?!"], &[]),
        class("machine", &["crane", "CRANE"], &[]),
        class("cat", &["cat"], &["crane"]),
    ]);
    let matcher = Matcher::new(&list.unwrap(), MatchRule::Phrase).unwrap();
    assert_eq!(
        matcher.warnings(),
        [
            NameWarning::Unsearchable { class: 0, name: "?!".into() },
            NameWarning::Shared { words: "crane".into(), classes: vec![0, 1] },
        ]
    );
}

/// The naive matcher: words by definition, then every window of every text.
mod naive {
    use caseless::Caseless;
    use unicode_normalization::UnicodeNormalization;

    pub fn words(text: &str) -> Vec<String> {
        let folded: String = text.nfkc().default_case_fold().nfkc().collect();
        let mut words = vec![String::new()];
        for c in folded.chars() {
            let alone =
                ('\u{3041}'..='\u{3096}').contains(&c) || ('\u{4e00}'..='\u{9fff}').contains(&c) || c == '🐶';
            if alone {
                words.extend([c.to_string(), String::new()]);
            } else if c.is_alphanumeric() {
                words.last_mut().unwrap().push(c);
            } else {
                words.push(String::new());
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    pub fn has_phrase(text: &str, name: &str, same: impl Fn(&str, &str) -> bool) -> bool {
        let text = words(text);
        let name = words(name);
        !name.is_empty()
            && text.windows(name.len()).any(|window| window.iter().zip(&name).all(|(a, b)| same(a, b)))
    }

    pub fn has_any_word(text: &str, name: &str, same: impl Fn(&str, &str) -> bool) -> bool {
        words(name).iter().any(|name| words(text).iter().any(|word| same(word, name)))
    }

    pub fn has_letters(text: &str, name: &str) -> bool {
        let name = words(name).join(" ");
        !name.is_empty() && words(text).join(" ").contains(&name)
    }

    /// Enough for the vocabulary below, whose plurals all end in a plain `s`.
    pub fn same_noun(a: &str, b: &str) -> bool {
        a == b || format!("{a}s") == b || format!("{b}s") == a
    }
}

fn caption() -> impl Strategy<Value = String> {
    let letters = prop::sample::select("aAbB1éÉßΣςσдД猫犬ねカ🐶 -_+.,'ﬁＡ。、".chars().collect::<Vec<_>>());
    prop::collection::vec(letters, 0..24).prop_map(String::from_iter)
}

fn noun_caption() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec!["cat", "Cats", "dog", "dogs", "bird", "BIRDS", "猫", "--", "_"]);
    prop::collection::vec(words, 0..6).prop_map(|words| words.join(" "))
}

fn check_against(
    rule: MatchRule,
    texts: &[String],
    names: &[String],
    excluded: &str,
    has: impl Fn(&str, &str) -> bool,
    has_excluded: impl Fn(&str, &str) -> bool,
) -> Result<(), TestCaseError> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let expected = texts.iter().enumerate().find_map(|(column, text)| {
        names.iter().find(|name| has(text, name)).map(|name| format!("c:{name}@{column}"))
    });
    let is_excluded = texts.iter().any(|text| has_excluded(text, excluded));
    let expected: Vec<String> = expected.filter(|_| !is_excluded).into_iter().collect();
    prop_assert_eq!(found(&[class("c", &names, &[excluded])], rule, &texts), expected);
    Ok(())
}

proptest! {
    #[test]
    fn phrases_and_substrings_agree_with_the_naive_matcher(
        texts in prop::collection::vec(caption(), 0..3),
        names in prop::collection::vec(caption().prop_map(|c| c.chars().take(3).collect()), 1..4),
        excluded in caption().prop_map(|c| c.chars().take(4).collect::<String>()),
    ) {
        let phrase = |text: &str, name: &str| naive::has_phrase(text, name, |a, b| a == b);
        check_against(MatchRule::Phrase, &texts, &names, &excluded, phrase, phrase)?;
        check_against(MatchRule::Substring, &texts, &names, &excluded, naive::has_letters, naive::has_letters)?;
    }

    #[test]
    fn plurals_and_any_word_agree_with_the_naive_matcher(
        texts in prop::collection::vec(noun_caption(), 0..3),
        names in prop::collection::vec(noun_caption(), 1..4),
        excluded in noun_caption(),
    ) {
        let phrase = |text: &str, name: &str| naive::has_phrase(text, name, naive::same_noun);
        let any_word = |text: &str, name: &str| naive::has_any_word(text, name, naive::same_noun);
        check_against(MatchRule::AnyWord, &texts, &names, &excluded, any_word, phrase)?;
        // Longer names inflect their last word only, which the naive matcher does not know.
        if names.iter().chain([&excluded]).all(|name| naive::words(name).len() <= 4) {
            check_against(MatchRule::Plural, &texts, &names, &excluded, phrase, phrase)?;
        }
    }

    #[test]
    fn a_comparison_agrees_with_both_rules(
        texts in prop::collection::vec(noun_caption(), 0..3),
        names in prop::collection::vec(noun_caption(), 1..4),
        excluded in noun_caption(),
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let classes = [class("c", &names, &[&excluded])];
        let (asked, wider) = compared(&classes, &texts);
        prop_assert_eq!(asked.len(), found(&classes, MatchRule::Phrase, &texts).len());
        prop_assert_eq!(wider.len(), found(&classes, MatchRule::Plural, &texts).len());
    }

    #[test]
    fn any_text_can_be_searched(text in any::<String>(), name in any::<String>()) {
        for encoding in [TextEncoding::Plain, TextEncoding::Percent] {
            let list = ClassList::new(vec![class("c", &[&name], &[])]).unwrap();
            let matcher = Matcher::new(&list, MatchRule::Phrase).unwrap();
            let mut searcher = matcher.searcher();
            searcher.push(0, &text, encoding);
            searcher.push(1, &name, TextEncoding::Plain);
            let mut n_found = 0;
            searcher.take_found(|_| n_found += 1);
            let searchable = matcher.warnings().is_empty();
            prop_assert_eq!(n_found, usize::from(searchable), "a name contains itself");
        }
    }

    #[test]
    fn percent_encoding_changes_nothing(text in caption(), name in caption()) {
        let encoded: String = text.bytes().map(|byte| match byte {
            b' ' => "+".to_string(),
            b'a'..=b'z' | b'A'..=b'Z' => (byte as char).to_string(),
            _ => format!("%{byte:02X}"),
        }).collect();
        let list = ClassList::new(vec![class("c", &[&name], &[])]).unwrap();
        let matcher = Matcher::new(&list, MatchRule::Phrase).unwrap();
        let mut searcher = matcher.searcher();
        let mut find = |text: &str, encoding| {
            let mut found = Vec::new();
            searcher.push(0, text, encoding);
            searcher.take_found(|hit| found.push(hit));
            found
        };
        prop_assert_eq!(find(&encoded, TextEncoding::Percent), find(&text, TextEncoding::Plain));
    }
}
