//! Who is at the keyboard.

use std::process::{Command, Stdio};

/// The name of the account: of the environment, else as the system knows it. Containers and services often have no
/// environment of a user.
pub fn name() -> String {
    let variables = ["USER", "LOGNAME", "USERNAME"].into_iter();
    let known = variables.filter_map(|name| std::env::var(name).ok()).find(|name| !name.trim().is_empty());
    known
        .or_else(|| answer_of("id", &["-un"]))
        .or_else(|| answer_of("whoami", &[]))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// The output of a program; none if it does not exist or fails.
fn answer_of(program: &str, arguments: &[&str]) -> Option<String> {
    let done =
        Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    let text = text.trim();
    (done.status.success() && !text.is_empty()).then(|| text.to_owned())
}
