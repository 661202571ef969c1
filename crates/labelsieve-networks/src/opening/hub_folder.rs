//! Networks from the Hugging Face hub: folders of `transformers`, timm and OpenCLIP.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use labelsieve_files::work::{Context, Error, Monitor, Result, option, words};
use labelsieve_files::{DataError, FileKind, TensorShards};
use labelsieve_numerics::Device;
use serde_json::{Value, json};

use crate::devices::{Devices, OpenTransformer, ReadAgain, TransformerParts};
use crate::images::View;
use crate::opening::embedder::OpenedEmbedder;
use crate::opening::hub_images::Images;
use crate::opening::network_fingerprint::Fingerprint;
use crate::transformer::Tensors;
use crate::transformer::families::{NetworkDescription, check_architecture, describe};

/// The relevant files of a folder.
struct HubFiles {
    kind: Kind,
    config: PathBuf,
    /// The file of image preprocessing, if it is separate.
    preprocessor: Option<PathBuf>,
    /// Tensors, or an index of files with tensors.
    weights: PathBuf,
}

/// The library that the folder is for.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Transformers,
    Timm,
    OpenClip,
}

/// Opens a folder.
pub fn open_hub_folder(
    folder: &Path,
    image_size: Option<(usize, usize)>,
    device: Device,
    devices: &dyn Devices,
    monitor: &dyn Monitor,
) -> Result<OpenedEmbedder> {
    let tower = Tower::open(folder, image_size)?;
    let again: ReadAgain = {
        let folder = folder.to_path_buf();
        Box::new(move || {
            let lost = |error: Error| crate::Error::Device(error.to_string());
            let tower = Tower::open(&folder, image_size).map_err(lost)?;
            tower.parts().read_on_cpu()
        })
    };
    let opened = devices.transformer(device, &tower.parts(), again, monitor);
    let opened = tower.of_weights(opened)?;
    let OpenTransformer { embedder, kind: device } = opened;
    tower.check_all_read()?;
    let Tower { tensors, described: NetworkDescription { architecture, vit, .. }, images, .. } = tower;
    monitor.detail(&format!("{architecture}: {} blocks of width {}", vit.depth, vit.block.width));
    Ok(OpenedEmbedder {
        embedder,
        size: images.size,
        view: View::Processing(images.processing),
        centre: None,
        pca: None,
        fingerprint: tensors.fingerprint.into_inner(),
        description: json!({ "architecture": &architecture }),
        name: architecture,
        device,
    })
}

/// An image tower whose weights have not been read yet.
struct Tower {
    weights: PathBuf,
    tensors: HashedTensors,
    described: NetworkDescription,
    images: Images,
}

impl Tower {
    fn open(folder: &Path, image_size: Option<(usize, usize)>) -> Result<Tower> {
        let files = HubFiles::find(folder)?;
        let config = read_json(&files.config)?;
        let tensors = HashedTensors::new(open_weights(&files.weights)?);
        let described = tensors.checked(describe(&config, &tensors)).with_context(|| shown(&files.config))?;
        let images = files.images(&config, &described)?;
        let images = image_size.map_or(images, |size| images.at(size));
        *tensors.fingerprint.borrow_mut() = Fingerprint::new(&described.architecture);
        tensors.fingerprint.borrow_mut().add(format!("{:?} {images:?}\n", described.vit).as_bytes());
        Ok(Tower { weights: files.weights, tensors, described, images })
    }

    /// The parts that a device needs to read it.
    fn parts(&self) -> TransformerParts<'_> {
        TransformerParts {
            vit: &self.described.vit,
            names: &self.described.names,
            tensors: &self.tensors,
            size: self.images.size,
            normalisation: &self.images.normalisation,
        }
    }

    /// Adds the path of the weights to errors of reading them, but not to errors of opening a device.
    fn of_weights<T>(&self, result: Result<T>) -> Result<T> {
        match result {
            Err(Error::Stage(stage)) => match stage.downcast::<crate::Error>() {
                Ok(network) => self.tensors.checked(Err(*network)).with_context(|| shown(&self.weights)),
                Err(other) => Err(Error::Stage(other)),
            },
            result => result,
        }
    }

    /// Rejects weights that are not part of the described network.
    fn check_all_read(&self) -> Result<()> {
        let architecture = &self.described.architecture;
        self.tensors.check_all_read(architecture).with_context(|| shown(&self.weights))
    }
}

/// The configuration and the tensors of a folder, for parts other than its image tower.
pub(crate) fn open_hub_tensors(folder: &Path) -> Result<(Value, HashedTensors)> {
    let files = HubFiles::find(folder)?;
    Ok((read_json(&files.config)?, HashedTensors::new(open_weights(&files.weights)?)))
}

