//! Files as bytes, decompressed on the way when they are compressed.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{DataError, Result};

/// An open text file. Whether it is compressed is told from its first bytes, since names lie.
pub(super) struct TextInput {
    path: PathBuf,
    format: &'static str,
    decoded: Box<dyn Read + Send>,
    n_decoded: u64,
    n_consumed: Arc<AtomicU64>,
}

impl TextInput {
    pub(super) fn open(path: &Path) -> Result<TextInput> {
        let file = File::open(path).map_err(DataError::io("open", path))?;
        if file.metadata().map_err(DataError::io("open", path))?.is_dir() {
            return Err(DataError::malformed(path, "input", "a file", "a folder"));
        }
        let n_consumed = Arc::new(AtomicU64::new(0));
        let mut file = BufReader::with_capacity(1 << 20, Counted { file, n_read: n_consumed.clone() });
        let start = peek(&mut file, path)?;
        let format = compression_of(&start);
        check_name(path, format, &start)?;
        let decoded: Box<dyn Read + Send> = match format {
            "gzip" => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            "bzip2" => Box::new(bzip2::bufread::MultiBzDecoder::new(file)),
            "zstd" => {
                Box::new(zstd::stream::read::Decoder::with_buffer(file).map_err(DataError::io("read", path))?)
            }
            _ => Box::new(file),
        };
        Ok(TextInput { path: path.to_path_buf(), format, decoded, n_decoded: 0, n_consumed })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes taken from the file itself so far: how far along the work is.
    pub(super) fn n_consumed(&self) -> u64 {
        self.n_consumed.load(Ordering::Relaxed)
    }

    /// Appends bytes to `block` until it holds `size` or the input ends; returns whether it ended.
    pub(super) fn fill(&mut self, block: &mut Vec<u8>, size: usize) -> Result<bool> {
        let start = block.len();
        let wanted = size.saturating_sub(start) as u64;
        let n_read = (&mut self.decoded).take(wanted).read_to_end(block);
        self.n_decoded += (block.len() - start) as u64;
        match n_read {
            Ok(n_read) => Ok((n_read as u64) < wanted),
            Err(error) => Err(self.broken(error)),
        }
    }

    fn broken(&self, error: std::io::Error) -> DataError {
        if self.format == PLAIN {
            return DataError::io("read", &self.path)(error);
        }
        let place = format!("after {} decompressed bytes", self.n_decoded);
        let found = match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "the end of the file".to_string(),
            _ => error.to_string(),
        };
        DataError::malformed(&self.path, place, format!("more {} data", self.format), found)
    }
}

const PLAIN: &str = "plain text";

/// The first bytes of the file, which stay in the buffer.
fn peek(file: &mut BufReader<Counted>, path: &Path) -> Result<Vec<u8>> {
    use std::io::BufRead;
    Ok(file.fill_buf().map_err(DataError::io("read", path))?.iter().copied().take(10).collect())
}

fn compression_of(start: &[u8]) -> &'static str {
    match start {
        [0x1f, 0x8b, ..] => "gzip",
        // The digit is the block size; six fixed bytes follow, of a block or of an empty file's end.
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..] | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, ..] => {
            "bzip2"
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
        _ => PLAIN,
    }
}

/// A name that promises compression must keep the promise: otherwise every line would be reported as malformed.
fn check_name(path: &Path, format: &'static str, start: &[u8]) -> Result<()> {
    let promised = match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => "gzip",
        Some("bz2") => "bzip2",
        Some("zst") => "zstd",
        _ => return Ok(()),
    };
    if format != PLAIN {
        return Ok(());
    }
    let found =
        if start.is_empty() { "an empty file".to_string() } else { format!("the bytes {start:02x?}") };
    Err(DataError::malformed(path, "start of file", format!("{promised} data"), found))
}

struct Counted {
    file: File,
    n_read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.n_read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TEXT: &[u8] = b"a caption that repeats, a caption that repeats, a caption that repeats\n";

    fn gzip() -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(TEXT).unwrap();
        encoder.finish().unwrap()
    }

    fn bzip2() -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
        encoder.write_all(TEXT).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd() -> Vec<u8> {
        zstd::encode_all(TEXT, 3).unwrap()
    }

    fn read(name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let mut text = Vec::new();
        TextInput::open(&path)?.fill(&mut text, 1 << 20)?;
        Ok(text)
    }

    #[test]
    fn compression_is_told_from_the_bytes() {
        for bytes in [TEXT.to_vec(), gzip(), bzip2(), zstd()] {
            assert_eq!(read("captions", &bytes).unwrap(), TEXT);
        }
        assert_eq!(read("empty.csv", b"").unwrap(), b"");
    }

    #[test]
    fn files_of_several_parts_are_read_to_the_end() {
        for bytes in [gzip(), bzip2(), zstd()] {
            assert_eq!(read("captions", &bytes.repeat(2)).unwrap(), TEXT.repeat(2));
        }
    }

    #[test]
    fn a_truncated_file_is_named_with_the_place() {
        for (name, bytes) in [("a.gz", gzip()), ("a.bz2", bzip2()), ("a.zst", zstd())] {
            for cut in [bytes.len() - 1, bytes.len() - 4, bytes.len() / 2, 12] {
                let error = read(name, &bytes[..cut]).unwrap_err().to_string();
                assert!(error.contains(&format!("{name}`: after ")), "{cut}: {error}");
                assert!(error.ends_with("data, found the end of the file"), "{cut}: {error}");
            }
        }
    }

    #[test]
    fn a_damaged_file_is_no_shorter_file() {
        for (name, mut bytes) in [("a.gz", gzip()), ("a.bz2", bzip2())] {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x55;
            assert!(read(name, &bytes).is_err(), "{name}");
        }
    }

    #[test]
    fn a_name_that_promises_compression_must_keep_it() {
        let error = read("a.gz", b"id,title\n").unwrap_err().to_string();
        assert!(
            error.contains("a.gz`: start of file: expected gzip data, found the bytes [69, 64"),
            "{error}"
        );
        assert!(read("a.bz2", b"").unwrap_err().to_string().ends_with("found an empty file"));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            start in proptest::sample::select(vec![gzip(), bzip2(), zstd(), vec![]]),
            keep in 0usize..20,
            bytes: Vec<u8>,
        ) {
            let _ = read("captions", &[&start[..keep.min(start.len())], &bytes].concat());
        }
    }
}
