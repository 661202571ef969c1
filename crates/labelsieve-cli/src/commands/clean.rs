//! `labelsieve clean`: the relevance of every candidate to its class.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::{Context, Result};
use clap::Args;
use labelsieve::engine::{Engine, Job};
use labelsieve::random::Stream;
use labelsieve::relevance::{MOST_OTHERS, others};
use labelsieve::schedule::batches;
use labelsieve::{ClassProblem, Features, Method, NoisyPool};
use labelsieve_data::{DataError, Journal, RelevanceRow, RelevanceWriter};
use serde::Serialize;
use serde_json::json;

use super::method::MethodArguments;
use super::scored::Scored;
use crate::copies::identical_rows;
use crate::device::DeviceArguments;
use crate::estimate::Work;
use crate::inputs::{ClassRows, Columns, PoolFiles, Pools, load};
use crate::left_out::listed;
use crate::options::Given;
use crate::outputs::{Files, OutputKind, Target, beside, on_stdout};
use crate::printer::Printer;
use crate::same_network::{MixedArguments, common_network, network_metadata};
use crate::{resume, swapped};

/// Score the relevance of every candidate to its class
#[derive(Args, Serialize)]
pub struct Clean {
    #[command(flatten)]
    #[serde(flatten)]
    files: PoolFiles,

    #[command(flatten)]
    #[serde(flatten)]
    columns: Columns,

    /// Which noisy examples are candidates of which class, as `labelsieve match` writes it; else the noisy examples'
    /// own labels say so
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "resume::debug")]
    candidates: Option<PathBuf>,

    #[command(flatten)]
    #[serde(flatten)]
    mixed: MixedArguments,

    #[command(flatten)]
    #[serde(flatten)]
    method: MethodArguments,

    #[command(flatten)]
    #[serde(flatten)]
    device: DeviceArguments,

    /// The same seed gives the same result
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// File to write, .parquet or .csv: one row per example and class; - writes CSV to stdout, where a killed run cannot
    /// be resumed
    #[arg(short, long, value_name = "FILE", required_unless_present = "dry_run")]
    #[serde(serialize_with = "resume::debug")]
    output: Option<PathBuf>,

    /// Only say how much memory and time it would take
    #[arg(long)]
    dry_run: bool,
}

impl Clean {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        self.method.check_options(given)?;
        given.refuse_columns([self.files.clean.as_path(), self.files.noisy.as_path()])?;
        match self.candidates {
            Some(_) => {
                given.refuse(&["noisy_labels"], "--candidates", "it says itself which class each is of")
            }
            None => Ok(()),
        }
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let target = self.output.as_deref().map(|output| OutputKind::Table.target(output)).transpose()?;
        let method = self.method.method();
        method.build()?; // refuse bad settings before reading anything
        let mut files = self.files.paths();
        files.extend(self.candidates.as_deref());
        if let Some(output) = target.and_then(Target::file) {
            Files::default().reads(&files).writes([output]).writes_beside(output, &[".partial"]).check()?;
        }
        let pools =
            Pools::open(&self.files, &self.columns, self.candidates.as_deref(), &self.mixed, printer)?;
        pools.warn_of_left_out(printer);
        if self.dry_run {
            return work(&pools, &method).print(printer);
        }
        let target = target.context("no output file")?;
        if let Some(warning) = swapped::suspicion(&pools) {
            printer.warning(&warning);
        }
        if let Some(output) = target.file() {
            drop(labelsieve_data::AtomicFile::create(output)?); // an unwritable place should cost no hours of work
        }

        let opened = self.device.open(printer)?;
        let device = opened.kind();
        let settings = json!({ "command": "clean", "method": method, "seed": self.seed, "device": device });
        let key = resume::Key::new("clean", self, &["device", "output", "dry_run", "allow_mixed"])?;
        let key = key.with(&settings).on_device(device).with_files(&files)?;
        let (journal, finished) = match target {
            Target::File(output) => {
                let n_classes = (Some(pools.classes.len()), "classes");
                let (journal, finished) =
                    resume::open(&beside(output, ".partial"), &key, n_classes, printer)?;
                (Some(journal), finished)
            }
            Target::Stdout => {
                printer.note("relevance goes to stdout; a killed run cannot be resumed");
                (None, Vec::new())
            }
        };

