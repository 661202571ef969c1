//! Reading files as bytes, with decompression.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use labelsieve_files::storage::input::{Input, spool};
use labelsieve_files::{DataError, ForeignEncoding, Result, Unread};

/// An open text file or stream. Compression is detected by the first bytes, not by the name.
///
/// Bytes that were read to detect the format can be put back, so that a pipe is read only once.
pub(super) struct TextInput {
    path: PathBuf,
    format: &'static str,
    decoded: Box<dyn Read + Send>,
    /// Decompressed bytes that come before those of `decoded`.
    head: Vec<u8>,
    /// Whether `decoded` is exhausted.
    ended: bool,
    /// The error that ended it early, if any.
    failure: Option<DataError>,
    n_decoded: u64,
    n_consumed: Arc<AtomicU64>,
    len: Option<u64>,
    /// The size of the byte order mark, which is skipped.
    n_mark: u64,
}

impl TextInput {
    pub(super) fn open(path: &Path) -> Result<TextInput> {
        TextInput::new(path, Input::open(path)?)
    }

    /// A plain file, starting at `offset`.
    pub(super) fn open_at(path: &Path, offset: u64) -> Result<TextInput> {
        let mut file = File::open(path).map_err(DataError::io("open", path))?;
        file.seek(SeekFrom::Start(offset)).map_err(DataError::io("read", path))?;
        let n_read = Arc::new(AtomicU64::new(0));
        let file = CountingReader { inner: file, n: n_read.clone() };
        Ok(TextInput::decoding(path, PLAIN, Box::new(file), n_read, None))
    }

    fn new(path: &Path, input: Input) -> Result<TextInput> {
        let len = input.len();
        let n_read = Arc::new(AtomicU64::new(0));
        let mut file = BufReader::with_capacity(1 << 20, CountingReader { inner: input, n: n_read.clone() });
        let start = file.fill_buf().map_err(DataError::io("read", path))?;
        let start: Vec<u8> = start.iter().copied().take(10).collect();
        let format = compression_of(&start);
        check_name(path, format, &start, len)?;
        // For plain text the bytes read are those consumed; a decoder leaves many of them in the buffer.
        if format == PLAIN {
            let mut input = TextInput::decoding(path, format, Box::new(file), n_read, len);
            input.skip_byte_order_mark();
            return Ok(input);
        }
        let n_consumed = Arc::new(AtomicU64::new(0));
        let file = CountingReader { inner: file, n: n_consumed.clone() };
        let decoded: Box<dyn Read + Send> = match format {
            "gzip" => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            "bzip2" => Box::new(bzip2::bufread::MultiBzDecoder::new(file)),
            _ => {
                Box::new(zstd::stream::read::Decoder::with_buffer(file).map_err(DataError::io("read", path))?)
            }
        };
        let mut input = TextInput::decoding(path, format, decoded, n_consumed, len);
        input.skip_byte_order_mark();
        Ok(input)
    }

