//! Golden files under `tests/golden`: what a change that only moves code must leave as it is.
//!
//! | folder | pins |
//! |---|---|
//! | `answers` | the whole `--json` answer of each command, numbers rounded to four decimals |
//! | `keys` | the key by which each resumable job recognises its own journal or checkpoint, and the keys of its records |
//! | `bytes` | SHA-256 of files that are the same bits at every instruction level (docs/machines.md) |
//! | `demo` | the demo: its answer, its commands, the bytes of what it draws and matches, and rounded numbers of the rest |
//!
//! `LABELSIEVE_WRITE_GOLDEN=1` writes them anew. What depends on the instruction level or the caches of a machine is compared
//! only if `LABELSIEVE_GOLDEN_MACHINE` names a folder for it; the first run writes it there.

mod answers;
mod demo;
pub mod diff;
mod hashes;
mod keys;

use std::path::{Path, PathBuf};

use self::diff::diff;

/// Compares texts with golden files, and fails at the end, so that one run shows every difference.
#[derive(Default)]
struct Golden {
    differences: Vec<String>,
}

impl Golden {
    /// `found` must be the text of the golden file `name`.
    fn check(&mut self, name: &str, found: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
        let is_rewritten = std::env::var_os("LABELSIEVE_WRITE_GOLDEN").is_some_and(|value| value == "1");
        self.compare(&path, found, is_rewritten);
    }

    /// The same of what holds on one machine alone, if there is a folder for it.
    fn check_on_this_machine(&mut self, name: &str, found: &str) {
        if let Some(folder) = std::env::var_os("LABELSIEVE_GOLDEN_MACHINE") {
            let path = PathBuf::from(folder).join(name);
            let is_new = !path.exists();
            self.compare(&path, found, is_new);
        }
    }

    fn compare(&mut self, path: &Path, found: &str, is_rewritten: bool) {
        let found = format!("{}\n", found.trim_end());
        if is_rewritten {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("disk space");
            std::fs::write(path, found).expect("disk space");
            return;
        }
        let expected = std::fs::read_to_string(path).unwrap_or_default();
        if expected != found {
            self.differences.push(format!("{}\n{}", path.display(), diff(&expected, &found)));
        }
    }

    #[track_caller]
    fn finish(self) {
        assert!(
            self.differences.is_empty(),
            "golden files differ (-expected, +found; LABELSIEVE_WRITE_GOLDEN=1 writes them anew):\n\n{}",
            self.differences.join("\n")
        );
    }
}

#[test]
fn a_difference_is_shown_and_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.txt");
    let mut golden = Golden::default();
    golden.compare(&path, "one\ntwo\n", true);
    golden.compare(&path, "one\ntwo", false);
    assert!(golden.differences.is_empty(), "{:?}", golden.differences);
    golden.compare(&path, "one\n2\n", false);
    assert_eq!(golden.differences, [format!("{}\n  one\n- two\n+ 2\n", path.display())]);
}
