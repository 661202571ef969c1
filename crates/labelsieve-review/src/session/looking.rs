//! The view of a class that a person sees.

use std::collections::HashSet;
use std::time::Duration;

use labelsieve::Decision;
use labelsieve_files::decision_code;
use labelsieve_files::work::{Error, option, words};

use super::{Session, lock};
use crate::answers::{
    BestClean, ClassView, CleanView, NeighbourView, OrderView, RowView, ScoresView, SharedVec,
};
use crate::order;
use crate::queue::Urgency;
use crate::ready::Ready;
use crate::refusal::Refusal;

/// How long an answer waits for the graph of a class, which is made when the class is first looked at.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Candidates that are chosen one by one: the relevance changes before more are decided.
const MAX_CHOSEN: usize = 200;
/// Neighbours that are shown.
const MAX_NEIGHBOURS: usize = 12;

/// An order of candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The candidates to look at next.
    Next,
    /// By similarity to this row.
    SimilarTo(usize),
}

impl Session {
    /// All candidates of a class. From now on, its graph is made if there is time.
    pub fn class(&self, class: usize) -> Result<ClassView<'_>, Refusal> {
        let inner = &self.inner;
        inner.check_class(class)?;
        self.look_and_wait(class);
        let of = &inner.contents.classes[class];
        let decision = lock(&inner.decided).of(class).iter().copied().map(decision_code).collect();
        let scores = &lock(&inner.scores)[class];
        Ok(ClassView {
            class,
            revision: scores.revision,
            example: &of.candidates,
            id: of.candidates.iter().map(|&example| inner.contents.id(example)).collect(),
            caption: of.candidates.iter().map(|&example| inner.contents.caption(example)).collect(),
            names: &of.names,
            name: &of.matched,
            relevance: SharedVec(scores.relevance.clone()),
            decision,
            group: SharedVec(scores.groups.clone()),
            clean: of.clean.iter().map(|&example| self.clean_view(example)).collect(),
        })
    }

    /// The relevance of a class, which is scored in the background if it is out of date. The graph is left as it is: of two
    /// classes that are asked for in turn, each would else throw the other's out of a small memory.
    pub fn scores(&self, class: usize) -> Result<ScoresView, Refusal> {
        self.inner.check_class(class)?;
        if self.inner.scorer.is_some() && !self.inner.is_scored(class) {
            self.inner.queue.ask(class, Urgency::Look);
        }
        let scores = &lock(&self.inner.scores)[class];
        Ok(ScoresView {
            class,
            revision: scores.revision,
            relevance: SharedVec(scores.relevance.clone()),
            group: SharedVec(scores.groups.clone()),
        })
    }

    /// Rows of a class in an order: all that are undecided and no near-duplicates of others, or simply all.
    pub fn order(&self, class: usize, order: Order) -> Result<OrderView, Refusal> {
        let inner = &self.inner;
        inner.check_class(class)?;
        if let Order::SimilarTo(row) = order {
            inner.check_row(class, row)?;
        }
        self.look_and_wait(class);
        let ready = inner.ready.get(class);
        let decisions = lock(&inner.decided).of(class).to_vec();
        let (relevance, groups, revision) = {
            let scores = &lock(&inner.scores)[class];
            (scores.relevance.clone(), scores.groups.clone(), scores.revision)
        };
        let (by, rows) = match order {
            Order::Next => {
                ("next", self.next_rows(class, ready.as_deref(), &decisions, &relevance, &groups)?)
            }
            Order::SimilarTo(to) => ("similar", self.similar_rows(class, ready.as_deref(), to)?),
        };
        Ok(OrderView { class, revision, by, rows })
    }

    /// The candidates to look at next as far as they are known, then the rest, evenly over the ranking.
    fn next_rows(
        &self,
        class: usize,
        ready: Option<&Ready>,
        decisions: &[Option<Decision>],
        relevance: &[f32],
        groups: &[u32],
    ) -> Result<Vec<u32>, Refusal> {
        let is_open = |row: u32| decisions[row as usize].is_none() && groups[row as usize] == row;
        let mut first = match (&self.inner.scorer, ready) {
            (Some(scorer), Some(ready)) => {
                scorer.what_next(class, ready, decisions, relevance, MAX_CHOSEN)?
            }
            _ => Vec::new(),
        };
        first.retain(|&row| is_open(row));
        let chosen: HashSet<u32> = first.iter().copied().collect();
        let rest = (0..decisions.len() as u32).filter(|row| is_open(*row) && !chosen.contains(row));
        first.extend(order::coarse_to_fine(&order::ranked(rest, relevance)));
        Ok(first)
    }

    fn similar_rows(&self, class: usize, ready: Option<&Ready>, to: usize) -> Result<Vec<u32>, Refusal> {
        if self.inner.scorer.is_none() {
            return Err(Refusal::Conflict(
                "similarity needs features of clean examples and candidates".to_owned(),
            ));
        }
        let ready = ready.ok_or_else(|| self.not_ready(class))?;
        let Some(place) = ready.place_of[to] else {
            return Err(Refusal::NotFound(format!("row {to} is a copy of a clean example")));
        };
        let places = order::similar(ready.pool.features(), place as usize);
        let mut rows: Vec<u32> =
            places.into_iter().filter_map(|place| ready.row_of[place as usize]).collect();
        rows.extend((0..ready.place_of.len() as u32).filter(|&row| ready.place_of[row as usize].is_none()));
        Ok(rows)
    }

    /// All that is known of one candidate.
    pub fn row(&self, class: usize, row: usize) -> Result<RowView<'_>, Refusal> {
        let inner = &self.inner;
        inner.check_row(class, row)?;
        self.look(class);
        let of = &inner.contents.classes[class];
        let (decisions, history) = {
            let decided = lock(&inner.decided);
            (decided.of(class).to_vec(), decided.history(class, row))
        };
        let (relevance, probability, groups) = {
            let scores = &lock(&inner.scores)[class];
            (scores.relevance.clone(), scores.probability[row], scores.groups.clone())
        };
        let ready = inner.ready.get(class);
        let neighbours =
            ready.as_deref().map(|ready| self.neighbours(class, row, ready, &decisions, &relevance));
        let own = relevance[row];
        let before =
            |(other, relevance): &(usize, &f32)| **relevance > own || (**relevance == own && *other < row);
        let example = of.candidates[row];
        let best_clean = of.best_clean[row];
        Ok(RowView {
            row,
            example,
            id: inner.contents.id(example),
            caption: inner.contents.caption(example),
            matched_name: usize::try_from(of.matched[row]).ok().map(|name| of.names[name].as_str()),
            relevance: own,
            probability,
            rank: 1 + relevance.iter().enumerate().filter(before).count(),
            reciprocal_neighbours: of.reciprocal_neighbours[row],
            best_clean: best_clean
                .map(|(clean, similarity)| BestClean { clean: self.clean_view(clean), similarity }),
            neighbours: neighbours.unwrap_or_default(),
            group: (0..groups.len() as u32).filter(|&other| groups[other as usize] == groups[row]).collect(),
            history,
        })
    }

    /// The closest reciprocal neighbours.
    fn neighbours(
        &self,
        class: usize,
        row: usize,
        ready: &Ready,
        decisions: &[Option<Decision>],
        relevance: &[f32],
    ) -> Vec<NeighbourView<'_>> {
        let inner = &self.inner;
        let (Some(place), Some(scorer)) = (ready.place_of[row], &inner.scorer) else { return Vec::new() };
        let of = &inner.contents.classes[class];
        let n_clean = scorer.clean(class).len();
        let (columns, weights) = ready.affinity.row(n_clean + place as usize);
        let mut found: Vec<(u32, f32)> = columns.iter().copied().zip(weights.iter().copied()).collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let view = |(column, similarity): (u32, f32)| match (column as usize).checked_sub(n_clean) {
            None => {
                let example = inner.contents.example(&scorer.id_of_clean(class, column as usize))?;
                let id = inner.contents.id(example);
                let relevance = 1.0;
                let decision = 0;
                let is_clean = true;
                Some(NeighbourView { row: None, example, id, similarity, relevance, decision, is_clean })
            }
            Some(place) => {
                let row = ready.row_of[place]? as usize;
                let example = of.candidates[row];
                Some(NeighbourView {
                    row: Some(row as u32),
                    example,
                    id: inner.contents.id(example),
                    similarity,
                    relevance: relevance[row],
                    decision: decision_code(decisions[row]),
                    is_clean: false,
                })
            }
        };
        found.into_iter().filter_map(view).take(MAX_NEIGHBOURS).collect()
    }

    fn clean_view(&self, example: u32) -> CleanView<'_> {
        let contents = &self.inner.contents;
        CleanView { example, id: contents.id(example), caption: contents.caption(example) }
    }

    /// Somebody looks at a class: in the background it is made ready, and scored if it is out of date.
    fn look(&self, class: usize) {
        let inner = &self.inner;
        if inner.scorer.is_none() {
            return;
        }
        lock(&inner.lambda).looked_at = Some(class);
        if !inner.is_up_to_date(class) {
            inner.queue.ask(class, Urgency::Look);
        }
    }

    /// The same, and waits a moment: most classes are ready in less.
    fn look_and_wait(&self, class: usize) {
        self.look(class);
        if self.inner.scorer.is_some() {
            let inner = &self.inner;
            inner.queue.wait(PATIENCE, || inner.is_ready(class) || inner.failure(class).is_some());
        }
    }

    /// Why there is no graph: it was tried and failed, or takes too long.
    fn not_ready(&self, class: usize) -> Refusal {
        let name = &self.inner.contents.classes[class].name;
        match self.inner.failure(class) {
            Some(failure) => Refusal::Failed(Error::input(
                format!("`{name}` has no graph: {failure}"),
                words![
                    "fix the features in ",
                    option("clean"),
                    " and ",
                    option("pool"),
                    ", and restart the review"
                ],
            )),
            None => Refusal::NotYet(format!("the graph of `{name}` is still being made")),
        }
    }
}
