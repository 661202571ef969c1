//! What was perhaps meant by a word that is not there.

/// The word closest to `wrong`, if it is close enough for a slip: another case, one or two letters, one of several
/// parts. Of equally close ones, the first.
pub fn nearest<'a>(wrong: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let most = 1 + wrong.chars().count() / 4;
    let distances = words.into_iter().map(|word| (distance(&wrong, &word.to_lowercase()), word));
    let close = distances.filter(|(distance, word)| *distance <= most && *distance < word.chars().count());
    close.min_by_key(|(distance, _)| *distance).map(|(_, word)| word)
}

/// Letters to insert, remove, replace or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let mut least = (last[j + 1] + 1).min(row[j] + 1).min(last[j] + usize::from(a[i] != b[j]));
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let words = ["photos", "clean", "class", "label"];
        for (wrong, meant) in [
            ("phtos", Some("photos")),
            ("Photos", Some("photos")),
            ("pohtos", Some("photos")),
            ("labels", Some("label")),
            ("species", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, words), meant, "{wrong}");
        }
        assert_eq!(nearest("class", ["clas", "classy"]), Some("clas"));
        assert_eq!(nearest("y", ["x"]), None, "nothing of it is left");
    }
}
