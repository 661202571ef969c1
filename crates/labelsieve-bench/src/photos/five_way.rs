//! The mini-ImageNet protocol: a few classes at a time, many trials.

use labelsieve::classifier::{Cosine, WeightMatrix, WeightedClass, prototypes};
use labelsieve::evaluation::{FewWay, Interval, LAMBDAS, Trial, accuracy};
use labelsieve::relevance::{Beta, LabelPropagation, Linear, Similarity};
use labelsieve::{Features, Method, NoisyPool};
use labelsieve_files::work::table::layout;
use labelsieve_files::work::{Monitor, Result};
use labelsieve_jobs::scoring::ClassContext;
use labelsieve_numerics::random::Stream;
use labelsieve_report::{ResultTable, TableColumn, TableRow};
use rayon::prelude::*;
use serde_json::json;

use super::config::{Backbone, Protocol};
use super::draws::labelled;
use super::half::Half;
use super::prepare::BenchmarkInputs;
use super::{CollectedResults, Comparison, Photos, measure};
use crate::classifier::Attention;
use crate::protocol::{Run, Source, Task, best_of, cell, cosine_settings, gcn, means_over, mlp, table_cell};

/// Trials that λ is chosen on.
const TUNING_TRIALS: usize = 100;
/// Trials per journal record, and trials that the cosine classifier is tuned on.
const BLOCK: usize = 50;

/// The ways to learn the weights of a trial's classes.
#[derive(Clone, Copy)]
enum Learner<'a> {
    Prototype,
    Attention(&'a Attention),
    Cosine(Cosine),
}

impl Learner<'_> {
    /// The name of the row of a group.
    fn row_name(self, group: &str) -> String {
        match self {
            Learner::Prototype => group.to_owned(),
            Learner::Attention(_) => format!("{group}, attention"),
            Learner::Cosine(_) => format!("{group}, cosine"),
        }
    }

    fn key(self) -> serde_json::Value {
        match self {
            Learner::Prototype => json!("prototype"),
            Learner::Attention(_) => json!("attention"),
            Learner::Cosine(cosine) => json!(cosine),
        }
    }
}

/// Rows of the table that learn from the same weights.
struct Group<'a> {
    name: &'static str,
    source: Source,
    learners: Vec<Learner<'a>>,
}

/// The result of a row at one number of clean examples.
struct FewWayCell {
    row: String,
    is_bound: bool,
    /// The source of the weights and the learner.
    setting: serde_json::Value,
    reached: Interval,
}

/// The trials over the classes of a half.
struct Trials<'a> {
    half: &'a Half<'a>,
    /// All candidates of each class, with graphs.
    pools: Vec<NoisyPool>,
    labelled: Vec<&'a [usize]>,
    rule: FewWay,
    stream: Stream,
}

impl Photos {
    /// Accuracy of few-way trials for one backbone and one set of candidates; returns the table as lines.
    pub(super) fn five_way(
        &self,
        comparison: &Comparison,
        run: &mut Run,
        collected: &mut CollectedResults,
    ) -> Result<Vec<String>> {
        let Comparison { inputs, context, backbone, monitor } = *comparison;
        let protocol = &inputs.config.protocol;
        let (tune, report) = inputs.photos.halves();
        let tuning = Half::new(context, tune, "tuning");
        let report = Half::new(context, report, "reported");
        let attention = measure::attention(run, &report, self.seed, monitor)?;
        let mut columns: Vec<Vec<FewWayCell>> = Vec::new();
        for &k in &protocol.trial_shots {
            let tuning = run.clock.time("graphs", || self.trials(inputs, &tuning, protocol, k))?;
            let report = run.clock.time("graphs", || self.trials(inputs, &report, protocol, k))?;
            let mut column = Vec::new();
            for group in groups(run, &tuning, k, attention.as_ref(), monitor)? {
                let reached = report.measure(run, &group, protocol.trials, monitor)?;
                column.extend(group.learners.iter().zip(reached).map(|(learner, reached)| FewWayCell {
                    row: learner.row_name(group.name),
                    is_bound: group.source == Source::Oracle,
                    setting: json!({ "source": group.source.json(), "learner": learner.key() }),
                    reached: Interval::of(&reached),
                }));
            }
            columns.push(column);
        }
        Ok(self.few_way_table(inputs, &report, backbone, &columns, collected))
    }