/// The files that a folder is read from.
pub fn hub_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let files = HubFiles::find(folder)?;
    let shards = open_weights(&files.weights)?;
    let mut all = vec![files.config];
    all.extend(files.preprocessor);
    let is_index = !shards.files().any(|shard| shard == files.weights);
    all.extend(is_index.then_some(files.weights));
    all.extend(shards.files().map(Path::to_path_buf));
    Ok(all)
}

impl HubFiles {
    fn find(folder: &Path) -> Result<HubFiles> {
        let found = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
        let missing = |name: &str| not_there(folder, name);
        let weights = || found("model.safetensors").or_else(|| found("model.safetensors.index.json"));
        let open_clip =
            || found("open_clip_config.json").zip(found("open_clip_model.safetensors").or_else(weights));
        let config = found("config.json");
        let is_timm = match &config {
            Some(path) => {
                let config = read_json(path)?;
                let kind = config["model_type"].as_str();
                config["architecture"].is_string() && kind.is_none_or(|kind| kind == "timm_wrapper")
            }
            None => false,
        };
        match (config, weights(), open_clip()) {
            (Some(config), Some(weights), _) if is_timm => {
                Ok(HubFiles { kind: Kind::Timm, config, preprocessor: None, weights })
            }
            (Some(config), Some(weights), other) => match (preprocessor_in(folder)?, other) {
                (Some(preprocessor), _) => Ok(HubFiles {
                    kind: Kind::Transformers,
                    config,
                    preprocessor: Some(preprocessor),
                    weights,
                }),
                (None, Some((config, weights))) => Ok(HubFiles::open_clip(config, weights)),
                (None, None) => {
                    let architecture = check_architecture(&read_json(&config)?);
                    architecture.map_err(explained).with_context(|| shown(&config))?;
                    Err(missing("preprocessor_config.json"))
                }
            },
            (_, _, Some((config, weights))) => Ok(HubFiles::open_clip(config, weights)),
            (None, _, None) if found("open_clip_config.json").is_some() => {
                Err(missing("open_clip_model.safetensors"))
            }
            (None, _, None) => Err(missing("config.json")),
            (Some(_), None, None) => Err(missing("model.safetensors")),
        }
    }

    fn open_clip(config: PathBuf, weights: PathBuf) -> HubFiles {
        HubFiles { kind: Kind::OpenClip, config, preprocessor: None, weights }
    }

    fn images(&self, config: &Value, described: &NetworkDescription) -> Result<Images> {
        let size = described.vit.size;
        match (self.kind, &self.preprocessor) {
            (Kind::Timm, _) => {
                Images::of_timm(&config["pretrained_cfg"], size).with_context(|| shown(&self.config))
            }
            (Kind::OpenClip, _) => {
                Images::of_open_clip(&config["preprocess_cfg"], size).with_context(|| shown(&self.config))
            }
            (Kind::Transformers, Some(path)) => {
                let settings = read_json(path)?;
                let nested = settings.get("image_processor").filter(|_| path.ends_with(PROCESSOR));
                Images::of_transformers(nested.unwrap_or(&settings), size).with_context(|| shown(path))
            }
            (Kind::Transformers, None) => {
                Err(Error::Internal("a folder without preprocessor_config.json".to_owned()))
            }
        }
    }
}

/// The file in which `transformers` 5 stores image preprocessing, under `image_processor`.
const PROCESSOR: &str = "processor_config.json";

/// The file of image preprocessing, if there is one.
fn preprocessor_in(folder: &Path) -> Result<Option<PathBuf>> {
    let own = folder.join("preprocessor_config.json");
    let shared = folder.join(PROCESSOR);
    if own.is_file() {
        return Ok(Some(own));
    }
    let has_images = shared.is_file() && read_json(&shared)?["image_processor"].is_object();
    Ok(has_images.then_some(shared))
}

/// The error for a missing file.
fn not_there(folder: &Path, name: &str) -> Error {
    let has = |file: &str| folder.join(file).is_file();
    let has_pickled_weights = has("pytorch_model.bin") || has("open_clip_pytorch_model.bin");
    let hint = if name.ends_with(".safetensors") && has_pickled_weights {
        "weights in `.bin` files are not read; download the network's `.safetensors` file, or save it again with \
             `safe_serialization=True`"
    } else {
        "a folder needs `config.json`, `preprocessor_config.json` and `model.safetensors` (or its shards and their index); \
             timm's have no `preprocessor_config.json`, and OpenCLIP's have `open_clip_config.json` and \
             `open_clip_model.safetensors`"
    };
    Error::input(format!("`{}` has no file `{name}`", folder.display()), hint)
}

