//! `labelsieve clean`: the relevance of every candidate to its class.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use labelsieve_data::counted;
use labelsieve_pipeline::Monitor;
use labelsieve_pipeline::clean::{Clean as Job, Cleaned, advice, estimate};
use labelsieve_pipeline::inputs::decisions;
use labelsieve_pipeline::inputs::left_out::listed;
use labelsieve_pipeline::inputs::pools::PoolFiles;

use crate::arguments::{
    DeviceArguments, JsonArguments, MemoryArguments, MethodArguments, PoolArguments, SeedArguments,
};
use crate::options::Given;
use crate::printer::{Printer, refuse_json_beside};

/// Classes whose advice is shown without `-v`.
const MOST_ADVISED: usize = 10;

/// Score the relevance of every candidate to its class
#[derive(Args)]
#[command(
    override_usage = "labelsieve clean [OPTIONS] --clean <FILE> --noisy <FILE> --output <FILE>\n       \
                            labelsieve clean [OPTIONS] --class-text <FILE> --noisy <FILE> --output <FILE>\n       \
                            labelsieve clean [OPTIONS] --clean <FILE> --noisy <FILE> --dry-run"
)]
pub struct Clean {
    #[command(flatten)]
    pools: PoolArguments,

    /// Candidates of each class, from `labelsieve match` [default: the labels of the noisy examples]
    #[arg(long, value_name = "FILE")]
    candidates: Option<PathBuf>,

    /// Base classes to compare candidates with: class weights of a network or classifier (.safetensors), or features with
    /// classes in the formats of --clean
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,

    /// Decisions about candidates (.parquet, .csv or .tsv with `id`, `class` and `decision`): accepted ones count as clean,
    /// rejected ones as known negatives
    #[arg(long, value_name = "FILE")]
    decisions: Option<PathBuf>,

    /// Output file, .parquet or .csv, with one row per example and class; - for CSV on stdout, which cannot be resumed
    #[arg(short, long, value_name = "FILE", required_unless_present = "dry_run")]
    output: Option<PathBuf>,

    /// Only estimate memory and time
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    method: MethodArguments,

    #[command(flatten)]
    memory: MemoryArguments,

    #[command(flatten)]
    device: DeviceArguments,

    #[command(flatten)]
    seed: SeedArguments,

    #[command(flatten)]
    json: JsonArguments,
}

impl Clean {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        self.method.check_options(given)?;
        given.refuse_columns(self.pools.tables())?;
        if self.dry_run {
            given.refuse(&["decisions"], "--dry-run", "decisions change neither memory nor time")?;
        }
        match self.candidates {
            Some(_) => given.refuse(
                &["noisy_labels"],
                "--candidates",
                "the candidates file already names the classes",
            ),
            None => Ok(()),
        }
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let files = PoolFiles { base: self.base.clone(), ..self.pools.files(self.candidates.as_deref()) };
        let method = self.method.method();
        if self.dry_run {
            let estimate = estimate(&files, &method, self.memory.limit().as_ref(), printer)?;
            return match self.json.json {
                true => printer.json("clean", &estimate),
                false => printer.data(&estimate.to_string()),
            };
        }
        let output = self.output.clone().context("no output file")?;
        refuse_json_beside(self.json, &output)?;
        let (device, seed, decisions) = (self.device.device, self.seed.seed, self.decisions.clone());
        let job = Job { files, decisions, method, device, seed, output, memory: self.memory.limit() };
        let cleaned = job.run(printer)?;
        match self.json.json {
            true => printer.json("clean", &cleaned),
            false => {
                tell(&cleaned, &job.output, printer);
                Ok(())
            }
        }
    }
}

fn tell(cleaned: &Cleaned, output: &Path, printer: &Printer) {
    let place = match output == Path::new("-") {
        true => String::new(),
        false => format!("; written to `{}`", output.display()),
    };
    printer.note(&format!(
        "{} of {}, mean relevance {:.2}{place}",
        counted(cleaned.n_candidates, "candidate"),
        counted(cleaned.n_classes, "class"),
        cleaned.mean_relevance,
    ));
    if let Some(counts) = &cleaned.decisions {
        decisions::say(counts, printer);
    }
    if let Some(counts) = &cleaned.class_texts {
        let classes = counted(counts.n_classes, "class");
        let only = match counts.n_text_only {
            0 => String::new(),
            n => format!(", the only one of {n}"),
        };
        printer.note(&format!("the text of the name is a clean example of {classes}{only}"));
    }
    cleaned.copies.say("features", printer);
    let none = &cleaned.without_candidates;
    if !none.is_empty() {
        let names = listed(none.iter().map(|name| format!("`{name}`")), none.len());
        let have = if none.len() == 1 { "has" } else { "have" };
        let classes = counted(none.len(), "class");
        printer.note(&format!("{classes} {have} no candidates, only clean examples: {names}"));
    }
    let most = if printer.is_verbose() { usize::MAX } else { MOST_ADVISED };
    let advice = cleaned.advice.as_deref().unwrap_or_default();
    advice::lines(advice, most).iter().for_each(|line| printer.note(line));
    for choice in &cleaned.choices {
        printer.detail(&format!("{}: {}", counted(choice.n_classes, "class"), choice.choice));
    }
}
