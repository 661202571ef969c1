//! Where the photos of a run are: noted in its folder, so that a review of the run finds them.

use std::io::Write;
use std::path::{Path, PathBuf};

use labelsieve_files::work::{Error, Result, command, words};
use labelsieve_files::{AtomicFile, DataError};
use serde::{Deserialize, Serialize};

/// The name of the file.
const NAME: &str = "sources.json";

/// Photos, captions and base classes, with paths from the root.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct RunSources {
    /// Photos of clean examples and of the pool.
    pub images: Vec<PathBuf>,
    /// Captions, if they were given.
    pub texts: Vec<PathBuf>,
    /// Base classes, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<PathBuf>,
}

impl RunSources {
    /// Notes them in the folder of the run.
    pub fn write(
        folder: &Path,
        images: &[&PathBuf],
        texts: &[PathBuf],
        base: Option<&PathBuf>,
    ) -> Result<()> {
        let whole = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let sources = RunSources {
            images: images.iter().map(|path| whole(path)).collect(),
            texts: texts.iter().map(whole).collect(),
            base: base.map(whole),
        };
        let path = folder.join(NAME);
        // A path need not be text: a review of such a run must be given the photos again.
        let Ok(json) = serde_json::to_string_pretty(&sources) else { return Ok(()) };
        let mut file = AtomicFile::create(&path)?;
        file.write_all(json.as_bytes()).map_err(DataError::io("write", &path))?;
        Ok(file.commit()?)
    }

    /// Reads the sources that were noted in this folder, if any were.
    pub fn read(folder: &Path) -> Result<Option<RunSources>> {
        let path = folder.join(NAME);
        if !path.is_file() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path).map_err(DataError::io("read", &path))?;
        let sources = serde_json::from_str(&text);
        sources.map(Some).map_err(|error| {
            let message = words![format!("`{}` is not what ", path.display()), command("run"), " writes: "];
            Error::input(message.and(error.to_string()), "")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_noted_from_the_root_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(RunSources::read(folder.path()).unwrap(), None);
        let photos = folder.path().join("photos");
        std::fs::create_dir(&photos).unwrap();
        RunSources::write(folder.path(), &[&folder.path().join("./photos")], &[], None).unwrap();
        let read = RunSources::read(folder.path()).unwrap().unwrap();
        assert_eq!(
            read,
            RunSources { images: vec![photos.canonicalize().unwrap()], texts: vec![], base: None }
        );
        std::fs::write(folder.path().join(NAME), "{}").unwrap();
        assert!(
            RunSources::read(folder.path())
                .unwrap_err()
                .to_string()
                .contains("is not what `run` writes: missing field")
        );
    }
}
