//! The `--json` answers of commands without a job of their own: structs, so that `docs/json.md` is generated from them.
//! Fields are in alphabetical order.

use serde::Serialize;

/// The answer of `decisions show`.
#[derive(Serialize)]
pub struct ShownDecisions<'a> {
    /// Classes with decisions that hold.
    pub classes: Vec<DecidedClass<'a>>,
    /// Rows of the table, withdrawn and replaced decisions included.
    pub n_rows: usize,
}

/// The decisions about one class.
#[derive(Serialize)]
pub struct DecidedClass<'a> {
    /// The name of the class.
    pub class: &'a str,
    /// Accepted candidates.
    pub n_accept: usize,
    /// Rejected candidates.
    pub n_reject: usize,
    /// Candidates that were looked at without a result.
    pub n_unsure: usize,
}

/// The answer of `review`.
#[derive(Serialize)]
pub struct ReviewAnswer<'a> {
    /// Whether there are features, so that relevance follows the decisions.
    pub can_score: bool,
    /// Candidates of all classes.
    pub n_candidates: usize,
    /// Classes.
    pub n_classes: usize,
    /// Candidates with a decision so far.
    pub n_decisions: usize,
    /// The file of the decisions.
    pub output: &'a str,
    /// The address of the page, with its token.
    pub url: &'a str,
}

/// The answer of `demo`.
#[derive(Serialize)]
pub struct DemoAnswer {
    /// The HTML report.
    pub report: String,
    /// Accuracy on test icons, one entry per way of training.
    pub rows: Vec<DemoRow>,
}

/// The accuracy of one way of training.
#[derive(Serialize)]
pub struct DemoRow {
    /// Share of test icons whose best guess is right.
    pub top_1: f64,
    /// Share of test icons with the right class among the five best guesses.
    pub top_5: f64,
    /// The training examples and the classifier.
    pub trained_on: &'static str,
}
