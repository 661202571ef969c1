//! `labelsieve score`: the relevance of every candidate to its class.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::inputs::decisions;
use labelsieve_files::inputs::left_out::listed;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::table::percent;
use labelsieve_jobs::score::{ScoreSummary, advice};

use crate::arguments::JsonArguments;
use crate::given::Given;
use crate::options::ScoreOptions;
use crate::printer::{Printer, refuse_json_beside};

/// Classes whose advice is shown without `-v`.
const MAX_ADVISED: usize = 10;

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
    options: ScoreOptions,

    #[command(flatten)]
    json: JsonArguments,
}

impl Score {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        self.options.method.check_options(given)?;
        self.options.scored.check_options(given)?;
        if self.options.dry_run {
            let why = "the estimate is that of an exact search";
            given.refuse(&["neighbours_approximate"], "--dry-run", why)?;
        }
        if self.options.dry_run && !self.options.share().is_part() {
            given.refuse(&["decisions"], "--dry-run", "decisions change neither memory nor time")?;
        }
        Ok(())
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let job = self.options.job();
        if self.options.dry_run {
            let estimate = job.estimate(printer)?;
            return if self.json.json {
                printer.json("score", &estimate)
            } else {
                printer.data(&estimate.to_string())
            };
        }
        refuse_json_beside(self.json, &job.output)?;
        let cleaned = job.run(printer)?;
        if self.json.json {
            return printer.json("score", &cleaned);
        }
        tell(&cleaned, &job.output, printer);
        Ok(())
    }
}

fn tell(cleaned: &ScoreSummary, output: &Path, printer: &Printer) {
    let place =
        if output == Path::new("-") { String::new() } else { format!("; written to `{}`", output.display()) };
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
    let most = if printer.is_verbose() { usize::MAX } else { MAX_ADVISED };
    let advice = cleaned.advice.as_deref().unwrap_or_default();
    advice::lines(advice, most).iter().for_each(|line| printer.note(line));
    for choice in &cleaned.choices {
        printer.detail(&format!("{}: {}", counted(choice.n_classes, "class"), choice.choice));
    }
}
