//! The only place that writes to the terminal: data on stdout, everything else on stderr.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use labelsieve_files::work::{Meter, Monitor, Progress, SavedWork, Words, json_answer};
use labelsieve_numerics::Watch;
use serde::Serialize;

use crate::arguments::JsonArguments;
use crate::hint::user_error;
use crate::signals;
use crate::spelling::CommandLine;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

/// Where lines of results go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Results {
    Stdout,
    /// With the notes on stderr.
    Notes,
}

/// Owns stdout, stderr and progress bars.
pub struct Printer {
    verbosity: Verbosity,
    results: Results,
    /// Never stopped: a signal ends the process, and what is finished is on disk.
    watch: Watch,
}

impl Printer {
    pub(crate) fn new(verbosity: Verbosity) -> Printer {
        Printer { verbosity, results: Results::Stdout, watch: Watch::new() }
    }

    /// Whether the curious are told all.
    pub fn is_verbose(&self) -> bool {
        self.verbosity >= Verbosity::Verbose
    }

    /// A line of the result. When its reader has gone, the work continues anyway: files are still to be written.
    pub fn data(&self, line: &str) -> Result<()> {
        if self.results == Results::Notes {
            self.note(line);
            return Ok(());
        }
        let mut out = std::io::stdout().lock();
        let written = out.write_all(visible(line).as_bytes()).and_then(|()| out.write_all(b"\n"));
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => written.context("cannot write to standard output"),
        }
    }

    /// Lines for callers that write them one by one.
    pub fn lines(&self) -> impl Write {
        Lines
    }

    /// The whole result of a command as JSON.
    pub fn json(&self, command: &str, result: &impl Serialize) -> Result<()> {
        self.data(&json_answer(command, result)?)
    }

    /// For the steps of a command with a result of its own: what they would print on stdout becomes notes.
    pub fn for_steps(&self) -> Printer {
        Printer { verbosity: self.verbosity, results: Results::Notes, watch: Watch::new() }
    }

    /// Why the command failed.
    pub fn error(&self, line: &str) {
        say(&format!("error: {line}"));
    }

    fn bar(&self, total: Option<u64>, template: &str) -> ProgressBar {
        let visible = self.verbosity >= Verbosity::Normal && std::io::stderr().is_terminal();
        let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(total, target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.enable_steady_tick(Duration::from_millis(250));
        bar
    }
}

impl Monitor for Printer {
    fn detail(&self, line: &str) {
        if self.verbosity >= Verbosity::Verbose {
            say(line);
        }
    }

    fn note(&self, line: &str) {
        if self.verbosity >= Verbosity::Normal {
            say(line);
        }
    }

    fn warning(&self, line: &str) {
        warn(line);
    }

    fn hint(&self, hint: &Words) {
        say(&format!("hint: {}", hint.spelled(&CommandLine)));
    }

    fn suggestion(&self, suggestion: &Words) {
        if self.verbosity >= Verbosity::Normal {
            self.hint(suggestion);
        }
    }

    /// A bar with rate and remaining time; invisible unless stderr is a terminal.
    fn progress(&self, total: u64, unit: &'static str) -> Progress {
        let template =
            format!("{{msg}} {{wide_bar}} {{human_pos}}/{{human_len}} {unit} · {{per_sec}} · {{eta}} left");
        Progress::new(Bar(self.bar(Some(total), &template)))
    }

    /// How far it is, and how fast.
    fn counter(&self, unit: &'static str) -> Progress {
        let template = format!("{{spinner}} {{msg}} · {{human_pos}} {unit} · {{per_sec}} · {{elapsed}}");
        Progress::new(Bar(self.bar(None, &template)))
    }

    fn keep(&self, kept: SavedWork) {
        signals::keep(kept);
    }

    /// Byte for byte: when the reader has gone, the rest is not needed, and the error ends the command quietly.
    fn stdout(&self) -> Box<dyn Write + Send> {
        Box::new(std::io::BufWriter::new(std::io::stdout()))
    }

    fn watch(&self) -> &Watch {
        &self.watch
    }

    fn warn_later(&self) -> Box<dyn Fn(&str) + Send + Sync> {
        Box::new(warn)
    }
}

/// A progress bar.
struct Bar(ProgressBar);

impl Meter for Bar {
    fn inc(&self, n: u64) {
        self.0.inc(n);
    }

    fn set_position(&self, n: u64) {
        self.0.set_position(n);
    }

    fn set_length(&self, n: u64) {
        self.0.set_length(n);
    }

    fn set_message(&self, message: &str) {
        self.0.set_message(message.to_owned());
    }

    fn reset_eta(&self) {
        self.0.reset_eta();
    }

    fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// Refuses JSON on stdout when a table goes there.
pub fn refuse_json_beside(json: JsonArguments, output: &Path) -> Result<()> {
    if json.json && output == Path::new("-") {
        return Err(user_error("--json and the table cannot both go to stdout", "give a file with -o"));
    }
    Ok(())
}

/// Lines of a result, which continue after their reader has gone.
struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match std::io::stdout().lock().write_all(visible(&String::from_utf8_lossy(bytes)).as_bytes()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written.map(|()| bytes.len()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A warning of work that outlives the printer.
fn warn(line: &str) {
    say(&format!("warning: {line}"));
}

/// A line on stderr. The work continues even if its reader has gone.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", visible(line));
}

/// The last line of a command that a signal ends; where there is a progress bar, in its place.
pub fn interrupted(line: &str) {
    if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr(), "\r\x1b[2K");
    }
    say(line);
}

/// The text without control characters but line breaks and tabs: names of files and classes may hold any, and a terminal
/// would obey them.
fn visible(text: &str) -> Cow<'_, str> {
    // Besides control characters, those that turn the direction of the text after them.
    let turns =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_hidden = |c: char| turns(c) || c.is_control() && c != '\n' && c != '\t';
    if !text.contains(is_hidden) {
        return Cow::from(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    Cow::from(shown)
}

/// Whether the reader of stdout has gone, which does not make a command fail.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(labelsieve_files::work::Error::Stdout(cause)) => cause.kind() == ErrorKind::BrokenPipe,
        _ => false,
    }
}
