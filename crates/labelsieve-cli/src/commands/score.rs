//! `labelsieve score`: the relevance of every candidate to its class.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use labelsieve_files::inputs::decisions;
use labelsieve_files::inputs::left_out::listed;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::table::percent;
use labelsieve_files::{Shard, counted};
use labelsieve_jobs::score::{Score as Job, ScoreSummary, Share, advice};

use crate::arguments::{
    DeviceArguments, JsonArguments, MemoryArguments, MethodArguments, ScoredArguments, SeedArguments,
};
use crate::options::Given;
use crate::printer::{Printer, refuse_json_beside};

/// The heading of options for work in parts.
const PARTS: &str = "Work in parts";

/// Classes whose advice is shown without `-v`.
const MOST_ADVISED: usize = 10;

/// Score the relevance of every candidate to its class
#[derive(Args)]
#[command(
    override_usage = "labelsieve score [OPTIONS] --clean <FILE> --pool <FILE> --output <FILE>\n       \
                            labelsieve score [OPTIONS] --class-text <FILE> --pool <FILE> --output <FILE>\n       \
                            labelsieve score [OPTIONS] --clean <FILE> --pool <FILE> --dry-run\n       \
                            labelsieve score [OPTIONS] --clean <FILE> --pool <FILE> --plan <FILE> --bin <I> --output <FILE>"
)]
pub struct Score {
    #[command(flatten)]
    scored: ScoredArguments,

    /// Output file, .parquet or .csv, with one row per example and class; - for CSV on stdout, which cannot be resumed
    #[arg(short, long, value_name = "FILE", required_unless_present = "dry_run")]
    output: Option<PathBuf>,

    /// Score only one bin of this plan, from `labelsieve plan`; the output is a part for `labelsieve merge`
    #[arg(long, value_name = "FILE", requires = "bin", help_heading = PARTS)]
    plan: Option<PathBuf>,

    /// Which bin of the plan, from 0. --pool and --candidates may hold the rows of the bin alone
    #[arg(long, value_name = "I", requires = "plan", help_heading = PARTS)]
    bin: Option<usize>,

    /// Score only shard I of N, from 0, without a plan: classes are packed alike on every machine
    #[arg(long, value_name = "I/N", conflicts_with_all = ["plan", "bin"], help_heading = PARTS)]
    shard: Option<Shard>,

    /// Only estimate memory and time
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    method: MethodArguments,

    /// Search the neighbours among more than 65,536 candidates approximately, to find about this share of them, on the CPU
    #[arg(long, value_name = "RECALL", num_args = 0..=1, require_equals = true, default_missing_value = "0.95")]
    neighbours_approximate: Option<f64>,

    #[command(flatten)]
    memory: MemoryArguments,

    #[command(flatten)]
    device: DeviceArguments,

    #[command(flatten)]
    seed: SeedArguments,

    #[command(flatten)]
    json: JsonArguments,
}

impl Score {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        self.method.check_options(given)?;
        self.scored.check_options(given)?;
        if self.dry_run {
            let why = "the estimate is that of an exact search";
            given.refuse(&["neighbours_approximate"], "--dry-run", why)?;
        }
        if self.dry_run && !self.share().is_part() {
            given.refuse(&["decisions"], "--dry-run", "decisions change neither memory nor time")?;
        }
        Ok(())
    }

    /// Which classes are asked for.
    fn share(&self) -> Share {
        match (&self.plan, self.bin, self.shard) {
            (Some(plan), Some(bin), _) => Share::Bin { plan: plan.clone(), bin },
            (.., Some(shard)) => Share::Shard(shard),
            _ => Share::All,
        }
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let job = Job {
            files: self.scored.files(),
            decisions: self.scored.decisions.clone(),
            method: self.method.method(),
            device: self.device.device,
            seed: self.seed.seed,
            share: self.share(),
            output: self.output.clone().unwrap_or_default(),
            memory: self.memory.limit(),
            recall: self.neighbours_approximate,
        };
        if self.dry_run {
            let estimate = job.estimate(printer)?;
            return match self.json.json {
                true => printer.json("score", &estimate),
                false => printer.data(&estimate.to_string()),
            };
        }
        refuse_json_beside(self.json, &job.output)?;
        let cleaned = job.run(printer)?;
        match self.json.json {
            true => printer.json("score", &cleaned),
            false => {
                tell(&cleaned, &job.output, printer);
                Ok(())
            }
        }
    }
}

fn tell(cleaned: &ScoreSummary, output: &Path, printer: &Printer) {
    let place = match output == Path::new("-") {
        true => String::new(),
        false => format!("; written to `{}`", output.display()),
    };
    let part = match &cleaned.part {
        Some(part) => format!("part {} of {}: ", part.index, part.of),
        None => String::new(),
    };
    printer.note(&format!(
        "{part}{} of {}, mean relevance {:.2}{place}",
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
    for class in &cleaned.approximate {
        let found = percent(class.recall);
        printer
            .note(&format!("`{}`: neighbours searched approximately, {found} % of them found", class.class));
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
