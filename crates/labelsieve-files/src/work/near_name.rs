//! Suggesting a name for a misspelt one.

use strsim::osa_distance;

/// The name in `known` that `name` is most likely a misspelling of, if one is close enough: equal except for case, spaces, `_`
/// and `-`; singular and plural; or one or two letters different. Of equally close ones, the first.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(name);
    let ranked = known.into_iter().filter_map(|known| Some((rank(name, &folded, known)?, known)));
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, known)| known)
}

/// The distance of two names; `None` if they are too different.
fn rank(name: &str, folded: &str, known: &str) -> Option<usize> {
    let other = fold(known);
    if folded == other || same_number(name, known) {
        return Some(0);
    }
    if is_plural_of(folded, &other) || is_plural_of(&other, folded) {
        return Some(1);
    }
    // Different numbers are different things: `n02114367` is not a misspelling of `n02114366`.
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let length = folded.chars().count();
    let other_length = other.chars().count();
    let max_distance = match length.max(other_length) {
        0..4 => return None,
        4..8 => 1,
        8..200 => 2,
        _ => return None, // not a name, and slow to compare
    };
    if digits(folded) != digits(&other) || length.abs_diff(other_length) > max_distance {
        return None;
    }
    let distance = osa_distance(folded, &other);
    (distance <= max_distance).then_some(1 + distance)
}

/// Lower-case words with one space between them.
fn fold(name: &str) -> String {
    let words = name.split(|c: char| c.is_whitespace() || c == '_' || c == '-');
    let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    words.join(" ")
}

/// `7`, `07` and, as pandas writes a column with gaps, `7.0`.
fn same_number(a: &str, b: &str) -> bool {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number(a).is_some() && number(a) == number(b)
}

fn is_plural_of(plural: &str, singular: &str) -> bool {
    let ending = |end: &str| plural.strip_suffix(end).is_some_and(|stem| stem == singular);
    !singular.is_empty()
        && (ending("s")
            || ending("es")
            || plural.strip_suffix("ies").zip(singular.strip_suffix('y')).is_some_and(|(a, b)| a == b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, known: &[&str], expected: Option<&str>) {
        assert_eq!(nearest(name, known.iter().copied()), expected, "{name}");
    }

    #[test]
    fn case_spaces_and_underscores_make_no_other_name() {
        check("Caps", &["hats", "caps"], Some("caps"));
        check(" barn_owl", &["Barn Owl", "owl"], Some("Barn Owl"));
        check("T-Shirt", &["t shirt"], Some("t shirt"));
        check("ÖL", &["öl"], Some("öl"));
    }

    #[test]
    fn plurals_are_near() {
        check("caps", &["hat", "cap"], Some("cap"));
        check("cap", &["caps"], Some("caps"));
        check("dresses", &["dress"], Some("dress"));
        check("Ladies", &["lady"], Some("lady"));
    }

    #[test]
    fn a_letter_or_two_may_be_wrong_in_longer_names() {
        check("sandlas", &["sandals", "scandal"], Some("sandals"));
        check("waistcoat", &["waist coats", "overcoat"], Some("waist coats"));
        check("cat", &["car", "cut"], None);
        check("flip flops", &["slippers"], None);
        assert_eq!(osa_distance("abcd", "acbd"), 1);
        assert_eq!(osa_distance("kitten", "sitting"), 3);
        assert_eq!(osa_distance("", "ab"), 2);
    }

    #[test]
    fn numbers_are_near_only_if_they_are_equal() {
        check("17", &["18", "7"], None);
        check("7.0", &["70", "7"], Some("7"));
        check("007", &["7"], Some("7"));
        check("n02114367", &["n02114366"], None);
        check("class 10", &["class 11"], None);
    }

    #[test]
    fn the_nearest_wins_and_of_equals_the_first() {
        check("sneaker", &["sneakers", "Sneaker"], Some("Sneaker"));
        check("boots", &["booth", "boats", "boot"], Some("boot"));
        check("beads", &["heads", "leads"], Some("heads"));
        check("owl", &[], None);
        check("", &["", "a"], Some(""));
    }
}
