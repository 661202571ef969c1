//! Locking an output, so that only one process at a time works on it.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::work::{Error, Result, option, words};
use crate::{DataError, open_locked};

/// A lock on an output that may be resumed after a kill. The system releases it when the process ends in any way; a stale
/// lock file is harmless.
pub struct OutputLock {
    path: PathBuf,
    file: Option<File>,
    /// Folders that were created for it, the innermost first.
    made: Vec<PathBuf>,
}

impl OutputLock {
    /// Locks a file by `FILE.lock` beside it.
    pub fn beside(output: &Path) -> Result<OutputLock> {
        let mut path = output.as_os_str().to_owned();
        path.push(".lock");
        OutputLock::take(PathBuf::from(path), output, Vec::new())
    }

    /// Locks a folder, which is created if needed, by `run.lock` inside. A created folder that is still empty in the end is
    /// removed.
    pub fn inside(folder: &Path) -> Result<OutputLock> {
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let made = folder.ancestors().take_while(missing).map(Path::to_path_buf).collect();
        std::fs::create_dir_all(folder).map_err(DataError::io("write", folder))?;
        OutputLock::take(folder.join("run.lock"), folder, made)
    }

    fn take(path: PathBuf, output: &Path, made: Vec<PathBuf>) -> Result<OutputLock> {
        let mut lock = OutputLock { path, file: None, made };
        match open_locked(&lock.path) {
            Ok(file) => {
                lock.file = Some(file);
                Ok(lock)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(Error::input(
                format!("another process is using `{}`", output.display()),
                words!["wait until it has finished, or choose another ", option("output")],
            )),
            Err(error) => Err(DataError::io("write", output)(error).into()),
        }
    }
}

impl Drop for OutputLock {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // Removed while still locked. Only an empty file is a lock; another file may have the same name.
            if file.metadata().is_ok_and(|found| found.len() == 0) {
                let _ = std::fs::remove_file(&self.path);
            }
        }
        for folder in &self.made {
            if std::fs::remove_dir(folder).is_err() {
                break; // it is not empty by now
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_is_refused_and_the_first_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("net.safetensors");
        let first = OutputLock::beside(&output).unwrap();
        let error = OutputLock::beside(&output).err().expect("it is taken").to_string();
        assert_eq!(error, format!("another process is using `{}`", output.display()));
        drop(first);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(OutputLock::beside(&output).unwrap());
    }

    #[test]
    fn a_stale_lock_file_is_harmless_and_a_file_with_contents_stays() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("net.safetensors");
        let lock = folder.path().join("net.safetensors.lock");
        std::fs::write(&lock, "").unwrap();
        drop(OutputLock::beside(&output).unwrap());
        assert!(!lock.exists());
        std::fs::write(&lock, "mine").unwrap();
        drop(OutputLock::beside(&output).unwrap());
        assert_eq!(std::fs::read_to_string(&lock).unwrap(), "mine");
    }

    #[test]
    fn a_folder_created_for_a_lock_is_removed_unless_it_has_contents() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("a/b/run");
        drop(OutputLock::inside(&run).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let lock = OutputLock::inside(&run).unwrap();
        assert!(OutputLock::inside(&run).is_err());
        std::fs::write(run.join("result"), "").unwrap();
        drop(lock);
        assert!(run.join("result").exists() && !run.join("run.lock").exists());
    }
}
