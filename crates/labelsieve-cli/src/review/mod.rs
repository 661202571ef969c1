//! The job behind `review`: a session, and the server through which a browser asks it.

mod account;
mod browser;
mod sources;

use std::path::PathBuf;
use std::sync::Arc;

use labelsieve_files::work::{Error, JobCommand, Monitor, Result, command, option, words};
use labelsieve_jobs::inputs::pools::PoolFiles;
use labelsieve_networks::image_files::PictureSources;
use labelsieve_review::{MEMORY, Review, Server, Session, SessionSummary, Stop};
use serde::Serialize;

pub use self::sources::DEMO;
use self::sources::Sources;
use crate::options::ReviewOptions;

/// A review that listens; [`OpenReview::run`] answers.
pub struct OpenReview {
    server: Server,
    session: Arc<Session>,
    relevance: PathBuf,
    output: PathBuf,
    opens_browser: bool,
}

/// A review that has ended.
#[derive(Clone, Debug, Serialize)]
pub struct ClosedReview {
    /// Whether relevance followed the decisions.
    pub can_score: bool,
    /// The command that scores all classes with the decisions; none without features or decisions, and for settings that
    /// have no options.
    pub command: Option<String>,
    /// Candidates with a decision.
    pub n_decisions: usize,
    /// The file of the decisions.
    pub output: PathBuf,
    /// The relevance file that was reviewed.
    pub relevance: PathBuf,
}

impl ReviewOptions {
    /// Opens everything, and listens. `spell` writes the command that the page shows.
    pub fn open(&self, spell: fn(&JobCommand) -> String, monitor: &dyn Monitor) -> Result<OpenReview> {
        let job = self.job(spell)?;
        job.check()?;
        if !self.host.is_loopback() {
            monitor.warning(&format!(
                "listening on {}: anyone who can reach this machine and knows the address can look and decide",
                self.host
            ));
            monitor.hint(&"nothing is encrypted; an SSH tunnel to 127.0.0.1 is safer".into());
        }
        let server = Server::bind(self.host, self.port).map_err(cannot_listen)?;
        if let Some(url) = &server.address().url_elsewhere {
            monitor.note(&format!("the address for other machines: {url}"));
        }
        let session = Arc::new(job.open(monitor)?);
        Ok(OpenReview {
            server,
            session,
            relevance: job.relevance,
            output: job.output,
            opens_browser: !self.no_open,
        })
    }

    /// All files of the review.
    fn job(&self, spell: fn(&JobCommand) -> String) -> Result<Review> {
        let found = self.sources()?;
        let output = self.output.clone().or(found.output).ok_or_else(|| {
            let hint = words!["give one with ", option("output"), ", e.g. `decisions.parquet`"];
            Error::input("no file for the decisions", hint)
        })?;
        let pictures = PictureSources {
            images: if self.images.is_empty() { found.images } else { self.images.clone() },
            image_column: self.image_column.clone(),
            id_column: self.columns.id_column.clone(),
            texts: if self.text.is_empty() { found.texts } else { self.text.clone() },
            text_columns: self.text_columns.clone(),
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
            return Err(Error::input(
                words![option("base"), " without features has no effect"],
                words!["pass the features with ", option("clean"), " and ", option("pool")],
            ));
        }
        Ok(Review {
            relevance: found.relevance,
            files,
            pictures,
            output,
            by: self.by.clone().unwrap_or_else(account::name),
            title: self.title.clone().unwrap_or(found.title),
            device: self.device.device,
            memory: MEMORY,
            spell,
        })
    }

    fn sources(&self) -> Result<Sources> {
        match &self.source {
            _ if self.demo => Sources::of_demo(),
            Some(folder) if folder.is_dir() => Sources::of_folder(folder),
            Some(missing) if !missing.exists() => Err(Error::input(
                format!("`{}` does not exist", missing.display()),
                words![
                    "give a relevance file, or the folder that ",
                    command("run"),
                    " or ",
                    command("demo"),
                    " wrote"
                ],
            )),
            Some(file) => Ok(Sources::of_file(file)),
            None => Err(Error::input("nothing to review", "give a relevance file or a folder")),
        }
    }
}

impl OpenReview {
    /// The address of the page, with its token.
    pub fn url(&self) -> &str {
        &self.server.address().url
    }

    /// The session behind the page.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Ends the review, from any thread.
    pub fn stop(&self) -> Stop {
        self.server.stop()
    }

    /// Opens the page in a browser, unless the options say not to, and answers until the review is stopped.
    pub fn run(self) -> Result<ClosedReview> {
        let _opened = if self.opens_browser { browser::open(self.url()) } else { None };
        self.server.run(self.session.clone()).map_err(Error::stage)?;
        let closed = close(self.session)?;
        Ok(ClosedReview {
            can_score: closed.can_score,
            command: closed.command,
            n_decisions: closed.n_decisions,
            output: self.output,
            relevance: self.relevance,
        })
    }
}

/// Folds the decisions into their file. Should a request still hold the session, which is reading a very large picture, they
/// stay in the log, which every command reads along with the file.
fn close(session: Arc<Session>) -> Result<SessionSummary> {
    match Arc::try_unwrap(session) {
        Ok(session) => session.close(),
        Err(shared) => Ok(shared.summary()),
    }
}

/// An address that cannot be used comes with a hint.
fn cannot_listen(error: labelsieve_review::Error) -> Error {
    match &error {
        labelsieve_review::Error::Listen { .. } => {
            let hint = words![
                "choose another ",
                option("port"),
                " (0: any free one), or a ",
                option("host"),
                " of this machine"
            ];
            Error::input(error.to_string(), hint)
        }
        _ => Error::stage(error),
    }
}
