//! Classes whose relevance says little, and what to do about them.

use labelsieve::Method;
use labelsieve::evaluation::{is_flat, is_small_pool};
use labelsieve_data::counted;

use crate::inputs::left_out::listed;
use crate::monitor::Monitor;

/// Classes to be named, each with its number of candidates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// Relevance hardly tells their candidates apart.
    pub flat: Vec<(String, usize)>,
    /// They have hardly more candidates than the graph gives neighbours to each.
    pub small: Vec<(String, usize)>,
}

impl Doubts {
    /// Looks at a class: the relevance of the candidates that nobody decided about, and numbers of all examples.
    pub fn add(
        &mut self,
        class: &str,
        undecided: &[f32],
        (n_clean, n_candidates): (usize, usize),
        method: &Method,
    ) {
        let named = || (class.to_owned(), n_candidates);
        let is_meant_to_be_flat = matches!(method, Method::Beta(_));
        if !is_meant_to_be_flat && is_flat(undecided) {
            self.flat.push(named());
        }
        let is_small = |neighbours| n_candidates > 0 && is_small_pool(n_candidates, n_clean, neighbours);
        if method.neighbours().is_some_and(is_small) {
            self.small.push(named());
        }
    }

    /// Names the classes and says what helps.
    pub fn warn(&self, method: &Method, monitor: &dyn Monitor) {
        if !self.flat.is_empty() {
            monitor.warning(&format!(
                "relevance hardly tells the candidates of {} apart: {}",
                counted(self.flat.len(), "class"),
                named(&self.flat)
            ));
        }
        if let (false, Some(neighbours)) = (self.small.is_empty(), method.neighbours()) {
            let have = if self.small.len() == 1 { "has" } else { "have" };
            monitor.warning(&format!(
                "{} {have} hardly more candidates than the {neighbours} neighbours that each has in the graph: {}",
                counted(self.small.len(), "class"),
                named(&self.small)
            ));
        }
        if !self.flat.is_empty() || !self.small.is_empty() {
            monitor.hint(&hint(method));
        }
    }
}

/// The smallest first: they need help most.
fn named(classes: &[(String, usize)]) -> String {
    let mut sorted: Vec<&(String, usize)> = classes.iter().collect();
    sorted.sort_by_key(|(_, n)| *n); // stable
    listed(sorted.iter().map(|(name, n)| format!("`{name}` ({n})")), classes.len())
}

fn hint(method: &Method) -> String {
    let mut ways = vec!["find more candidates (broader names in `labelsieve match`)"];
    if method.name() != "auto" {
        ways.push("try --method auto");
    }
    if method.neighbours().is_some() {
        ways.push("try a smaller --neighbours");
    }
    format!("{}, or decide about some with `labelsieve review`", ways.join(", "))
}

#[cfg(test)]
mod tests {
    use labelsieve::relevance::{Beta, Similarity};

    use super::*;

    fn doubts(method: &Method, relevance: &[f32]) -> Doubts {
        let mut doubts = Doubts::default();
        doubts.add("owl", relevance, (2, relevance.len()), method);
        doubts
    }

    #[test]
    fn flat_classes_and_small_pools_are_found_where_they_mean_something() {
        let (flat, small) = (vec![("owl".to_owned(), 60)], vec![("owl".to_owned(), 9)]);
        let of = |flat: &[(String, usize)], small: &[(String, usize)]| Doubts {
            flat: flat.to_vec(),
            small: small.to_vec(),
        };
        let spread: Vec<f32> = (0..60).map(|i| i as f32 / 60.0).collect();
        let similarity = Method::Similarity(Similarity {});
        assert_eq!(doubts(&Method::gcn(), &[0.75; 60]), of(&flat, &[]));
        assert_eq!(doubts(&Method::gcn(), &spread[..9]), of(&[], &small));
        assert_eq!(doubts(&Method::gcn(), &spread), of(&[], &[]));
        assert_eq!(doubts(&Method::gcn(), &[]), of(&[], &[]), "no candidates: said elsewhere");
        assert_eq!(doubts(&similarity, &spread[..9]), of(&[], &[]), "there is no graph");
        assert_eq!(doubts(&similarity, &[0.75; 60]), of(&flat, &[]));
        assert_eq!(doubts(&Method::Beta(Beta { beta: 0.75 }), &[0.75; 60]), of(&[], &[]), "as was asked for");
    }

    #[test]
    fn what_helps_depends_on_the_method() {
        assert_eq!(
            hint(&Method::gcn()),
            "find more candidates (broader names in `labelsieve match`), try --method auto, try a smaller --neighbours, \
             or decide about some with `labelsieve review`"
        );
        assert!(!hint(&Method::Similarity(Similarity {})).contains("--neighbours"));
    }
}
