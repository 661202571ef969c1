//! The folder of the demo, whose files it may replace and delete.

use std::path::{Path, PathBuf};

use anyhow::Result;
use labelsieve_files::DataError;

use crate::hint::user_error;

/// Marks a folder as the demo's own.
const MARKER: &str = "DEMO.txt";
const MARK: &str = "`labelsieve demo` made this folder. It may replace and delete what is in it.\n";

/// A folder for the demo alone.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes a folder the demo's own: a new or empty one, or one that was its own before. Any other is refused.
    pub fn claim(path: &Path) -> Result<Folder> {
        std::fs::create_dir_all(path).map_err(DataError::io("write", path))?;
        let marker = path.join(MARKER);
        let is_own = std::fs::read_to_string(&marker).is_ok_and(|text| text == MARK);
        let mut entries = std::fs::read_dir(path).map_err(DataError::io("read", path))?;
        if !is_own && entries.next().is_some() {
            return Err(user_error(
                format!("`{}` is not empty and was not made by a demo", path.display()),
                "choose a new or empty folder with --dir; files of the demo would replace others",
            ));
        }
        std::fs::write(&marker, MARK).map_err(DataError::io("write", &marker))?;
        // A path that begins with a dash would look like an option in the commands of the demo.
        let starts_with_dash = path.as_os_str().as_encoded_bytes().starts_with(b"-");
        Ok(Folder(if starts_with_dash { Path::new(".").join(path) } else { path.to_path_buf() }))
    }

    /// A file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}
