//! NumPy `.npz` archives: a zip of `.npy` members.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::arrays::array_file::ArrayFile;
use crate::arrays::byte_source::ByteSource;
use crate::arrays::npy::{Dtype, NPY_HEAD_LIMIT, NpyHeader};
use crate::arrays::npy_write::{npy_head, write_npy_f16, write_npy_f32, write_npy_i64, write_npy_u8};
use crate::arrays::scratch::temporary_folder;
use crate::storage::input::open_seekable;
use crate::{Action, AtomicFile, DataError, Result};

/// The largest ratio that deflate can reach; a member that claims a larger one has a wrong size.
const MAX_DEFLATE_RATIO: u64 = 1032;

/// A compressed member up to this size is unpacked to memory, a larger one to a temporary file.
const MAX_BYTES_IN_MEMORY: u64 = 32 << 20;

/// An open archive.
pub struct Npz {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
    /// The same file, for members that are read in place.
    in_place: File,
    file_len: u64,
}

impl Npz {
    /// Opens the archive and reads its list of members.
    pub fn open(path: impl AsRef<Path>) -> Result<Npz> {
        Npz::from_file(path.as_ref(), open_seekable(path.as_ref())?)
    }

    /// As [`Npz::open`], for an open file; `path` is its name in messages.
    pub fn from_file(path: &Path, file: File) -> Result<Npz> {
        let path = path.to_path_buf();
        let file_len = file.metadata().map_err(DataError::io("read", &path))?.len();
        let in_place = file.try_clone().map_err(DataError::io("read", &path))?;
        let archive = ZipArchive::new(BufReader::new(file)).map_err(undecodable(&path))?;
        Ok(Npz { path, archive, in_place, file_len })
    }

    /// The names of the arrays, without `.npy`, in the order of the archive.
    pub fn names(&self) -> Vec<String> {
        let names = self.archive.file_names().filter_map(|name| name.ok());
        names.filter_map(|name| name.strip_suffix(".npy").map(str::to_owned)).collect()
    }

    /// Whether there is an array of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.archive.index_for_name(&format!("{name}.npy")).is_some()
    }

    /// One array. A stored member is read in place, a deflated one is unpacked, to a temporary file if it is large. Either
    /// way its checksum is verified before the first element is returned.
    pub fn array(&mut self, name: &str) -> Result<ArrayFile> {
        let member = format!("{name}.npy");
        let Some(index) = self.archive.index_for_name(&member) else {
            let found = format!("the arrays {}", self.names().join(", "));
            return Err(DataError::malformed(&self.path, "archive", format!("an array `{name}`"), found));
        };
        let member_path = self.path.join(member);
        let mut entry = self.archive.by_index(index).map_err(undecodable(&self.path))?;
        let size = entry.size();
        let packed = entry.compressed_size();
        let crc32 = entry.crc32();
        match entry.compression() {
            CompressionMethod::Stored => {
                let start = entry.data_start().unwrap_or(u64::MAX);
                let fits = start.checked_add(size).is_some_and(|end| end <= self.file_len);
                if !fits || packed != size {
                    let expected = format!("{size} bytes inside a file of {}", self.file_len);
                    let found = format!("{packed} bytes at {start}");
                    return Err(DataError::malformed(member_path, "archive member", expected, found));
                }
                drop(entry);
                let file = self.in_place.try_clone().map_err(DataError::io("read", &self.path))?;
                let array = ArrayFile::new(member_path, ByteSource::File { file, start, len: size })?;
                Ok(array.with_checksum(crc32))
            }
            CompressionMethod::Deflated => {
                let limit = packed.saturating_mul(MAX_DEFLATE_RATIO);
                if packed > self.file_len || size > limit {
                    let expected = format!("at most {limit} bytes from {packed} compressed ones");
                    return Err(DataError::malformed(
                        member_path,
                        "archive member",
                        expected,
                        size.to_string(),
                    ));
                }
                let bytes = inflate(&member_path, &mut entry, size)?;
                ArrayFile::new(member_path, bytes)
            }
            method => {
                let found = format!("{method:?}");
                Err(DataError::malformed(member_path, "archive member", "stored or deflated data", found))
            }
        }
    }
}

/// Unpacks `size` bytes, after checking the size against the array's own header.
fn inflate(path: &Path, entry: &mut impl Read, size: u64) -> Result<ByteSource> {
    let failed = |error| DataError::undecodable(path, "npz", error);
    let mut head = Vec::new();
    let head_len = size.min(NPY_HEAD_LIMIT as u64);
    entry.by_ref().take(head_len).read_to_end(&mut head).map_err(failed)?;
    NpyHeader::parse(path, &head, size)?;
    // One byte more than claimed: the checksum is verified only at the end.
    let mut rest = entry.by_ref().take(size + 1 - head.len() as u64);
    let (bytes, found) = if size <= MAX_BYTES_IN_MEMORY {
        let mut bytes = head;
        rest.read_to_end(&mut bytes).map_err(failed)?;
        let found = bytes.len() as u64;
        (ByteSource::Memory(bytes), found)
    } else {
        let (file, found) = unpack(path, &head, &mut rest)?;
        (ByteSource::File { file, start: 0, len: size }, found)
    };
    if found == size {
        Ok(bytes)
    } else {
        let found = format!("{found} bytes");
        Err(DataError::malformed(path, "archive member", format!("{size} bytes"), found))
    }
}