    fn trials<'a>(
        &self,
        inputs: &'a BenchmarkInputs,
        half: &'a Half<'a>,
        protocol: &Protocol,
        k: usize,
    ) -> Result<Trials<'a>> {
        let pools = (0..half.classes.len()).map(|class| half.pool(class)).collect::<Result<Vec<_>>>()?;
        let class = |&class: &usize| labelled(&inputs.photos.novel[class], inputs.config.clean);
        Ok(Trials {
            half,
            pools: pools.into_par_iter().map(NoisyPool::with_graph).collect(),
            labelled: half.classes.iter().map(class).collect(),
            rule: FewWay { ways: protocol.ways, shots: k, queries: protocol.queries },
            stream: Stream::new(self.seed).branch(5).branch(k as u64),
        })
    }

    fn few_way_table(
        &self,
        inputs: &BenchmarkInputs,
        report: &Half,
        backbone: &Backbone,
        columns: &[Vec<FewWayCell>],
        collected: &mut CollectedResults,
    ) -> Vec<String> {
        let protocol = &inputs.config.protocol;
        let heading = self.heading(inputs, backbone, report);
        let names: Vec<String> =
            protocol.trial_shots.iter().map(|k| format!("{}-way, k = {k}", protocol.ways)).collect();
        let of_row = |row: usize| columns.iter().map(move |column| &column[row].reached);
        let rows = 0..columns.first().map_or(0, Vec::len);
        let line = |row: usize| -> Vec<String> {
            std::iter::once(columns[0][row].row.clone()).chain(of_row(row).map(cell)).collect()
        };
        let header: Vec<&str> = std::iter::once("method").chain(names.iter().map(String::as_str)).collect();
        let title = format!("{}: top-1, %, {} trials", heading.title, protocol.trials);
        let table = layout(&header, &rows.clone().map(line).collect::<Vec<_>>());
        let lines = [String::new(), title].into_iter().chain(table).collect();
        let table_row = |row: usize| {
            let FewWayCell { row: name, is_bound, .. } = &columns[0][row];
            TableRow {
                reference: *is_bound,
                ..TableRow::new(name.clone(), of_row(row).map(table_cell).collect())
            }
        };
        collected.tables.push(ResultTable {
            id: format!("few-way-{}", heading.id),
            title: format!("{}: {}-way top-1 (%)", heading.title, protocol.ways),
            caption: format!("{}.", means_over(protocol.trials, "trial")),
            command: Some(heading.command),
            columns: names.into_iter().map(TableColumn::new).collect(),
            rows: rows.clone().map(table_row).collect(),
        });
        let as_json = |row: usize| {
            let settings: Vec<_> = columns.iter().map(|column| &column[row].setting).collect();
            let reached: Vec<_> = of_row(row).collect();
            json!({ "name": columns[0][row].row, "top_1": reached, "settings": settings })
        };
        collected.results.push(json!({
            "backbone": backbone.name, "candidates": report.context.candidates.name, "ways": protocol.ways,
            "trials": protocol.trials, "shots": protocol.trial_shots,
            "rows": rows.map(as_json).collect::<Vec<_>>(),
        }));
        lines
    }
}

