//! The result of a benchmark, for whoever reads it.

use std::io::{ErrorKind, Write};

use labelsieve_files::work::{Error, Result, json_answer};
use serde::Serialize;

/// Writes lines. When their reader has gone, the work continues anyway: files may still be to be written.
pub fn lines<S: AsRef<str>>(out: &mut dyn Write, lines: impl IntoIterator<Item = S>) -> Result<()> {
    let written = lines.into_iter().try_for_each(|line| writeln!(out, "{}", line.as_ref()));
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(Error::Stdout),
    }
}

/// Writes the result of `labelsieve COMMAND` as JSON.
pub fn json(out: &mut dyn Write, command: &str, result: &impl Serialize) -> Result<()> {
    lines(out, [json_answer(command, result)?])
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
    fn a_reader_who_has_gone_ends_nothing_but_a_full_disk_does() {
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
