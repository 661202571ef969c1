//! How the candidates of one draw are weighted, by every method: the one place that knows what a method wants to be given.

use labelsieve::Method;
use labelsieve_files::work::Result;
use labelsieve_jobs::scoring::ClassContext;

use super::trial::{Ground, Trial};
use crate::protocol::Source;

/// What a method says of the candidates of a class, one number each.
pub struct ClassScores {
    /// Their weights in the prototype.
    pub relevance: Vec<f32>,
    /// How probably they belong to the class, from methods that say so.
    pub probability: Option<Vec<f32>>,
}

impl ClassScores {
    /// What is compared with the share of relevant candidates.
    pub fn probability(&self) -> &[f32] {
        self.probability.as_ref().unwrap_or(&self.relevance)
    }
}

/// Scores the candidates of all classes of a draw. Other classes at hand are those of the draw and `ground.set.base`.
pub fn score(ground: &Ground, trial: &Trial, source: &Source) -> Result<Vec<ClassScores>> {
    let alone = |relevance: Vec<f32>| ClassScores { relevance, probability: None };
    Ok(match source {
        Source::CleanOnly => trial.relevant.iter().map(|truth| alone(vec![0.0; truth.len()])).collect(),
        Source::Oracle => {
            let weight = |&relevant: &bool| f32::from(u8::from(relevant));
            trial.relevant.iter().map(|truth| alone(truth.iter().map(weight).collect())).collect()
        }
        Source::Scored(method) => scored(ground, trial, method)?,
    })
}

fn scored(ground: &Ground, trial: &Trial, method: &Method) -> Result<Vec<ClassScores>> {
    let drawn = |c: usize| {
        let stream = trial.stream(c);
        ClassContext::new(method, &trial.clean, c, stream.branch(1), stream.bits(0))
            .with_base(&ground.set.base)
    };
    let drawn = (0..trial.clean.len()).map(drawn).collect::<labelsieve::Result<Vec<ClassContext>>>()?;
    let jobs = drawn.iter().zip(&trial.clean).zip(&trial.pools);
    let jobs = jobs.map(|((drawn, clean), pool)| drawn.job(clean, pool));
    let jobs = jobs.collect::<labelsieve::Result<Vec<_>>>()?;
    let scores = ground.engine.relevance(method, &jobs, &|_, _| ())?.into_iter().map(|scored| ClassScores {
        relevance: scored.noisy().to_vec(),
        probability: scored.probability().map(<[f32]>::to_vec),
    });
    Ok(scores.collect())
}