/// All rows, with λ and the settings of each cosine row chosen on trials over the tuning classes.
fn groups<'a>(
    run: &mut Run,
    tuning: &Trials,
    k: usize,
    attention: Option<&'a Attention>,
    monitor: &dyn Monitor,
) -> Result<Vec<Group<'a>>> {
    let prototypes =
        |name, method: Method| Group { name, source: method.into(), learners: vec![Learner::Prototype] };
    let mut choose = |name, method: fn(f32) -> Method| -> Result<Method> {
        let mut trials = Vec::new();
        for lambda in LAMBDAS {
            let group = prototypes(name, method(lambda));
            let reached = tuning.measure(run, &group, TUNING_TRIALS, monitor)?;
            trials.push(Trial { setting: lambda, score: Interval::of(&reached[0]).mean });
        }
        Ok(method(best_of(trials)?.setting))
    };
    let gcn = choose("gcn", gcn)?;
    let mlp = choose("mlp", mlp)?;
    monitor.detail(&format!("k = {k}: {} and {}", json!(gcn), json!(mlp)));
    let start = Cosine { scale: tuning.half.scale(), ..Cosine::default() };
    let mut with_cosine = |name, source: Source| -> Result<Group<'a>> {
        let settings = cosine_settings(start, tuning.max_examples(&source));
        let learners = settings.into_iter().map(Learner::Cosine).collect();
        let all = Group { name, source: source.clone(), learners };
        let reached = tuning.measure(run, &all, BLOCK, monitor)?;
        let tried = all.learners.into_iter().zip(reached);
        let trials = tried.map(|(setting, reached)| Trial { setting, score: Interval::of(&reached).mean });
        let chosen = best_of(trials.collect())?.setting;
        Ok(Group { name, source, learners: vec![Learner::Prototype, chosen] })
    };
    let mut clean_only = with_cosine("clean only", Source::CleanOnly)?;
    clean_only.learners.splice(1..1, attention.map(Learner::Attention));
    Ok(vec![
        clean_only,
        prototypes("similarity", Method::Similarity(Similarity {})),
        prototypes("β = 1", Method::Beta(Beta::default())),
        prototypes("linear", Method::Linear(Linear::default())),
        prototypes("label propagation", Method::LabelPropagation(LabelPropagation::default())),
        prototypes("mlp", mlp),
        with_cosine("gcn", gcn.into())?,
        with_cosine("oracle", Source::Oracle)?,
    ])
}

