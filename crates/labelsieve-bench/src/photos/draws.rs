//! The clean photos of each episode. They are written to the run, so that other programs can measure on the same ones.

use std::io::Write;
use std::path::Path;

use labelsieve::evaluation::draw_clean;
use labelsieve_files::work::{Error, Result};
use labelsieve_files::{AtomicFile, DataError};
use labelsieve_numerics::random::Stream;
use serde_json::json;

use super::config::{CleanRule, Protocol};
use super::photo_set::{ClassPhotos, PhotoSet};

/// Clean photos by episode and novel class; the first k are the clean examples at k shots.
pub struct Draws(Vec<Vec<Vec<usize>>>);

/// The training photos of a class that may be clean examples.
pub fn labelled(class: &ClassPhotos, rule: CleanRule) -> &[usize] {
    &class.train[..rule.first.unwrap_or(usize::MAX).min(class.train.len())]
}

impl Draws {
    pub fn new(photos: &PhotoSet, rule: CleanRule, protocol: &Protocol, seed: u64) -> Result<Draws> {
        let max_shots = protocol.shots.last().copied().unwrap_or(1);
        let sizes: Vec<usize> = photos.novel.iter().map(|class| labelled(class, rule).len()).collect();
        if let Some(short) = sizes.iter().position(|&size| size < max_shots) {
            return Err(Error::input(
                format!(
                    "class `{}` has {} photos to draw clean examples from, too few for {max_shots} shots",
                    photos.novel[short].class, sizes[short]
                ),
                "lower `protocol.shots` or raise `clean.first` in the configuration",
            ));
        }
        let episode = |episode: usize| {
            let drawn = draw_clean(&sizes, max_shots, Stream::new(seed).branch(episode as u64));
            let photo = |(class, places): (&ClassPhotos, Vec<usize>)| {
                places.into_iter().map(|place| labelled(class, rule)[place]).collect()
            };
            photos.novel.iter().zip(drawn).map(photo).collect()
        };
        Ok(Draws((0..protocol.episodes).map(episode).collect()))
    }

    /// The k clean photos of a class in an episode.
    pub fn clean(&self, episode: usize, class: usize, k: usize) -> &[usize] {
        &self.0[episode][class][..k]
    }

    /// `{"classes": [{"class": …, "name": …, "half": "tune" | "report", "clean": [[ids] by episode]}]}`
    pub fn write(&self, photos: &PhotoSet, untuned: bool, path: &Path) -> Result<()> {
        let tune = if untuned { Vec::new() } else { photos.halves().0 };
        let classes: Vec<serde_json::Value> = photos
            .novel
            .iter()
            .enumerate()
            .map(|(c, class)| {
                let ids = |episode: &Vec<Vec<usize>>| -> Vec<&str> {
                    episode[c].iter().map(|&photo| photos.ids[photo].as_str()).collect()
                };
                let clean: Vec<Vec<&str>> = self.0.iter().map(ids).collect();
                let half = if tune.contains(&c) { "tune" } else { "report" };
                json!({ "class": class.class, "name": class.display, "half": half, "clean": clean })
            })
            .collect();
        let mut file = AtomicFile::create(path)?;
        serde_json::to_writer(&mut file, &json!({ "classes": classes }))
            .map_err(std::io::Error::from)
            .and_then(|()| file.write_all(b"\n"))
            .map_err(DataError::io("write", path))?;
        Ok(file.commit()?)
    }
}
