//! The files of examples below folders.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use labelsieve_files::{DataError, Result};

/// The file of each example, by the best match with its id.
#[derive(Debug, Default)]
pub struct FolderFiles {
    files: HashMap<String, FileMatch>,
    /// Examples whose id is the path of several files, below several folders.
    pub ambiguous: BTreeSet<String>,
}

#[derive(Debug)]
struct FileMatch {
    path: PathBuf,
    fit: MatchKind,
}

/// How an id matches a file, best first. The better match wins: `owl/1.jpg` in one folder matches the id `1.jpg` less well
/// than a file with that very path in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MatchKind {
    /// By its path below the folder, or as the folder's table says.
    Path,
    /// By its path without the extension.
    PathWithoutExtension,
    /// By its name.
    Name,
    /// By its name without the extension.
    NameWithoutExtension,
}

impl FolderFiles {
    /// Adds the files below `root` that match one of `wanted`; `file_names` has those of examples whose id is not a file name.
    pub(super) fn add_folder(
        &mut self,
        root: &Path,
        wanted: &HashSet<&str>,
        file_names: &HashMap<String, String>,
    ) -> Result<()> {
        for (id, name) in file_names {
            self.add(id, root.join(name), MatchKind::Path);
        }
        self.find(root, root, wanted)
    }

    /// Examples whose files have just their ids as paths.
    pub fn exact(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter(|(_, found)| found.fit == MatchKind::Path).map(|(id, _)| id.as_str())
    }

    /// All examples with their files, in the order of their ids.
    pub fn paths(&self) -> impl Iterator<Item = (&str, &Path)> {
        let mut pairs: Vec<(&str, &Path)> =
            self.files.iter().map(|(id, found)| (id.as_str(), found.path.as_path())).collect();
        pairs.sort();
        pairs.into_iter()
    }

    /// The examples whose files are below `root`, by their relative path.
    pub fn below<'a>(&'a self, root: &Path) -> HashMap<&'a Path, &'a str> {
        let below = |(id, found): (&'a String, &'a FileMatch)| {
            Some((found.path.strip_prefix(root).ok()?, id.as_str()))
        };
        self.files.iter().filter_map(below).collect()
    }

    fn find(&mut self, root: &Path, folder: &Path, wanted: &HashSet<&str>) -> Result<()> {
        let entries = std::fs::read_dir(folder).map_err(DataError::io("read", folder))?;
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(DataError::io("read", folder))?.path());
        }
        paths.sort(); // so that of two equal matches the same one always wins
        for path in paths {
            let kind = std::fs::symlink_metadata(&path).map_err(DataError::io("read", &path))?.file_type();
            if kind.is_dir() {
                self.find(root, &path, wanted)?;
            } else if path.is_file()
                && let Some((id, fit)) = best_fit(root, &path, wanted)
            {
                self.add(id, path, fit);
            }
        }
        Ok(())
    }

    fn add(&mut self, id: &str, path: PathBuf, fit: MatchKind) {
        match self.files.get_mut(id) {
            Some(found) if fit < found.fit => *found = FileMatch { path, fit },
            Some(found) if fit == MatchKind::Path && found.path != path => {
                self.ambiguous.insert(id.to_owned());
            }
            Some(_) => (),
            None => drop(self.files.insert(id.to_owned(), FileMatch { path, fit })),
        }
    }
}

fn best_fit<'a>(root: &Path, path: &Path, wanted: &HashSet<&'a str>) -> Option<(&'a str, MatchKind)> {
    let below = path.strip_prefix(root).unwrap_or(path);
    let name = PathBuf::from(path.file_name()?);
    let names = [
        (below.to_path_buf(), MatchKind::Path),
        (below.with_extension(""), MatchKind::PathWithoutExtension),
        (name.clone(), MatchKind::Name),
        (name.with_extension(""), MatchKind::NameWithoutExtension),
    ];
    names.into_iter().find_map(|(name, fit)| Some((*wanted.get(name.to_str()?)?, fit)))
}