impl Trials<'_> {
    /// The largest number of examples of a trial.
    fn max_examples(&self, source: &Source) -> usize {
        let mut sizes = self.half.pool_sizes();
        if *source == Source::CleanOnly {
            sizes.fill(0);
        }
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes.iter().take(self.rule.ways).map(|size| size + self.rule.shots).sum()
    }

    /// The accuracy of each learner in each trial, in blocks that the journal keeps.
    fn measure(
        &self,
        run: &mut Run,
        group: &Group,
        n: usize,
        monitor: &dyn Monitor,
    ) -> Result<Vec<Vec<f64>>> {
        let progress = monitor.progress(n as u64, "trials");
        progress.set_message(&format!("{}, {}, k = {}", self.half.title(), group.name, self.rule.shots));
        let mut all = vec![Vec::with_capacity(n); group.learners.len()];
        for block in 0..n.div_ceil(BLOCK) {
            let trials: Vec<usize> = (block * BLOCK..((block + 1) * BLOCK).min(n)).collect();
            let key = self.key(group, &trials);
            let kept = run.kept(&key).and_then(|bytes| serde_json::from_slice::<Vec<Vec<f64>>>(bytes).ok());
            let reached = match kept.filter(|kept| kept.len() == trials.len()) {
                Some(kept) => kept,
                None => {
                    let reached = run.clock.time(group.name, || {
                        trials.par_iter().map(|&trial| self.trial(group, trial)).collect::<Result<Vec<_>>>()
                    })?;
                    run.keep(key, serde_json::to_vec(&reached)?)?;
                    reached
                }
            };
            for trial in &reached {
                all.iter_mut().zip(trial).for_each(|(all, reached)| all.push(*reached));
            }
            progress.inc(trials.len() as u64);
        }
        progress.finish();
        Ok(all)
    }

    fn key(&self, group: &Group, trials: &[usize]) -> String {
        let FewWay { ways, shots, queries } = self.rule;
        let learners: Vec<_> = group.learners.iter().map(|learner| learner.key()).collect();
        format!(
            "{} {ways}-way k={shots} queries={queries} trials={:?} {} {}",
            self.half.journal_name(),
            trials.first()..=trials.last(),
            json!(learners),
            group.source.key()
        )
    }

    /// The accuracy of each learner of a group in one trial.
    fn trial(&self, group: &Group, number: usize) -> Result<Vec<f64>> {
        let photos = self.half.context.photos;
        let features = &self.half.context.backbone.features;
        let novel = |class: usize| &photos.novel[self.half.classes[class]];
        let labelled: Vec<usize> = self.labelled.iter().map(|labelled| labelled.len()).collect();
        let tests: Vec<usize> = (0..labelled.len()).map(|class| novel(class).test.len()).collect();
        let stream = self.stream.branch(number as u64);
        let trial = self.rule.draw(&labelled, &tests, stream)?;
        let mut clean = Vec::new();
        let mut queries = Vec::new();
        let mut labels = Vec::new();
        let mut clean_photos = Vec::new();
        for (way, &class) in trial.classes.iter().enumerate() {
            let chosen: Vec<usize> =
                trial.clean[way].iter().map(|&place| self.labelled[class][place]).collect();
            clean.push(features.select(&chosen));
            clean_photos.push(chosen);
            queries.extend(trial.queries[way].iter().map(|&place| novel(class).test[place]));
            labels.extend(std::iter::repeat_n(way, trial.queries[way].len()));
        }
        let pools: Vec<TrialPool> =
            trial.classes.iter().zip(&clean_photos).map(|(&class, clean)| self.pool(class, clean)).collect();
        let weights = (0..clean.len())
            .map(|way| self.weights(&group.source, &clean, way, trial.classes[way], &pools[way], stream))
            .collect::<Result<Vec<_>>>()?;
        let classes = (0..clean.len())
            .map(|way| WeightedClass::new(&clean[way], pools[way].get().features(), &weights[way]))
            .collect::<labelsieve::Result<Vec<_>>>()?;
        let queries = features.select(&queries);
        let reached = |&learner: &Learner| {
            let learned = self.learn(learner, &classes, stream)?;
            Ok(accuracy(&learned, &queries, &labels)?.top_1)
        };
        group.learners.iter().map(reached).collect()
    }

    /// A class's candidates without its clean photos: the shared pool if it contains none of them.
    fn pool(&self, class: usize, clean: &[usize]) -> TrialPool<'_> {
        let candidates = self.half.candidates(class);
        let kept: Vec<usize> = (0..candidates.photos.len())
            .filter(|&place| !clean.contains(&candidates.photos[place]))
            .collect();
        if kept.len() == candidates.photos.len() {
            TrialPool::Shared(&self.pools[class], &candidates.relevant)
        } else {
            TrialPool::Own(
                Box::new(NoisyPool::new(self.pools[class].features().select(&kept))),
                kept.iter().map(|&place| candidates.relevant[place]).collect(),
            )
        }
    }

    /// The weights of a class's candidates in a trial.
    fn weights(
        &self,
        source: &Source,
        clean: &[Features],
        way: usize,
        class: usize,
        pool: &TrialPool,
        stream: Stream,
    ) -> Result<Vec<f32>> {
        let n = pool.get().features().len();
        Ok(match source {
            Source::CleanOnly => vec![0.0; n],
            Source::Oracle => pool.truth().iter().map(|&relevant| f32::from(u8::from(relevant))).collect(),
            Source::Scored(method) => {
                let stream = stream.branch(3).branch(class as u64);
                let drawn = ClassContext::new(method, clean, way, stream, stream.bits(0));
                let job = drawn.job(&clean[way], pool.get())?;
                method.build()?.relevance(&job.problem, job.seed)?.noisy().to_vec()
            }
        })
    }

    fn learn(&self, learner: Learner, classes: &[WeightedClass], stream: Stream) -> Result<WeightMatrix> {
        let dim = self.half.dim();
        let scale = self.half.scale();
        Ok(match learner {
            Learner::Prototype => prototypes(classes, dim, scale)?,
            Learner::Attention(attention) => attention.weights(classes)?,
            Learner::Cosine(cosine) => cosine.train(classes, dim, stream.bits(1))?,
        })
    }
}

/// The candidates of a class in a trial, and whether each is relevant.
enum TrialPool<'a> {
    Shared(&'a NoisyPool, &'a [bool]),
    Own(Box<NoisyPool>, Vec<bool>),
}

impl TrialPool<'_> {
    fn get(&self) -> &NoisyPool {
        match self {
            TrialPool::Shared(pool, _) => pool,
            TrialPool::Own(pool, _) => pool,
        }
    }

    fn truth(&self) -> &[bool] {
        match self {
            TrialPool::Shared(_, truth) => truth,
            TrialPool::Own(_, truth) => truth,
        }
    }
}
