//! Opening inputs: a file, a pipe, a named pipe, or `-` for standard input.
//!
//! Every input is read exactly once, from start to end. Streams in formats that need random access (Parquet, `.npy`, `.npz`)
//! are copied to a temporary file first.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{DataError, Result};

/// Whether `path` can be read only once: standard input (`-`), a pipe, a device. The size and modification time of a stream
/// do not identify its contents.
pub fn is_stream(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    is_dash(path) || std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// An input that is read from start to end.
pub enum Input {
    /// A file with a length.
    File(File),
    /// A pipe, a device, or standard input.
    Stream(Box<dyn Read + Send>),
}

impl Input {
    /// Opens a file, a pipe, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Input> {
        if is_dash(path) {
            claim_standard_input(path)?;
            return Ok(Input::Stream(Box::new(std::io::stdin())));
        }
        let file = File::open(path).map_err(DataError::io("open", path))?;
        let metadata = file.metadata().map_err(DataError::io("open", path))?;
        if metadata.is_dir() {
            return Err(DataError::io("open", path)(std::io::ErrorKind::IsADirectory.into()));
        }
        if metadata.is_file() {
            return Ok(Input::File(file));
        }
        if ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].iter().any(|name| path == Path::new(name)) {
            claim_standard_input(path)?;
        }
        Ok(Input::Stream(Box::new(file)))
    }

    /// The size of a file; unknown for a stream.
    pub fn len(&self) -> Option<u64> {
        match self {
            Input::File(file) => file.metadata().ok().map(|metadata| metadata.len()),
            Input::Stream(_) => None,
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Input::File(file) => file.read(buffer),
            Input::Stream(stream) => stream.read(buffer),
        }
    }
}

/// Reads all bytes of a small input.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Input::open(path)?.read_to_end(&mut bytes).map_err(DataError::io("read", path))?;
    Ok(bytes)
}

/// Opens an input with random access: the file itself, or a temporary copy of a stream.
pub fn open_seekable(path: &Path) -> Result<File> {
    match Input::open(path)? {
        Input::File(file) => Ok(file),
        Input::Stream(mut stream) => spool(path, &mut stream),
    }
}

/// Copies the rest of a stream to an unnamed temporary file, which is deleted when closed.
pub fn spool(path: &Path, stream: &mut dyn Read) -> Result<File> {
    let failed = |cause| DataError::Spool { path: path.into(), folder: std::env::temp_dir(), cause };
    let mut copy = tempfile::tempfile().map_err(failed)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(DataError::io("read", path)(error)),
        };
        copy.write_all(&buffer[..n]).map_err(failed)?;
    }
    copy.rewind().map_err(failed)?;
    Ok(copy)
}

/// `-` is standard input; a file of that name is written `./-`.
fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

/// Refuses a second reader of standard input, which would see an empty file.
fn claim_standard_input(path: &Path) -> Result<()> {
    static CLAIMED: AtomicBool = AtomicBool::new(false);
    if CLAIMED.swap(true, Ordering::Relaxed) {
        Err(DataError::ReadTwice { path: path.into() })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_are_not_streams() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "12345").unwrap();
        assert!(!is_stream(&path) && !is_stream(folder.path()) && !is_stream("missing.csv"));
        assert!(is_stream("-"));
        assert_eq!(Input::open(&path).unwrap().len(), Some(5));
        assert_eq!(read(&path).unwrap(), b"12345");
        let error = Input::open(folder.path()).err().unwrap().to_string();
        assert!(error.ends_with("is a directory"), "{error}");
    }

    #[test]
    fn a_copied_stream_can_be_read_at_any_place() {
        let mut stream: &[u8] = b"inside";
        let mut file = spool(Path::new("-"), &mut stream).unwrap();
        let mut end = String::new();
        file.seek(std::io::SeekFrom::Start(2)).unwrap();
        file.read_to_string(&mut end).unwrap();
        assert_eq!(end, "side");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_a_stream() {
        assert!(is_stream("/dev/null"));
        assert_eq!(Input::open(Path::new("/dev/null")).unwrap().len(), None);
        assert_eq!(read(Path::new("/dev/null")).unwrap(), b"");
    }
}
