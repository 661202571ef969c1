//! Golden files under `tests/golden` of a crate, and how they are compared.

use std::path::{Path, PathBuf};

use super::diff::diff;

/// Compares texts with golden files, and fails at the end, so that one run shows every difference.
#[derive(Default)]
pub struct Golden {
    pub differences: Vec<String>,
}

impl Golden {
    /// `found` must be the text of the golden file `name`.
    pub fn check(&mut self, name: &str, found: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
        let is_rewritten = std::env::var_os("LABELSIEVE_WRITE_GOLDEN").is_some_and(|value| value == "1");
        self.compare(&path, found, is_rewritten);
    }

    /// The same of what holds on one machine alone, if there is a folder for it.
    pub fn check_on_this_machine(&mut self, name: &str, found: &str) {
        if let Some(folder) = std::env::var_os("LABELSIEVE_GOLDEN_MACHINE") {
            let path = PathBuf::from(folder).join(name);
            let is_new = !path.exists();
            self.compare(&path, found, is_new);
        }
    }

    pub fn compare(&mut self, path: &Path, found: &str, is_rewritten: bool) {
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
    pub fn finish(self) {
        assert!(
            self.differences.is_empty(),
            "golden files differ (-expected, +found; LABELSIEVE_WRITE_GOLDEN=1 writes them anew):\n\n{}",
            self.differences.join("\n")
        );
    }
}
