//! Decisions: first on disk, then in force.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use labelsieve::Decision;
use labelsieve_files::{DecisionRow, csv_bytes, decision_code, decision_word, read_decisions, rfc3339};

use super::{Inner, Session, lock};
use crate::answers::DecisionChange;
use crate::contents::Class;
use crate::decisions::{Action, DecisionState};
use crate::events::Event;
use crate::queue::Urgency;
use crate::refusal::Refusal;
use crate::scores::ClassScores;

/// What an action is made of, once nobody else can write.
type MakeAction<'a> = dyn Fn(&DecisionState, &[ClassScores]) -> Option<Action> + 'a;

impl Session {
    /// Decides about candidates and their near-duplicates; none withdraws what was decided. When this returns, the
    /// decision survives a power loss.
    pub fn decide(
        &self,
        class: usize,
        rows: &[usize],
        decision: Option<Decision>,
    ) -> Result<DecisionChange, Refusal> {
        self.inner.check_class(class)?;
        if rows.is_empty() {
            return Err(Refusal::Invalid("expected at least one row, found none".to_owned()));
        }
        rows.iter().try_for_each(|&row| self.inner.check_row(class, row))?;
        let make = |decided: &DecisionState, scores: &[ClassScores]| {
            Some(decided.action(class, &scores[class].with_duplicates(rows), decision))
        };
        self.inner.act(&make, "")
    }

    /// Takes the last action back.
    pub fn undo(&self) -> Result<DecisionChange, Refusal> {
        self.inner.act(&|decided, _| decided.undo(), "nothing to undo")
    }

    /// Repeats what was taken back last.
    pub fn redo(&self) -> Result<DecisionChange, Refusal> {
        self.inner.act(&|decided, _| decided.redo(), "nothing to redo")
    }

    /// All decisions of the file as CSV, the earliest first.
    pub fn decisions_csv(&self) -> labelsieve_files::work::Result<Vec<u8>> {
        // What is written goes through the log, so the file and its log have everything.
        let _nobody_writes = lock(&self.inner.writing);
        let table = read_decisions(&self.inner.review.output)?;
        let rows = table.rows.iter();
        let rows = rows.map(|row| [&*row.id, &*row.class, decision_word(row.decision), &*row.by, &*row.at]);
        Ok(csv_bytes(["id", "class", "decision", "by", "at"], rows)?)
    }
}

impl Inner {
    /// Writes an action to disk, makes it count, and tells everybody.
    fn act(&self, make: &MakeAction, nothing: &str) -> Result<DecisionChange, Refusal> {
        let mut writing = lock(&self.writing);
        let action = make(&lock(&self.decided), &lock(&self.scores));
        let action = action.ok_or_else(|| Refusal::Conflict(nothing.to_owned()))?;
        let (class, name) = (action.class, &self.contents.classes[action.class]);
        lock(&self.lambda).looked_at = Some(class);
        writing.last_at = micros_since_1970().max(writing.last_at + 1);
        let at = rfc3339(writing.last_at);
        let rows: Vec<DecisionRow> = action
            .changes
            .iter()
            .map(|change| DecisionRow {
                id: self.contents.id(name.candidates[change.row]).to_owned(),
                class: name.name.clone(),
                decision: change.after,
                by: self.review.by.clone(),
                at: at.clone(),
            })
            .collect();
        let log = writing.log.as_ref();
        let log = log.ok_or_else(|| Refusal::Conflict("the review is being closed".to_owned()))?;
        log.append(&rows).map_err(|error| Refusal::NotSaved(error.into()))?;

        let changes: Vec<(usize, u8)> =
            action.changes.iter().map(|change| (change.row, decision_code(change.after))).collect();
        let is_new = !changes.is_empty();
        let changed = {
            let mut decided = lock(&self.decided);
            if is_new {
                decided.apply(action, &self.review.by, &at);
            }
            if is_new && self.scorer.is_none() {
                let scores = &mut lock(&self.scores)[class];
                fix_relevance(scores, &self.contents.classes[class], decided.of(class));
            }
            DecisionChange {
                saved: true,
                class,
                at,
                changes,
                counts: decided.counts(class),
                n_decisions: decided.n_decisions(),
                n_undo: decided.n_undo(),
                n_redo: decided.n_redo(),
            }
        };
        if !is_new {
            return Ok(changed);
        }
        // Told before anything that follows from it.
        self.listeners.tell(&Event::Decisions(changed.clone()));
        // Asked for before the next decision can be: the newest request is the newest decision's.
        match &self.scorer {
            Some(_) => self.queue.ask(class, Urgency::Decision),
            None => {
                let revision = lock(&self.scores)[class].revision;
                self.listeners.tell(&Event::Scores { class, revision, seconds: 0.0 });
            }
        }
        drop(writing);
        Ok(changed)
    }
}

fn micros_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_micros() as u64
}

/// Relevance without features: what a person decided holds, and else what the file says.
pub(super) fn fix_relevance(scores: &mut ClassScores, class: &Class, decisions: &[Option<Decision>]) {
    let fixed = |decision: &Option<Decision>| decision.and_then(Decision::relevance);
    let relevance = class.relevance.iter().zip(decisions);
    let relevance = relevance.map(|(&of_file, decision)| fixed(decision).unwrap_or(of_file)).collect();
    scores.relevance = std::sync::Arc::new(relevance);
    let probability = class.probability.iter().zip(decisions);
    let settle = |(of_file, decision): (&Option<f32>, _)| of_file.map(|p| fixed(decision).unwrap_or(p));
    scores.probability = probability.map(settle).collect();
    scores.revision += 1;
}