    fn decoding(
        path: &Path,
        format: &'static str,
        decoded: Box<dyn Read + Send>,
        n_consumed: Arc<AtomicU64>,
        len: Option<u64>,
    ) -> TextInput {
        TextInput {
            path: path.to_path_buf(),
            format,
            decoded,
            head: Vec::new(),
            ended: false,
            failure: None,
            n_decoded: 0,
            n_consumed,
            len,
            n_mark: 0,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The size of the file as stored; unknown for a stream.
    pub(super) fn len(&self) -> Option<u64> {
        self.len
    }

    /// Whether the file is compressed, so that it has to be read from its start.
    pub(super) fn is_compressed(&self) -> bool {
        self.format != PLAIN
    }

    /// The size of the byte order mark that was skipped.
    pub(super) fn n_mark(&self) -> u64 {
        self.n_mark
    }

    /// The number of bytes of the file consumed so far, for progress.
    pub(super) fn n_consumed(&self) -> u64 {
        self.n_consumed.load(Ordering::Relaxed)
    }

    /// Appends bytes to `block` until it has `size` or the input ends; returns whether it has ended. If that was an error,
    /// [`TextInput::take_failure`] returns it.
    pub(super) fn fill(&mut self, block: &mut Vec<u8>, size: usize) -> bool {
        block.append(&mut self.head);
        let start = block.len();
        let wanted = size.saturating_sub(start) as u64;
        if self.ended || wanted == 0 {
            return self.ended;
        }
        let n_read = (&mut self.decoded).take(wanted).read_to_end(block);
        self.n_decoded += (block.len() - start) as u64;
        match n_read {
            Ok(n_read) => self.ended = (n_read as u64) < wanted,
            Err(error) => {
                self.ended = true;
                self.failure = Some(self.broken(error));
            }
        }
        self.ended
    }

    /// Skips bytes up to and including the next line break; returns their number.
    pub(super) fn skip_line(&mut self) -> u64 {
        let mut n_skipped = 0;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let ended = self.fill(&mut bytes, SKIPPED_BYTES);
            let end = memchr::memchr(b'\n', &bytes).map(|at| at + 1);
            n_skipped += end.unwrap_or(bytes.len()) as u64;
            if let Some(end) = end {
                self.put_back(bytes.split_off(end), None);
                return n_skipped;
            }
            if ended {
                return n_skipped;
            }
        }
    }

    /// Takes the error at which reading ended.
    pub(super) fn take_failure(&mut self) -> Option<DataError> {
        self.failure.take()
    }

    /// Undoes reading: `bytes` are read again, followed by the failure.
    pub(super) fn put_back(&mut self, bytes: Vec<u8>, failure: Option<DataError>) {
        self.head.splice(..0, bytes);
        self.failure = failure.or(self.failure.take());
    }

    /// Copies the whole input to a file with random access.
    pub(super) fn into_file(self) -> Result<File> {
        spool(&self.path, &mut self.head.as_slice().chain(self.decoded))
    }

    /// Whether the input starts with `magic`; only before anything is read.
    pub(super) fn starts_with(&self, magic: &[u8; MAX_MAGIC_BYTES]) -> bool {
        self.head.starts_with(magic)
    }

    /// Refuses UTF-16, which cannot be split into lines; `start` are the first bytes.
    pub(super) fn check_encoding(&self, start: &[u8]) -> Result<()> {
        match ForeignEncoding::utf16(start) {
            None => Ok(()),
            Some(encoding) => {
                Err(DataError::Encoding { path: self.path.clone(), place: "start of file".into(), encoding })
            }
        }
    }

    /// A byte order mark is not part of the first name or value.
    fn skip_byte_order_mark(&mut self) {
        let mut start = Vec::new();
        self.fill(&mut start, MAX_MAGIC_BYTES);
        if start.starts_with(b"\xef\xbb\xbf") {
            start.drain(..3);
            self.n_mark = 3;
        }
        self.head = start;
    }

    fn broken(&self, error: std::io::Error) -> DataError {
        if self.format == PLAIN {
            return DataError::io("read", &self.path)(error);
        }
        let format = self.format;
        let n_decoded = self.n_decoded;
        let n_consumed = self.n_consumed();
        let (found, unread) = match (error.kind(), self.len) {
            (std::io::ErrorKind::UnexpectedEof, _) => ("the end of the file".to_string(), Unread::Rest),
            (_, None) => (error.to_string(), Unread::Rest),
            (_, Some(of)) => (error.to_string(), Unread::Bytes { n: of.saturating_sub(n_consumed), of }),
        };
        let message =
            format!("after {n_decoded} decompressed bytes: expected more {format} data, found {found}");
        DataError::Damaged { path: self.path.clone(), message, unread }
    }
}

const PLAIN: &str = "plain text";
/// Bytes per read in search of a line break.
const SKIPPED_BYTES: usize = 1 << 16;
/// The number of bytes that identify a compression.
const MAX_MAGIC_BYTES: usize = 4;

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

/// Refuses plain data with the extension of a compressed file: otherwise every line would be reported as malformed.
fn check_name(path: &Path, format: &'static str, start: &[u8], len: Option<u64>) -> Result<()> {
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
    let message = format!("start of file: expected {promised} data, found {found}");
    let unread = len.filter(|&of| of > 0).map_or(Unread::Rest, |of| Unread::Bytes { n: of, of });
    Err(DataError::Damaged { path: path.to_path_buf(), message, unread })
}

/// Counts the bytes consumed from a reader.
struct CountingReader<R> {
    inner: R,
    n: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.n.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

impl<R: BufRead> BufRead for CountingReader<R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.n.fetch_add(n as u64, Ordering::Relaxed);
        self.inner.consume(n);
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
        let mut input = TextInput::open(&path)?;
        input.fill(&mut text, 1 << 20);
        input.take_failure().map_or(Ok(text), Err)
    }

    #[test]
    fn compression_is_detected_by_the_bytes() {
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
                let end = "data, found the end of the file: the rest is missing";
                assert!(error.ends_with(end), "{cut}: {error}");
            }
        }
    }

    #[test]
    fn damage_is_distinguished_from_truncation() {
        for (name, mut bytes) in [("a.gz", gzip()), ("a.bz2", bzip2())] {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x55;
            let error = read(name, &bytes).unwrap_err().to_string();
            assert!(error.ends_with(&format!("of {} bytes not read", bytes.len())), "{error}");
        }
    }

    #[test]
    fn plain_data_with_the_extension_of_a_compressed_file_is_refused() {
        let error = read("a.gz", b"id,title\n").unwrap_err().to_string();
        assert!(
            error.contains("a.gz`: start of file: expected gzip data, found the bytes [69, 64"),
            "{error}"
        );
        assert!(
            read("a.bz2", b"").unwrap_err().to_string().ends_with("found an empty file: the rest is missing")
        );
    }

    #[test]
    fn bytes_that_were_put_back_are_read_again_without_the_byte_order_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "\u{feff}id,title\n").unwrap();
        let mut input = TextInput::open(&path).unwrap();
        let mut text = Vec::new();
        assert!(!input.fill(&mut text, 4));
        assert_eq!(text, b"id,t");
        input.put_back(std::mem::take(&mut text), None);
        assert!(input.fill(&mut text, 100));
        assert_eq!(text, b"id,title\n");
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
