//! The bundled icons, as a set with ground truth.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use labelsieve::Features;
use labelsieve_files::inputs::tables::{load, rows_by_id};
use labelsieve_files::work::{Context, Error, Monitor, Result};
use labelsieve_files::{AtomicFile, DataError, ExampleTable, TableColumns};
use labelsieve_icons::{CLASSES, Icon, IconError, NETWORK, Part, draw, icons};
use labelsieve_matching::text::read_class_file;
use labelsieve_networks::image_files::{ImageColumns, ThumbnailRow, ThumbnailWriter};
use labelsieve_networks::images::OnDamage;
use labelsieve_networks::opening::built_in::BuiltIn;
use labelsieve_networks::opening::image_input::ImageFiles;
use labelsieve_numerics::Device;
use rayon::prelude::*;

use super::{KnownClass, KnownSet};
use crate::photos::embedding;
use crate::photos::features::classifier_of;

/// The network that embeds the icons.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The network of the demo, which was trained on other icons.
    Own,
    /// The default network. Its file does not say which classes it was trained on.
    BuiltIn,
}

impl Network {
    /// Height and width of its training images.
    fn size(self) -> u32 {
        match self {
            Network::Own => 48,
            Network::BuiltIn => 224,
        }
    }

    /// The name of its files in the folder.
    fn name(self) -> &'static str {
        match self {
            Network::Own => "icons",
            Network::BuiltIn => "icons-built-in",
        }
    }
}

/// Draws and embeds the icons in `folder`, or reads the files of an earlier run of this version; `features` by id replace the embedding.
pub fn read(
    folder: &Path,
    network: Network,
    features: Option<&Path>,
    device: Device,
    monitor: &dyn Monitor,
) -> Result<KnownSet> {
    std::fs::create_dir_all(folder).map_err(DataError::io("write", folder))?;
    let icons = icons().map_err(|error| broken("the built-in icons", &error))?;
    let file = match network {
        Network::Own => write_network(folder)?,
        Network::BuiltIn => PathBuf::from(BuiltIn::usual().name),
    };
    let path = match features {
        Some(features) => features.to_path_buf(),
        None => embedding::features(
            &file,
            network.name(),
            pictures(&icons, network, folder, monitor)?,
            device,
            folder,
            monitor,
        )?,
    };
    let table = ExampleTable::open(&path, &TableColumns::default())?;
    let by_id = rows_by_id(&table)?;
    let rows: Vec<usize> = icons
        .iter()
        .map(|icon| by_id.get(&icon.id).with_context(|| format!("`{}` has no features", icon.id)))
        .collect::<Result<_>>()?;
    let rows = load(&table, &rows)?;
    let base = classifier_of(&file, rows.dim())?;
    let base = base.map_or(Ok(Features::empty(rows.dim())), |base| Features::new(base.weight, base.dim))?;
    Ok(KnownSet {
        name: "icons".to_owned(),
        features: Arc::new(rows),
        base: Arc::new(base),
        classes: classes(&icons, folder)?,
        made_from: match (network, features) {
            (Network::Own, None) => Vec::new(), // the icons are part of the program, whose version is in every key
            _ => vec![path],
        },
    })
}

/// The error for an unreadable icon: a user can only reinstall the program.
fn broken(name: &str, error: &IconError) -> Error {
    Error::input(format!("`{name}`: {error}"), "the program is damaged; reinstall it")
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    std::io::Write::write_all(&mut file, bytes).map_err(DataError::io("write", path))?;
    Ok(file.commit()?)
}

fn write_network(folder: &Path) -> Result<PathBuf> {
    let path = folder.join(format!("icons-{}.safetensors", env!("CARGO_PKG_VERSION")));
    if !path.is_file() {
        write(&path, NETWORK)?;
    }
    Ok(path)
}

/// The icons drawn at the size of the network.
fn pictures(icons: &[Icon], network: Network, folder: &Path, monitor: &dyn Monitor) -> Result<ImageFiles> {
    let path = folder.join(format!("{}-{}.parquet", network.name(), env!("CARGO_PKG_VERSION")));
    if !path.is_file() {
        write_pictures(icons, network.size(), &path, monitor)?;
    }
    let columns = ImageColumns {
        image: Some("image".to_owned()),
        id: Some("id".to_owned()),
        label: None,
        filters: Vec::new(),
    };
    Ok(ImageFiles { sources: vec![path], columns, on_damage: OnDamage::Stop })
}

fn write_pictures(icons: &[Icon], size: u32, path: &Path, monitor: &dyn Monitor) -> Result<()> {
    let progress = monitor.progress(icons.len() as u64, "icons");
    progress.set_message("drawing");
    let picture = |icon: &Icon| {
        let image = draw(&icon.svg, size).map_err(|error| broken(&icon.id, &error))?.to_png();
        progress.inc(1);
        Ok(ThumbnailRow { id: icon.id.clone(), image, title: Some(icon.title.clone()) })
    };
    let rows = icons.par_iter().map(picture).collect::<Result<Vec<_>>>()?;
    progress.finish();
    let mut writer = ThumbnailWriter::create(path)?;
    writer.write(&rows)?;
    Ok(writer.finish()?)
}

/// The classes, with the icons of each by their part.
fn classes(icons: &[Icon], folder: &Path) -> Result<Vec<KnownClass>> {
    let list = folder.join("icons-classes.toml");
    write(&list, CLASSES.as_bytes())?;
    let list = read_class_file(&list)?;
    let mut classes: Vec<KnownClass> = list
        .classes()
        .iter()
        .map(|class| KnownClass {
            name: class.id.clone(),
            labelled: Vec::new(),
            candidates: Vec::new(),
            relevant: Vec::new(),
            test: Vec::new(),
        })
        .collect();
    let number: HashMap<String, usize> =
        classes.iter().enumerate().map(|(c, class)| (class.name.clone(), c)).collect();
    for (row, icon) in icons.iter().enumerate() {
        for (name, &relevant) in &icon.truth {
            let unknown = || Error::input(format!("icon `{}` is of unknown class `{name}`", icon.id), "");
            let class = &mut classes[*number.get(name).ok_or_else(unknown)?];
            match icon.part {
                Part::Pool => {
                    class.candidates.push(row);
                    class.relevant.push(relevant);
                }
                Part::Clean if relevant => class.labelled.push(row),
                Part::Test if relevant => class.test.push(row),
                Part::Clean | Part::Test | Part::Base | Part::BaseTest => (),
            }
        }
    }
    Ok(classes)
}
