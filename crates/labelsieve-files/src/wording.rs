//! Numbers with their nouns.

/// A number with its noun in the singular or plural: `1 table`, `2 tables`, `0 classes`.
///
/// ```
/// use labelsieve_files::counted;
///
/// assert_eq!(counted(1, "class"), "1 class");
/// assert_eq!(counted(2, "class"), "2 classes");
/// assert_eq!(counted(0, "table"), "0 tables");
/// assert_eq!(counted(3, "entry"), "3 entries");
/// assert_eq!(counted(4, "batch"), "4 batches");
/// assert_eq!(counted(4, "epoch"), "4 epochs");
/// ```
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {}", noun_for(n, noun))
}

/// The noun in the singular or plural.
pub fn noun_for(n: usize, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if n == 1 => noun.to_owned(),
        Some(stem) => format!("{stem}ies"),
        None if noun.ends_with('s') || noun.ends_with("tch") => format!("{noun}es"),
        None => format!("{noun}s"),
    }
}