fn open_weights(path: &Path) -> Result<TensorShards> {
    let is_index = path.extension().is_some_and(|extension| extension == "json");
    let opened = if is_index { TensorShards::open_index(path) } else { TensorShards::open(path) };
    opened.map_err(|error| match &error {
        DataError::Io { path: shard, cause, .. } if is_index && cause.kind() == ErrorKind::NotFound => {
            Error::input(
                format!("`{}` does not exist, but `{}` lists it", shard.display(), path.display()),
                "download all files of the folder",
            )
        }
        // A file of another kind gets its own, better hint.
        DataError::Malformed { path, .. }
            if matches!(FileKind::of(path), Some(FileKind::Safetensors) | None) =>
        {
            Error::input(error.to_string(), "the file is truncated or damaged; download it again")
        }
        _ => error.into(),
    })
}

pub(super) fn read_json(path: &Path) -> Result<Value> {
    let bytes = std::fs::read(path).map_err(DataError::io("read", path))?;
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|error| DataError::undecodable(path, "JSON", error))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(DataError::malformed(path, "beginning", "a JSON object", "something else").into())
    }
}

/// Adds a hint to the error for a folder.
fn explained(error: crate::Error) -> Error {
    use crate::{Error as Refused, Setting};
    let hint = match &error {
        Refused::Setting { name: Setting::Architecture, found, .. }
            if !found.starts_with("a configuration") =>
        {
            words!["export the network to ONNX and pass that file: ", option("model").set_to("x.onnx")]
        }
        Refused::Shape { expected, .. } if expected == "a finite number" => {
            words!["the weights are damaged; download them again"]
        }
        Refused::Shape { what, .. } if what.starts_with("tensor") => {
            words!["configuration and weights must be of the same network; download the whole folder again"]
        }
        _ => return error.into(),
    };
    Error::input(error.to_string(), hint)
}

fn shown(path: &Path) -> String {
    format!("`{}`", path.display())
}

/// The stack of blocks that a tensor is in: `encoder.layer.` for `encoder.layer.3.mlp.fc1.weight`.
fn stack_of(name: &str) -> Option<&str> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut start = 0;
    for part in name.split('.') {
        if is_number(part) {
            return Some(&name[..start]);
        }
        start += part.len() + 1;
    }
    None
}

/// Tensors of files; all that are read go into the fingerprint.
pub(crate) struct HashedTensors {
    shards: TensorShards,
    /// The original error of a file.
    failed: RefCell<Option<DataError>>,
    fingerprint: RefCell<Fingerprint>,
    /// The names of those that were read.
    read: RefCell<BTreeSet<String>>,
}

impl HashedTensors {
    fn new(shards: TensorShards) -> HashedTensors {
        HashedTensors {
            shards,
            failed: RefCell::default(),
            fingerprint: RefCell::new(Fingerprint::new("")),
            read: RefCell::default(),
        }
    }

    /// Rejects tensors of the network's blocks that were not read: its blocks differ from ours.
    fn check_all_read(&self, architecture: &str) -> Result<()> {
        let read = self.read.borrow();
        let blocks: BTreeSet<&str> = read.iter().filter_map(|name| stack_of(name)).collect();
        let left =
            |name: &&str| !read.contains(*name) && stack_of(name).is_some_and(|of| blocks.contains(of));
        match self.shards.names().find(left) {
            None => Ok(()),
            Some(name) => Err(explained(crate::Error::Shape {
                what: format!("tensor `{name}`"),
                expected: format!("none of this name in {architecture}"),
                found: "one".to_owned(),
            })),
        }
    }

    /// Replaces the error by the original error of a file, if there is one.
    pub(crate) fn checked<T>(&self, result: crate::Result<T>) -> Result<T> {
        match self.failed.take() {
            Some(error) => Err(error.into()),
            None => result.map_err(explained),
        }
    }
}

impl Tensors for HashedTensors {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.shards.shape(name).map(<[usize]>::to_vec)
    }

    fn values(&self, name: &str) -> crate::Result<Vec<f32>> {
        let values = self.shards.values(name).map_err(|error| {
            let message = error.to_string();
            *self.failed.borrow_mut() = Some(error);
            crate::Error::Device(message)
        })?;
        let shape = self.shards.shape(name).unwrap_or_default();
        // A device that failed may have read it before; it counts once.
        if self.read.borrow_mut().insert(name.to_owned()) {
            self.fingerprint.borrow_mut().add_tensor(name, shape, &values);
        }
        Ok(values)
    }
}
