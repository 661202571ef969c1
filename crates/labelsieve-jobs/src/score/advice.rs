//! Which candidates of each class to keep, where the method gives probabilities.

use labelsieve::evaluation::Advice;
use labelsieve_files::counted;
use labelsieve_files::work::table::layout;
use serde::Serialize;

/// What to keep of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassAdvice {
    /// The class.
    pub class: String,
    /// Its candidates.
    pub n_candidates: usize,
    /// Which of them to keep, and what to expect.
    #[serde(flatten)]
    pub advice: Advice,
}

impl ClassAdvice {
    /// For a class with probabilities and with candidates.
    pub fn new(class: &str, probability: &[f32]) -> Option<ClassAdvice> {
        let advice = Advice::new(probability)?;
        Some(ClassAdvice { class: class.to_owned(), n_candidates: probability.len(), advice })
    }

    fn row(&self) -> Vec<String> {
        let right = self.advice.share_right.map_or("–".to_owned(), whole_percent);
        let threshold = format!("{:.2}", self.advice.threshold);
        let (n, kept) = (self.n_candidates.to_string(), self.advice.n_kept.to_string());
        vec![self.class.clone(), n, threshold, kept, right]
    }
}

/// A table for people of at most so many classes, those first whose kept candidates are expected to be right least often; then
/// a line for all classes.
pub fn lines(classes: &[ClassAdvice], most: usize) -> Vec<String> {
    let share = |class: &ClassAdvice| class.advice.share_right.unwrap_or(0.0);
    let mut sorted: Vec<&ClassAdvice> = classes.iter().collect();
    sorted.sort_by(|a, b| share(a).total_cmp(&share(b)).then(b.n_candidates.cmp(&a.n_candidates)));
    let rows: Vec<Vec<String>> = sorted.iter().take(most).map(|class| class.row()).collect();
    let mut lines = Vec::new();
    if classes.len() > 1 {
        lines.extend(layout(&["class", "candidates", "keep ≥", "kept", "right %"], &rows));
        let n_more = classes.len() - rows.len();
        if n_more > 0 {
            lines.push(format!("and {n_more} more, where more should be right; -v or --json lists all"));
        }
    }
    let (n_kept, share_right) = Advice::sum(classes.iter().map(|class| &class.advice));
    let n_candidates = classes.iter().map(|class| class.n_candidates).sum();
    let which = match classes {
        [] => return lines,
        [class] => format!("probability {:.2} or more", class.advice.threshold),
        _ => "at least the probability given for their class".to_owned(),
    };
    let candidates = counted(n_candidates, "candidate");
    lines.push(match share_right {
        Some(share) => format!(
            "keep those with {which}: {n_kept} of {candidates}, about {} % of them right",
            whole_percent(share)
        ),
        None => format!("none of {candidates} is more likely right than wrong"),
    });
    lines
}

fn whole_percent(share: f64) -> String {
    format!("{:.0}", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_that_need_a_look_come_first_and_the_rest_is_counted() {
        let classes: Vec<ClassAdvice> =
            [("crane", &[0.5, 0.75, 0.1][..]), ("mouse", &[1.0, 1.0, 0.25]), ("palm", &[0.25, 0.0])]
                .into_iter()
                .filter_map(|(class, probability)| ClassAdvice::new(class, probability))
                .collect();
        assert_eq!(
            lines(&classes, 2),
            [
                "class  candidates  keep ≥  kept  right %",
                "────────────────────────────────────────",
                "palm            2    0.50     0        –",
                "crane           3    0.50     2       62",
                "and 1 more, where more should be right; -v or --json lists all",
                "keep those with at least the probability given for their class: 4 of 8 candidates, about 81 % of them right",
            ]
        );
    }

    #[test]
    fn one_class_needs_no_table() {
        let one = [ClassAdvice::new("crane", &[1.0, 0.9, 0.2]).unwrap()];
        let line = "keep those with probability 0.50 or more: 2 of 3 candidates, about 95 % of them right";
        assert_eq!(lines(&one, 10), [line]);
        let none = [ClassAdvice::new("crane", &[0.2]).unwrap()];
        assert_eq!(lines(&none, 10), ["none of 1 candidate is more likely right than wrong"]);
        assert_eq!(ClassAdvice::new("crane", &[]), None);
        assert_eq!(lines(&[], 10), [] as [&str; 0]);
    }
}
