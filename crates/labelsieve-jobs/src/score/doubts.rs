//! Classes whose relevance says little, and remedies for them.

use labelsieve::{Method, evaluation};
use labelsieve_files::counted;
use labelsieve_files::inputs::left_out::listed;
use labelsieve_files::work::{Monitor, Words, command, option, words};

/// Classes to be named, each with its number of candidates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// Relevance hardly tells their candidates apart.
    pub flat: Vec<(String, usize)>,
    /// They have hardly more candidates than the graph gives neighbours to each.
    pub small: Vec<(String, usize)>,
    /// The most neighbours that the graph of a small one gives.
    most_neighbours: usize,
}

impl Doubts {
    /// Adds a class with its number of candidates.
    pub fn add(&mut self, class: &str, n_candidates: usize, doubts: &evaluation::Doubts) {
        let named = || (class.to_owned(), n_candidates);
        self.flat.extend(doubts.is_flat.then(named));
        if let Some(neighbours) = doubts.small_pool {
            self.small.push(named());
            self.most_neighbours = self.most_neighbours.max(neighbours);
        }
    }

    /// Names the classes and says what helps. That a pool is small is worth a note; that its relevance says nothing, a warning.
    pub fn say(&self, method: &Method, monitor: &dyn Monitor) {
        if !self.small.is_empty() {
            let have = if self.small.len() == 1 { "has" } else { "have" };
            let neighbours = self.most_neighbours;
            monitor.note(&format!(
                "{} {have} too few candidates for a graph with {} each: {}",
                counted(self.small.len(), "class"),
                counted(neighbours, "neighbour"),
                named(&self.small)
            ));
        }
        if !self.flat.is_empty() {
            monitor.warning(&format!(
                "relevance hardly tells the candidates of {} apart: {}",
                counted(self.flat.len(), "class"),
                named(&self.flat)
            ));
            monitor.hint(&hint(method));
        } else if !self.small.is_empty() {
            monitor.suggestion(&hint(method));
        }
    }
}

/// The smallest first: they need help most.
fn named(classes: &[(String, usize)]) -> String {
    let mut sorted: Vec<&(String, usize)> = classes.iter().collect();
    sorted.sort_by_key(|(_, n)| *n); // stable
    listed(sorted.iter().map(|(name, n)| format!("`{name}` ({n})")), classes.len())
}

fn hint(method: &Method) -> Words {
    let mut ways = words!["find more candidates with more or broader names per class"];
    if method.name() != "auto" {
        ways = ways.and(words![", try ", option("method").set_to("auto")]);
    }
    if method.neighbours(0).is_some() {
        ways = ways.and(words![", try a smaller ", option("neighbours")]);
    }
    ways.and(words![", or decide about some with ", command("review")])
}

#[cfg(test)]
mod tests {
    use labelsieve::relevance::Similarity;

    use super::*;

    #[test]
    fn the_smallest_classes_are_named_first_and_the_rest_is_counted() {
        let classes: Vec<(String, usize)> = (0..12).map(|i| (format!("c{i}"), 20 - i)).collect();
        let named = named(&classes);
        assert!(named.starts_with("`c11` (9), `c10` (10), "), "{named}");
        assert!(named.ends_with("`c2` (18) and 2 more"), "{named}");
    }

    #[test]
    fn what_helps_depends_on_the_method() {
        assert_eq!(
            hint(&Method::gcn()).to_string(),
            "find more candidates with more or broader names per class, try `method = auto`, try a smaller `neighbours`, \
             or decide about some with `review`"
        );
        assert!(!hint(&Method::Similarity(Similarity {})).to_string().contains("neighbours"));
    }
}
