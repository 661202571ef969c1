//! Files that one process at a time may hold open.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;

/// The file at `path`, which is made if need be, locked; [`ErrorKind::WouldBlock`] if somebody else holds it. The system
/// lets go of the lock when the file is closed or the process ends, however it ends. The holder may delete the file.
pub fn open_locked(path: &Path) -> io::Result<File> {
    loop {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => return Err(ErrorKind::WouldBlock.into()),
            // A file system without locks: as good as it gets.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if is_still_at(path, &file) {
            return Ok(file);
        }
        // Whoever held it before removed it between our opening and our locking: once more.
    }
}

/// Whether `file` is what is found at `path`, and not one that was deleted or replaced meanwhile.
#[cfg(unix)]
pub fn is_still_at(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((std::fs::metadata(path), file.metadata()), (Ok(a), Ok(b)) if place(&a) == place(&b))
}

/// Whether there is a file at `path`.
#[cfg(not(unix))]
pub fn is_still_at(path: &Path, _file: &File) -> bool {
    path.exists()
}

/// An open file whose lock others respect, too, in case the one that [`open_locked`] made is deleted; nothing where the
/// system has no such locks. [`ErrorKind::WouldBlock`] if somebody else holds it.
#[cfg(unix)]
pub fn hold(path: &Path) -> io::Result<Option<File>> {
    let file = File::open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Locks keep others from reading here, and from deleting anyway.
#[cfg(not(unix))]
pub fn hold(_path: &Path) -> io::Result<Option<File>> {
    Ok(None)
}
