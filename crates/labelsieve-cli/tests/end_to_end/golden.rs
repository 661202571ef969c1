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
mod files;
mod hashes;
mod journal_keys;
mod keys;
mod stable;

use self::files::Golden;

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
