//! `labelsieve review`: a person looks at candidates in a browser and decides, and the relevance follows.

mod account;
mod browser;
mod sources;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::shell_word::shell_word;
use labelsieve_jobs::inputs::pools::PoolFiles;
use labelsieve_networks::image_files::PictureSources;
use labelsieve_review::{MEMORY, Review as Job, Server, Session, SessionSummary};

use self::sources::Sources;
use crate::answers::ReviewAnswer;
use crate::arguments::{ColumnArguments, DeviceArguments, JsonArguments, MixedArguments};
use crate::given::Given;
use crate::hint::user_error;
use crate::printer::Printer;
use crate::signals;
use crate::spelling::shell_line;

/// Look at candidates in a browser and decide about them; the relevance follows
#[derive(Args)]
#[command(
    override_usage = "labelsieve review [OPTIONS] <RELEVANCE> --images <SOURCE>... --output <FILE>\n       \
                            labelsieve review [OPTIONS] <RUN>\n       \
                            labelsieve review [OPTIONS] --demo",
    group(clap::ArgGroup::new("verified").args(["clean", "class_text"]).multiple(true))
)]
pub struct Review {
    /// Relevance file (from `labelsieve score`), or the folder of `labelsieve run` or `demo`, in which everything else is
    /// found
    #[arg(value_name = "RELEVANCE", required_unless_present = "demo")]
    source: Option<PathBuf>,

    /// Review the demo's icons; runs the demo first if `labelsieve-demo` does not exist
    #[arg(long, conflicts_with = "source")]
    demo: bool,

    /// Pictures of clean examples and candidates: folders, .parquet files with image bytes, .tar files, image files
    #[arg(long, value_name = "SOURCE", num_args = 1..)]
    images: Vec<PathBuf>,

    /// Image column [default: image, img, jpg or bytes]
    #[arg(long, value_name = "NAME")]
    image_column: Option<String>,

    /// Captions of the examples: the files that `labelsieve match` takes [default: those beside the images]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    text: Vec<PathBuf>,

    /// Caption column; repeatable [default: caption, title, text or description]
    #[arg(long, value_name = "NAME")]
    text_column: Vec<String>,

    /// Features of the clean examples, as given to `labelsieve score`; without features, relevance stays as it is
    #[arg(long, value_name = "FILE", requires = "pool")]
    clean: Option<PathBuf>,

    /// Features of the candidates, as given to `labelsieve score`
    #[arg(long, value_name = "FILE", requires = "verified")]
    pool: Option<PathBuf>,

    /// Class texts, if given to `labelsieve score`
    #[arg(long, value_name = "FILE", requires = "pool")]
    class_text: Option<PathBuf>,

    /// Candidates of each class, if given to `labelsieve score`
    #[arg(long, value_name = "FILE", requires = "pool")]
    candidates: Option<PathBuf>,

    /// Base classes, if given to `labelsieve score`
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,

    /// Classes of the clean examples, for .npy
    #[arg(long, value_name = "FILE", requires = "clean")]
    clean_labels: Option<PathBuf>,

    /// Labels of the candidates, for .npy
    #[arg(long, value_name = "FILE", requires = "pool")]
    pool_labels: Option<PathBuf>,

    #[command(flatten)]
    mixed: MixedArguments,

    #[command(flatten)]
    columns: ColumnArguments,

    /// File of the decisions (.parquet, .csv or .tsv), which is continued if it exists [default in a folder:
    /// decisions.parquet]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Who decides, noted with every decision [default: the name of the account]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// Heading of the page
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Port of the server [default: any free one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// Address to listen on; any but a loopback address lets other machines in that know the token
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,

    /// Do not open a browser
    #[arg(long)]
    no_open: bool,

    #[command(flatten)]
    device: DeviceArguments,

    #[command(flatten)]
    json: JsonArguments,
}

impl Review {
    /// A folder has pictures and features of its own; a file has what is given with it.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        let has_own = self.demo || self.source.as_ref().is_some_and(|source| source.is_dir());
        if !has_own && self.images.is_empty() {
            given.refuse(&["image_column"], "review without --images", "pass the pictures with --images")?;
            if self.text.is_empty() {
                let hint = "pass the captions with --text, or the pictures with --images";
                given.refuse(&["text_column"], "review without --text and --images", hint)?;
            }
        }
        if self.pool.is_none() {
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
        let job = self.job(printer)?;
        job.check()?;
        if !self.host.is_loopback() {
            printer.warning(&format!(
                "listening on {}: anyone who can reach this machine and knows the address can look and decide",
                self.host
            ));
            printer.hint(&"nothing is encrypted; an SSH tunnel to 127.0.0.1 is safer".into());
        }
        let server = Server::bind(self.host, self.port).map_err(cannot_listen)?;
        if let Some(url) = &server.address().url_elsewhere {
            printer.note(&format!("the address for other machines: {url}"));
        }
        let session = Arc::new(job.open(printer)?);
        let url = server.address().url.clone();
        let stop = server.stop();
        signals::on_first(move || stop.stop());
        self.announce(&url, &session, printer)?;
        let _opened = if self.no_open { None } else { browser::open(&url) };
        server.run(session.clone())?;
        let closed = close(session)?;
        say_goodbye(&closed, &job, printer);
        Ok(())
    }

