//! Printing of results: tables as lines of text, or one JSON object.

use std::io::{ErrorKind, Write};

use labelsieve_files::work::{Error, Result, json_answer};
use serde::Serialize;

/// Writes lines. A closed pipe is not an error: the run may still have files to write.
pub fn lines<S: AsRef<str>>(out: &mut dyn Write, lines: impl IntoIterator<Item = S>) -> Result<()> {
    let written = lines.into_iter().try_for_each(|line| writeln!(out, "{}", line.as_ref()));
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(Error::Stdout),
    }
}

/// The full name of a command, as its JSON results and journals spell it: some commands share their name with one of `labelsieve`.
pub fn full_name(command: &str) -> String {
    format!("labelsieve-bench {command}")
}

/// Writes the result of a command of this program as JSON.
pub fn json(out: &mut dyn Write, command: &str, result: &impl Serialize) -> Result<()> {
    lines(out, [json_answer(&full_name(command), result)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_ignored_and_a_full_disk_is_an_error() {
        lines(&mut Failing(ErrorKind::BrokenPipe), ["a", "b"]).unwrap();
        assert!(matches!(lines(&mut Failing(ErrorKind::StorageFull), ["a"]), Err(Error::Stdout(_))));
    }

    #[test]
    fn json_ends_with_a_line_break() {
        let mut out = Vec::new();
        json(&mut out, "bench", &serde_json::json!({ "n": 1 })).unwrap();
        assert!(out.ends_with(b"\"n\": 1\n}\n"), "{out:?}");
    }
}
