//! Opens an ONNX file as an embedder. Image preprocessing comes from the file itself, the file beside it, and options.

use std::io::Read;
use std::path::{Path, PathBuf};

use labelsieve_files::DataError;
use labelsieve_files::work::{Context, Error, Monitor, Result, Words, option, words};
use labelsieve_numerics::Device;
use serde_json::json;

use super::{OnnxOptions, sidecar_of, weights_beside};
use crate::images::View;
use crate::onnx_runtime::{Element, Error as OnnxError, Input, Layout, Model};
use crate::opening::embedder::OpenedEmbedder;
use crate::opening::hub_folder::read_json;
use crate::opening::hub_images::Images;
use crate::opening::network_fingerprint::Fingerprint;
use crate::transformer::Normalisation;

/// ImageNet's, which most networks for photos are trained with.
const MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const DEVIATION: [f64; 3] = [0.229, 0.224, 0.225];

/// Opens an ONNX file on the CPU.
pub fn open(
    path: &Path,
    image_size: Option<(usize, usize)>,
    options: &OnnxOptions,
    device: Device,
    monitor: &dyn Monitor,
) -> Result<OpenedEmbedder> {
    if !matches!(device, Device::Auto | Device::Cpu) {
        return Err(Error::input(
            words![
                format!("`{}`: ONNX files run on the CPU, found ", path.display()),
                option("device").set_to(device),
            ],
            words!["leave ", option("device"), " out, or pass ", option("device").set_to("cpu")],
        ));
    }
    std::fs::metadata(path).map_err(DataError::io("open", path))?;
    let sidecar = Sidecar::beside(path)?;
    let model = Model::open(path).map_err(explained)?;
    let input = model.input().clone();
    let size = image_size_of(path, &input, sidecar.as_ref(), image_size)?;
    let view = match &sidecar {
        Some(Sidecar { images, has_size: true, .. }) => View::Processing(images.at(size).processing),
        _ => View::for_images(size.0, size.1),
    };
    let normalisation = normalisation(path, &input, sidecar.as_ref(), options)?;
    tell(path, &input, sidecar.as_ref(), options, monitor);
    let embedder = model.embedder(size, normalisation, options.output.as_deref()).map_err(explained)?;
    let looks = json!({
        "view": view, "size": size, "output": embedder.output(),
        "rescale": normalisation.scale, "mean": normalisation.mean, "deviation": normalisation.deviation,
    });
    let mut fingerprint = Fingerprint::new("onnx");
    fingerprint.add(looks.to_string().as_bytes());
    add_file(&mut fingerprint, path)?;
    weights_beside(path).iter().try_for_each(|weights| add_file(&mut fingerprint, weights))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(OpenedEmbedder {
        description: json!({ "architecture": "onnx", "onnx": looks }),
        embedder: Box::new(embedder),
        size,
        view,
        centre: None,
        pca: None,
        fingerprint,
        name,
        device: "cpu",
    })
}

/// The image preprocessing in the file beside a model, in the format of preprocessor_config.json.
struct Sidecar {
    path: PathBuf,
    images: Images,
    /// Whether it has a size; otherwise only its normalisation counts.
    has_size: bool,
    has_statistics: bool,
}

impl Sidecar {
    fn beside(model: &Path) -> Result<Option<Sidecar>> {
        let Some(path) = sidecar_of(model) else { return Ok(None) };
        let config = read_json(&path)?;
        let images = Images::of_transformers(&config, (224, 224));
        let images = images.with_context(|| format!("`{}`", path.display()))?;
        let has = |key: &str| !config[key].is_null();
        let has_size = has("size") || has("crop_size");
        let has_statistics = has("image_mean") || has("image_std") || config["do_normalize"] == false;
        Ok(Some(Sidecar { path, images, has_size, has_statistics }))
    }

    fn size(&self) -> Option<(usize, usize)> {
        self.has_size.then_some(self.images.size)
    }
}

/// The size in the model; else the requested one; else that of the file beside it.
fn image_size_of(
    path: &Path,
    input: &Input,
    sidecar: Option<&Sidecar>,
    asked: Option<(usize, usize)>,
) -> Result<(usize, usize)> {
    let (wanted, origin) = match (asked, sidecar) {
        (Some(size), _) => (Some(size), Words::from(option("image_size"))),
        (None, Some(sidecar)) => (sidecar.size(), Words::from(format!("`{}`", sidecar.path.display()))),
        (None, None) => (None, Words::default()),
    };
    match (input.height, input.width, wanted) {
        (height, width, Some(wanted)) => {
            let fits =
                height.is_none_or(|height| height == wanted.0) && width.is_none_or(|width| width == wanted.1);
            let side = |side: Option<usize>| side.map_or_else(|| "?".to_owned(), |side| side.to_string());
            if fits {
                return Ok(wanted);
            }
            Err(Error::input(
                words![
                    format!("`{}` takes images of {}×{}, but ", path.display(), side(height), side(width)),
                    origin,
                    format!(" says {}×{}", wanted.0, wanted.1),
                ],
                words![
                    "leave ",
                    option("image_size"),
                    " out, and correct the file beside the model if it is wrong"
                ],
            ))
        }
        (Some(height), Some(width), None) => Ok((height, width)),
        _ => Err(Error::input(
            format!("`{}` does not fix the size of its images", path.display()),
            words![
                "set it, e.g. with ",
                option("image_size").set_to(224),
                format!(", or in `{}`", path.with_extension("json").display()),
            ],
        )),
    }
}

