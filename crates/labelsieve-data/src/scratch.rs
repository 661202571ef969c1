//! Space on disk for arrays that memory does not hold.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use labelsieve::{Pages, Scratch};

use crate::mapped::{MappedPages, Number};
use crate::{DataError, Result};

/// A folder for files without a name, which are gone when the process is, however it ends.
#[derive(Clone, Debug)]
pub struct ScratchFolder {
    folder: PathBuf,
    memory: usize,
}

impl ScratchFolder {
    /// Arrays in `folder`, for work that may take so many bytes of memory.
    pub fn new(folder: &Path, memory: usize) -> Result<ScratchFolder> {
        tempfile::tempfile_in(folder).map_err(DataError::io("write", folder))?;
        Ok(ScratchFolder { folder: folder.to_path_buf(), memory })
    }

    /// The same folder for work with another amount of memory.
    pub fn with_memory(&self, memory: usize) -> ScratchFolder {
        ScratchFolder { memory, ..self.clone() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes that are free, where the system says so.
    pub fn free_bytes(&self) -> Option<u64> {
        free_bytes(&self.folder)
    }

    /// Whether the folder itself is in memory.
    pub fn is_in_memory(&self) -> bool {
        is_in_memory(&self.folder)
    }

    /// A file of so many zeros that has its place on the disk already: a full disk should be known before the work and not
    /// end the process.
    pub(crate) fn file(&self, n_bytes: u64) -> io::Result<File> {
        let file = tempfile::tempfile_in(&self.folder)?;
        reserve(&file, n_bytes)?;
        Ok(file)
    }

    fn pages<T: Number>(&self, len: usize) -> labelsieve::Result<Box<dyn Pages<T>>> {
        let n_bytes = len as u64 * size_of::<T>() as u64;
        let mapped = self.file(n_bytes).and_then(|file| MappedPages::new(&file, len));
        let no_space = |cause| {
            let folder = self.folder.display();
            labelsieve::Error::Scratch(format!(
                "cannot reserve {n_bytes} bytes of scratch space in `{folder}`: {cause}"
            ))
        };
        Ok(Box::new(mapped.map_err(no_space)?))
    }
}

impl Scratch for ScratchFolder {
    fn floats(&self, len: usize) -> labelsieve::Result<Box<dyn Pages<f32>>> {
        self.pages(len)
    }

    fn indices(&self, len: usize) -> labelsieve::Result<Box<dyn Pages<u32>>> {
        self.pages(len)
    }

    fn memory(&self) -> usize {
        self.memory
    }
}

/// `TMPDIR`, or the folder for large temporary files: `/tmp` is often in memory itself.
pub fn temporary_folder() -> PathBuf {
    let large = Path::new("/var/tmp");
    if cfg!(unix) && std::env::var_os("TMPDIR").is_none() && large.is_dir() {
        return large.to_path_buf();
    }
    std::env::temp_dir()
}

fn reserve(file: &File, n_bytes: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, n_bytes.max(1)) {
        Err(rustix::io::Errno::OPNOTSUPP) => {}
        reserved => return Ok(reserved?),
    }
    io::copy(&mut io::Read::take(io::repeat(0), n_bytes.max(1)), &mut &*file).map(|_| ())
}

#[cfg(unix)]
fn free_bytes(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_folder: &Path) -> Option<u64> {
    None
}

#[cfg(target_os = "linux")]
fn is_in_memory(folder: &Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    rustix::fs::statfs(folder).is_ok_and(|found| [TMPFS, RAMFS].contains(&(found.f_type as i64)))
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_folder: &Path) -> bool {
    false
}
