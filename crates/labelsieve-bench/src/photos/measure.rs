//! All rows of the tables for one backbone and one set of candidates.

use labelsieve::Features;
use labelsieve::classifier::{Cosine, WeightedClass};
use labelsieve::evaluation::{RelevanceAnalysis, Trial};
use labelsieve::relevance::paper_lambda;
use labelsieve_files::work::{Context, Monitor, Result};

use super::fine_tune::Schedule;
use super::half::{Half, Halves};
use crate::classifier::{Attention, AttentionParameters, AttentionTraining};
use crate::protocol::{
    CellResult, Learner, Row, Run, Score, Source, Task, TuningResult, choose_cosine, prototype_rows,
    settings_of, tune,
};
use crate::systems::SystemRow;

/// A row of the tables.
pub struct RowResult {
    pub name: String,
    /// Whether it is an upper bound rather than a method.
    pub is_bound: bool,
    /// By shot and episode.
    pub cells: Vec<Vec<CellResult>>,
}

/// The measurements for one backbone and one set of candidates.
pub struct Outcome {
    /// The trials on the tuning classes, if there are any.
    pub tuned: Option<TuningResult>,
    /// Chosen settings of each cosine row, by shot.
    pub cosine: Vec<(String, Vec<Trial<Cosine>>)>,
    /// Chosen schedules of fine-tuning, by shot.
    pub schedules: Vec<Trial<Schedule>>,
    /// Settings of the rows of `--compared`, by shot.
    pub systems: Vec<(&'static str, Vec<serde_json::Value>)>,
    pub rows: Vec<RowResult>,
    /// The sources of the weights of the rows with prototypes.
    pub sources: Vec<Row>,
    /// Relevance of gcn against ground truth on the reported classes, by shot and episode.
    pub separation: Vec<Vec<RelevanceAnalysis>>,
    /// Relevance of gcn at the fewest shots in the first episode, by class.
    pub relevance: Vec<Vec<f32>>,
}

impl Outcome {
    /// Inserts rows after the one of this name, or at the end.
    pub fn add_after(&mut self, name: &str, rows: Vec<RowResult>) {
        let place = self.rows.iter().position(|row| row.name == name).map_or(self.rows.len(), |at| at + 1);
        self.rows.splice(place..place, rows);
    }

    /// Adds the row of a system that the paper compares with.
    pub fn add_system(&mut self, row: SystemRow) {
        let SystemRow { name, after, cells, settings } = row;
        self.systems.push((name, settings));
        self.add_after(after, vec![RowResult { name: name.to_owned(), is_bound: false, cells }]);
    }

    /// The settings of gcn.
    pub fn gcn(&self) -> Result<&Row> {
        self.sources.iter().find(|row| row.name == "gcn").context("no row of gcn")
    }

