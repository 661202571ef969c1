//! Features of all photos by a network, computed once and kept in the run.

use std::io::Write;
use std::path::{Path, PathBuf};

use labelsieve_files::work::{Monitor, Result};
use labelsieve_files::{AtomicFile, DataError};
use labelsieve_jobs::device::Devices;
use labelsieve_networks::embed::Embed;
use labelsieve_networks::image_files::ImageColumns;
use labelsieve_networks::images::OnDamage;
use labelsieve_networks::opening::image_input::ImageFiles;
use labelsieve_numerics::Device;

use super::config::PhotoColumns;
use super::photo_set::PhotoSet;

/// The images of a set of photos.
pub fn images_of(photos: &PhotoSet, columns: &PhotoColumns) -> ImageFiles {
    let columns = ImageColumns {
        image: Some(columns.image.clone()),
        id: Some(columns.id.clone()),
        label: Some(columns.class.clone()),
        filters: Vec::new(),
    };
    ImageFiles { sources: photos.files.clone(), columns, on_damage: OnDamage::Skip }
}

/// The features of images by `network`, named `name`, in `folder`: those of an earlier run if network and images are unchanged, or new
/// ones. A killed embedding resumes where it stopped.
pub fn features(
    network: &Path,
    name: &str,
    images: ImageFiles,
    device: Device,
    folder: &Path,
    monitor: &dyn Monitor,
) -> Result<PathBuf> {
    std::fs::create_dir_all(folder).map_err(DataError::io("write", folder))?;
    let output = folder.join(format!("features-{name}.parquet"));
    let made_from = folder.join(format!("features-{name}.txt"));
    let files = images.sources.clone();
    let embed = Embed::new(network, images, device, &output);
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let fingerprint = embed.key()?.with_files(&files)?.text(monitor);
    if output.is_file() && std::fs::read_to_string(&made_from).is_ok_and(|earlier| earlier == fingerprint) {
        monitor.detail(&format!("`{}` holds the features of an earlier run", output.display()));
        return Ok(output);
    }
    embed.run(&Devices, monitor)?;
    let mut file = AtomicFile::create(&made_from)?;
    file.write_all(fingerprint.as_bytes()).map_err(DataError::io("write", &made_from))?;
    file.commit()?;
    Ok(output)
}
