//! The rules for when a text contains a name.

use std::collections::BTreeSet;
use std::fmt;

use super::plural::{forms, is_function_word};
use super::words::words_of;

/// A rule for when a text contains a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum MatchRule {
    /// The words of the name, whole and in order.
    #[default]
    Phrase,
    /// As `phrase`, each word in singular or plural.
    Plural,
    /// One word of the name, in singular or plural.
    AnyWord,
    /// The letters of the name, inside words too.
    Substring,
}

impl fmt::Display for MatchRule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            MatchRule::Phrase => "phrase",
            MatchRule::Plural => "plural",
            MatchRule::AnyWord => "any-word",
            MatchRule::Substring => "substring",
        })
    }
}

impl MatchRule {
    /// The byte strings whose presence in a [`WordBuffer`](super::words::WordBuffer) means that the name is there.
    pub(super) fn patterns(self, name: &str) -> BTreeSet<String> {
        let name = words_of(name);
        if name.is_empty() {
            return BTreeSet::new();
        }
        let words: Vec<&str> = name.split(' ').collect();
        match self {
            MatchRule::Phrase => BTreeSet::from([whole_words(&name)]),
            MatchRule::Plural => inflected_phrases(&words),
            MatchRule::AnyWord => any_word(&words),
            MatchRule::Substring => BTreeSet::from([name]),
        }
    }

    /// The rule for names to exclude: one word of `crane fly` must not exclude every crane.
    pub(super) fn for_excluded_names(self) -> MatchRule {
        if self == MatchRule::AnyWord { MatchRule::Plural } else { self }
    }
}

fn whole_words(words: &str) -> String {
    format!(" {words} ")
}

/// Every combination of the words' forms. Long names are phrases rather than nouns: only their last word is inflected, which
/// also bounds the number of patterns.
fn inflected_phrases(words: &[&str]) -> BTreeSet<String> {
    const MAX_INFLECTED_WORDS: usize = 4;
    let n_fixed = if words.len() > MAX_INFLECTED_WORDS { words.len() - 1 } else { 0 };
    let mut phrases = vec![String::new()];
    for (position, word) in words.iter().enumerate() {
        let forms = if position < n_fixed { vec![word.to_string()] } else { forms(word) };
        phrases = phrases
            .iter()
            .flat_map(|start| forms.iter().map(move |form| format!("{start} {form}")))
            .collect();
    }
    phrases.into_iter().map(|phrase| phrase + " ").collect()
}

fn any_word(words: &[&str]) -> BTreeSet<String> {
    let telling: Vec<&str> = words.iter().copied().filter(|word| !is_function_word(word)).collect();
    let words = if telling.is_empty() { words } else { &telling };
    words.iter().flat_map(|word| forms(word)).map(|form| whole_words(&form)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: MatchRule, name: &str, expected: &[&str]) {
        assert_eq!(rule.patterns(name).iter().map(String::as_str).collect::<Vec<_>>(), expected, "{name:?}");
    }

    #[test]
    fn each_rule_has_its_own_patterns() {
        check(MatchRule::Phrase, "Church_building", &[" church building "]);
        check(MatchRule::Plural, "wild cat", &[" wild cat ", " wild cats ", " wilds cat ", " wilds cats "]);
        check(MatchRule::AnyWord, "bird of prey", &[" bird ", " birds ", " prey ", " preys "]);
        check(MatchRule::Substring, "Church_building", &["church building"]);
    }

    #[test]
    fn a_name_without_letters_has_no_patterns() {
        for rule in [MatchRule::Phrase, MatchRule::Plural, MatchRule::AnyWord, MatchRule::Substring] {
            check(rule, " ?! ", &[]);
        }
    }

    #[test]
    fn a_name_of_function_words_is_still_searched_for() {
        check(MatchRule::AnyWord, "The And", &[" and ", " the "]);
    }

    #[test]
    fn long_names_inflect_their_last_word_only() {
        check(MatchRule::Plural, "cat dog cow pig hen", &[" cat dog cow pig hen ", " cat dog cow pig hens "]);
    }
}
