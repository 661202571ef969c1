//! Features of all photos by a network: made once, kept in the run.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use labelsieve_data::{AtomicFile, DataError};

use super::BenchPhotos;
use super::config::{Backbone, PhotoColumns};
use super::photos::Photos;
use crate::commands::embed::Embed;
use crate::image_inputs::{DamageArguments, ImageArguments};
use crate::printer::Printer;

/// The features of a backbone's network: those of an earlier run when network and photos are still the same, else new
/// ones. A killed embedding goes on where it stopped.
pub fn features(
    bench: &BenchPhotos,
    backbone: &Backbone,
    columns: &PhotoColumns,
    photos: &Photos,
    printer: &Printer,
) -> Result<PathBuf> {
    let network = backbone.network.as_deref().context("a backbone has features or a network")?;
    std::fs::create_dir_all(&bench.output).map_err(DataError::io("write", &bench.output))?;
    let output = bench.output.join(format!("features-{}.parquet", backbone.name));
    let made_from = bench.output.join(format!("features-{}.txt", backbone.name));
    let images = ImageArguments {
        images: photos.files.clone(),
        image_column: Some(columns.image.clone()),
        id_column: Some(columns.id.clone()),
        label_column: Some(columns.class.clone()),
        filters: Vec::new(),
        damage: DamageArguments::default(),
    };
    let embed = Embed::with_defaults(network, images, bench.device.clone(), &output);
    let files: Vec<&Path> = photos.files.iter().map(PathBuf::as_path).collect();
    let fingerprint = embed.key()?.with_files(&files)?.text(printer);
    if output.is_file() && std::fs::read_to_string(&made_from).is_ok_and(|earlier| earlier == fingerprint) {
        printer.detail(&format!("`{}` holds the features of an earlier run", output.display()));
        return Ok(output);
    }
    embed.run(printer)?;
    let mut file = AtomicFile::create(&made_from)?;
    file.write_all(fingerprint.as_bytes()).map_err(DataError::io("write", &made_from))?;
    file.commit()?;
    Ok(output)
}
