//! Lists of WordNet synsets, one per line: `n03028079 church, church building`.

use crate::names::ClassEntry;

/// Parses a list. The id is the WordNet id at the start of the line, or else the index of the line, from 0.
pub(super) fn parse(text: &str) -> Vec<ClassEntry> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.enumerate().map(|(position, line)| parse_line(position, line)).collect()
}

fn parse_line(position: usize, line: &str) -> ClassEntry {
    let (first, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let (id, names) =
        if is_wordnet_id(first) { (first.to_string(), rest) } else { (position.to_string(), line) };
    let names = names.split(',').map(|name| name.trim().replace('_', " "));
    let names: Vec<String> = names.filter(|name| !name.is_empty()).collect();
    let display_name = names.first().cloned().unwrap_or_default();
    ClassEntry { id, display_name, names, exclude: Vec::new() }
}

/// `n` (or another part of speech) and eight digits.
fn is_wordnet_id(word: &str) -> bool {
    let mut letters = word.chars();
    word.len() == 9
        && letters.next().is_some_and(|letter| "nvars".contains(letter))
        && letters.all(|letter| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_with_or_without_wordnet_ids() {
        let classes = parse("n03028079 church, church_building\n\nn02012849\tcrane\nlast, one\n");
        let lines: Vec<String> =
            classes.iter().map(|class| format!("{}={}", class.id, class.names.join("|"))).collect();
        assert_eq!(lines, ["n03028079=church|church building", "n02012849=crane", "2=last|one"]);
        assert_eq!(classes[0].display_name, "church");
    }
}