/// Unpacks to an unnamed temporary file, so that memory use stays small for any archive.
fn unpack(path: &Path, head: &[u8], rest: &mut impl Read) -> Result<(File, u64)> {
    let folder = temporary_folder();
    let no_room =
        |cause| DataError::Io { action: Action::Write, path: folder.join("an unpacked array"), cause };
    let mut file = tempfile::tempfile_in(&folder).map_err(no_room)?;
    file.write_all(head).map_err(no_room)?;
    let mut piece = vec![0; 1 << 20];
    let mut length = head.len() as u64;
    loop {
        let n = match rest.read(&mut piece) {
            Ok(0) => return Ok((file, length)),
            Ok(n) => n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(DataError::undecodable(path, "npz", error)),
        };
        file.write_all(&piece[..n]).map_err(no_room)?;
        length += n as u64;
    }
}

/// Writes an uncompressed archive, as `np.savez` does; the file appears only when finished.
pub struct NpzWriter {
    path: PathBuf,
    archive: ZipWriter<AtomicFile>,
}

impl NpzWriter {
    /// Starts an archive that will be called `path`.
    pub fn create(path: impl AsRef<Path>) -> Result<NpzWriter> {
        let path = path.as_ref().to_path_buf();
        let archive = ZipWriter::new(AtomicFile::create(&path)?);
        Ok(NpzWriter { path, archive })
    }

    /// Adds an array of `f32`.
    ///
    /// # Panics
    /// When `shape` does not multiply to the number of values.
    pub fn f32(mut self, name: &str, shape: &[usize], values: &[f32]) -> Result<NpzWriter> {
        self.start(name, size_of_val(values))?;
        write_npy_f32(&mut self.archive, shape, values).map_err(DataError::io("write", &self.path))?;
        Ok(self)
    }

    /// Adds an array of `f16`.
    ///
    /// # Panics
    /// When `shape` does not multiply to the number of values.
    pub fn f16(mut self, name: &str, shape: &[usize], values: &[half::f16]) -> Result<NpzWriter> {
        self.start(name, size_of_val(values))?;
        write_npy_f16(&mut self.archive, shape, values).map_err(DataError::io("write", &self.path))?;
        Ok(self)
    }

    /// Adds an array of `i64`.
    ///
    /// # Panics
    /// When `shape` does not multiply to the number of values.
    pub fn i64(mut self, name: &str, shape: &[usize], values: &[i64]) -> Result<NpzWriter> {
        self.start(name, size_of_val(values))?;
        write_npy_i64(&mut self.archive, shape, values).map_err(DataError::io("write", &self.path))?;
        Ok(self)
    }

    /// Adds an array of bytes.
    ///
    /// # Panics
    /// When `shape` does not multiply to the number of values.
    pub fn u8(mut self, name: &str, shape: &[usize], values: &[u8]) -> Result<NpzWriter> {
        self.start(name, values.len())?;
        write_npy_u8(&mut self.archive, shape, values).map_err(DataError::io("write", &self.path))?;
        Ok(self)
    }

    /// Starts an array whose elements are added by [`NpzWriter::write_bytes`].
    pub fn start_array(&mut self, name: &str, dtype: Dtype, shape: &[usize]) -> Result<()> {
        self.start(name, shape.iter().product::<usize>() * dtype.size())?;
        self.write_bytes(&npy_head(dtype, shape))
    }

    /// Adds bytes to the array that was started last.
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.archive.write_all(bytes).map_err(DataError::io("write", &self.path))
    }

    /// Completes the archive and gives it its name.
    pub fn finish(self) -> Result<()> {
        self.archive.finish().map_err(undecodable(&self.path))?.commit()
    }

    fn start(&mut self, name: &str, n_bytes: usize) -> Result<()> {
        let needs_64_bits = n_bytes as u64 + NPY_HEAD_LIMIT as u64 > u64::from(u32::MAX);
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(needs_64_bits);
        self.archive.start_file(format!("{name}.npy"), options).map_err(undecodable(&self.path))
    }
}

