//! Temporary space on disk for arrays that do not fit in memory.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use labelsieve_numerics::{Pages, Scratch};

use crate::arrays::mapped::{MappedPages, Number};
use crate::{DataError, Result};

/// A folder for unnamed temporary files, which the system deletes when the process ends in any way.
#[derive(Clone, Debug)]
pub struct ScratchFolder {
    folder: PathBuf,
    memory: usize,
}

impl ScratchFolder {
    /// Scratch space in `folder`, for work that may use `memory` bytes.
    pub fn new(folder: &Path, memory: usize) -> Result<ScratchFolder> {
        tempfile::tempfile_in(folder).map_err(DataError::io("write", folder))?;
        Ok(ScratchFolder { folder: folder.to_path_buf(), memory })
    }

    /// The same folder with another memory limit.
    pub fn with_memory(&self, memory: usize) -> ScratchFolder {
        ScratchFolder { memory, ..self.clone() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The number of free bytes, where the system reports it.
    pub fn free_bytes(&self) -> Option<u64> {
        free_bytes(&self.folder)
    }

    /// Whether the folder is on an in-memory file system.
    pub fn is_in_memory(&self) -> bool {
        is_in_memory(&self.folder)
    }

    /// A file of `n_bytes` zeros with its disk space reserved: a full disk should be detected before the work, not kill the
    /// process later.
    pub fn file(&self, n_bytes: u64) -> io::Result<File> {
        let file = tempfile::tempfile_in(&self.folder)?;
        reserve(&file, n_bytes)?;
        Ok(file)
    }

    fn pages<T: Number>(&self, len: usize) -> labelsieve_numerics::Result<Box<dyn Pages<T>>> {
        let n_bytes = len as u64 * size_of::<T>() as u64;
        let mapped = self.file(n_bytes).and_then(|file| MappedPages::new(&file, len));
        let no_space = |cause| {
            let folder = self.folder.display();
            labelsieve_numerics::Error::Scratch(format!(
                "cannot reserve {n_bytes} bytes of scratch space in `{folder}`: {cause}"
            ))
        };
        Ok(Box::new(mapped.map_err(no_space)?))
    }
}

impl Scratch for ScratchFolder {
    fn floats(&self, len: usize) -> labelsieve_numerics::Result<Box<dyn Pages<f32>>> {
        self.pages(len)
    }

    fn indices(&self, len: usize) -> labelsieve_numerics::Result<Box<dyn Pages<u32>>> {
        self.pages(len)
    }

    fn memory(&self) -> usize {
        self.memory
    }
}

/// `TMPDIR`, or else the folder for large temporary files: `/tmp` is often in memory.
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
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    rustix::fs::statfs(folder).is_ok_and(|found| [TMPFS, RAMFS].contains(&(found.f_type as u64)))
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_folder: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use labelsieve::synthetic::Recipe;
    use labelsieve::{ClassProblem, Method, NoisyPool};

    use super::*;

    #[test]
    fn what_is_written_stays_when_its_pages_are_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = ScratchFolder::new(folder.path(), 0).unwrap();
        let mut floats = scratch.floats(5000).unwrap();
        let mut indices = scratch.indices(3).unwrap();
        assert!((*floats).as_ref().iter().all(|&x| x == 0.0));
        (0..).zip((*floats).as_mut()).for_each(|(i, x): (u16, _)| *x = f32::from(i));
        (*indices).as_mut().copy_from_slice(&[7, u32::MAX, 0]);
        for part in [0..5000, 100..1500, 4999..5000, 0..0] {
            floats.release(part.clone());
            floats.fetch(part);
        }
        indices.release(0..3);
        assert!((0..).zip((*floats).as_ref()).all(|(i, &x): (u16, _)| x == f32::from(i)));
        assert_eq!((*indices).as_ref(), [7, u32::MAX, 0]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "scratch files have no names");
        assert!(scratch.floats(0).unwrap().as_ref().as_ref().is_empty());
    }

    #[test]
    fn a_pool_in_files_has_the_relevance_of_one_in_memory_bit_for_bit() {
        let folder = tempfile::tempdir().unwrap();
        let class = Recipe { n_classes: 1, ..Recipe::default() }.generate(4).classes.remove(0);
        for memory in [0, 1 << 20] {
            let scratch = Arc::new(ScratchFolder::new(folder.path(), memory).unwrap());
            let kept: Vec<usize> = (0..class.noisy.len()).collect();
            let noisy = class.noisy.select_in(&kept, scratch.as_ref()).unwrap();
            assert_eq!(noisy, class.noisy);
            for name in ["gcn", "auto", "mixture", "mlp", "label-propagation"] {
                let method: Method = serde_json::from_value(serde_json::json!({ "method": name })).unwrap();
                let score = |pool: NoisyPool| {
                    let problem = ClassProblem::new(&class.clean, &pool).unwrap();
                    let problem = problem.with_other_classes(&class.clean).unwrap();
                    method.build().unwrap().relevance(&problem, 1).unwrap()
                };
                let out_of_core = score(NoisyPool::out_of_core(noisy.clone(), scratch.clone()));
                assert_eq!(out_of_core, score(NoisyPool::new(class.noisy.clone())), "{name}");
            }
        }
    }

    #[test]
    fn a_disk_without_space_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = ScratchFolder::new(folder.path(), 0).unwrap();
        let error = scratch.floats(1 << 50).err().expect("no disk has so much").to_string();
        let expected = format!(
            "cannot reserve 4503599627370496 bytes of scratch space in `{}`: ",
            folder.path().display()
        );
        assert!(error.starts_with(&expected), "{error}");
        assert!(scratch.free_bytes().is_none_or(|free| free < 1 << 52));
        let error = ScratchFolder::new(&folder.path().join("missing"), 0).unwrap_err().to_string();
        assert!(error.contains("missing`: "), "{error}");
    }
}