    /// All files of the review.
    fn job(&self, printer: &Printer) -> Result<Job> {
        let found = match &self.source {
            _ if self.demo => Sources::of_demo(printer)?,
            Some(folder) if folder.is_dir() => Sources::of_folder(folder)?,
            Some(missing) if !missing.exists() => {
                return Err(user_error(
                    format!("`{}` does not exist", missing.display()),
                    "give a relevance file, or the folder that `labelsieve run` or `labelsieve demo` wrote",
                ));
            }
            Some(file) => Sources::of_file(file),
            None => return Err(user_error("nothing to review", "give a relevance file or a folder")),
        };
        let output = self.output.clone().or(found.output).ok_or_else(|| {
            user_error("no file for the decisions", "give one with -o, e.g. `-o decisions.parquet`")
        })?;
        let pictures = PictureSources {
            images: if self.images.is_empty() { found.images } else { self.images.clone() },
            image_column: self.image_column.clone(),
            id_column: self.columns.id_column.clone(),
            texts: if self.text.is_empty() { found.texts } else { self.text.clone() },
            text_columns: self.text_column.clone(),
        };
        let files = match &self.pool {
            Some(pool) => Some(PoolFiles {
                clean: self
                    .clean
                    .as_ref()
                    .map(|clean| self.columns.table(clean, self.clean_labels.as_deref())),
                class_text: self.class_text.clone(),
                pool: self.columns.table(pool, self.pool_labels.as_deref()),
                candidates: self.candidates.clone(),
                base: self.base.clone(),
                mixed: self.mixed.mixed(),
            }),
            None => found.files.map(|files| PoolFiles { base: self.base.clone().or(files.base), ..files }),
        };
        if let (Some(_), None) = (&self.base, &files) {
            let hint = "pass the features with --clean and --pool";
            return Err(user_error("--base without features has no effect", hint));
        }
        Ok(Job {
            relevance: found.relevance,
            files,
            pictures,
            output,
            by: self.by.clone().unwrap_or_else(account::name),
            title: self.title.clone().unwrap_or(found.title),
            device: self.device.device,
            memory: MEMORY,
            spell: shell_line,
        })
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
            printer.note(
                "no features: decisions are kept, but the relevance of other candidates does not follow them",
            );
            printer.note("pass --clean and --pool, as to `labelsieve score`, for that");
        }
        printer.data(url)?;
        printer
            .note("Open this address in a browser. Every decision is saved at once; Ctrl-C ends the review.");
        Ok(())
    }
}

/// Folds the decisions into their file. Should a request still hold the session, which is reading a very large picture, they
/// stay in the log, which every command reads along with the file.
fn close(session: Arc<Session>) -> Result<SessionSummary> {
    match Arc::try_unwrap(session) {
        Ok(session) => Ok(session.close()?),
        Err(shared) => Ok(shared.summary()),
    }
}

fn say_goodbye(closed: &SessionSummary, job: &Job, printer: &Printer) {
    let output = job.output.display();
    printer.note(&format!("{} in `{output}`", counted(closed.n_decisions, "decision")));
    if closed.n_decisions == 0 {
        return;
    }
    match &closed.command {
        Some(command) => {
            printer.note("to score all classes with them:");
            printer.note(&format!("$ {command}"));
        }
        None if closed.can_score => printer.note(&format!(
            "`{}` was scored with settings that `labelsieve score` has no options for: score again from Python, \
             with these decisions",
            job.relevance.display()
        )),
        None => printer.note(&format!(
            "to use them, add `--decisions {}` to the `labelsieve score` that wrote `{}`",
            shell_word(&job.output),
            job.relevance.display()
        )),
    }
}

/// Says what to do about an address that cannot be used.
fn cannot_listen(error: labelsieve_review::Error) -> anyhow::Error {
    match &error {
        labelsieve_review::Error::Listen { .. } => {
            let hint = "choose another --port (0: any free one), or a --host of this machine";
            user_error(error.to_string(), hint)
        }
        _ => error.into(),
    }
}
