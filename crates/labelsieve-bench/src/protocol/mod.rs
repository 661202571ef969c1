//! The protocol shared by the benchmarks on the paper's release (`paper/`) and on photos (`photos/`).
//!
//! A benchmark implements [`Task`]: where its examples come from. `tuning` chooses settings on a task of tuning classes; `run` scores
//! the [`Setting`]s of the reported task class by class on `pools`, resuming from a journal (`journal_numbers`), and tests the resulting
//! classifiers; `cells` hold the accuracies, and `rows` turns them into the lines of tables. `clock` measures the stages.

mod cells;
mod clock;
mod journal_numbers;
mod pools;
mod rows;
mod run;
mod tuning;

use labelsieve::{Features, Method};
use labelsieve_files::work::{Context, Result};

pub use cells::{CellResult, Cells};
pub use clock::Clock;
pub use journal_numbers::{bytes, floats};
pub use rows::{
    Row, cell, class_gains, gain_by_pool_size, gain_lines, intervals, means_over, prototype_rows,
    settings_of, shot_header, table_cell,
};
pub use run::{Grid, Learner, Run};
pub use tuning::{Score, TuningResult, best_of, choose_cosine, cosine_settings, gcn, mlp, tune};

/// The novel classes of a benchmark, or the half of them that settings are chosen on: where their examples come from.
/// Classes are numbered from 0, and so are episodes.
pub trait Task: Sync {
    /// The prefix of its records in a journal.
    fn journal_name(&self) -> &str;

    /// Its name in progress messages.
    fn title(&self) -> &str;

    /// Width of the features.
    fn dim(&self) -> usize;

    /// Number of candidates of each class.
    fn pool_sizes(&self) -> Vec<usize>;

    /// The candidates of a class.
    fn pool(&self, class: usize) -> Result<Features>;

    /// The clean examples of every class.
    fn clean(&self, episode: usize, k: usize) -> Result<Vec<Features>>;

    /// The candidates of a class that are its clean examples in this episode, ascending: they are left out, so as not to count twice.
    fn removed(&self, _class: usize, _episode: usize, _k: usize) -> Vec<usize> {
        Vec::new()
    }

    /// Which candidates of a class are relevant, where that is known.
    fn truth(&self, _class: usize) -> Option<&[bool]> {
        None
    }

    /// Rows outside the novel classes that join the candidates in the graph of a diffusion.
    fn background(&self) -> Result<Features> {
        Ok(Features::empty(self.dim()))
    }

    /// Examples of each base class, for systems that learn from episodes; empty without base classes.
    fn base_sets(&self) -> Result<Vec<Features>> {
        Ok(Vec::new())
    }

    /// Test examples and their classes.
    fn novel_test(&self) -> Result<(Features, Vec<usize>)>;

    /// Test examples of the base classes and their classes, if there are any.
    fn base_test(&self) -> Result<Option<(Features, Vec<usize>)>>;

    /// W_B, one row per base class, not necessarily of unit length.
    fn base_weights(&self) -> Result<Vec<f32>>;

    /// The scale s of cosine similarities.
    fn scale(&self) -> f32;
}

/// The source of the weights of a class's candidates.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Weight 0 for all candidates.
    CleanOnly,
    /// The truth: 1 for relevant candidates, 0 for the others. A ceiling, not a method.
    Oracle,
    /// A relevance model.
    Scored(Method),
}

impl Source {
    /// The name in journals.
    pub fn key(&self) -> String {
        match self.json() {
            serde_json::Value::String(name) => name,
            method => method.to_string(),
        }
    }

    /// Its form in JSON results: a name, or a method with its settings.
    pub fn json(&self) -> serde_json::Value {
        match self {
            Source::CleanOnly => "clean only".into(),
            Source::Oracle => "oracle".into(),
            Source::Scored(method) => serde_json::json!(method),
        }
    }

    /// Whether its relevance is kept in the journal, for classifiers and figures that need it later.
    fn keeps_relevance(&self) -> bool {
        matches!(self, Source::Scored(Method::Gcn(_)))
    }
}

impl From<Method> for Source {
    fn from(method: Method) -> Source {
        Source::Scored(method)
    }
}

/// A source of weights at a number of clean examples.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The position of the number of clean examples in [`Grid::shots`].
    pub shot: usize,
    pub source: Source,
}

/// The truth as weights: 1 for relevant candidates, 0 for the others and for those `removed`.
fn oracle_weights(task: &dyn Task, class: usize, removed: &[usize]) -> Result<Vec<f32>> {
    let truth = task.truth(class).context("the oracle needs ground truth")?;
    let mut weights: Vec<f32> = truth.iter().map(|&relevant| f32::from(u8::from(relevant))).collect();
    removed.iter().for_each(|&i| weights[i] = 0.0);
    Ok(weights)
}
