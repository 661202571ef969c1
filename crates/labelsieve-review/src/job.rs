//! A person looks at candidates and decides, and the relevance follows.
//!
//! [`Review`] opens a relevance file, features, pictures and earlier decisions, and gives a [`Session`], which answers what a
//! page asks: everything is in memory or found by number, so no question names a file. Decisions are on disk before they
//! count (`session/deciding.rs`); classes are scored in the background, by the code that `score` uses (`session/working.rs`).

use std::path::{Path, PathBuf};

use labelsieve_files::work::outputs::Files;
use labelsieve_files::work::shell_word::shell_word;
use labelsieve_files::work::{Error, JobCommand, Monitor, Result, option, words};
use labelsieve_files::{DecisionLog, DecisionRow, TableFormat, counted};
use labelsieve_jobs::device;
use labelsieve_jobs::inputs::pools::PoolFiles;
use labelsieve_networks::image_files::PictureSources;
use labelsieve_numerics::Device;

use crate::contents::Contents;
use crate::ready::Scorer;
use crate::{Session, earlier};

/// Default limit of memory for all classes in memory.
pub const MEMORY: u64 = 4 << 30;

/// Opens everything that a person needs to decide about candidates.
#[derive(Clone, Debug)]
pub struct Review {
    /// The relevance file whose candidates are looked at.
    pub relevance: PathBuf,
    /// The examples that it was made from; without them relevance stays as it is.
    pub files: Option<PoolFiles>,
    /// Pictures and captions.
    pub pictures: PictureSources,
    /// The file of the decisions, old and new: `.parquet`, `.csv` or `.tsv`.
    pub output: PathBuf,
    /// The person who decides.
    pub by: String,
    /// The heading.
    pub title: String,
    /// Where relevance is scored.
    pub device: Device,
    /// Limit of memory for all classes in memory, in bytes.
    pub memory: u64,
    /// How the front end writes the command that makes the relevance permanent, for people to copy.
    pub spell: fn(&JobCommand) -> String,
}

impl Review {
    /// Rejects file names that cannot work, before anything is read.
    pub fn check(&self) -> Result<()> {
        TableFormat::of(&self.output)?;
        let tables = self.files.iter().flat_map(PoolFiles::paths);
        let inputs = tables.chain([self.relevance.as_path()]);
        let inputs = inputs.chain(self.pictures.texts.iter().map(PathBuf::as_path));
        let images = self.pictures.images.iter().filter(|path| path.is_file()).cloned();
        let files = Files::default().reads(inputs).reads_images(images).writes([&self.output]);
        files.writes_beside(&self.output, &[".log"]).check()
    }

    /// Reads what there is and takes the file of decisions for this process.
    pub fn open(&self, monitor: &dyn Monitor) -> Result<Session> {
        self.check()?;
        let is_new = !self.output.exists();
        // First, to fail early where the file is in use.
        let (log, mut table) = DecisionLog::open(&self.output)?;
        let opened = self.read(monitor);
        if opened.is_err() && is_new && table.rows.is_empty() {
            let _ = std::fs::remove_file(&self.output); // leave nothing behind
        }
        let (contents, scorer) = opened?;
        if table.rows.is_empty() {
            table.rows = self.carry_over(&contents, &log, monitor)?;
        } else {
            earlier::warn_of_unmatched(&contents, &table, monitor);
        }
        let decided = earlier::replay(&contents, &table);
        if scorer.is_none() {
            earlier::warn_of_withdrawn(self, &contents, &decided, monitor);
        }
        Session::start(self, contents, scorer, log, decided)
    }

    /// Begins a new file with the decisions that the relevance file was made with: the page would else show their
    /// relevance without them, and the next run of `score` would forget them.
    fn carry_over(
        &self,
        contents: &Contents,
        log: &DecisionLog,
        monitor: &dyn Monitor,
    ) -> Result<Vec<DecisionRow>> {
        let rows = earlier::of_relevance(contents);
        if !rows.is_empty() {
            log.append(&rows)?;
            monitor.note(&format!(
                "`{}` begins with the {} that `{}` was made with",
                self.output.display(),
                counted(rows.len(), "decision"),
                self.relevance.display()
            ));
        }
        Ok(rows)
    }

    /// The relevance follows decisions as it was made only with the base classes that it was made with.
    fn check_base(&self, files: &PoolFiles, contents: &Contents, monitor: &dyn Monitor) -> Result<()> {
        let relevance = self.relevance.display();
        let settings = &contents.settings;
        match (&files.base, &settings.base) {
            (Some(_), _) if !settings.method.uses_other_classes() => Err(Error::input(
                format!(
                    "`{relevance}` was scored with {}, which does not use base classes",
                    settings.method.name()
                ),
                words!["leave out ", option("base")],
            )),
            (None, Some(base)) => {
                monitor.warning(&format!(
                    "`{relevance}` was made with the base classes in `{base}`, which are not given: the relevance that \
                     follows decisions is made without them"
                ));
                monitor.hint(&words!["pass ", option("base").set_to(shell_word(base))]);
                Ok(())
            }
            (Some(given), made_with) if made_with.as_ref().is_none_or(|base| !same_name(given, base)) => {
                let made_with = match made_with {
                    Some(base) => format!("with the base classes in `{base}`"),
                    None => "without base classes".to_owned(),
                };
                monitor.warning(&format!(
                    "`{relevance}` was made {made_with}, the relevance that follows decisions is made with those in `{}`",
                    given.display()
                ));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The contents, and the scorer where there are features.
    fn read(&self, monitor: &dyn Monitor) -> Result<(Contents, Option<Scorer>)> {
        let contents = Contents::open(&self.relevance, &self.pictures, monitor)?;
        let scorer = match &self.files {
            None => None,
            Some(files) => {
                if !contents.settings.is_given {
                    monitor.warning(&format!(
                        "`{}` does not say how it was made: scoring with auto, seed 0",
                        self.relevance.display()
                    ));
                }
                self.check_base(files, &contents, monitor)?;
                let device = device::open(self.device, monitor)?;
                Some(Scorer::open(files, &contents, device, monitor)?)
            }
        };
        Ok((contents, scorer))
    }
}

/// Whether these may be one file: folders are spelled differently from another place.
fn same_name(given: &Path, noted: &str) -> bool {
    given.file_name() == Path::new(noted).file_name()
}
