//! Where the photos of a run are: noted in its folder, so that a review of the run finds them.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use labelsieve_files::{AtomicFile, DataError};
use serde::{Deserialize, Serialize};

/// The name of the file.
const NAME: &str = "sources.json";

/// Photos, captions and base classes, with paths from the root.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct RunSources {
    pub images: Vec<PathBuf>,
    pub texts: Vec<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<PathBuf>,
}

impl RunSources {
    /// Notes them.
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
        // A path need not be a text; whoever has such a one names the photos again.
        let Ok(json) = serde_json::to_string_pretty(&sources) else { return Ok(()) };
        let mut file = AtomicFile::create(&path)?;
        file.write_all(json.as_bytes()).map_err(DataError::io("write", &path))?;
        Ok(file.commit()?)
    }

    /// What was noted in this folder, if anything was.
    pub fn read(folder: &Path) -> Result<Option<RunSources>> {
        let path = folder.join(NAME);
        if !path.is_file() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path).map_err(DataError::io("read", &path))?;
        let sources = serde_json::from_str(&text);
        sources.map(Some).with_context(|| format!("`{}` is not what `labelsieve run` writes", path.display()))
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
                .ends_with("is not what `labelsieve run` writes")
        );
    }
}
