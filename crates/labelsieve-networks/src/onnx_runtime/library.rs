//! Finds and loads ONNX Runtime, once per process.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ort::environment::Environment;
use ort::logging::LogLevel;

use crate::onnx_runtime::error::{Error, Result};
use crate::onnx_runtime::python_folders::python_folders;

/// The environment variable that names the library's file.
pub const VARIABLE: &str = "ORT_DYLIB_PATH";

/// The name of the library, without the version that some systems append.
const NAME: &str = if cfg!(windows) {
    "onnxruntime.dll"
} else if cfg!(target_vendor = "apple") {
    "libonnxruntime.dylib"
} else {
    "libonnxruntime.so"
};

/// A loaded ONNX Runtime.
#[derive(Clone)]
pub struct Library {
    /// Its file, or only its name if the system found it.
    pub path: PathBuf,
    pub(crate) environment: Environment,
}

static LOADED: Mutex<Option<Library>> = Mutex::new(None);
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Folders of Python packages to look in first: those of an interpreter that runs this code. Of no effect once a library
/// is loaded.
pub fn look_in(folders: Vec<PathBuf>) {
    *FOLDERS.lock().unwrap_or_else(PoisonError::into_inner) = folders;
}

/// Loads ONNX Runtime: the file that [`VARIABLE`] names and no other, or the one in the Python package `onnxruntime`, or
/// the system's.
pub fn load() -> Result<Library> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = &*loaded {
        return Ok(library.clone());
    }
    let library = match std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => open(Path::new(&path))?,
        None => {
            let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
            folders.extend(python_folders());
            first_that_loads(&folders)?
        }
    };
    *loaded = Some(library.clone());
    Ok(library)
}

/// Tries folders of Python packages, then the system. A library that cannot be loaded is reported rather than "not found".
fn first_that_loads(folders: &[PathBuf]) -> Result<Library> {
    let mut refused = None;
    for path in folders.iter().filter_map(|folder| in_packages(folder)) {
        match open(&path) {
            Ok(library) => return Ok(library),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    if let Ok(library) = open(Path::new(NAME)) {
        return Ok(library);
    }
    Err(refused.unwrap_or_else(|| {
        let mut places: Vec<String> =
            folders.iter().map(|folder| format!("`{}`", folder.display())).collect();
        places.push("the system's libraries".to_owned());
        Error::NoLibrary { library: NAME.to_owned(), places }
    }))
}

/// The library of the package `onnxruntime` in a folder of packages: `libonnxruntime.so.1.31.1`,
/// `libonnxruntime.1.31.1.dylib` or `onnxruntime.dll`.
fn in_packages(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder.join("onnxruntime").join("capi")).ok()?;
    let is_library = |name: &str| match NAME.rsplit_once('.') {
        Some((stem, "dylib")) => name.starts_with(&format!("{stem}.")) && name.ends_with(".dylib"),
        _ => name == NAME || name.starts_with(&format!("{NAME}.")),
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let name = names.filter(|name| name.to_str().is_some_and(is_library)).max()?;
    Some(folder.join("onnxruntime").join("capi").join(name))
}

fn open(path: &Path) -> Result<Library> {
    let refused = |reason: String| Error::Library { path: path.to_path_buf(), reason };
    let builder = ort::init_from(path).map_err(|error| match error {
        ort::LoadDynamicError::Dlopen { error, .. } => refused(error.to_string()),
        ort::LoadDynamicError::MissingApi { .. } => refused("not an ONNX Runtime library".to_owned()),
        ort::LoadDynamicError::BadVersion { version_str, .. } => {
            refused(format!("expected version 1.{} or later, found {version_str}", ort::MINOR_VERSION))
        }
        error @ ort::LoadDynamicError::InvalidVersionString => refused(error.to_string()),
    })?;
    let environment = builder.with_name("labelsieve").with_telemetry(false).build();
    let environment = environment.map_err(|error| refused(error.to_string()))?;
    environment.set_log_level(LogLevel::Fatal); // errors come back as such, and are told once
    Ok(Library { path: path.to_path_buf(), environment })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_the_python_package_is_known_by_its_name() {
        let packages = tempfile::tempdir().unwrap();
        let capi = packages.path().join("onnxruntime/capi");
        std::fs::create_dir_all(&capi).unwrap();
        assert_eq!(in_packages(packages.path()), None);
        std::fs::write(capi.join("libonnxruntime_providers_shared.so"), "").unwrap();
        assert_eq!(in_packages(packages.path()), None);
        let name = match NAME {
            "libonnxruntime.so" => "libonnxruntime.so.1.31.1",
            "libonnxruntime.dylib" => "libonnxruntime.1.31.1.dylib",
            other => other,
        };
        std::fs::write(capi.join(name), "").unwrap();
        assert_eq!(in_packages(packages.path()), Some(capi.join(name)));
    }

    #[test]
    fn a_file_that_is_no_library_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libonnxruntime.so");
        std::fs::write(&path, "not a library").unwrap();
        let error = open(&path).err().unwrap().to_string();
        assert!(
            error.starts_with(&format!("cannot load ONNX Runtime from `{}`: ", path.display())),
            "{error}"
        );
    }
}
