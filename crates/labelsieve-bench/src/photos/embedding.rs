//! Features of all photos by a network: made once, kept in the run.

use std::io::Write;
use std::path::{Path, PathBuf};

use labelsieve_data::images::ImageColumns;
use labelsieve_data::{AtomicFile, DataError};
use labelsieve_pipeline::embed::Embed;
use labelsieve_pipeline::inputs::images::ImageFiles;
use labelsieve_pipeline::{Context, Monitor, Result};
use labelsieve_vision::images::OnDamage;

use super::Photos;
use super::config::{Backbone, PhotoColumns};
use super::photo_set::PhotoSet;

/// The features of a backbone's network: those of an earlier run when network and photos are still the same, else new
/// ones. A killed embedding resumes where it stopped.
pub fn features(
    bench: &Photos,
    backbone: &Backbone,
    columns: &PhotoColumns,
    photos: &PhotoSet,
    monitor: &dyn Monitor,
) -> Result<PathBuf> {
    let network = backbone.network.as_deref().context("a backbone has features or a network")?;
    std::fs::create_dir_all(&bench.output).map_err(DataError::io("write", &bench.output))?;
    let output = bench.output.join(format!("features-{}.parquet", backbone.name));
    let made_from = bench.output.join(format!("features-{}.txt", backbone.name));
    let columns = ImageColumns {
        image: Some(columns.image.clone()),
        id: Some(columns.id.clone()),
        label: Some(columns.class.clone()),
        filters: Vec::new(),
    };
    let images = ImageFiles { sources: photos.files.clone(), columns, on_damage: OnDamage::Skip };
    let embed = Embed::new(network, images, bench.device, &output);
    let files: Vec<&Path> = photos.files.iter().map(PathBuf::as_path).collect();
    let fingerprint = embed.key()?.with_files(&files)?.text(monitor);
    if output.is_file() && std::fs::read_to_string(&made_from).is_ok_and(|earlier| earlier == fingerprint) {
        monitor.detail(&format!("`{}` holds the features of an earlier run", output.display()));
        return Ok(output);
    }
    embed.run(monitor)?;
    let mut file = AtomicFile::create(&made_from)?;
    file.write_all(fingerprint.as_bytes()).map_err(DataError::io("write", &made_from))?;
    file.commit()?;
    Ok(output)
}
