//! mini-ImageNet in the layouts in which it is distributed: lists of its 64, 16 and 20 classes together with ImageNet's photos, or
//! pickles of downscaled photos.

mod lists;
mod pickle;
mod pickles;

use std::path::{Path, PathBuf};

use labelsieve_files::{DataError, Result};

/// A part of mini-ImageNet, and the role of its classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MiniPart {
    /// 64 classes to learn features from.
    Train,
    /// 16 classes to choose settings on.
    Validation,
    /// 20 classes to report.
    Test,
}

impl MiniPart {
    /// All parts, with the number of classes that each has.
    pub const ALL: [(MiniPart, usize); 3] =
        [(MiniPart::Train, 64), (MiniPart::Validation, 16), (MiniPart::Test, 20)];

    /// Its names in file names.
    fn names(self) -> &'static [&'static str] {
        match self {
            MiniPart::Train => &["train", "train_phase_train"],
            MiniPart::Validation => &["val", "validation"],
            MiniPart::Test => &["test"],
        }
    }

    /// Whether a folder has a list of this part, which needs a folder of photos.
    pub fn has_list(self, folder: &Path) -> bool {
        self.names().iter().any(|name| folder.join(format!("{name}.csv")).is_file())
    }
}

/// A photo of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct MiniPhoto {
    /// The id, the same in every run.
    pub id: String,
    /// Its class, as the files spell it.
    pub class: String,
    /// The photo.
    pub image: MiniImage,
}

/// An image in the form in which the source stores it.
#[derive(Clone, Debug, PartialEq)]
pub enum MiniImage {
    /// An encoded image.
    Encoded(Vec<u8>),
    /// Pixels: row by row, red green blue.
    Pixels {
        /// Height in pixels.
        height: usize,
        /// Width in pixels.
        width: usize,
        /// height × width × 3 bytes.
        rgb: Vec<u8>,
    },
}

/// The location of the parts of mini-ImageNet.
pub struct MiniImageNet {
    folder: PathBuf,
    /// ImageNet's photos, for lists.
    images: Option<PathBuf>,
}

impl MiniImageNet {
    /// A folder with `train.csv`, `val.csv` and `test.csv`, whose photos are in `images`, or with a pickle for each part.
    pub fn open(folder: &Path, images: Option<&Path>) -> MiniImageNet {
        MiniImageNet { folder: folder.to_path_buf(), images: images.map(Path::to_path_buf) }
    }

    /// Passes all photos of a part to `each`, class by class in alphabetical order; returns the file that listed them.
    pub fn photos(&self, part: MiniPart, each: &mut dyn FnMut(MiniPhoto) -> Result<()>) -> Result<PathBuf> {
        for name in part.names() {
            let list = self.folder.join(format!("{name}.csv"));
            if list.is_file() {
                let Some(images) = &self.images else {
                    let place = "photos of the list";
                    return Err(DataError::malformed(&list, place, "a folder of images", "none given"));
                };
                lists::photos(&list, images, each)?;
                return Ok(list);
            }
            let pickles = [
                format!("mini-imagenet-cache-{name}.pkl"),
                format!("miniImageNet_category_split_{name}.pickle"),
            ];
            for pickle in pickles.map(|pickle| self.folder.join(pickle)) {
                if pickle.is_file() {
                    pickles::photos(&pickle, each)?;
                    return Ok(pickle);
                }
            }
        }
        let expected = format!(
            "`{0}.csv`, `mini-imagenet-cache-{0}.pkl` or `miniImageNet_category_split_{0}.pickle`",
            part.names()[0]
        );
        Err(DataError::malformed(&self.folder, "folder", expected, "none of them"))
    }
}

#[cfg(test)]
mod tests;
