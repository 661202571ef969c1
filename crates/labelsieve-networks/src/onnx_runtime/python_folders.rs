//! Finds the folders of Python packages, without starting an interpreter.

use std::path::{Path, PathBuf};

/// The `site-packages` of the environments that are active here, most particular first: the virtual and the conda
/// environment, then `python3` on the path by its prefix, then the user's own packages.
pub fn python_folders() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> =
        std::env::split_paths(&path).filter_map(|folder| prefix_of(&folder)).collect();
    let home = variable("HOME").map(|home| home.join(".local"));
    let prefixes = active.chain(on_path).chain(home);
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in prefixes.flat_map(|prefix| packages_below(&prefix)) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// The prefix of the interpreter in a folder of programs, if one is there: `/usr` for `/usr/bin/python3`.
fn prefix_of(folder: &Path) -> Option<PathBuf> {
    if cfg!(windows) {
        folder.join("python.exe").is_file().then(|| folder.to_path_buf())
    } else {
        folder.join("python3").is_file().then(|| folder.parent().map(Path::to_path_buf)).flatten()
    }
}

/// Folders of packages below a prefix, those of the newest Python first.
fn packages_below(prefix: &Path) -> Vec<PathBuf> {
    if cfg!(windows) {
        return vec![prefix.join("Lib").join("site-packages")];
    }
    let mut folders = Vec::new();
    for library in [prefix.join("lib"), prefix.join("lib64"), prefix.join("local/lib")] {
        let entries = std::fs::read_dir(&library).into_iter().flatten().flatten();
        let mut pythons: Vec<(u32, PathBuf)> =
            entries.filter_map(|entry| Some((minor(entry.file_name().to_str()?)?, entry.path()))).collect();
        pythons.sort();
        let pythons = pythons.into_iter().rev().map(|(_, path)| path);
        folders
            .extend(pythons.flat_map(|python| [python.join("site-packages"), python.join("dist-packages")]));
    }
    folders.retain(|folder| folder.is_dir());
    folders
}

/// 11 of `python3.11`; Debian's `python3`, which serves all, comes last.
fn minor(name: &str) -> Option<u32> {
    match name.strip_prefix("python3")? {
        "" => Some(0),
        rest => rest.strip_prefix('.')?.parse().ok(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn folders_of_packages_are_found_newest_python_first() {
        let root = tempfile::tempdir().unwrap();
        let below = |path: &str| root.path().join(path);
        for folder in [
            "bin",
            "lib/python3.9/site-packages",
            "lib/python3.12/site-packages",
            "lib/python3/dist-packages",
            "lib/python2.7/site-packages",
            "lib/python3.13", // no packages
        ] {
            std::fs::create_dir_all(below(folder)).unwrap();
        }
        assert_eq!(prefix_of(&below("bin")), None);
        std::fs::write(below("bin/python3"), "").unwrap();
        let prefix = prefix_of(&below("bin")).unwrap();
        assert_eq!(prefix, root.path());
        let expected =
            ["lib/python3.12/site-packages", "lib/python3.9/site-packages", "lib/python3/dist-packages"];
        assert_eq!(packages_below(&prefix), expected.map(below));
        assert!(packages_below(&below("nowhere")).is_empty());
    }
}
