//! The addresses of the pictures' files, short where the id says the rest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::links::{Links, encode};

/// The address of one original.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Address {
    /// The number of a folder; the rest of the address is the id, percent-encoded part by part.
    ById(usize),
    /// All of it.
    Whole(String),
}

/// Finds the addresses of examples.
pub(crate) struct Originals<'a> {
    files: &'a BTreeMap<String, PathBuf>,
    /// Folders below which files lie.
    folders: Vec<LinkedFolder>,
    links: Links,
}

/// A folder of originals.
struct LinkedFolder {
    path: PathBuf,
    /// Relative to the page, with a slash at its end.
    address: String,
}

impl<'a> Originals<'a> {
    /// Files by id, and the folders that were given, for a page at `page`.
    pub(crate) fn new(
        page: &Path,
        files: &'a BTreeMap<String, PathBuf>,
        folders: &[PathBuf],
    ) -> Originals<'a> {
        let links = Links::from_page(page);
        let address =
            |folder: &PathBuf| Some(LinkedFolder { path: folder.clone(), address: links.to_folder(folder)? });
        let folders = folders.iter().filter(|folder| folder.is_dir()).filter_map(address).collect();
        Originals { files, folders, links }
    }

    /// The addresses of the folders, for [`Address::ById`].
    pub(super) fn folders(&self) -> Vec<&str> {
        self.folders.iter().map(|folder| folder.address.as_str()).collect()
    }

    pub(super) fn address(&self, id: &str) -> Option<Address> {
        let path = self.files.get(id)?;
        let below = |(number, folder): (usize, &LinkedFolder)| {
            let below = path.strip_prefix(&folder.path).ok()?;
            if below == Path::new(id) && below.to_str() == Some(id) {
                Some(Address::ById(number))
            } else {
                Some(Address::Whole(format!("{}{}", folder.address, encode(below)?)))
            }
        };
        // A file given by itself is below none of the folders.
        let alone = || {
            let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let address = self.links.to_folder(folder.unwrap_or(Path::new(".")))?;
            Some(Address::Whole(address + &encode(Path::new(path.file_name()?))?))
        };
        self.folders.iter().enumerate().find_map(below).or_else(alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_as_short_as_the_id_allows() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for folder in ["photos/owl", "out"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        let photos = root.join("photos");
        let files = BTreeMap::from([
            ("owl/1 #.png".to_owned(), photos.join("owl/1 #.png")),
            ("2".to_owned(), photos.join("owl/2%.png")),
            ("alone".to_owned(), root.join("javascript:3.png")),
        ]);
        let originals = Originals::new(&root.join("out/r.html"), &files, &[photos]);
        assert_eq!(originals.folders(), ["../photos/"]);
        assert_eq!(originals.address("owl/1 #.png"), Some(Address::ById(0)));
        assert_eq!(originals.address("2"), Some(Address::Whole("../photos/owl/2%25.png".into())));
        assert_eq!(originals.address("alone"), Some(Address::Whole("../javascript%3A3.png".into())));
        assert_eq!(originals.address("in a tar"), None);
    }
}
