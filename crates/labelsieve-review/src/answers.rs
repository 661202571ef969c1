//! What a session answers, as a page gets it.

use labelsieve::Decision;
use labelsieve_files::decision_word;
use serde::{Serialize, Serializer};

/// A session as a whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overview {
    /// What is reviewed.
    pub title: String,
    /// The file of the decisions.
    pub output: String,
    /// Who decides.
    pub by: String,
    /// How relevance is scored.
    pub method: &'static str,
    /// λ that somebody chose in this session.
    pub lambda: Option<f32>,
    /// λ without that: of the relevance file, else for the usual number of clean examples.
    pub default_lambda: Option<f32>,
    /// The smallest and largest λ that make sense; none for methods without one.
    pub lambda_range: Option<[f32; 2]>,
    /// Whether there are features, so that relevance follows the decisions.
    pub can_score: bool,
    /// Whether any example has a picture.
    pub has_pictures: bool,
    /// Whether any example has a caption.
    pub has_captions: bool,
    /// Where the last decision was made.
    pub last: Option<CandidatePosition>,
    /// Candidates with a decision.
    pub n_decisions: usize,
    /// How often one can undo.
    pub n_undo: usize,
    /// How often one can redo.
    pub n_redo: usize,
    /// The command that makes the relevance of this session permanent; none without features, or where no options of the
    /// command stand for the settings.
    pub command: Option<String>,
    /// All classes.
    pub classes: Vec<ClassSummary>,
}

/// A candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CandidatePosition {
    /// Number of its class.
    pub class: usize,
    /// Its row there.
    pub row: usize,
}

/// A class in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassSummary {
    /// Its number.
    pub class: usize,
    /// Its name.
    pub name: String,
    /// Clean examples.
    pub n_clean: usize,
    /// Candidates.
    pub n_candidates: usize,
    /// Decisions.
    #[serde(flatten)]
    pub counts: Counts,
    /// Of its candidates; none without any.
    pub mean_relevance: Option<f32>,
}

/// The decisions of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Accepted candidates.
    pub n_accept: usize,
    /// Rejected ones.
    pub n_reject: usize,
    /// Undecidable ones.
    pub n_unsure: usize,
}

/// All candidates of a class; vectors have one entry for each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassView<'a> {
    /// Its number.
    pub class: usize,
    /// Of its relevance.
    pub revision: u64,
    /// Numbers of the examples.
    pub example: &'a [u32],
    /// Their names.
    pub id: Vec<&'a str>,
    /// Their captions.
    pub caption: Vec<Option<&'a str>>,
    /// The class names that were found in texts.
    pub names: &'a [String],
    /// By which of them each was found; -1: nothing known.
    pub name: &'a [i32],
    /// Their relevance.
    pub relevance: SharedVec<f32>,
    /// Codes of their decisions.
    pub decision: Vec<u8>,
    /// The first row among the near-duplicates of each.
    pub group: SharedVec<u32>,
    /// The clean examples.
    pub clean: Vec<CleanView<'a>>,
}

/// A clean example.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CleanView<'a> {
    /// Its number.
    pub example: u32,
    /// Its name.
    pub id: &'a str,
    /// Its caption.
    pub caption: Option<&'a str>,
}

/// The relevance of a class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoresView {
    /// Its number.
    pub class: usize,
    /// Grows whenever the relevance or the groups change.
    pub revision: u64,
    /// One number per candidate.
    pub relevance: SharedVec<f32>,
    /// The first row among the near-duplicates of each: known once the graph of the class was made.
    pub group: SharedVec<u32>,
}

/// Rows of a class in some order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrderView {
    /// Its number.
    pub class: usize,
    /// Of the relevance that the order was made with.
    pub revision: u64,
    /// Which order.
    pub by: &'static str,
    /// The rows.
    pub rows: Vec<u32>,
}

/// All that is known of one candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowView<'a> {
    /// Its row.
    pub row: usize,
    /// Its number.
    pub example: u32,
    /// Its name.
    pub id: &'a str,
    /// Its caption.
    pub caption: Option<&'a str>,
    /// The class name in its text.
    pub matched_name: Option<&'a str>,
    /// Its relevance.
    pub relevance: f32,
    /// The probability that it belongs to the class, where the method gives one.
    pub probability: Option<f32>,
    /// Its place by relevance, from 1.
    pub rank: usize,
    /// How many reciprocal neighbours it has.
    pub reciprocal_neighbours: Option<u32>,
    /// The clean example most like it.
    pub best_clean: Option<BestClean<'a>>,
    /// Its closest reciprocal neighbours.
    pub neighbours: Vec<NeighbourView<'a>>,
    /// Its near-duplicates and itself.
    pub group: Vec<u32>,
    /// What was decided about it, the first decision first.
    pub history: Vec<PastDecision>,
}

/// A clean example and how like it a candidate is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BestClean<'a> {
    /// The example.
    #[serde(flatten)]
    pub clean: CleanView<'a>,
    /// The similarity.
    pub similarity: f32,
}

/// A neighbour of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NeighbourView<'a> {
    /// Its row; none of a clean example.
    pub row: Option<u32>,
    /// Its number.
    pub example: u32,
    /// Its name.
    pub id: &'a str,
    /// The similarity.
    pub similarity: f32,
    /// Its relevance, 1 of a clean example.
    pub relevance: f32,
    /// The code of its decision.
    pub decision: u8,
    /// Whether it is a clean example.
    pub is_clean: bool,
}

/// A decision that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PastDecision {
    /// What was decided; `undecided` when a decision was withdrawn.
    #[serde(serialize_with = "decision_name")]
    pub decision: Option<Decision>,
    /// By whom.
    pub by: String,
    /// When.
    pub at: String,
}

/// What a decision changed. It is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionChange {
    /// Always: what is not saved is an error.
    pub saved: bool,
    /// The class.
    pub class: usize,
    /// When.
    pub at: String,
    /// Rows and the codes of their decisions.
    pub changes: Vec<(usize, u8)>,
    /// The decisions of the class.
    pub counts: Counts,
    /// Candidates with a decision, of all classes.
    pub n_decisions: usize,
    /// How often one can undo.
    pub n_undo: usize,
    /// How often one can redo.
    pub n_redo: usize,
}

/// λ, once somebody chose it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LambdaChoice {
    /// None: the default.
    pub lambda: Option<f32>,
    /// The command that makes the relevance permanent, with this λ.
    pub command: Option<String>,
}

/// A point of the curve: does another decision still help?
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Candidates with a decision.
    pub n_decisions: usize,
    /// Share of clean and accepted examples that are recognised when each is left out in turn.
    pub accuracy: f64,
    /// Of how many.
    pub n_left_out: usize,
}

/// Numbers that the session keeps too.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedVec<T>(pub std::sync::Arc<Vec<T>>);

impl<T: Serialize> Serialize for SharedVec<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

fn decision_name<S: Serializer>(decision: &Option<Decision>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(decision_word(*decision))
}
