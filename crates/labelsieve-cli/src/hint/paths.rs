//! Paths that lead nowhere: where they end, and what was perhaps meant.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use labelsieve_files::work::near_name::nearest;
use labelsieve_files::work::shell_word::shell_word;

/// Entries of a folder among which a near name is looked for.
const MAX_ENTRIES: usize = 10_000;

/// A hint about an input that does not exist.
pub fn missing_input(path: &Path) -> String {
    let missing = MissingPath::of(path);
    match missing.meant() {
        Some(meant) => format!("{}; did you mean `{}`?", missing.said(), meant.display()),
        None => format!("{}; check the spelling of the path", missing.said()),
    }
}

/// A hint about an output whose folder does not exist.
pub fn missing_folder(output: &Path) -> String {
    let folder = output.parent().unwrap_or(output);
    let missing = MissingPath::of(folder);
    match missing.meant() {
        Some(meant) if meant.is_dir() => {
            let name = output.file_name().unwrap_or_default();
            format!("{}; did you mean `{}`?", missing.said(), meant.join(name).display())
        }
        _ if missing.is_blocked() => format!("{}; choose another output", missing.said()),
        _ => format!("{}; create it first: `mkdir -p {}`", missing.said(), shell_word(folder)),
    }
}

/// Where a path leaves what exists.
struct MissingPath<'a> {
    /// The part that exists; empty for the current folder.
    known: PathBuf,
    /// The first part that does not.
    name: &'a OsStr,
    /// The part after it.
    rest: PathBuf,
}

impl<'a> MissingPath<'a> {
    fn of(path: &'a Path) -> MissingPath<'a> {
        let mut known = PathBuf::new();
        let mut parts = path.components();
        while let Some(part) = parts.next() {
            let next = known.join(part);
            if let Component::Normal(name) = part
                && std::fs::symlink_metadata(&next).is_err()
            {
                return MissingPath { known, name, rest: parts.as_path().to_path_buf() };
            }
            known = next;
        }
        MissingPath { known, name: OsStr::new(""), rest: PathBuf::new() }
    }

    /// Whether a file stands where a folder should be.
    fn is_blocked(&self) -> bool {
        self.known.exists() && !self.known.is_dir()
    }

    fn said(&self) -> String {
        let name = self.name.to_string_lossy();
        let known = self.known.display();
        match () {
            () if self.is_blocked() => format!("`{known}` is a file, not a folder"),
            () if self.name.is_empty() => format!("`{known}` is a broken link"),
            () if self.known.as_os_str().is_empty() => {
                format!("`{name}` does not exist in the current folder")
            }
            () => format!("`{name}` does not exist in `{known}`"),
        }
    }

    /// The path with its missing part replaced by its nearest neighbour: a name spelled much like it, or the same name with
    /// another ending.
    fn meant(&self) -> Option<PathBuf> {
        let here = if self.known.as_os_str().is_empty() { Path::new(".") } else { &self.known };
        let entries = std::fs::read_dir(here).ok()?.take(MAX_ENTRIES).flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        let stem = Path::new(self.name).file_stem();
        let same_stem = |name: &&String| stem.is_some() && Path::new(name).file_stem() == stem;
        let same_stem = names.iter().find(same_stem).map(String::as_str);
        let near = nearest(self.name.to_str()?, names.iter().map(String::as_str));
        // Of `C.npz` and `R.parquet`, the former was meant by `C.parquet`; of `photos` and `photo.png`, by `photo` the former.
        let has_ending = Path::new(self.name).extension().is_some();
        let name = if has_ending { same_stem.or(near) } else { near.or(same_stem) }?;
        let meant = self.known.join(name);
        let whole = if self.rest.as_os_str().is_empty() { meant.clone() } else { meant.join(&self.rest) };
        Some(if whole.exists() { whole } else { meant })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_is_wrong_is_named_with_what_was_meant() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("data/photos")).unwrap();
        std::fs::write(root.join("data/C.npz"), "").unwrap();
        let check = |path: &str, said: &str, meant: &str| {
            let hint = missing_input(&root.join(path));
            let at = root.display();
            assert_eq!(
                hint,
                format!("{}; {}", said.replace('@', &at.to_string()), meant.replace('@', &at.to_string()))
            );
        };
        check("data/phtos", "`phtos` does not exist in `@/data`", "did you mean `@/data/photos`?");
        check("dta/photos", "`dta` does not exist in `@`", "did you mean `@/data/photos`?");
        check("data/C.parquet", "`C.parquet` does not exist in `@/data`", "did you mean `@/data/C.npz`?");
        check("data/C.npz/x", "`@/data/C.npz` is a file, not a folder", "check the spelling of the path");
        check("data/xyz", "`xyz` does not exist in `@/data`", "check the spelling of the path");
        let hint = missing_folder(&root.join("out/r.html"));
        assert!(
            hint.ends_with(&format!("create it first: `mkdir -p {}`", root.join("out").display())),
            "{hint}"
        );
        let hint = missing_folder(&root.join("data/C.npz/r.html"));
        assert!(hint.ends_with("C.npz` is a file, not a folder; choose another output"), "{hint}");
    }
}
