//! Files that appear whole or not at all.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::{DataError, Result};

/// A file under construction. It lives beside its final name and takes that name only in [`AtomicFile::commit`];
/// dropped before that, it vanishes and whatever stood under the final name stays.
pub struct AtomicFile {
    writer: BufWriter<File>,
    /// The name under which it is written; deletes the file when dropped.
    temporary: TempPath,
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
        // Opened by ourselves, because the library would add the temporary name to the system's messages.
        let create = |name: &Path| File::options().read(true).write(true).create_new(true).open(name);
        let file = tempfile::Builder::new().prefix(".labelsieve-").make_in(folder, create);
        let (file, temporary) = file.map_err(DataError::io("write", &path))?.into_parts();
        Ok(AtomicFile { writer: BufWriter::with_capacity(1 << 20, file), temporary, path })
    }

    /// Flushes everything to disk and gives the file its name.
    pub fn commit(mut self) -> Result<()> {
        let finished = self.writer.flush().and_then(|()| {
            self.writer.get_ref().sync_all()?;
            make_readable(self.writer.get_ref())?;
            self.temporary.persist(&self.path).map_err(|error| error.error)
        });
        finished.map_err(DataError::io("write", &self.path))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.writer.flush()
    }
}

/// Archives and tables go back to fill in lengths.
impl Seek for AtomicFile {
    fn seek(&mut self, position: SeekFrom) -> std::io::Result<u64> {
        self.writer.seek(position)
    }
}

/// Temporary files are private to their owner; a finished result is readable like any other file.
#[cfg(unix)]
fn make_readable(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_readable(_file: &File) -> std::io::Result<()> {
    Ok(())
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

    #[test]
    fn a_missing_folder_is_named_in_the_error() {
        let Err(error) = AtomicFile::create("/no/such/folder/out.bin") else {
            panic!("created a file in nowhere")
        };
        let message = "cannot write `/no/such/folder/out.bin`: No such file or directory (os error 2)";
        assert_eq!(error.to_string(), message);
        assert!(std::error::Error::source(&error).is_none(), "said once is enough");
    }
}
