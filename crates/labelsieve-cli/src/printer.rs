//! Where output goes: data to stdout, everything else to stderr.

use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Owns stdout, stderr and the progress bar.
#[derive(Default)]
pub struct Printer;

impl Printer {
    /// A result, on stdout. Nobody listening any more (`| head`) is no error.
    pub fn data(&self, text: &str) {
        let _ = std::io::stdout().write_all(text.as_bytes());
    }

    /// What a person should know, on stderr.
    pub fn note(&self, text: &str) {
        eprintln!("{text}");
    }

    /// What a person should look at, on stderr.
    pub fn warn(&self, text: &str) {
        eprintln!("warning: {text}");
    }

    /// A bar over `n_bytes`, visible only on a terminal.
    pub fn progress(&self, n_bytes: u64) -> ProgressBar {
        let target = match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(n_bytes), target);
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {eta} left, {msg}")
        {
            bar.set_style(style);
        }
        bar
    }
}