fn undecodable(path: &Path) -> impl FnOnce(zip::result::ZipError) -> DataError {
    move |error| match error {
        zip::result::ZipError::Io(cause) if cause.kind() != std::io::ErrorKind::UnexpectedEof => {
            DataError::io("access", path)(cause)
        }
        error => DataError::undecodable(path, "npz", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;

    fn deflated(path: &Path, member: &[u8]) {
        let mut archive = ZipWriter::new(File::create(path).unwrap());
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        archive.start_file("x.npy", options).unwrap();
        archive.write_all(member).unwrap();
        archive.finish().unwrap();
    }

    fn npy(shape: &[usize], values: &[f32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_npy_f32(&mut bytes, shape, values).unwrap();
        bytes
    }

    #[test]
    fn stored_and_deflated_members_read_alike() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let values: Vec<f32> = (0..60_000).map(|i| i as f32).collect();
        let writer = NpzWriter::create(&path).unwrap().i64("y", &[2], &[3, 4]).unwrap();
        writer.f32("x", &[20_000, 3], &values).unwrap().finish().unwrap();
        let mut stored = Npz::open(&path).unwrap();
        assert_eq!(stored.names(), ["y", "x"]);
        assert_eq!(stored.array("y").unwrap().read_ints().unwrap(), [3, 4]);
        let packed_path = folder.path().join("b.npz");
        deflated(&packed_path, &npy(&[20_000, 3], &values));
        for mut archive in [stored, Npz::open(&packed_path).unwrap()] {
            let matrix = Matrix::from_array(archive.array("x").unwrap()).unwrap();
            let mut out = [0.0; 6];
            matrix.read_rows(&[19_999, 0], &mut out).unwrap();
            assert_eq!(out, [59_997.0, 59_998.0, 59_999.0, 0.0, 1.0, 2.0]);
        }
    }

    #[test]
    fn a_missing_array_is_answered_with_those_present() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        NpzWriter::create(&path).unwrap().f32("x", &[0, 1], &[]).unwrap().finish().unwrap();
        let error = Npz::open(&path).unwrap().array("features").unwrap_err().to_string();
        assert!(
            error.ends_with("a.npz`: archive: expected an array `features`, found the arrays x"),
            "{error}"
        );
    }

    #[test]
    fn a_cut_archive_is_refused_at_every_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        NpzWriter::create(&path).unwrap().f32("x", &[4, 2], &[0.5; 8]).unwrap().finish().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let error = Npz::open(&path).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("a.npz` is not a readable npz file: "), "{error}");
        }
    }

    #[test]
    fn a_member_smaller_than_its_array_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let member = npy(&[4, 2], &[0.5; 8]);
        deflated(&path, &member[..member.len() - 1]);
        let error = Npz::open(&path).unwrap().array("x").unwrap_err().to_string();
        assert!(error.contains("a.npz/x.npy`: npy elements: expected 32 bytes"), "{error}");
    }

    #[test]
    fn a_flipped_bit_in_compressed_data_does_not_pass() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        deflated(&path, &npy(&[100, 2], &(0..200).map(|i| i as f32).collect::<Vec<_>>()));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[150] ^= 4;
        std::fs::write(&path, &bytes).unwrap();
        let error = Npz::open(&path).unwrap().array("x").unwrap_err().to_string();
        assert!(error.contains("x.npy"), "{error}");
    }

    #[test]
    fn a_flipped_bit_in_stored_data_does_not_pass_wherever_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        NpzWriter::create(&path).unwrap().f32("x", &[500, 2], &values).unwrap().finish().unwrap();
        let whole = std::fs::read(&path).unwrap();
        let first = whole.windows(4).position(|four| four == 1f32.to_le_bytes()).unwrap();
        for at in [first, first + 1234, first + 3995] {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            std::fs::write(&path, &bytes).unwrap();
            let matrix = Matrix::from_array(Npz::open(&path).unwrap().array("x").unwrap()).unwrap();
            let error = matrix.read_rows(&[7], &mut [0.0; 2]).unwrap_err().to_string();
            assert!(error.contains("a.npz/x.npy`: checksum: expected "), "{error}");
            assert!(error.ends_with(": file is corrupt"), "{error}");
        }
    }

    #[test]
    fn a_large_deflated_member_is_read_from_a_file_and_a_flipped_bit_in_it_does_not_pass() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let n = MAX_BYTES_IN_MEMORY as usize / 4 / 64 + 1;
        let d = 64;
        deflated(&path, &npy(&[n, d], &(0..n * d).map(|i| (i / 1000) as f32).collect::<Vec<_>>()));
        let array = Npz::open(&path).unwrap().array("x").unwrap();
        let matrix = Matrix::from_array(array).unwrap();
        let mut out = [0.0; 64];
        matrix.read_rows(&[n - 1], &mut out).unwrap();
        assert_eq!(out[63], ((n * d - 1) / 1000) as f32);
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 16;
        std::fs::write(&path, &bytes).unwrap();
        let error = Npz::open(&path).unwrap().array("x").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("x.npy"), "{error}");
    }

    #[test]
    fn an_unwritable_output_fails_early_and_an_unfinished_archive_is_deleted() {
        assert!(NpzWriter::create("/no/such/folder/a.npz").is_err());
        let folder = tempfile::tempdir().unwrap();
        let writer = NpzWriter::create(folder.path().join("a.npz")).unwrap();
        drop(writer.f32("x", &[1], &[1.0]).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
