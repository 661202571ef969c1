//! The only place that writes to the terminal: data on stdout, everything else on stderr.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

/// Owns stdout, stderr and progress bars.
pub struct Printer {
    verbosity: Verbosity,
}

impl Printer {
    pub fn new(verbosity: Verbosity) -> Printer {
        Printer { verbosity }
    }

    /// A line of the result. When its reader has gone, the work goes on all the same: files are still to be written.
    pub fn data(&self, line: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        let written = out.write_all(visible(line).as_bytes()).and_then(|()| out.write_all(b"\n"));
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => written.context("cannot write to standard output"),
        }
    }

    /// Stdout for a result that is nowhere else and is written by others, byte for byte: when its reader has gone, nobody
    /// wants the rest, and the error ends the command quietly.
    pub fn stream(&self) -> Box<dyn Write + Send> {
        Box::new(std::io::BufWriter::new(std::io::stdout()))
    }

    /// A value as JSON, the whole result of a command.
    pub fn json(&self, value: &impl serde::Serialize) -> Result<()> {
        self.data(&serde_json::to_string_pretty(value)?)
    }

    /// What the command did.
    pub fn note(&self, line: &str) {
        if self.verbosity >= Verbosity::Normal {
            say(line);
        }
    }

    /// What only the curious want to know.
    pub fn detail(&self, line: &str) {
        if self.verbosity >= Verbosity::Verbose {
            say(line);
        }
    }

    /// What the user should know even in quiet runs.
    pub fn warning(&self, line: &str) {
        warn(line);
    }

    /// What the user can do about it.
    pub fn hint(&self, line: &str) {
        say(&format!("hint: {line}"));
    }

    /// Why the command failed.
    pub fn error(&self, line: &str) {
        say(&format!("error: {line}"));
    }

    /// A bar over `total` units of work, with rate and remaining time; invisible unless stderr is a terminal.
    pub fn progress(&self, total: u64, unit: &'static str) -> ProgressBar {
        let template =
            format!("{{msg}} {{wide_bar}} {{human_pos}}/{{human_len}} {unit} · {{per_sec}} · {{eta}} left");
        self.bar(Some(total), &template)
    }

    /// The same for work of unknown length: how far it is, and how fast.
    pub fn counter(&self, unit: &'static str) -> ProgressBar {
        self.bar(None, &format!("{{spinner}} {{msg}} · {{human_pos}} {unit} · {{per_sec}} · {{elapsed}}"))
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

/// A warning for those who outlive the printer.
pub fn warn(line: &str) {
    say(&format!("warning: {line}"));
}

/// A line on stderr. When nobody reads it any more, the work goes on all the same.
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
    let is_hidden = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(is_hidden) {
        return Cow::from(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    Cow::from(shown)
}

/// Whether the reader of stdout has gone, which is no failure of ours.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
