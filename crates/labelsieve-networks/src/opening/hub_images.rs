//! The image preprocessing of published networks: `preprocessor_config.json` of `transformers`, and the configurations of timm
//! and OpenCLIP.

use labelsieve_files::work::{Error, Result};
use serde_json::Value;

use crate::images::{Filter, Margins, Processing, ScaledSize};
use crate::transformer::Normalisation;

/// Size, scaling and normalisation of images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Images {
    /// Height and width of the network's input.
    pub size: (usize, usize),
    pub processing: Processing,
    pub normalisation: Normalisation,
}

const HALF: [f64; 3] = [0.5; 3];
const IMAGENET: ([f64; 3], [f64; 3]) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
const OPENAI: ([f64; 3], [f64; 3]) =
    ([0.481_454_66, 0.457_827_5, 0.408_210_73], [0.268_629_54, 0.261_302_58, 0.275_777_11]);

impl Images {
    /// The same for images of another size: scaled in proportion.
    pub fn at(mut self, size: (usize, usize)) -> Images {
        let (height, width) = self.size;
        self.processing.scaled = match self.processing.scaled {
            ScaledSize::To(h, w) => ScaledSize::To((h * size.0 / height).max(1), (w * size.1 / width).max(1)),
            ScaledSize::ShorterSide(side) => {
                let from = height.min(width);
                let to = size.0.max(size.1);
                ScaledSize::ShorterSide((side * to / from).max(1))
            }
        };
        self.size = size;
        self
    }

    /// Reads `preprocessor_config.json`; `native` is the size that the network's positions were learned for.
    pub fn of_transformers(config: &Value, native: (usize, usize)) -> Result<Images> {
        let kind = ["image_processor_type", "feature_extractor_type"].map(|key| config[key].as_str());
        let usual = ProcessorDefaults::of(kind.into_iter().flatten().next().unwrap_or_default());
        let settings = Settings(config);
        if !settings.flag("do_resize", true)? {
            return Err(wrong("do_resize", "true: images of a batch have one size", &config["do_resize"]));
        }
        let scaled = match &config["size"] {
            Value::Null => usual.scaled.unwrap_or(ScaledSize::To(native.0, native.1)),
            size => scaled(size, usual.is_shorter_side)?,
        };
        let crops = settings.flag("do_center_crop", usual.crops)?;
        let size = match (crops, scaled) {
            (true, _) => match &config["crop_size"] {
                Value::Null => usual.crop,
                size => sides("crop_size", size)?,
            },
            (false, ScaledSize::To(height, width)) => (height, width),
            (false, ScaledSize::ShorterSide(_)) => {
                let expected = "true where only the shorter side is given: images of a batch have one size";
                return Err(wrong("do_center_crop", expected, &config["do_center_crop"]));
            }
        };
        let filter = match &config["resample"] {
            Value::Null => usual.filter,
            number => number
                .as_u64()
                .and_then(Filter::of_pillow)
                .ok_or_else(|| wrong("resample", "a filter of Pillow, 0 to 5", number))?,
        };
        let mut normalisation = Normalisation {
            scale: if settings.flag("do_rescale", true)? { 1.0 / 255.0 } else { 1.0 },
            ..Normalisation::default()
        };
        if normalisation.scale < 1.0 {
            normalisation.scale = settings.number("rescale_factor", 1.0 / 255.0)?;
        }
        if settings.flag("do_normalize", true)? {
            normalisation.mean = settings.channels("image_mean", usual.statistics.0)?;
            normalisation.deviation = settings.deviations("image_std", usual.statistics.1)?;
        }
        let processing = Processing { scaled, filter, margins: Margins::SmallerFirst };
        Ok(Images { size, processing, normalisation })
    }

    /// Reads `pretrained_cfg` of timm.
    pub fn of_timm(config: &Value, size: (usize, usize)) -> Result<Images> {
        let settings = Settings(config);
        let share = settings.number("crop_pct", 0.875)?;
        if !(0.1..=1.0).contains(&share) {
            return Err(wrong("crop_pct", "a share in [0.1, 1]", &config["crop_pct"]));
        }
        let before = |side: usize| (side as f64 / share).floor() as usize;
        let scaled = match config["crop_mode"].as_str().unwrap_or("center") {
            "center" if size.0 == size.1 => ScaledSize::ShorterSide(before(size.0)),
            "squash" => ScaledSize::To(before(size.0), before(size.1)),
            mode => return Err(wrong("crop_mode", "center (of squares) or squash", &Value::from(mode))),
        };
        let normalisation = Normalisation {
            mean: settings.channels("mean", IMAGENET.0)?,
            deviation: settings.deviations("std", IMAGENET.1)?,
            ..Normalisation::default()
        };
        let processing = Processing { scaled, filter: settings.filter()?, margins: Margins::HalfToEven };
        Ok(Images { size, processing, normalisation })
    }

