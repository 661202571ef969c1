//! Detecting the kind of a file by its contents, for messages about files that could not be read as expected.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::DataError;

/// The extensions of image files.
pub const IMAGE_EXTENSIONS: [&str; 8] = ["jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff"];

/// Whether this is the extension of an image file.
pub fn is_image_name(extension: &str) -> bool {
    IMAGE_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// The kind of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A file without contents.
    Empty,
    /// A folder with images or tars of them.
    ImageFolder,
    /// Any other folder.
    Folder,
    /// JPEG, PNG, WebP, GIF, BMP or TIFF.
    Image,
    /// A tar.
    Tar,
    /// A NumPy array.
    Npy,
    /// An archive of NumPy arrays.
    Npz,
    /// Parquet.
    Parquet,
    /// Tensors in safetensors.
    Safetensors,
    /// Tensors pickled by PyTorch.
    PyTorch,
    /// HDF5, as written by Keras and old TensorFlow.
    Hdf5,
    /// A network in ONNX.
    Onnx,
    /// Usually an error page that was saved as a download.
    Html,
    /// The placeholder of a large file that was not fetched by Git.
    GitLfsPointer,
    /// Gzip-compressed data.
    Gzip,
    /// Lines of text.
    Text,
}

/// The expected kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedFile {
    /// Examples as rows of numbers.
    Features,
    /// Images in any container.
    Images,
    /// A table.
    Parquet,
    /// A network, a classifier, a PCA.
    Tensors,
}

/// The number of bytes that identify a kind.
const HEAD: u64 = 512;
/// Maximum number of entries that are searched for images.
const MAX_ENTRIES: usize = 2000;
/// Maximum depth of the search for images: `split/class/image.jpg`.
const MAX_DEPTH: usize = 3;

impl FileKind {
    /// The kind of the file at `path`; `None` if it is missing or unrecognised, or if reading it might block.
    pub fn of(path: &Path) -> Option<FileKind> {
        let metadata = std::fs::metadata(path).ok()?;
        if metadata.is_dir() {
            let mut left = MAX_ENTRIES;
            let has_images = holds_images(path, MAX_DEPTH, &mut left);
            return Some(if has_images { FileKind::ImageFolder } else { FileKind::Folder });
        }
        if !metadata.is_file() {
            return None;
        }
        let mut head = Vec::new();
        File::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
        FileKind::of_bytes(&head).or_else(|| FileKind::of_name(path)).or_else(|| text(&head))
    }

    fn of_bytes(head: &[u8]) -> Option<FileKind> {
        let starts = |signature: &[u8]| head.starts_with(signature);
        let within =
            |from: usize, signature: &[u8]| head.get(from..).is_some_and(|rest| rest.starts_with(signature));
        let images: [&[u8]; 6] = [b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"BM", b"II*\0", b"MM\0*"];
        let kind = if head.is_empty() {
            FileKind::Empty
        } else if starts(b"version https://git-lfs.github.com/") {
            FileKind::GitLfsPointer
        } else if is_html(head) {
            FileKind::Html
        } else if starts(b"\x93NUMPY") {
            FileKind::Npy
        } else if starts(b"PAR1") {
            FileKind::Parquet
        } else if starts(b"\x89HDF\r\n\x1a\n") {
            FileKind::Hdf5
        } else if starts(b"PK\x03\x04") {
            of_zip(head)?
        } else if starts(b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9") {
            FileKind::PyTorch // before version 1.6
        } else if starts(b"\x1f\x8b") {
            FileKind::Gzip
        } else if within(257, b"ustar") {
            FileKind::Tar
        } else if within(8, b"{\"") {
            FileKind::Safetensors
        } else if (starts(b"RIFF") && within(8, b"WEBP")) || images.into_iter().any(starts) {
            FileKind::Image
        } else {
            return None;
        };
        Some(kind)
    }

    /// Formats without a signature, by their extensions.
    fn of_name(path: &Path) -> Option<FileKind> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("").to_ascii_lowercase();
        match ending.as_str() {
            "pth" | "pt" | "ckpt" | "bin" => Some(FileKind::PyTorch),
            "onnx" => Some(FileKind::Onnx),
            _ => None,
        }
    }

    /// Whether this is the wanted kind, perhaps damaged.
    fn fits(self, wanted: ExpectedFile) -> bool {
        match wanted {
            ExpectedFile::Features => matches!(self, FileKind::Npy | FileKind::Npz | FileKind::Parquet),
            ExpectedFile::Images => matches!(self, FileKind::Image | FileKind::Tar | FileKind::Parquet),
            ExpectedFile::Parquet => self == FileKind::Parquet,
            ExpectedFile::Tensors => self == FileKind::Safetensors,
        }
    }
}