fn normalisation(
    path: &Path,
    input: &Input,
    sidecar: Option<&Sidecar>,
    options: &OnnxOptions,
) -> Result<Normalisation> {
    let is_given = options.mean.is_some() || options.deviation.is_some();
    match (input.element, is_given) {
        (Element::U8, true) => {
            return Err(Error::input(
                format!("`{}` takes pixels as bytes and normalises them itself", path.display()),
                words!["leave out ", option("image_mean"), " and ", option("image_std")],
            ));
        }
        (Element::U8, false) => return Ok(Normalisation { scale: 1.0, ..Normalisation::default() }),
        (Element::F32 | Element::F16, _) => (),
    }
    let said = sidecar.filter(|sidecar| sidecar.has_statistics).map(|sidecar| sidecar.images.normalisation);
    let scale = sidecar.map_or(Normalisation::default().scale, |sidecar| sidecar.images.normalisation.scale);
    let assumed = Normalisation { scale, mean: MEAN, deviation: DEVIATION };
    Ok(if is_given { overridden(said, options) } else { said.unwrap_or(assumed) })
}

/// Options refer to pixels in [0, 1]; the statistics of the file beside the model are converted to that scale.
fn overridden(said: Option<Normalisation>, options: &OnnxOptions) -> Normalisation {
    let usual = Normalisation { mean: MEAN, deviation: DEVIATION, ..Normalisation::default() };
    let said = said.map_or(usual, |said| {
        let to_unit = |values: [f64; 3]| values.map(|value| value / (said.scale * 255.0));
        Normalisation { mean: to_unit(said.mean), deviation: to_unit(said.deviation), ..usual }
    });
    Normalisation {
        mean: options.mean.unwrap_or(said.mean),
        deviation: options.deviation.unwrap_or(said.deviation),
        ..usual
    }
}

/// Reports what was assumed about the images.
fn tell(path: &Path, input: &Input, sidecar: Option<&Sidecar>, options: &OnnxOptions, monitor: &dyn Monitor) {
    let layout = match input.layout {
        Layout::Nchw => "N×3×H×W",
        Layout::Nhwc => "N×H×W×3",
    };
    monitor.detail(&format!("input `{}` of `{}`: {layout}", input.name, path.display()));
    if let Some(sidecar) = sidecar {
        monitor.detail(&format!("preparing images as in `{}`", sidecar.path.display()));
    }
    let is_given = options.mean.is_some() && options.deviation.is_some();
    if input.element != Element::U8 && !is_given && !sidecar.is_some_and(|sidecar| sidecar.has_statistics) {
        monitor.warning(&format!(
            "`{}` does not say how pixels are normalised: using ImageNet's mean and standard deviation",
            path.display()
        ));
        monitor.hint(&words!["set them with ", option("image_mean"), " and ", option("image_std")]);
    }
}

fn add_file(fingerprint: &mut Fingerprint, path: &Path) -> Result<()> {
    let mut file = std::fs::File::open(path).map_err(DataError::io("open", path))?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(DataError::io("read", path))? {
            0 => return Ok(()),
            n => fingerprint.add(&buffer[..n]),
        }
    }
}

/// Adds a hint to the error.
fn explained(error: OnnxError) -> Error {
    let hint = match &error {
        OnnxError::NoLibrary { .. } => {
            words!["install it with `pip install onnxruntime`, or set ORT_DYLIB_PATH to its library"]
        }
        OnnxError::Library { .. } => {
            words!["upgrade it with `pip install -U onnxruntime`, or set ORT_DYLIB_PATH to another library"]
        }
        OnnxError::Model { .. } => words!["check that the file is complete and takes images of this size"],
        OnnxError::Shape { what, .. } if what.starts_with("output") => words![
            "export the network with its pooling, so that an output has one row per image; choose among several outputs with ",
            option("onnx_output"),
        ],
        OnnxError::Shape { .. } => {
            words!["export the image tower alone: one input, a batch of colour images"]
        }
        OnnxError::WhichOutput { .. } | OnnxError::NoSuchOutput { .. } => {
            words!["choose one with ", option("onnx_output").set_to("NAME")]
        }
    };
    Error::input(error.to_string(), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_about_pixels_from_0_to_1() {
        let given = OnnxOptions { mean: Some([0.5; 3]), ..OnnxOptions::default() };
        let usual = overridden(None, &given);
        assert_eq!((usual.scale, usual.mean, usual.deviation), (1.0 / 255.0, [0.5; 3], DEVIATION));
        // `do_rescale: false`, with statistics of pixels from 0 to 255.
        let bytes = Normalisation { scale: 1.0, mean: [102.0; 3], deviation: [51.0; 3] };
        let changed = overridden(Some(bytes), &given);
        assert_eq!((changed.scale, changed.mean, changed.deviation), (1.0 / 255.0, [0.5; 3], [0.2; 3]));
        let given = OnnxOptions { deviation: Some([0.5; 3]), ..OnnxOptions::default() };
        let changed = overridden(Some(bytes), &given);
        assert_eq!((changed.scale, changed.mean, changed.deviation), (1.0 / 255.0, [0.4; 3], [0.5; 3]));
    }
}
