//! Choosing settings on classes that are not reported.

use labelsieve::Method;
use labelsieve::classifier::{BATCH_SIZES, Cosine, EPOCHS};
use labelsieve::evaluation::{BETAS, LAMBDAS, Trial, best};
use labelsieve::relevance::{Beta, Gcn, Mlp};
use labelsieve_files::work::{Context, Monitor, Result};

use super::{CellResult, Cells, Run, Setting, Source, Task};

/// The trials on the tuning classes, by shot; the best comes first.
#[derive(Clone, Debug)]
pub struct TuningResult {
    pub gcn_lambda: Vec<Vec<Trial<f32>>>,
    pub mlp_lambda: Vec<Vec<Trial<f32>>>,
    pub beta: Vec<Vec<Trial<f32>>>,
}

/// How a cell is judged; higher is better.
pub type Score = fn(&CellResult) -> f64;

pub fn gcn(lambda: f32) -> Method {
    Method::Gcn(Gcn { lambda: Some(lambda), ..Gcn::default() })
}

pub fn mlp(lambda: f32) -> Method {
    Method::Mlp(Mlp { lambda: Some(lambda), ..Mlp::default() })
}

fn beta(beta: f32) -> Method {
    Method::Beta(Beta { beta })
}

/// Chooses λ of gcn and mlp and β* for each shot, by the score averaged over episodes.
pub fn tune(run: &mut Run, task: &dyn Task, score: Score, monitor: &dyn Monitor) -> Result<TuningResult> {
    let n_shots = run.grid.shots.len();
    let cells = run.prototypes(task, &tuning_settings(n_shots), monitor)?;
    let choose = |method: fn(f32) -> Method, values: &[f32]| -> Result<Vec<Vec<Trial<f32>>>> {
        (0..n_shots)
            .map(|s| Ok(best(values, |&v| Ok(mean_score(&cells, s, &method(v).into(), score)))?))
            .collect()
    };
    Ok(TuningResult {
        gcn_lambda: choose(gcn, &LAMBDAS)?,
        mlp_lambda: choose(mlp, &LAMBDAS)?,
        beta: choose(beta, &BETAS)?,
    })
}

/// All settings that tuning tries.
fn tuning_settings(n_shots: usize) -> Vec<Setting> {
    let grid = |method: fn(f32) -> Method, values: &[f32]| -> Vec<Setting> {
        let pairs = (0..n_shots).flat_map(|s| values.iter().map(move |&v| (s, v)));
        pairs.map(|(shot, value)| Setting { shot, source: Source::Scored(method(value)) }).collect()
    };
    [grid(gcn, &LAMBDAS), grid(mlp, &LAMBDAS), grid(beta, &BETAS)].concat()
}

fn mean_score(cells: &Cells, shot: usize, source: &Source, score: Score) -> f64 {
    let cells = cells.of(shot, source);
    cells.iter().map(score).sum::<f64>() / cells.len().max(1) as f64
}

/// The batch sizes and epochs to try with `n_examples`. Batch sizes beyond the number of examples are all the same setting.
pub fn cosine_settings(start: Cosine, n_examples: usize) -> Vec<Cosine> {
    let first_larger = BATCH_SIZES.iter().position(|&size| size >= n_examples);
    let sizes = &BATCH_SIZES[..first_larger.map_or(BATCH_SIZES.len(), |first| first + 1)];
    let with = |&batch_size| EPOCHS.map(|epochs| Cosine { batch_size, epochs, ..start });
    sizes.iter().flat_map(with).collect()
}

/// Chooses batch size and epochs of the cosine classifier over the weights of `source`. One episode
/// distinguishes them well enough, at a fifth of the cost.
pub fn choose_cosine(
    run: &mut Run,
    task: &dyn Task,
    shot: usize,
    source: &Source,
    start: Cosine,
    score: Score,
    monitor: &dyn Monitor,
) -> Result<Trial<Cosine>> {
    let candidates: usize =
        run.weights(task, shot, source, 0)?.iter().flatten().filter(|w| **w > 0.0).count();
    let n_examples = candidates + run.grid.shots[shot] * task.pool_sizes().len();
    let mut trials = Vec::new();
    for setting in cosine_settings(start, n_examples) {
        let reached = run.cosine(task, shot, source, &setting, 1, monitor)?;
        trials.push(Trial { setting, score: score(&reached[0]) });
    }
    best_of(trials)
}

/// The best trial; earlier ones win ties.
pub fn best_of<T>(trials: Vec<Trial<T>>) -> Result<Trial<T>> {
    trials.into_iter().reduce(|a, b| if b.score > a.score { b } else { a }).context("nothing was tried")
}