    /// A row by its name.
    pub fn row(&self, name: &str) -> Option<&RowResult> {
        self.rows.iter().find(|row| row.name == name)
    }
}

/// Tunes on the tuning half, if there is one, and measures on the reported half; without tuning, settings are the paper's.
pub fn measure(
    run: &mut Run,
    halves: Halves,
    attention: Option<&Attention>,
    score: Score,
    monitor: &dyn Monitor,
) -> Result<Outcome> {
    let Halves { tuning, report } = halves;
    let n_shots = run.grid.shots.len();
    let tuned = tuning.map(|tuning| tune(run, tuning, score, monitor)).transpose()?;
    let mut sources = prototype_rows(n_shots, tuned.as_ref(), &|s| paper_lambda(run.grid.shots[s]));
    sources.push(Row { name: "oracle", sources: vec![Source::Oracle; n_shots] });
    let cells = run.prototypes(report, &settings_of(&sources), monitor)?;
    let mut outcome = Outcome {
        tuned,
        cosine: Vec::new(),
        schedules: Vec::new(),
        systems: Vec::new(),
        rows: Vec::new(),
        separation: Vec::new(),
        relevance: Vec::new(),
        sources: sources.clone(),
    };
    outcome.separation = separation(run, report, outcome.gcn()?)?;
    outcome.relevance = run.weights(report, 0, &outcome.gcn()?.sources[0], 0)?;
    for row in &sources {
        let by_shot = row.sources.iter().enumerate().map(|(s, source)| cells.of(s, source).to_vec());
        outcome.rows.push(RowResult {
            name: row.name.to_owned(),
            is_bound: row.name == "oracle",
            cells: by_shot.collect(),
        });
        if let Some(attention) = attention.filter(|_| row.name == "clean only") {
            outcome.rows.push(attention_row(run, report, row, attention, monitor)?);
        }
        if ["clean only", "gcn", "oracle"].contains(&row.name) {
            let (result, chosen) = cosine_row(run, halves, row, score, monitor)?;
            outcome.cosine.push((result.name.clone(), chosen));
            outcome.rows.push(result);
        }
    }
    Ok(outcome)
}

fn attention_row(
    run: &mut Run,
    report: &Half,
    row: &Row,
    attention: &Attention,
    monitor: &dyn Monitor,
) -> Result<RowResult> {
    let episodes = run.grid.episodes;
    let mut cells = Vec::new();
    let learn = |_: usize, classes: &[WeightedClass]| Ok(attention.weights(classes)?);
    let learner = Learner { stage: "attention", name: "attention", learn: &learn };
    for (shot, source) in row.sources.iter().enumerate() {
        cells.push(run.learned(report, shot, source, &learner, episodes, monitor)?);
    }
    Ok(RowResult { name: format!("{}, attention", row.name), is_bound: false, cells })
}

/// Batch size and epochs are chosen on the tuning half, if there is one, over the weights of the same source there.
fn cosine_row(
    run: &mut Run,
    halves: Halves,
    row: &Row,
    score: Score,
    monitor: &dyn Monitor,
) -> Result<(RowResult, Vec<Trial<Cosine>>)> {
    let Halves { tuning, report } = halves;
    let start = Cosine { scale: report.scale(), ..Cosine::default() };
    let episodes = run.grid.episodes;
    let mut cells = Vec::new();
    let mut chosen = Vec::new();
    for (shot, source) in row.sources.iter().enumerate() {
        let best = tuning.map(|tuning| choose_cosine(run, tuning, shot, source, start, score, monitor));
        let best = best.transpose()?;
        let setting = best.map_or(start, |best| best.setting);
        cells.push(run.cosine(report, shot, source, &setting, episodes, monitor)?);
        chosen.extend(best);
    }
    let is_bound = row.name == "oracle";
    Ok((RowResult { name: format!("{}, cosine", row.name), is_bound, cells }, chosen))
}

fn separation(run: &Run, report: &Half, gcn: &Row) -> Result<Vec<Vec<RelevanceAnalysis>>> {
    let of_cell = |shot: usize, episode: usize| {
        let weights = run.weights(report, shot, &gcn.sources[shot], episode)?;
        let mut relevance = Vec::new();
        let mut truth = Vec::new();
        for (class, weights) in weights.iter().enumerate() {
            let removed = report.removed(class, episode, run.grid.shots[shot]);
            let kept = (0..weights.len()).filter(|place| removed.binary_search(place).is_err());
            for place in kept {
                relevance.push(weights[place]);
                truth.push(report.candidates(class).relevant[place]);
            }
        }
        Ok(RelevanceAnalysis::new(&relevance, &truth))
    };
    (0..run.grid.shots.len())
        .map(|shot| (0..run.grid.episodes).map(|episode| of_cell(shot, episode)).collect())
        .collect()
}

/// The attention generator over the base classes: read from the journal, or trained now.
pub fn attention(run: &mut Run, half: &Half, seed: u64, monitor: &dyn Monitor) -> Result<Option<Attention>> {
    let settings = AttentionTraining::default();
    let photos = half.context.photos;
    if photos.base.len() <= settings.posing {
        monitor.note("too few base classes to train attention; skipping its row");
        return Ok(None);
    }
    let base = &half.context.backbone.base;
    let key = format!("attention {} seed={seed}", serde_json::json!(settings));
    if let Some(parameters) = run.kept(&key).and_then(|bytes| decode(bytes, base.weights())) {
        return Ok(Some(Attention::new(parameters, base.clone())?));
    }
    let sets: Vec<Features> =
        photos.base.iter().map(|class| half.context.backbone.features.select(&class.train)).collect();
    let progress = monitor.progress(settings.steps as u64, "steps");
    progress.set_message("attention");
    let trained =
        run.clock.time("attention training", || settings.train(base, &sets, seed, |_, _| progress.inc(1)))?;
    progress.finish();
    run.keep(key, encode(trained.parameters()))?;
    Ok(Some(trained))
}

fn encode(parameters: &AttentionParameters) -> Vec<u8> {
    let AttentionParameters { query, keys, average, attended, gamma } = parameters;
    crate::protocol::bytes(&[&query[..], keys, average, attended, &[*gamma]].concat())
}

fn decode(bytes: &[u8], base: &Features) -> Option<AttentionParameters> {
    let numbers = crate::protocol::floats(bytes);
    let dim = base.dim();
    let n_base = base.len();
    let (query, rest) = numbers.split_at_checked(dim * dim)?;
    let (keys, rest) = rest.split_at_checked(n_base * dim)?;
    let (average, rest) = rest.split_at_checked(dim)?;
    let (attended, rest) = rest.split_at_checked(dim)?;
    let [gamma] = *rest else { return None };
    Some(AttentionParameters {
        query: query.to_vec(),
        keys: keys.to_vec(),
        average: average.to_vec(),
        attended: attended.to_vec(),
        gamma,
    })
}
