//! The file beside an ONNX file that says how images are prepared: `preprocessor_config.json` as `transformers` writes it, or
//! one with the same keys under the model's name.

use std::path::{Path, PathBuf};

use labelsieve_data::DataError;
use labelsieve_vision::images::View;
use labelsieve_vision::transformer::Normalisation;
use serde::Deserialize;

use crate::error::{Error, Result};

/// What the file says of images.
#[derive(Debug)]
pub struct Sidecar {
    pub path: PathBuf,
    /// Height and width of what the network gets.
    pub size: Option<(usize, usize)>,
    /// What it sees of an image.
    pub view: Option<View>,
    keys: Keys,
}

#[derive(Debug, Deserialize)]
struct Keys {
    do_center_crop: Option<bool>,
    do_normalize: Option<bool>,
    do_rescale: Option<bool>,
    size: Option<Size>,
    crop_size: Option<Size>,
    image_mean: Option<[f64; 3]>,
    image_std: Option<[f64; 3]>,
    rescale_factor: Option<f64>,
}

/// A number, or both sides by name, or the shorter one.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum Size {
    Square(usize),
    Sides {
        height: usize,
        width: usize,
    },
    Shortest {
        #[serde(rename = "shortest_edge")]
        _shortest_edge: usize,
    },
}

impl Sidecar {
    pub fn read(path: &Path) -> Result<Sidecar> {
        let text = std::fs::read_to_string(path).map_err(DataError::io("read", path))?;
        let keys: Keys = serde_json::from_str(&text).map_err(|error| wrong(path, &error.to_string()))?;
        let sides = |size: Option<Size>| match size? {
            Size::Square(side) => Some((side, side)),
            Size::Sides { height, width } => Some((height, width)),
            Size::Shortest { .. } => None,
        };
        let crop = sides(keys.crop_size).filter(|_| keys.do_center_crop != Some(false));
        let is_shortest = matches!(keys.size, Some(Size::Shortest { .. } | Size::Square(_)));
        let (size, view) = match (crop, sides(keys.size)) {
            (Some(crop), _) => (Some(crop), Some(View::Centre)),
            (None, Some(size)) => (Some(size), Some(View::Whole)),
            (None, None) => (None, is_shortest.then_some(View::Centre)),
        };
        let is_usable = |side: usize| (1..=4096).contains(&side);
        if let Some((height, width)) =
            size.filter(|&(height, width)| !(is_usable(height) && is_usable(width)))
        {
            return Err(wrong(path, &format!("expected sides from 1 to 4096, found {height}×{width}")));
        }
        let deviation = keys.image_std.unwrap_or([1.0; 3]);
        if let Some(found) = deviation.iter().find(|value| !(value.is_finite() && **value > 0.0)) {
            return Err(wrong(path, &format!("image_std: expected positive numbers, found {found}")));
        }
        Ok(Sidecar { path: path.to_path_buf(), size, view, keys })
    }

    /// What is said, and `usual` where nothing is.
    pub fn normalisation(&self, usual: Normalisation) -> Normalisation {
        let keys = &self.keys;
        let (mean, deviation) = match keys.do_normalize {
            Some(false) => ([0.0; 3], [1.0; 3]),
            _ => (keys.image_mean.unwrap_or(usual.mean), keys.image_std.unwrap_or(usual.deviation)),
        };
        let scale = match keys.do_rescale {
            Some(false) => 1.0,
            _ => keys.rescale_factor.unwrap_or(usual.scale),
        };
        Normalisation { scale, mean, deviation }
    }
}

fn wrong(path: &Path, what: &str) -> Error {
    Error::input(
        format!("`{}`: {what}", path.display()),
        "it says how images are prepared, with the keys of a preprocessor_config.json",
    )
}
