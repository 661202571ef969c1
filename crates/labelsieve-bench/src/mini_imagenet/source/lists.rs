//! The lists of Ravi and Larochelle (`filename,label`), and finding the photos that they name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use labelsieve_files::{DataError, Result};

use super::{MiniImage, MiniPhoto};

/// Passes the photos of a list, found below `images`, to `each`.
pub(super) fn photos(
    list: &Path,
    images: &Path,
    each: &mut dyn FnMut(MiniPhoto) -> Result<()>,
) -> Result<()> {
    let mut folders = ClassFolders::default();
    for (class, names) in read(list)? {
        for name in names {
            let path = folders.find(images, &class, &name).ok_or_else(|| {
                let place = format!("photo `{name}` of class `{class}`");
                let expected = format!("an image below `{}`", images.display());
                DataError::malformed(list, place, expected, "none")
            })?;
            let bytes = std::fs::read(&path).map_err(DataError::io("read", &path))?;
            each(MiniPhoto { id: name, class: class.clone(), image: MiniImage::Encoded(bytes) })?;
        }
    }
    Ok(())
}

/// File names by class, in the order of the list.
fn read(list: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let unreadable = |error: csv::Error| DataError::undecodable(list, "CSV", error);
    let mut reader = csv::Reader::from_path(list).map_err(unreadable)?;
    let header = reader.headers().map_err(unreadable)?.clone();
    let column = |name: &str| {
        header.iter().position(|found| found.trim() == name).ok_or_else(|| {
            let found = header.iter().collect::<Vec<_>>().join(",");
            DataError::malformed(list, "line 1", "columns `filename` and `label`", format!("`{found}`"))
        })
    };
    let filename = column("filename")?;
    let label = column("label")?;
    let mut classes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let name = record.get(filename).unwrap_or("").trim();
        let class = record.get(label).unwrap_or("").trim();
        if name.is_empty() || class.is_empty() {
            let place = format!("line {}", record.position().map_or(0, csv::Position::line));
            return Err(DataError::malformed(list, place, "a file name and a label", "an empty one"));
        }
        classes.entry(class.to_owned()).or_default().push(name.to_owned());
    }
    Ok(classes)
}

/// The photos of ImageNet's class folders, in the order of their numbers.
#[derive(Default)]
struct ClassFolders(BTreeMap<String, Vec<PathBuf>>);

impl ClassFolders {
    /// The photo of this name, directly below `images` or in the folder of its class; failing that, the photo of ImageNet that the name
    /// refers to. Names are a class and a number: `n0153282900000005.jpg` is the fifth photo of `n01532829`, in the order of the
    /// numbers in the names of ImageNet's files (`n01532829_1234.JPEG`).
    fn find(&mut self, images: &Path, class: &str, name: &str) -> Option<PathBuf> {
        let by_name = [images.join(name), images.join(class).join(name)];
        if let Some(path) = by_name.into_iter().find(|path| path.is_file()) {
            return Some(path);
        }
        let digits = name.strip_prefix(class)?.split('.').next()?;
        let number: usize = digits.parse().ok()?;
        let listed = self.0.entry(class.to_owned()).or_insert_with(|| in_order(&images.join(class)));
        listed.get(number.checked_sub(1)?).cloned()
    }
}

/// The files of a folder, sorted by the number after the last underscore of their names; empty if the folder does not exist.
fn in_order(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let number =
        |path: &Path| -> Option<u64> { path.file_stem()?.to_str()?.rsplit_once('_')?.1.parse().ok() };
    let mut files: Vec<(u64, PathBuf)> =
        entries.flatten().filter_map(|entry| Some((number(&entry.path())?, entry.path()))).collect();
    files.sort();
    files.into_iter().map(|(_, path)| path).collect()
}
