//! Files that only one process at a time may have open.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Opens the file at `path`, creating it if needed, and locks it; fails with [`ErrorKind::WouldBlock`] if another process
/// holds the lock. The system releases the lock when the file is closed or the process ends in any way. The holder may
/// delete the file.
pub fn open_locked(path: &Path) -> io::Result<File> {
    loop {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => return Err(ErrorKind::WouldBlock.into()),
            // The file system has no locks.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if is_still_at(path, &file) {
            return Ok(file);
        }
        // The previous holder deleted it between our opening and our locking: try again.
    }
}

/// Whether `file` is still the file at `path`, not one that was deleted or replaced meanwhile.
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

/// Locks an existing file as well, in case the one that [`open_locked`] created is deleted; `None` where the file system has
/// no locks. Fails with [`ErrorKind::WouldBlock`] if another process holds the lock.
#[cfg(unix)]
pub fn hold(path: &Path) -> io::Result<Option<File>> {
    let file = File::open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// On this platform a lock would keep other processes from reading, and an open file cannot be deleted anyway.
#[cfg(not(unix))]
pub fn hold(_path: &Path) -> io::Result<Option<File>> {
    Ok(None)
}
