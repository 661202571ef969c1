//! Files that appear whole or not at all.
//!
//! A file is written under a temporary name in the folder of its output, and locked while its writer is alive. A file that a
//! killed process leaves behind is therefore recognised by its name and the missing lock, and the next output in the same
//! folder deletes it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempPath;

use crate::{DataError, Result};

/// The prefix of the names of temporary files; a few letters and digits follow.
const PREFIX: &str = ".labelsieve-";

/// The temporary files of this process.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file under construction. It gets its final name only in [`AtomicFile::commit`]; dropped before that, it is deleted and
/// an existing file under the final name is unchanged.
///
/// A new file gets the permissions that the user's umask leaves; one that replaces another gets those of the old one.
pub struct AtomicFile {
    writer: BufWriter<File>,
    temporary: Temporary,
    path: PathBuf,
}

impl AtomicFile {
    /// Starts a file that will be called `path`. Fails at once when the folder is missing or not writable.
    pub fn create(path: impl AsRef<Path>) -> Result<AtomicFile> {
        let path = path.as_ref().to_path_buf();
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if path.is_dir() {
            return Err(DataError::malformed(&path, "output", "a file name", "a folder"));
        }
        if path.exists() && !path.is_file() {
            // Renaming a file over `/dev/null` would work, for some users.
            return Err(DataError::malformed(&path, "output", "a file name", "a device or pipe"));
        }
        sweep(folder);
        let (file, temporary) = Temporary::create(folder).map_err(DataError::io("write", &path))?;
        Ok(AtomicFile { writer: BufWriter::with_capacity(1 << 20, file), temporary, path })
    }

    /// Flushes everything to disk and gives the file its name.
    pub fn commit(mut self) -> Result<()> {
        let finished = self.writer.flush().and_then(|()| {
            let file = self.writer.get_ref();
            if let Ok(old) = std::fs::metadata(&self.path) {
                // Best effort: an old file of another owner may have permissions that cannot be set here.
                let _ = file.set_permissions(old.permissions());
            }
            file.sync_all()?;
            self.temporary.persist(&self.path)
        });
        finished.map_err(DataError::io("write", &self.path))
    }
}

/// Deletes the temporary files of this process, which is about to end. None is created, committed or dropped until the
/// result is dropped.
#[must_use = "new files can be created as soon as it is dropped"]
pub fn abandon_unfinished_files() -> impl Drop {
    let unfinished = unfinished();
    for path in unfinished.iter() {
        let _ = std::fs::remove_file(path); // otherwise the next output in that folder sweeps it
    }
    unfinished
}

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name under which a file is written; deletes it when dropped.
struct Temporary(Option<TempPath>);

impl Temporary {
    fn create(folder: &Path) -> std::io::Result<(File, Temporary)> {
        let mut unfinished = unfinished();
        // Opened here, because the library would add the temporary name to the system's messages and make the file
        // private to its owner, whatever the umask says.
        let create = |name: &Path| {
            let file = File::options().read(true).write(true).create_new(true).open(name)?;
            // Where files cannot be locked, other processes cannot lock this one either, and it is never swept.
            let _ = file.try_lock();
            // Another process may have swept it between its creation and the lock.
            if is_unlinked(&file) {
                Err(std::io::ErrorKind::AlreadyExists.into()) // asks for another name
            } else {
                Ok(file)
            }
        };
        let file = tempfile::Builder::new().prefix(PREFIX).make_in(folder, create);
        let (file, path) = file?.into_parts();
        unfinished.insert(path.to_path_buf());
        Ok((file, Temporary(Some(path))))
    }

    fn persist(&mut self, path: &Path) -> std::io::Result<()> {
        let mut unfinished = unfinished();
        let Some(temporary) = self.0.take() else { return Ok(()) };
        unfinished.remove::<Path>(&temporary);
        temporary.persist(path).map_err(|error| error.error)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut unfinished = unfinished();
        if let Some(temporary) = self.0.take() {
            unfinished.remove::<Path>(&temporary);
        }
    }
}

/// Deletes the files that killed processes left in `folder`: unlocked files with a temporary name. Once per folder and
/// process, since folders may be large.
fn sweep(folder: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let Ok(folder) = folder.canonicalize() else { return };
    if !SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.clone()) {
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_temporary(&entry.file_name().to_string_lossy()) {
            remove_if_stale(&entry.path());
        }
    }
}

/// Whether this is the name of a temporary file of this program.
fn is_temporary(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).unwrap_or("");
    rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Deletes a file whose writer is gone, which is known by its missing lock. A writer that has just created it sees that the
/// file is gone once it has the lock.
#[cfg(unix)]
fn remove_if_stale(path: &Path) {
    // Never waits: a temporary file is a regular one, and only such files come here.
    let Ok(file) = File::options().write(true).open(path) else { return };
    if file.try_lock().is_ok() {
        let _ = std::fs::remove_file(path);
    }
}

/// On platforms where a deleted file cannot be distinguished from an existing one, nothing is swept.
#[cfg(not(unix))]
fn remove_if_stale(_path: &Path) {}

/// Whether an open file has been unlinked.
#[cfg(unix)]
fn is_unlinked(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
}

#[cfg(not(unix))]
fn is_unlinked(_file: &File) -> bool {
    false
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.writer.flush()
    }
}

/// Writers of archives and tables seek back to fill in lengths.
impl Seek for AtomicFile {
    fn seek(&mut self, position: SeekFrom) -> std::io::Result<u64> {
        self.writer.seek(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_committed_file_has_its_name_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(names_in(folder.path()), ["out.bin"]);
    }

    #[test]
    fn a_dropped_file_leaves_the_old_one_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        std::fs::write(&path, b"old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(names_in(folder.path()), ["out.bin"]);
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_pipes_are_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let Err(error) = AtomicFile::create(&path) else { panic!("would replace a socket") };
        assert!(
            error.to_string().ends_with("output: expected a file name, found a device or pipe"),
            "{error}"
        );
        assert!(std::fs::symlink_metadata(&path).unwrap().file_type().is_socket());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_replaces_another_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        for mode in [0o600, 0o664, 0o640] {
            std::fs::write(&path, "old").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let mut file = AtomicFile::create(&path).unwrap();
            file.write_all(b"new").unwrap();
            file.commit().unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_stale_temporary_files_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".labelsieve-aB3xyz", ".labelsieve-notes", ".labelsieve-aB3xyz.txt", "labelsieve-aB3xyz"]
        {
            std::fs::write(folder.path().join(name), "rest").unwrap();
        }
        std::fs::create_dir(folder.path().join(".labelsieve-folder")).unwrap();
        let held = File::create(folder.path().join(".labelsieve-000000")).unwrap();
        held.lock().unwrap();
        drop(AtomicFile::create(folder.path().join("out.bin")).unwrap());
        let rest = [
            ".labelsieve-000000",
            ".labelsieve-aB3xyz.txt",
            ".labelsieve-folder",
            ".labelsieve-notes",
            "labelsieve-aB3xyz",
        ];
        assert_eq!(names_in(folder.path()), rest);
    }

    #[test]
    fn a_missing_folder_is_named_in_the_error() {
        let Err(error) = AtomicFile::create("/no/such/folder/out.bin") else {
            panic!("created a file in a missing folder")
        };
        let message = "cannot write `/no/such/folder/out.bin`: No such file or directory (os error 2)";
        assert_eq!(error.to_string(), message);
        assert!(std::error::Error::source(&error).is_none(), "the cause would be printed twice");
    }
}