        let mut done: HashMap<String, Scored> = HashMap::new();
        let by_name: HashMap<&str, &ClassRows> =
            pools.classes.iter().map(|class| (class.name.as_str(), class)).collect();
        for (name, payload) in finished {
            // What does not fit its class is simply not finished.
            let Some(class) = by_name.get(name.as_str()) else { continue };
            if let Some(scored) = Scored::decode(&payload, class.clean.len(), class.noisy.len()) {
                done.insert(name, scored);
            }
        }
        self.score(&pools, &method, opened.engine(), journal.as_ref(), &mut done, printer)?;
        on_stdout(target, self.write(&pools, &done, &settings, target, printer))?;
        if let Some(journal) = journal {
            journal.remove()?;
        }
        Ok(())
    }

    /// Scores what is not yet done, batch by batch, and notes every class in the journal as it is finished.
    fn score(
        &self,
        pools: &Pools,
        method: &Method,
        engine: &dyn Engine,
        journal: Option<&Journal>,
        done: &mut HashMap<String, Scored>,
        printer: &Printer,
    ) -> Result<()> {
        let open: Vec<&ClassRows> =
            pools.classes.iter().filter(|class| !done.contains_key(&class.name)).collect();
        let n_rows: usize = open.iter().map(|class| class.noisy.len()).sum();
        let progress = printer.progress(n_rows as u64, "candidates");
        progress.set_message(method.name());
        // Models that learn from other classes see their clean examples: few enough to keep.
        let clean =
            pools.classes.iter().map(|class| load(&pools.clean, &class.clean)).collect::<Result<Vec<_>>>()?;
        let clean_of: HashMap<&str, usize> =
            pools.classes.iter().enumerate().map(|(c, class)| (class.name.as_str(), c)).collect();
        let rows = rows_held(&open, pools, method);
        for batch in batches(&rows, pools.noisy.features.cols()) {
            let batch: Vec<&ClassRows> = batch.into_iter().map(|class| open[class]).collect();
            let inputs = batch
                .iter()
                .map(|class| {
                    let c = clean_of[class.name.as_str()];
                    let stream = Stream::new(self.seed).named(&class.name);
                    let others = match method {
                        Method::Linear(_) => others(&clean, c, stream.branch(1)),
                        _ => Features::empty(clean[c].dim()),
                    };
                    let noisy = load(&pools.noisy, &class.noisy)?;
                    let copies = identical_rows(&clean[c], &noisy);
                    let pool = NoisyPool::new(without(noisy, &copies));
                    if pool.features().n_zero() > 0 {
                        printer.warning(&format!(
                            "{} of {} candidates of `{}` are rows of zeros, similar to nothing",
                            pool.features().n_zero(),
                            pool.features().len(),
                            class.name
                        ));
                    }
                    Ok((c, pool, others, stream.bits(0), copies))
                })
                .collect::<Result<Vec<_>>>()?;
            let jobs = inputs
                .iter()
                .map(|(c, pool, others, seed, _)| {
                    let problem = ClassProblem::new(&clean[*c], pool)?.with_others(others)?;
                    Ok(Job { problem, seed: *seed })
                })
                .collect::<labelsieve::Result<Vec<_>>>()?;
            let scored: Mutex<Vec<(String, Scored)>> = Mutex::default();
            let failure: Mutex<Option<DataError>> = Mutex::default();
            engine.relevance(method, &jobs, &|i, relevance| {
                let result = Scored::new(&jobs[i].problem, relevance, inputs[i].4.clone());
                let noted = journal.map(|journal| journal.append(&batch[i].name, &result.encode()));
                if let Some(Err(error)) = noted {
                    failure.lock().unwrap_or_else(|poison| poison.into_inner()).get_or_insert(error);
                }
                let (name, z) = (&batch[i].name, result.relevance.len());
                let mean = result.relevance.iter().sum::<f32>() / z.max(1) as f32;
                printer.detail(&format!("{name}: {z} candidates, mean relevance {mean:.2}"));
                progress.inc(batch[i].noisy.len() as u64);
                let mut scored = scored.lock().unwrap_or_else(|poison| poison.into_inner());
                scored.push((batch[i].name.clone(), result));
            })?;
            if let Some(error) = failure.into_inner().unwrap_or_else(|poison| poison.into_inner()) {
                return Err(error.into());
            }
            done.extend(scored.into_inner().unwrap_or_else(|poison| poison.into_inner()));
        }
        progress.finish_and_clear();
        Ok(())
    }

    fn write(
        &self,
        pools: &Pools,
        done: &HashMap<String, Scored>,
        settings: &serde_json::Value,
        target: Target<'_>,
        printer: &Printer,
    ) -> labelsieve_data::Result<()> {
        const ROWS: usize = 65_536;
        let mut metadata = network_metadata(common_network(&[(&pools.clean).into(), (&pools.noisy).into()]));
        metadata.insert("labelsieve".to_owned(), settings.to_string());
        let metadata: Vec<(String, String)> = metadata.into_iter().collect();
        let mut writer = match target {
            Target::File(output) => RelevanceWriter::create(output, &metadata)?,
            Target::Stdout => RelevanceWriter::to_stream(printer.stream()),
        };
        let mut copies = pools.copies;
        let (mut n_noisy, mut sum) = (0usize, 0f64);
        for class in &pools.classes {
            let scored = &done[&class.name];
            let clean = class.clean.iter().map(|&row| clean_row(pools, class, row));
            let kept = scored.kept().enumerate();
            let noisy = kept.map(|(i, place)| noisy_row(pools, class, scored, i, place));
            let mut rows = clean.chain(noisy).peekable();
            while rows.peek().is_some() {
                writer.write(&rows.by_ref().take(ROWS).collect::<Vec<_>>())?;
            }
            n_noisy += scored.relevance.len();
            copies.by_content += scored.copies.len();
            sum += scored.relevance.iter().map(|&r| f64::from(r)).sum::<f64>();
        }
        writer.finish()?;
        let place = target.file().map_or(String::new(), |output| format!(", in `{}`", output.display()));
        printer.note(&format!(
            "{n_noisy} candidates of {} classes, mean relevance {:.2}{place}",
            pools.classes.len(),
            sum / n_noisy.max(1) as f64,
        ));
        copies.say("features", printer);
        let none: Vec<&ClassRows> = pools.classes.iter().filter(|class| class.noisy.is_empty()).collect();
        if !none.is_empty() {
            let names = listed(none.iter().map(|class| format!("`{}`", class.name)), none.len());
            let n = none.len();
            printer.note(&format!(
                "{n} classes have no candidates; their clean examples are listed alone: {names}"
            ));
        }
        Ok(())
    }
}