    /// Reads `preprocess_cfg` of OpenCLIP.
    pub fn of_open_clip(config: &Value, size: (usize, usize)) -> Result<Images> {
        let settings = Settings(config);
        let scaled = match config["resize_mode"].as_str().unwrap_or("shortest") {
            "shortest" if size.0 == size.1 => ScaledSize::ShorterSide(size.0),
            "squash" => ScaledSize::To(size.0, size.1),
            _ => return Err(wrong("resize_mode", "shortest (of squares) or squash", &config["resize_mode"])),
        };
        let normalisation = Normalisation {
            mean: settings.channels("mean", OPENAI.0)?,
            deviation: settings.deviations("std", OPENAI.1)?,
            ..Normalisation::default()
        };
        let processing = Processing { scaled, filter: settings.filter()?, margins: Margins::HalfToEven };
        Ok(Images { size, processing, normalisation })
    }
}

/// The defaults of an image processor of `transformers`.
struct ProcessorDefaults {
    scaled: Option<ScaledSize>,
    /// Whether a single number for the size means the shorter side.
    is_shorter_side: bool,
    crops: bool,
    crop: (usize, usize),
    filter: Filter,
    statistics: ([f64; 3], [f64; 3]),
}

impl ProcessorDefaults {
    /// By the type of processor, of which there are several spellings: `ViTImageProcessorFast`, `ViTFeatureExtractor`.
    fn of(kind: &str) -> ProcessorDefaults {
        let square = |side| Some(ScaledSize::To(side, side));
        let plain = ProcessorDefaults {
            scaled: square(224),
            is_shorter_side: false,
            crops: false,
            crop: (224, 224),
            filter: Filter::Bilinear,
            statistics: (HALF, HALF),
        };
        match kind {
            _ if kind.starts_with("CLIP") || kind.starts_with("Bit") => ProcessorDefaults {
                scaled: Some(ScaledSize::ShorterSide(224)),
                is_shorter_side: true,
                crops: true,
                filter: Filter::Bicubic,
                statistics: OPENAI,
                ..plain
            },
            _ if kind.starts_with("DeiT") => {
                ProcessorDefaults { scaled: square(256), crops: true, filter: Filter::Bicubic, ..plain }
            }
            _ if kind.starts_with("Siglip2") => ProcessorDefaults { scaled: None, ..plain },
            _ if kind.starts_with("Siglip") => ProcessorDefaults { filter: Filter::Bicubic, ..plain },
            _ if kind.starts_with("DINOv3") => ProcessorDefaults { statistics: IMAGENET, ..plain },
            _ => plain,
        }
    }
}

#[derive(Clone, Copy)]
struct Settings<'a>(&'a Value);

impl Settings<'_> {
    fn flag(self, name: &str, usual: bool) -> Result<bool> {
        match &self.0[name] {
            Value::Null => Ok(usual),
            value => value.as_bool().ok_or_else(|| wrong(name, "true or false", value)),
        }
    }

    fn number(self, name: &str, usual: f64) -> Result<f64> {
        match &self.0[name] {
            Value::Null => Ok(usual),
            value => {
                let number = value.as_f64().filter(|n| n.is_finite() && *n > 0.0);
                number.ok_or_else(|| wrong(name, "a positive number", value))
            }
        }
    }

    /// One number per channel.
    fn channels(self, name: &str, usual: [f64; 3]) -> Result<[f64; 3]> {
        match &self.0[name] {
            Value::Null => Ok(usual),
            value => {
                let numbers: Option<[f64; 3]> = serde_json::from_value(value.clone()).ok();
                numbers.ok_or_else(|| wrong(name, "three numbers", value))
            }
        }
    }

    fn deviations(self, name: &str, usual: [f64; 3]) -> Result<[f64; 3]> {
        let numbers = self.channels(name, usual)?;
        if numbers.iter().all(|n| *n > 0.0) {
            Ok(numbers)
        } else {
            Err(wrong(name, "three positive numbers", &self.0[name]))
        }
    }

    fn filter(self) -> Result<Filter> {
        match self.0["interpolation"].as_str().unwrap_or("bicubic") {
            "bicubic" => Ok(Filter::Bicubic),
            "bilinear" => Ok(Filter::Bilinear),
            "lanczos" => Ok(Filter::Lanczos),
            "nearest" => Ok(Filter::Nearest),
            "box" => Ok(Filter::Box),
            "hamming" => Ok(Filter::Hamming),
            _ => {
                let expected = "bicubic, bilinear, lanczos, nearest, box or hamming";
                Err(wrong("interpolation", expected, &self.0["interpolation"]))
            }
        }
    }
}

fn scaled(size: &Value, is_shorter_side: bool) -> Result<ScaledSize> {
    if let Some(side) = side(size).filter(|_| is_shorter_side).or_else(|| side(&size["shortest_edge"])) {
        return Ok(ScaledSize::ShorterSide(side));
    }
    sides("size", size).map(|(height, width)| ScaledSize::To(height, width))
}

