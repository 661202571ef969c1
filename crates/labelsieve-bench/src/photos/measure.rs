//! All rows of the tables for one backbone and one set of candidates.

use labelsieve::Features;
use labelsieve::classifier::{Cosine, WeightedClass};
use labelsieve::evaluation::{RelevanceAnalysis, Trial};
use labelsieve::relevance::paper_lambda;
use labelsieve_files::work::{Context, Monitor, Result};

use super::fine_tune::Schedule;
use super::half::Half;
use crate::classifier::{Attention, AttentionParameters, AttentionTraining};
use crate::protocol::{
    CellResult, Row, Run, Score, Source, Task, Tuned, choose_cosine, prototype_rows, settings_of, tune,
};
use crate::systems::SystemRow;

/// A row of the tables.
pub struct RowResult {
    pub name: String,
    /// Whether it is a bound rather than a method.
    pub is_bound: bool,
    /// By shot and episode.
    pub cells: Vec<Vec<CellResult>>,
}

/// What was measured for one backbone and one set of candidates.
pub struct Outcome {
    /// What was tried on the tuning classes, if there are any.
    pub tuned: Option<Tuned>,
    /// Chosen settings of each cosine row, by shot.
    pub cosine: Vec<(String, Vec<Trial<Cosine>>)>,
    /// Chosen schedules of fine-tuning, by shot.
    pub schedules: Vec<Trial<Schedule>>,
    /// Settings of the rows of `--compared`, by shot.
    pub systems: Vec<(&'static str, Vec<serde_json::Value>)>,
    pub rows: Vec<RowResult>,
    /// Where the weights of the rows with prototypes come from.
    pub sources: Vec<Row>,
    /// Relevance of gcn against the truth on the reported classes, by shot and episode.
    pub separation: Vec<Vec<RelevanceAnalysis>>,
    /// Relevance of gcn at the fewest shots in the first episode, by class.
    pub relevance: Vec<Vec<f32>>,
}

impl Outcome {
    /// Adds rows behind the one of this name, or at the end.
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
        self.sources.iter().find(|row| row.name == "gcn").context("a row of gcn")
    }

    /// A row by its name.
    pub fn row(&self, name: &str) -> Option<&RowResult> {
        self.rows.iter().find(|row| row.name == name)
    }
}

/// Tunes on one half, if there is one, and measures on the other; without tuning, settings are the paper's.
pub fn measure(
    run: &mut Run,
    tuning: Option<&Half>,
    report: &Half,
    attention: Option<&Attention>,
    score: Score,
    monitor: &dyn Monitor,
) -> Result<Outcome> {
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
        if let (Some(attention), "clean only") = (attention, row.name) {
            outcome.rows.push(attention_row(run, report, row, attention, monitor)?);
        }
        if ["clean only", "gcn", "oracle"].contains(&row.name) {
            let (result, chosen) = cosine_row(run, tuning, report, row, score, monitor)?;
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
    for (shot, source) in row.sources.iter().enumerate() {
        let learn = |_: usize, classes: &[WeightedClass]| Ok(attention.weights(classes)?);
        cells.push(run.learned(
            report,
            shot,
            source,
            ("attention", "attention"),
            episodes,
            monitor,
            &learn,
        )?);
    }
    Ok(RowResult { name: format!("{}, attention", row.name), is_bound: false, cells })
}

/// Batch size and epochs are chosen on the tuning half, if there is one, over the weights of the same source there.
fn cosine_row(
    run: &mut Run,
    tuning: Option<&Half>,
    report: &Half,
    row: &Row,
    score: Score,
    monitor: &dyn Monitor,
) -> Result<(RowResult, Vec<Trial<Cosine>>)> {
    let start = Cosine { scale: report.scale(), ..Cosine::default() };
    let episodes = run.grid.episodes;
    let (mut cells, mut chosen) = (Vec::new(), Vec::new());
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
        let (mut relevance, mut truth) = (Vec::new(), Vec::new());
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

/// The attention generator over the base classes: as the journal has kept it, else learned now.
pub fn attention(run: &mut Run, half: &Half, seed: u64, monitor: &dyn Monitor) -> Result<Option<Attention>> {
    let settings = AttentionTraining::default();
    let photos = half.ground.photos;
    if photos.base.len() <= settings.posing {
        monitor.note("too few base classes to train attention; skipping its row");
        return Ok(None);
    }
    let base = &half.ground.backbone.base;
    let key = format!("attention {} seed={seed}", serde_json::json!(settings));
    if let Some(parameters) = run.kept(&key).and_then(|bytes| decode(bytes, base.weights())) {
        return Ok(Some(Attention::new(parameters, base.clone())?));
    }
    let sets: Vec<Features> =
        photos.base.iter().map(|class| half.ground.backbone.features.select(&class.train)).collect();
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
    let (dim, n_base) = (base.dim(), base.len());
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
