//! `labelsieve clean`: the relevance of every candidate to its class.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::{Context, Result};
use clap::Args;
use labelsieve::engine::{Engine, Job};
use labelsieve::random::Stream;
use labelsieve::relevance::others;
use labelsieve::schedule::batches;
use labelsieve::{ClassProblem, Features, Method, NoisyPool};
use labelsieve_data::{DataError, Journal, RelevanceRow, RelevanceWriter};
use serde_json::json;

use super::method::MethodArguments;
use super::scored::Scored;
use crate::device::DeviceArguments;
use crate::inputs::{ClassRows, Columns, PoolFiles, Pools, load};
use crate::options::Given;
use crate::outputs::{Files, OutputKind, Target, beside, on_stdout};
use crate::printer::Printer;
use crate::{estimate, resume, signals};

/// Score the relevance of every candidate to its class
#[derive(Args)]
pub struct Clean {
    #[command(flatten)]
    files: PoolFiles,

    #[command(flatten)]
    columns: Columns,

    /// Which noisy examples are candidates of which class, as `labelsieve match` writes it; else the noisy examples'
    /// own labels say so
    #[arg(long, value_name = "FILE")]
    candidates: Option<PathBuf>,

    #[command(flatten)]
    method: MethodArguments,

    #[command(flatten)]
    device: DeviceArguments,

    /// The same seed gives the same result
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// File to write, .parquet or .csv: one row per example and class; - writes CSV to stdout, where a killed run cannot
    /// be resumed
    #[arg(short, long, value_name = "FILE", required_unless_present = "dry_run")]
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
        let pools = Pools::open(&self.files, &self.columns, self.candidates.as_deref())?;
        let sizes: Vec<usize> = pools.classes.iter().map(|class| class.noisy.len()).collect();
        if self.dry_run {
            return estimate::print(printer, &method, pools.clean.features.cols(), &sizes);
        }
        let target = target.context("no output file")?;
        if pools.n_orphans > 0 {
            printer.warning(&format!(
                "{} candidates are left out: their class has no clean example, or they have no features",
                pools.n_orphans
            ));
        }
        if let Some(output) = target.file() {
            drop(labelsieve_data::AtomicFile::create(output)?); // an unwritable place should cost no hours of work
        }

        let opened = self.device.open(printer)?;
        let device = opened.kind();
        let settings = json!({ "command": "clean", "method": method, "seed": self.seed, "device": device });
        let fingerprint = resume::fingerprint(&settings, &files)?;
        let (journal, finished) = match target {
            Target::File(output) => {
                let path = beside(output, ".partial");
                let (journal, finished) = resume::open(&path, &fingerprint, "classes", printer)?;
                signals::expect_in_all(pools.classes.len());
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
        let sizes: Vec<usize> = open.iter().map(|class| class.noisy.len()).collect();
        for batch in batches(&sizes, pools.noisy.features.cols()) {
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
                    let pool = NoisyPool::new(load(&pools.noisy, &class.noisy)?);
                    if pool.features().n_zero() > 0 {
                        printer.warning(&format!(
                            "{} of {} candidates of `{}` are rows of zeros, similar to nothing",
                            pool.features().n_zero(),
                            pool.features().len(),
                            class.name
                        ));
                    }
                    Ok((c, pool, others, stream.bits(0)))
                })
                .collect::<Result<Vec<_>>>()?;
            let jobs = inputs
                .iter()
                .map(|(c, pool, others, seed)| {
                    let problem = ClassProblem::new(&clean[*c], pool)?.with_others(others)?;
                    Ok(Job { problem, seed: *seed })
                })
                .collect::<labelsieve::Result<Vec<_>>>()?;
            let scored: Mutex<Vec<(String, Scored)>> = Mutex::default();
            let failure: Mutex<Option<DataError>> = Mutex::default();
            engine.relevance(method, &jobs, &|i, relevance| {
                let result = Scored::new(&jobs[i].problem, relevance);
                let noted = journal.map(|journal| journal.append(&batch[i].name, &result.encode()));
                if let Some(Err(error)) = noted {
                    failure.lock().unwrap_or_else(|poison| poison.into_inner()).get_or_insert(error);
                }
                let (name, z) = (&batch[i].name, result.relevance.len());
                let mean = result.relevance.iter().sum::<f32>() / z.max(1) as f32;
                printer.detail(&format!("{name}: {z} candidates, mean relevance {mean:.2}"));
                progress.inc(z as u64);
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
        let mut writer = match target {
            Target::File(output) => {
                RelevanceWriter::create(output, &[("labelsieve".to_owned(), settings.to_string())])?
            }
            Target::Stdout => RelevanceWriter::to_stream(printer.stream()),
        };
        let (mut n_noisy, mut sum) = (0usize, 0f64);
        for class in &pools.classes {
            let scored = &done[&class.name];
            let clean = class.clean.iter().map(|&row| clean_row(pools, class, row));
            let noisy = (0..class.noisy.len()).map(|i| noisy_row(pools, class, scored, i));
            let mut rows = clean.chain(noisy).peekable();
            while rows.peek().is_some() {
                writer.write(&rows.by_ref().take(ROWS).collect::<Vec<_>>())?;
            }
            n_noisy += scored.relevance.len();
            sum += scored.relevance.iter().map(|&r| f64::from(r)).sum::<f64>();
        }
        writer.finish()?;
        let place = target.file().map_or(String::new(), |output| format!(", in `{}`", output.display()));
        printer.note(&format!(
            "{n_noisy} candidates of {} classes, mean relevance {:.2}{place}",
            pools.classes.len(),
            sum / n_noisy.max(1) as f64,
        ));
        let none = pools.classes.iter().filter(|class| class.noisy.is_empty()).count();
        if none > 0 {
            printer
                .note(&format!("{none} classes have no candidates; their clean examples are listed alone"));
        }
        Ok(())
    }
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

fn noisy_row(pools: &Pools, class: &ClassRows, scored: &Scored, i: usize) -> RelevanceRow {
    let (closest, similarity) = scored.closest[i];
    RelevanceRow {
        id: pools.noisy.ids.get(class.noisy[i]).into_owned(),
        class: class.name.clone(),
        relevance: scored.relevance[i],
        is_clean: false,
        matched_name: pools.matched_name(class, i).map(str::to_owned),
        best_clean: Some(pools.clean.ids.get(class.clean[closest]).into_owned()),
        best_clean_similarity: Some(similarity),
        reciprocal_neighbours: scored.reciprocal.as_ref().map(|counts| counts[i]),
    }
}
