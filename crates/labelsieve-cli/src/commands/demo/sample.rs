//! The icons of the demo, drawn and written as a user's folders would be.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use labelsieve_files::work::Monitor;
use labelsieve_files::{DataError, TruthRow, TruthWriter, write_csv};
use labelsieve_icons::{ATTRIBUTION, CLASSES, Icon, NETWORK, Part, draw, icons};
use labelsieve_matching::text::read_class_file;
use labelsieve_networks::image_files::{ThumbnailRow, ThumbnailWriter};
use rayon::prelude::*;

use super::folder::Folder;
use crate::printer::Printer;

/// Height and width that the network was trained on.
const SIZE: u32 = 48;

/// The icons that the demo uses.
pub struct Sample {
    icons: Vec<(Icon, Vec<u8>)>,
    /// The display names of the classes.
    pub display_names: BTreeMap<String, String>,
}

impl Sample {
    /// Draws the icons and writes them: `images/clean/CLASS`, `images/test/CLASS`, and `images/pool` with a table of captions.
    pub fn write(folder: &Folder, clean_examples: usize, printer: &Printer) -> Result<Sample> {
        for name in ["images/clean", "images/test", "images/pool"] {
            let path = folder.path(name);
            let _ = fs::remove_dir_all(&path); // what an earlier demo with other settings drew
            fs::create_dir_all(&path).map_err(DataError::io("write", &path))?;
        }
        for (name, contents) in [
            ("classes.toml", CLASSES.as_bytes()),
            ("ATTRIBUTION.md", ATTRIBUTION.as_bytes()),
            ("network.safetensors", NETWORK),
        ] {
            let path = folder.path(name);
            fs::write(&path, contents).map_err(DataError::io("write", &path))?;
        }
        let chosen = choose(icons()?, clean_examples);
        let progress = printer.progress(chosen.len() as u64, "icons");
        progress.set_message("drawing");
        let icons = chosen
            .into_par_iter()
            .map(|icon| {
                let png =
                    draw(&icon.svg, SIZE).with_context(|| format!("cannot draw `{}`", icon.id))?.to_png();
                let path = folder.path(&place(&icon));
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent).map_err(DataError::io("write", parent))?;
                }
                fs::write(&path, &png).map_err(DataError::io("write", &path))?;
                progress.inc(1);
                Ok((icon, png))
            })
            .collect::<Result<Vec<_>>>()?;
        progress.finish();
        let classes = read_class_file(folder.path("classes.toml"))?;
        let display_names =
            classes.classes().iter().map(|class| (class.id.clone(), class.display_name.clone())).collect();
        let sample = Sample { icons, display_names };
        sample.write_tables(folder)?;
        Ok(sample)
    }

    fn write_tables(&self, folder: &Folder) -> Result<()> {
        let pool: Vec<(String, &str)> =
            self.of(Part::Pool).map(|icon| (file_name(icon), icon.title.as_str())).collect();
        let rows = pool.iter().map(|(file, title)| [file.as_str(), title]);
        write_csv(folder.path("images/pool/metadata.csv"), ["file_name", "text"], rows)?;
        let truth: Vec<TruthRow> = self
            .of(Part::Pool)
            .flat_map(|icon| {
                let row = |(class, relevant): (&String, &bool)| TruthRow {
                    id: file_name(icon),
                    class: class.clone(),
                    relevant: *relevant,
                };
                icon.truth.iter().map(row).collect::<Vec<_>>()
            })
            .collect();
        let mut writer = TruthWriter::create(folder.path("truth.parquet"))?;
        writer.write(&truth)?;
        Ok(writer.finish()?)
    }

    /// Pictures and titles for the report.
    pub fn write_thumbnails(&self, path: &Path) -> Result<()> {
        let mut writer = ThumbnailWriter::create(path)?;
        for (icon, png) in self.icons.iter().filter(|(icon, _)| icon.part != Part::Test) {
            let title = Some(icon.title.clone());
            writer.write(&[ThumbnailRow { id: id(icon), image: png.clone(), title }])?;
        }
        Ok(writer.finish()?)
    }

    /// How many of what.
    pub fn summary(&self) -> String {
        let count = |part| self.of(part).count();
        format!(
            "{} words, {} clean examples, {} candidates, {} icons held out to test on.",
            self.display_names.len(),
            count(Part::Clean),
            count(Part::Pool),
            count(Part::Test)
        )
    }

    /// Whether a candidate shows the class, by file name and class.
    pub fn truth(&self) -> HashMap<(String, &str), bool> {
        let of = |icon: &'_ Icon| file_name(icon);
        self.icons
            .iter()
            .flat_map(|(icon, _)| {
                icon.truth.iter().map(move |(class, &relevant)| ((of(icon), class.as_str()), relevant))
            })
            .collect()
    }

    fn of(&self, part: Part) -> impl Iterator<Item = &Icon> {
        self.icons.iter().map(|(icon, _)| icon).filter(move |icon| icon.part == part)
    }
}

/// All icons of the pool and the test, and the first clean ones of each class.
fn choose(icons: Vec<Icon>, clean_examples: usize) -> Vec<Icon> {
    let mut taken: HashMap<Option<String>, usize> = HashMap::new();
    icons
        .into_iter()
        .filter(|icon| {
            if icon.part != Part::Clean {
                return true;
            }
            let taken = taken.entry(icon.class.clone()).or_default();
            *taken += 1;
            *taken <= clean_examples
        })
        .collect()
}

/// A colon cannot stand in file names everywhere.
fn file_name(icon: &Icon) -> String {
    format!("{}.png", icon.id.replace(':', "_"))
}

/// The id that `embed` gives it: its path below the folder.
fn id(icon: &Icon) -> String {
    match (&icon.class, icon.part) {
        (Some(class), Part::Clean | Part::Test) => format!("{class}/{}", file_name(icon)),
        _ => file_name(icon),
    }
}

/// Its place in the folder of the demo.
fn place(icon: &Icon) -> String {
    let part = match icon.part {
        Part::Clean => "clean",
        Part::Test => "test",
        Part::Pool | Part::Base | Part::BaseTest => "pool",
    };
    format!("images/{part}/{}", id(icon))
}
