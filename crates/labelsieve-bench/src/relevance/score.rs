//! Scoring the candidates of one draw: the only place that knows the inputs of each method.

use labelsieve::Method;
use labelsieve_files::work::Result;
use labelsieve_jobs::scoring::ClassContext;

use super::trial::{SetContext, Trial};
use crate::protocol::Source;

/// The scores of the candidates of a class by one method.
pub struct ClassScores {
    /// Their weights in the prototype.
    pub relevance: Vec<f32>,
    /// The probability that each belongs to the class, from methods that estimate it.
    pub probability: Option<Vec<f32>>,
}

impl ClassScores {
    /// The numbers whose calibration is measured: probabilities, or relevance from methods without them.
    pub fn probability(&self) -> &[f32] {
        self.probability.as_ref().unwrap_or(&self.relevance)
    }
}

/// Scores the candidates of all classes of a draw. The other classes are those of the draw and `context.set.base`.
pub fn score(context: &SetContext, trial: &Trial, source: &Source) -> Result<Vec<ClassScores>> {
    let alone = |relevance: Vec<f32>| ClassScores { relevance, probability: None };
    Ok(match source {
        Source::CleanOnly => trial.relevant.iter().map(|truth| alone(vec![0.0; truth.len()])).collect(),
        Source::Oracle => {
            let weight = |&relevant: &bool| f32::from(u8::from(relevant));
            trial.relevant.iter().map(|truth| alone(truth.iter().map(weight).collect())).collect()
        }
        Source::Scored(method) => scored(context, trial, method)?,
    })
}

fn scored(context: &SetContext, trial: &Trial, method: &Method) -> Result<Vec<ClassScores>> {
    let drawn = |c: usize| {
        let stream = trial.stream(c);
        ClassContext::new(method, &trial.clean, c, stream.branch(1), stream.bits(0))
            .with_base(&context.set.base)
    };
    let drawn = (0..trial.clean.len()).map(drawn).collect::<labelsieve::Result<Vec<ClassContext>>>()?;
    let jobs = drawn.iter().zip(&trial.clean).zip(&trial.pools);
    let jobs = jobs.map(|((drawn, clean), pool)| drawn.job(clean, pool));
    let jobs = jobs.collect::<labelsieve::Result<Vec<_>>>()?;
    let scores = context.engine.relevance(method, &jobs, &|_, _| ())?.into_iter().map(|scored| ClassScores {
        relevance: scored.noisy().to_vec(),
        probability: scored.probability().map(<[f32]>::to_vec),
    });
    Ok(scores.collect())
}