impl DataError {
    /// For `map_err`: replaces the error by [`DataError::WrongKind`] if `path` is something other than what was wanted.
    pub fn unless_other_kind(path: &Path, wanted: ExpectedFile) -> impl FnOnce(DataError) -> DataError {
        let path = path.to_path_buf();
        move |error| {
            let refused = matches!(error, DataError::Undecodable { .. } | DataError::Malformed { .. });
            match FileKind::of(&path).filter(|found| refused && !found.fits(wanted)) {
                Some(found) => DataError::WrongKind { path, wanted, found },
                None => error,
            }
        }
    }
}

/// NumPy and PyTorch both write zips; the name of the first member distinguishes them.
fn of_zip(head: &[u8]) -> Option<FileKind> {
    let length = usize::from(u16::from_le_bytes(*head.get(26..)?.first_chunk()?));
    let name = head.get(30..30 + length)?;
    if name.ends_with(b".npy") {
        Some(FileKind::Npz)
    } else if name.ends_with(b"/data.pkl") || name.ends_with(b"/.format_version") {
        Some(FileKind::PyTorch)
    } else {
        None
    }
}

fn is_html(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start().to_ascii_lowercase();
    [&b"<!doctype html"[..], b"<html", b"<head"].into_iter().any(|start| text.starts_with(start))
}

fn text(head: &[u8]) -> Option<FileKind> {
    let is_text = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(), // cut within a character
    };
    (is_text && !head.contains(&0)).then_some(FileKind::Text)
}

fn holds_images(folder: &Path, depth: usize, left: &mut usize) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let mut below = Vec::new();
    for entry in entries.flatten() {
        let Some(rest) = left.checked_sub(1) else { return false };
        *left = rest;
        let path = entry.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder {
            below.push(path);
        } else if is_image_name(ending) || ending.eq_ignore_ascii_case("tar") {
            return true;
        }
    }
    depth > 1 && below.iter().any(|folder| holds_images(folder, depth - 1, left))
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Empty => "an empty file",
            FileKind::ImageFolder => "a folder of images",
            FileKind::Folder => "a folder without `img_emb`",
            FileKind::Image => "an image",
            FileKind::Tar => "a tar archive",
            FileKind::Npy => "a NumPy array",
            FileKind::Npz => "a NumPy archive",
            FileKind::Parquet => "a Parquet file",
            FileKind::Safetensors => "a safetensors file",
            FileKind::PyTorch => "a PyTorch file",
            FileKind::Hdf5 => "an HDF5 file",
            FileKind::Onnx => "an ONNX file",
            FileKind::Html => "a web page",
            FileKind::GitLfsPointer => "a Git LFS pointer",
            FileKind::Gzip => "a gzip file",
            FileKind::Text => "a text file",
        })
    }
}

impl fmt::Display for ExpectedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExpectedFile::Features => "features (.npz, .npy, .parquet or a clip-retrieval folder)",
            ExpectedFile::Images => {
                return write!(
                    f,
                    "images (a folder, .parquet, .tar, or an image: {})",
                    IMAGE_EXTENSIONS.join(", ")
                );
            }
            ExpectedFile::Parquet => "a Parquet file",
            ExpectedFile::Tensors => "a safetensors file",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, bytes: &[u8], kind: Option<FileKind>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(FileKind::of(&path), kind, "{name}");
    }

    #[test]
    fn the_first_bytes_tell_more_than_the_name() {
        check("a.parquet", b"", Some(FileKind::Empty));
        check("a.parquet", b"\n<!DOCTYPE HTML><html>", Some(FileKind::Html));
        check(
            "a.npz",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
            Some(FileKind::GitLfsPointer),
        );
        check("a.npz", b"\x89PNG\r\n\x1a\n\0\0", Some(FileKind::Image));
        check("a.txt", b"\x93NUMPY\x01\0", Some(FileKind::Npy));
        check("a.txt", b"id,title\n", Some(FileKind::Text));
        check("a.txt", &[7, 0, 9], None);
        check("a.onnx", &[8, 7, 18, 0], Some(FileKind::Onnx));
        check("a.pth", b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20", Some(FileKind::PyTorch));
    }

    #[test]
    fn zips_of_numpy_and_pytorch_are_told_apart() {
        for (member, kind) in [("x.npy", FileKind::Npz), ("resnet/data.pkl", FileKind::PyTorch)] {
            let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
            archive.start_file(member, zip::write::SimpleFileOptions::default()).unwrap();
            check("a", archive.finish().unwrap().get_ref(), Some(kind));
        }
    }

    #[test]
    fn a_folder_with_images_somewhere_below_is_one_of_images() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(FileKind::of(folder.path()), Some(FileKind::Folder));
        std::fs::create_dir_all(folder.path().join("train/owl")).unwrap();
        std::fs::write(folder.path().join("train/owl/1.JPG"), b"").unwrap();
        assert_eq!(FileKind::of(folder.path()), Some(FileKind::ImageFolder));
        assert_eq!(FileKind::of(&folder.path().join("none")), None);
    }
}
