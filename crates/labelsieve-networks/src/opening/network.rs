//! Networks from weight files.

use std::path::Path;

use labelsieve_files::work::near_name::nearest;
use labelsieve_files::work::shell_word::shell_word;
use labelsieve_files::work::{Context, Error, Result, command, option, words};
use labelsieve_files::{DataError, NamedTensor, NetworkFile, NetworkMetadata};
use serde::de::DeserializeOwned;

use crate::images::View;
use crate::opening::built_in::{BuiltIn, IN_REPOSITORY};
use crate::{Architecture, Network, Pca, Snapshot, Stem, weights};

/// A network that is ready for a device.
pub struct OpenedNetwork {
    /// Its layers.
    pub network: Network,
    /// Its weights.
    pub snapshot: Snapshot,
    /// The part of an image that the network sees.
    pub view: View,
    /// The metadata of its file.
    pub metadata: NetworkMetadata,
    /// The PCA that came with it.
    pub pca: Option<Pca>,
    /// Subtracted from its features of unit length.
    pub centre: Option<Vec<f32>>,
    /// The scale s of its classifier; 10, where training starts, if it has none.
    pub scale: f32,
}

/// The name of [`OpenedNetwork::centre`] in a file.
pub const CENTRE_TENSOR: &str = "centre.mean";

/// Which part of a weight file is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPart {
    /// The network without its classifier.
    Features,
    /// The network with its classifier, which must be there.
    Classifier,
}

/// Reads a built-in network, a file of this project, or a file with torchvision's tensor names, which is taken to be for photos
/// of the usual size. `image_size` replaces the size in the file.
pub fn open_network(
    path: &Path,
    wanted: NetworkPart,
    image_size: Option<(usize, usize)>,
) -> Result<OpenedNetwork> {
    let file = read_network_file(path)?;
    let mut metadata = match file.metadata {
        Some(metadata) => metadata,
        None => guess(&file.tensors).ok_or_else(|| not_supported(path))?,
    };
    if metadata.architecture.is_empty() {
        return Err(Error::input(
            format!("`{}` does not contain a network", path.display()),
            words!["pass a PCA file with ", option("pca")],
        ));
    }
    metadata.check(path)?;
    metadata.image_size = image_size.unwrap_or(metadata.image_size);
    let (height, width) = metadata.image_size;
    let in_file = || format!("`{}`", path.display());
    let architecture: Architecture = metadata.architecture.parse().with_context(in_file)?;
    let stem =
        named(&metadata.stem).with_context(in_file)?.unwrap_or_else(|| Stem::for_images(height, width));
    let view =
        named(&metadata.view).with_context(in_file)?.unwrap_or_else(|| View::for_images(height, width));
    let mut network = architecture.network(height, width, stem).with_context(in_file)?;
    network.mean = metadata.channel_mean;
    network.deviation = metadata.channel_deviation;
    let pca = Pca::from_tensors(&file.tensors).with_context(in_file)?;
    let centre = centre(path, &file.tensors, network.dim())?;
    let n_classes = match wanted {
        NetworkPart::Features => 0,
        NetworkPart::Classifier => metadata.classes.len(),
    };
    if wanted == NetworkPart::Classifier && n_classes == 0 {
        return Err(Error::input(
            format!("`{}` is a network without a classifier", path.display()),
            words![command("pretrain"), " and ", command("finetune"), " write networks with one"],
        ));
    }
    let scale = file.tensors.iter().find(|(name, _, _)| name == "classifier.scale");
    let scale = scale.and_then(|(_, _, values)| values.first().copied()).unwrap_or(10.0);
    if !(scale.is_finite() && scale > 0.0) {
        let place = "tensor `classifier.scale`, number 0";
        return Err(DataError::malformed(path, place, "a positive number", scale.to_string()).into());
    }
    let snapshot = weights::from_tensors(&network, n_classes, file.tensors).with_context(in_file)?;
    Ok(OpenedNetwork { network, snapshot, view, metadata, pca, centre, scale })
}

/// The file of a built-in network, or the one at `path`.
pub fn read_network_file(path: &Path) -> Result<NetworkFile> {
    if let Some(network) = BuiltIn::named(path) {
        return Ok(NetworkFile::from_bytes(path, network.file)?.0);
    }
    if path.is_dir() {
        return Err(Error::input(
            format!("`{}` is a folder; expected a network in a .safetensors file", path.display()),
            words![
                "a folder from the hub makes features with ",
                command("embed"),
                "; pass these to ",
                command("train"),
                " or ",
                command("predict").with(option("features")),
            ],
        ));
    }
    NetworkFile::load(path)
        .map_err(|error| if path.exists() { error.into() } else { no_such_model(path, error) })
}