/// What there is to do, for an estimate.
fn work<'a>(pools: &Pools, method: &'a Method) -> Work<'a> {
    let classes: Vec<&ClassRows> = pools.classes.iter().collect();
    Work {
        method,
        dim: pools.clean.features.cols(),
        pool_sizes: classes.iter().map(|class| class.noisy.len()).collect(),
        rows_held: rows_held(&classes, pools, method),
        n_clean: pools.clean.len(),
        bytes_in_memory: pools.clean.features.bytes_in_memory() + pools.noisy.features.bytes_in_memory(),
    }
}

/// How many rows are in memory while a class is worked on: its candidates and, for models that learn from other classes,
/// examples of those.
fn rows_held(classes: &[&ClassRows], pools: &Pools, method: &Method) -> Vec<usize> {
    let others = |class: &ClassRows| match method {
        Method::Linear(_) => (pools.clean.len() - class.clean.len()).min(MOST_OTHERS),
        _ => 0,
    };
    classes.iter().map(|class| class.noisy.len() + others(class)).collect()
}

/// All rows but some.
fn without(features: Features, rows: &[usize]) -> Features {
    if rows.is_empty() {
        return features;
    }
    let kept: Vec<usize> = (0..features.len()).filter(|row| rows.binary_search(row).is_err()).collect();
    features.select(&kept)
}

fn clean_row(pools: &Pools, class: &ClassRows, row: usize) -> RelevanceRow {
    RelevanceRow {
        id: pools.clean.ids.get(row).into_owned(),
        class: class.name.clone(),
        relevance: 1.0,
        is_clean: true,
        matched_name: None,
        best_clean: None,
        best_clean_similarity: None,
        reciprocal_neighbours: None,
    }
}

/// The `i`-th candidate that takes part, which is the one at `place` among all of the class.
fn noisy_row(pools: &Pools, class: &ClassRows, scored: &Scored, i: usize, place: usize) -> RelevanceRow {
    let (closest, similarity) = scored.closest[i];
    RelevanceRow {
        id: pools.noisy.ids.get(class.noisy[place]).into_owned(),
        class: class.name.clone(),
        relevance: scored.relevance[i],
        is_clean: false,
        matched_name: pools.matched_name(class, place).map(str::to_owned),
        best_clean: Some(pools.clean.ids.get(class.clean[closest]).into_owned()),
        best_clean_similarity: Some(similarity),
        reciprocal_neighbours: scored.reciprocal.as_ref().map(|counts| counts[i]),
    }
}
