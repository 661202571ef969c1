//! Numbers with their nouns.

/// `1 table`, `2 tables`, `0 classes`: the number, and the noun in its form.
///
/// ```
/// use labelsieve_report::counted;
///
/// assert_eq!(counted(1, "class"), "1 class");
/// assert_eq!(counted(2, "class"), "2 classes");
/// assert_eq!(counted(0, "table"), "0 tables");
/// ```
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {}", noun_for(n, noun))
}

/// The noun in the form that fits the number.
pub(crate) fn noun_for(n: usize, noun: &str) -> String {
    match noun.ends_with('s') {
        _ if n == 1 => noun.to_owned(),
        true => format!("{noun}es"),
        false => format!("{noun}s"),
    }
}
