//! One draw of clean examples of all classes of a set.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use labelsieve::engine::Engine;
use labelsieve::graph::NEIGHBOURS;
use labelsieve::schedule::map_classes;
use labelsieve::{Features, NoisyPool};
use labelsieve_files::work::Result;
use labelsieve_numerics::random::Stream;

use crate::sets::KnownSet;

/// The data that all draws of a set share.
pub struct SetContext<'a> {
    pub engine: &'a dyn Engine,
    pub set: &'a KnownSet,
    pub test: (Features, Vec<usize>),
    /// All candidates of each class, with their graphs.
    pools: Vec<Arc<NoisyPool>>,
    /// Seconds for building the graphs.
    pub graph_seconds: f64,
    seed: u64,
}

/// The classes of a draw with k clean examples each.
pub struct Trial<'a> {
    /// The k clean examples of each class.
    pub clean: Vec<Features>,
    /// The candidates of each class without its clean examples.
    pub pools: Vec<Arc<NoisyPool>>,
    /// Whether each candidate belongs to the class.
    pub relevant: Vec<Cow<'a, [bool]>>,
    stream: Stream,
}

impl<'a> SetContext<'a> {
    pub fn new(engine: &'a dyn Engine, set: &'a KnownSet, seed: u64) -> Result<SetContext<'a>> {
        let start = Instant::now();
        let sizes: Vec<usize> = set.classes.iter().map(|class| class.candidates.len()).collect();
        let pool = |c: usize| pool(engine, set.features.select(&set.classes[c].candidates));
        let pools = map_classes(&sizes, pool).into_iter().collect::<Result<_>>()?;
        let graph_seconds = start.elapsed().as_secs_f64();
        Ok(SetContext { engine, set, test: set.test(), pools, graph_seconds, seed })
    }

    /// Draw number `draw` with k clean examples. The examples of a smaller k are among those of a larger k.
    pub fn trial(&self, draw: usize, k: usize) -> Result<Trial<'a>> {
        let stream = Stream::new(self.seed).branch(draw as u64);
        let drawn = self.set.draw(k, stream.branch(0))?;
        let clean = drawn.iter().map(|rows| self.set.features.select(rows)).collect();
        let sizes: Vec<usize> = self.set.classes.iter().map(|class| class.candidates.len()).collect();
        let of_class = |c: usize| {
            let class = &self.set.classes[c];
            let (rows, relevant) = class.without(&drawn[c]);
            if rows.len() == class.candidates.len() {
                return Ok((Arc::clone(&self.pools[c]), Cow::Borrowed(class.relevant.as_slice())));
            }
            let pool = pool(self.engine, self.set.features.select(&rows))?;
            Ok((pool, Cow::Owned(relevant)))
        };
        let (pools, relevant) =
            map_classes(&sizes, of_class).into_iter().collect::<Result<Vec<_>>>()?.into_iter().unzip();
        Ok(Trial { clean, pools, relevant, stream: stream.branch(1).branch(k as u64) })
    }
}

impl Trial<'_> {
    /// The random numbers of a class, which no other class, k or draw shares.
    pub fn stream(&self, class: usize) -> Stream {
        self.stream.branch(class as u64)
    }
}

fn pool(engine: &dyn Engine, features: Features) -> Result<Arc<NoisyPool>> {
    let graph = engine.noisy_graph(&features, NEIGHBOURS)?;
    Ok(Arc::new(NoisyPool::from_parts(features, graph)?))
}
