//! `labelsieve review`: a person looks at candidates in a browser and decides, and the relevance follows.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::shell_word::shell_word;
use labelsieve_review::Session;

use super::words::{run_step, words};
use crate::answers::ReviewAnswer;
use crate::arguments::JsonArguments;
use crate::given::Given;
use crate::options::ReviewOptions;
use crate::printer::Printer;
use crate::review::{ClosedReview, DEMO};
use crate::signals;
use crate::spelling::shell_line;

/// Look at candidates in a browser and decide about them; the relevance follows
#[derive(Args)]
#[command(
    override_usage = "labelsieve review [OPTIONS] <RELEVANCE> --images <SOURCE>... --output <FILE>\n       \
                            labelsieve review [OPTIONS] <RUN>\n       \
                            labelsieve review [OPTIONS] --demo"
)]
pub struct Review {
    #[command(flatten)]
    options: ReviewOptions,

    #[command(flatten)]
    json: JsonArguments,
}

impl Review {
    /// A folder has pictures and features of its own; a file has what is given with it.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        let options = &self.options;
        let has_own = options.demo || options.source.as_ref().is_some_and(|source| source.is_dir());
        if !has_own && options.images.is_empty() {
            given.refuse(&["image_column"], "review without --images", "pass the pictures with --images")?;
            if options.text.is_empty() {
                let hint = "pass the captions with --text, or the pictures with --images";
                given.refuse(&["text_columns"], "review without --text and --images", hint)?;
            }
        }
        if options.pool.is_none() {
            let hint = if has_own {
                "the folder's own features are read as they are; pass others with --clean and --pool"
            } else {
                "pass the features with --clean and --pool"
            };
            let of_features = ["allow_mixed", "embedding_column", "label_column"];
            given.refuse(&of_features, "review without --clean and --pool", hint)?;
        }
        Ok(())
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        if self.options.demo {
            make_demo(printer)?;
        }
        let review = self.options.open(shell_line, printer)?;
        let stop = review.stop();
        signals::on_first(move || stop.stop());
        self.announce(review.url(), review.session(), printer)?;
        say_goodbye(&review.run()?, printer);
        Ok(())
    }

    /// Where the page is, on stdout; the rest is for people.
    fn announce(&self, url: &str, session: &Session, printer: &Printer) -> Result<()> {
        let overview = session.overview();
        let n_candidates: usize = overview.classes.iter().map(|class| class.n_candidates).sum();
        if self.json.json {
            return printer.json(
                "review",
                &ReviewAnswer {
                    can_score: overview.can_score,
                    n_candidates,
                    n_classes: overview.classes.len(),
                    n_decisions: overview.n_decisions,
                    output: &overview.output,
                    url,
                },
            );
        }
        printer.note(&format!(
            "{} of {}; {} decided so far, in `{}`",
            counted(n_candidates, "candidate"),
            counted(overview.classes.len(), "class"),
            overview.n_decisions,
            overview.output
        ));
        if !overview.can_score {
            printer.note("no features: decisions are saved, but nothing is rescored");
            printer.note("pass --clean and --pool, as to `labelsieve score`, for that");
        }
        printer.data(url)?;
        printer
            .note("Open this address in a browser. Every decision is saved at once; Ctrl-C ends the review.");
        Ok(())
    }
}

/// The demo's folder, unless there is one.
fn make_demo(printer: &Printer) -> Result<()> {
    let folder = Path::new(DEMO);
    if !folder.join("relevance.parquet").is_file() {
        run_step("Make the demo first", &words("demo").option("--dir", folder), &printer.for_steps())?;
    }
    Ok(())
}

fn say_goodbye(closed: &ClosedReview, printer: &Printer) {
    let output = closed.output.display();
    printer.note(&format!("{} in `{output}`", counted(closed.n_decisions, "decision")));
    if closed.n_decisions == 0 {
        return;
    }
    let relevance = closed.relevance.display();
    match &closed.command {
        Some(command) => {
            printer.note("to score all classes with them:");
            printer.note(&format!("$ {command}"));
        }
        None if closed.can_score => printer.note(&format!(
            "`{relevance}` was scored with settings that `labelsieve score` has no options for: score again from Python, \
             with these decisions"
        )),
        None => printer.note(&format!(
            "to use them, add `--decisions {}` to the `labelsieve score` that wrote `{relevance}`",
            shell_word(&closed.output)
        )),
    }
}