/// `224`, or `{"height": 224, "width": 224}`; a single `shortest_edge` counts for both.
fn sides(name: &str, size: &Value) -> Result<(usize, usize)> {
    let both = side(&size["height"]).zip(side(&size["width"]));
    let one = side(size).or_else(|| side(&size["shortest_edge"])).map(|side| (side, side));
    both.or(one)
        .ok_or_else(|| wrong(name, "a side, `shortest_edge`, or `height` and `width`, up to 4096", size))
}

fn side(value: &Value) -> Option<usize> {
    value.as_u64().filter(|n| (1..=4096).contains(n)).map(|n| n as usize)
}

fn wrong(name: &str, expected: &str, found: &Value) -> Error {
    let found = if found.is_null() { "nothing".to_owned() } else { found.to_string() };
    Error::input(
        format!("`{name}`: expected {expected}, found {found}"),
        "this file defines the preprocessing of images; edit it if it is wrong",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(config: Value) -> Images {
        Images::of_transformers(&config, (384, 384)).unwrap()
    }

    #[test]
    fn published_configurations_mean_what_their_processors_do() {
        let clip = read(json!({
            "crop_size": 224, "do_center_crop": true, "do_normalize": true, "do_resize": true,
            "feature_extractor_type": "CLIPFeatureExtractor", "image_mean": [0.48, 0.45, 0.40],
            "image_std": [0.26, 0.26, 0.27], "resample": 3, "size": 224
        }));
        assert_eq!((clip.size, clip.processing.scaled), ((224, 224), ScaledSize::ShorterSide(224)));
        assert_eq!((clip.processing.filter, clip.normalisation.mean), (Filter::Bicubic, [0.48, 0.45, 0.40]));
        let dinov2 = read(json!({
            "crop_size": {"height": 224, "width": 224}, "do_center_crop": true, "do_rescale": true,
            "image_processor_type": "BitImageProcessor", "resample": 3, "rescale_factor": 0.00392156862745098,
            "size": {"shortest_edge": 256}
        }));
        assert_eq!((dinov2.size, dinov2.processing.scaled), ((224, 224), ScaledSize::ShorterSide(256)));
        let vit = read(json!({ "feature_extractor_type": "ViTFeatureExtractor", "size": 224 }));
        assert_eq!((vit.size, vit.processing.scaled), ((224, 224), ScaledSize::To(224, 224)));
        assert_eq!((vit.processing.filter, vit.normalisation.deviation), (Filter::Bilinear, HALF));
        let flexible =
            read(json!({ "image_processor_type": "Siglip2ImageProcessor", "max_num_patches": 256 }));
        assert_eq!(flexible.size, (384, 384), "a square of its own patches");
        let larger = dinov2.at((448, 448));
        assert_eq!((larger.size, larger.processing.scaled), ((448, 448), ScaledSize::ShorterSide(512)));
    }

    #[test]
    fn timm_and_open_clip_say_it_their_own_way() {
        let timm = Images::of_timm(
            &json!({ "crop_pct": 0.9, "interpolation": "bicubic", "mean": HALF, "std": HALF }),
            (224, 224),
        );
        let timm = timm.unwrap();
        assert_eq!(timm.processing.scaled, ScaledSize::ShorterSide(248));
        assert_eq!(timm.processing.margins, Margins::HalfToEven);
        let wide = |config: Value| Images::of_timm(&config, (224, 448));
        let squash = wide(json!({ "crop_mode": "squash", "crop_pct": 1.0 })).unwrap();
        assert_eq!(squash.processing.scaled, ScaledSize::To(224, 448));
        assert_eq!(
            wide(json!({})).unwrap_err().to_string(),
            "`crop_mode`: expected center (of squares) or squash, found \"center\""
        );
        let squash = Images::of_open_clip(&json!({ "resize_mode": "squash" }), (384, 384)).unwrap();
        assert_eq!(
            (squash.processing.scaled, squash.normalisation.mean),
            (ScaledSize::To(384, 384), OPENAI.0)
        );
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        let message = |config| Images::of_transformers(&config, (224, 224)).unwrap_err().to_string();
        assert_eq!(
            message(json!({ "resample": 9 })),
            "`resample`: expected a filter of Pillow, 0 to 5, found 9"
        );
        assert_eq!(
            message(json!({ "size": {"longest_edge": 8} })),
            "`size`: expected a side, `shortest_edge`, or `height` and `width`, up to 4096, found {\"longest_edge\":8}"
        );
        assert!(
            message(json!({ "size": {"shortest_edge": 8} })).starts_with("`do_center_crop`: expected true")
        );
        assert!(message(json!({ "image_std": [0.5, 0.0, 0.5] })).contains("three positive numbers"));
        assert!(message(json!({ "do_resize": false })).starts_with("`do_resize`: expected true"));
    }
}
