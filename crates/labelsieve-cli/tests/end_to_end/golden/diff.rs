//! The differences between two texts, line by line.

/// Equal lines shown around a change.
const CONTEXT: usize = 2;

/// The lines of both texts with `-` (only expected), `+` (only found) or a blank; equal ones only near a change.
pub fn diff(expected: &str, found: &str) -> String {
    let lines = aligned(&expected.lines().collect::<Vec<_>>(), &found.lines().collect::<Vec<_>>());
    let is_near_change = |at: usize| {
        let near = at.saturating_sub(CONTEXT)..lines.len().min(at + CONTEXT + 1);
        lines[near].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut shown = String::new();
    let mut is_gap = false;
    for (at, (mark, line)) in lines.iter().enumerate() {
        if is_near_change(at) {
            shown += &format!("{mark} {line}\n");
        } else if !is_gap {
            shown += "  …\n";
        }
        is_gap = !is_near_change(at);
    }
    shown
}

/// A longest common subsequence, with what only one side has between its lines.
fn aligned<'a>(expected: &[&'a str], found: &[&'a str]) -> Vec<(char, &'a str)> {
    // common[i][j]: length of the longest common subsequence of what follows line i and line j.
    let mut common = vec![vec![0usize; found.len() + 1]; expected.len() + 1];
    for i in (0..expected.len()).rev() {
        for j in (0..found.len()).rev() {
            common[i][j] = if expected[i] == found[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let mut lines = Vec::new();
    let mut i = 0;
    let mut j = 0;
    while i < expected.len() || j < found.len() {
        if i < expected.len() && j < found.len() && expected[i] == found[j] {
            lines.push((' ', expected[i]));
            i += 1;
            j += 1;
        } else if j == found.len() || (i < expected.len() && common[i + 1][j] >= common[i][j + 1]) {
            lines.push(('-', expected[i]));
            i += 1;
        } else {
            lines.push(('+', found[j]));
            j += 1;
        }
    }
    lines
}

#[test]
fn only_changed_lines_and_their_neighbours_are_shown() {
    let expected = "1\n2\n3\n4\n5\n6\n7";
    assert_eq!(diff(expected, "1\n2\n3\nfour\n5\n6\n7"), "  …\n  2\n  3\n- 4\n+ four\n  5\n  6\n  …\n");
    assert_eq!(diff("", "new"), "+ new\n");
}
