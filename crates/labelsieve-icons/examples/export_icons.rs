//! `export_icons SIZE FOLDER`: draws the sample as folders of PNG files, the layout that `labelsieve pretrain` and
//! `labelsieve embed` read:
//!
//! ```text
//! FOLDER/base/train/umbrella/mdi_umbrella.png      FOLDER/base/test/…
//! FOLDER/clean/apple/….png    FOLDER/test/apple/….png    FOLDER/pool/….png
//! ```
//!
//! An id `set:name` becomes the file name `set_name.png`, since a colon cannot stand in file names everywhere.

use std::error::Error;
use std::path::{Path, PathBuf};

use labelsieve_icons::{Icon, Part, draw, icons, read_icons};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [size, folder] = &arguments[..] else {
        return Err("expected SIZE FOLDER".into());
    };
    let size: u32 = size.parse()?;
    let folder: &Path = folder.as_ref();
    let base = read_icons(include_bytes!("../data/base.jsonl.bz2"))?;
    for icon in icons()?.iter().chain(&base) {
        let target = folder.join(place(icon));
        std::fs::create_dir_all(&target)?;
        let file = target.join(format!("{}.png", icon.id.replace(':', "_")));
        std::fs::write(file, draw(&icon.svg, size)?.to_png())?;
    }
    Ok(())
}

fn place(icon: &Icon) -> PathBuf {
    let part = match icon.part {
        Part::Base => "base/train",
        Part::BaseTest => "base/test",
        Part::Clean => "clean",
        Part::Test => "test",
        Part::Pool => "pool",
    };
    Path::new(part).join(icon.class.as_deref().unwrap_or_default())
}
