//! The name that someone may have meant.

/// The one of `names` that takes the fewest changes to become `asked`, if these are few.
pub(super) fn nearest<'a>(asked: &str, names: &'a [String]) -> Option<&'a str> {
    let asked = asked.to_lowercase();
    let most_changes = (asked.chars().count() / 3).max(1);
    let distances = names.iter().map(|name| (distance(&asked, &name.to_lowercase()), name));
    let near = distances.filter(|(distance, _)| *distance <= most_changes);
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name.as_str())
}

/// Letters to insert, delete, replace or swap with their neighbour to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, n) | (n, 0) => n,
                _ => {
                    let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let swaps = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                    let swapped = if swaps { rows[i - 2][j - 2] + 1 } else { usize::MAX };
                    replaced.min(swapped).min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1)
                }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_mended_and_another_word_is_not() {
        let names = ["id", "title", "user_tags"].map(String::from);
        for (asked, expected) in
            [("titel", "title"), ("Title", "title"), ("usertags", "user_tags"), ("ids", "id")]
        {
            assert_eq!(nearest(asked, &names), Some(expected), "{asked}");
        }
        for asked in ["caption", "words", ""] {
            assert_eq!(nearest(asked, &names), None, "{asked}");
        }
    }
}
