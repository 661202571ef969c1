//! Opening regular files, which have random access and can be read more than once.

use std::fs::{File, FileType};
use std::path::Path;

use crate::{DataError, Result};

/// Opens a file for reading. FIFOs (opening one would wait for a writer), sockets, devices and folders are refused.
pub fn open_regular(path: &Path) -> Result<File> {
    let kind = std::fs::metadata(path).map_err(DataError::io("open", path))?.file_type();
    if kind.is_dir() {
        return Err(DataError::io("open", path)(std::io::ErrorKind::IsADirectory.into()));
    }
    if !kind.is_file() {
        return Err(DataError::malformed(path, "file type", "a regular file", describe(kind)));
    }
    File::open(path).map_err(DataError::io("open", path))
}

/// A description of the file type.
#[cfg(unix)]
fn describe(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn describe(_: FileType) -> &'static str {
    "a device"
}
