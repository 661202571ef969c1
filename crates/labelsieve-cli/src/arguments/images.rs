//! Images on the command line.

use std::path::PathBuf;

use labelsieve_networks::image_files::{ImageColumns, RowFilter};
use labelsieve_networks::images::OnDamage;
use labelsieve_networks::opening::image_input::ImageFiles;

/// Where images come from, for commands that work on images alone.
#[derive(clap::Args, Clone, Debug)]
pub struct ImageArguments {
    /// Images: folders (with metadata.csv, .jsonl or .parquet, or one folder per class), .parquet files with image bytes,
    /// webdataset or img2dataset .tar files, image files, or patterns of these
    #[arg(long, value_name = "SOURCE", required = true, num_args = 1..)]
    images: Vec<PathBuf>,

    /// Image column; in a tar, the extension of the image files [default: image, img, jpg or bytes]
    #[arg(long, value_name = "NAME")]
    image_column: Option<String>,

    /// Id column [default: id, key, uid, image_path or file_name]
    #[arg(long, value_name = "NAME")]
    id_column: Option<String>,

    /// Class column; in a tar, a key of the JSON files or the extension of a text file [default: class or label]
    #[arg(long, value_name = "NAME")]
    label_column: Option<String>,

    /// Use only rows with one of these values, e.g. role=base or split=train,val; repeatable
    #[arg(long, value_name = "COLUMN=VALUE")]
    r#where: Vec<RowFilter>,

    /// Stop at the first unreadable image or damaged file instead of skipping it
    #[arg(long)]
    strict: bool,
}

impl ImageArguments {
    /// The images for a job.
    pub fn files(&self) -> ImageFiles {
        ImageFiles {
            sources: self.images.clone(),
            columns: ImageColumns {
                image: self.image_column.clone(),
                id: self.id_column.clone(),
                label: self.label_column.clone(),
                filters: self.r#where.clone(),
            },
            on_damage: on_damage(self.strict),
        }
    }
}

/// Images for commands that take features or images; ids and labels of either come from columns of the same names.
#[derive(clap::Args, Clone, Debug)]
pub struct ImageChoice {
    /// Images, instead of features: folders (one per class, or with a metadata file), .parquet files with image bytes,
    /// .tar files, image files
    #[arg(long, value_name = "SOURCE", num_args = 1..)]
    pub images: Vec<PathBuf>,

    /// Image column [default: image, img, jpg or bytes]
    #[arg(long, value_name = "NAME", requires = "images")]
    image_column: Option<String>,

    /// Use only rows with this value, e.g. split=test; repeatable
    #[arg(long, value_name = "COLUMN=VALUE", requires = "images")]
    r#where: Vec<RowFilter>,

    /// Stop at the first unreadable image or damaged file instead of skipping it
    #[arg(long, requires = "images")]
    strict: bool,
}

impl ImageChoice {
    /// The images for a job.
    pub fn files(&self, id: Option<&String>, label: Option<&String>) -> ImageFiles {
        ImageFiles {
            sources: self.images.clone(),
            columns: ImageColumns {
                image: self.image_column.clone(),
                id: id.cloned(),
                label: label.cloned(),
                filters: self.r#where.clone(),
            },
            on_damage: on_damage(self.strict),
        }
    }
}

/// The meaning of `--strict`.
pub fn on_damage(strict: bool) -> OnDamage {
    if strict { OnDamage::Stop } else { OnDamage::Skip }
}