/// The error for a file whose tensors are not a supported network.
fn not_supported(path: &Path) -> Error {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_published =
        ["config.json", "open_clip_config.json"].iter().any(|name| folder.join(name).is_file());
    let hint = if is_published {
        words!["pass the whole folder: ", command("embed").with(option("model").set_to(shell_word(folder)))]
    } else {
        words![
            "use a network from ",
            command("pretrain"),
            ", or a ResNet-18 or -50 with torchvision's tensor names; a vision transformer from the hub is a folder, with \
             the configuration beside its weights",
        ]
    };
    Error::input(format!("`{}` does not contain a supported network", path.display()), hint)
}

/// The error for an unknown model, with the nearest name.
pub(super) fn no_such_model(path: &Path, error: DataError) -> Error {
    let built_in = BuiltIn::usual().name;
    let names = || IN_REPOSITORY.into_iter().chain([built_in]);
    let is_name = path.components().count() == 1 && path.extension().is_none();
    let meant = path.to_str().filter(|_| is_name).and_then(|name| nearest(name, names()));
    match meant {
        Some(meant) if meant == built_in => Error::input(
            format!("there is no network `{}`", path.display()),
            format!("did you mean `{meant}`? it is the only built-in network"),
        ),
        Some(meant) => Error::input(
            format!("the network `{}` is not built in", path.display()),
            format!("pass its file: `models/{meant}.safetensors` of the repository"),
        ),
        None if is_name => Error::input(
            format!("there is no file, folder or built-in network `{}`", path.display()),
            format!("the built-in network is `{built_in}`; download networks from the hub first"),
        ),
        None if path.is_relative() && path.components().count() == 2 && path.extension().is_none() => {
            let folder = path.file_name().unwrap_or_default().display();
            Error::input(
                format!("there is no file or folder `{0}`", path.display()),
                format!(
                    "download a network from the hub first: `hf download {0} --local-dir {folder}`",
                    path.display()
                ),
            )
        }
        None => error.into(),
    }
}

/// The tensor that is subtracted from features, where there is one.
fn centre(path: &Path, tensors: &[NamedTensor], dim: usize) -> Result<Option<Vec<f32>>> {
    match tensors.iter().find(|(name, _, _)| name == CENTRE_TENSOR) {
        None => Ok(None),
        Some((_, shape, values)) if shape[..] == [dim] => Ok(Some(values.clone())),
        Some((_, shape, _)) => {
            let place = format!("tensor `{CENTRE_TENSOR}`");
            Err(DataError::malformed(path, place, format!("{dim} numbers"), format!("{shape:?}")).into())
        }
    }
}

/// The value of this name; none for an empty name.
fn named<T: DeserializeOwned>(name: &str) -> Result<Option<T>> {
    if name.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_value(serde_json::Value::String(name.to_owned()))?))
}

/// Guesses the architecture of a file without metadata from its tensor names.
fn guess(tensors: &[NamedTensor]) -> Option<NetworkMetadata> {
    let has = |name: &str| tensors.iter().any(|(found, _, _)| found == name);
    // A tensor that no architecture further down has.
    let signatures = [
        ("layer1.0.conv3.weight", Architecture::ResNet50),
        ("layer1.1.conv1.weight", Architecture::ResNet18),
        ("layer1.0.conv1.weight", Architecture::ResNet10),
        ("block0.conv.weight", Architecture::ConvNet128),
        ("_conv_stem.weight", Architecture::EfficientNetLite0),
    ];
    let (_, architecture) = signatures.into_iter().find(|(name, _)| has(name))?;
    // A first convolution of 3×3 is that of the small stem, whose networks see small images.
    let kernel =
        tensors.iter().find(|(name, _, _)| name == "conv1.weight").and_then(|(_, shape, _)| shape.last());
    let (stem, size) = match kernel {
        Some(3) => (Stem::Small, 64),
        _ => (Stem::Photo, architecture.usual_size()),
    };
    let usual = Network::for_images(size, size);
    let (channel_mean, channel_deviation) = match architecture {
        Architecture::EfficientNetLite0 => ([127.0 / 255.0; 3], [128.0 / 255.0; 3]),
        _ => (usual.mean, usual.deviation),
    };
    Some(NetworkMetadata {
        architecture: architecture.to_string(),
        stem: stem.to_string(),
        image_size: (size, size),
        channel_mean,
        channel_deviation,
        ..NetworkMetadata::default()
    })
}
