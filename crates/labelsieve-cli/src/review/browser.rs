//! Opens the page in the user's browser.

use std::io::Write;
use std::process::{Command, Stdio};

use tempfile::NamedTempFile;

/// Opens a small file, which only this user can read, that leads to `url`: the arguments of a process can be seen by all
/// users of a machine, and the address has the token. The file goes when the result does. None where there is no
/// browser to open: the address was printed.
pub fn open(url: &str) -> Option<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("labelsieve-").suffix(".html").tempfile().ok()?;
    // The address has digits, letters, colons and slashes only.
    write!(
        file,
        "<!doctype html><meta charset=\"utf-8\"><title>labelsieve review</title>\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\"><a href=\"{url}\">Open the review</a>"
    )
    .ok()?;
    file.flush().ok()?;
    let (program, arguments): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("rundll32", &["url.dll,FileProtocolHandler"]),
        _ if ["DISPLAY", "WAYLAND_DISPLAY"].iter().all(|name| std::env::var_os(name).is_none()) => {
            return None;
        }
        _ => ("xdg-open", &[]),
    };
    let started = Command::new(program)
        .args(arguments)
        .arg(file.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = started.ok()?;
    std::thread::spawn(move || child.wait()); // reaps the child, which would stay a zombie otherwise
    Some(file)
}
