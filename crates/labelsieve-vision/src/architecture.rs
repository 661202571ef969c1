//! The networks of the paper, each on a few lines.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, Setting};
use crate::network::{Network, Value};

/// A network by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// Four stages of one basic block, no ReLU after the last; d = 512.
    ResNet10,
    /// Four stages of two basic blocks; d = 512.
    ResNet18,
    /// 3, 4, 6 and 3 bottleneck blocks; d = 2048.
    ResNet50,
    /// Four convolutions with 2×2 max-pools, no ReLU in the last; d = 3200 for images of 84×84.
    ConvNet128,
}

/// How a residual network begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stem {
    /// Convolution 7×7 with stride 2 and max-pool 3×3 with stride 2, as for photos of 224×224.
    #[default]
    Photo,
    /// Convolution 3×3 with stride 1 and max-pool 3×3 with stride 2, for images of up to about 96×96: the first would
    /// leave 16×16 places of a 64×64 image, and a single 2×2 in the last stage.
    Small,
}

impl Stem {
    /// The stem that suits images of this size.
    pub fn for_images(height: usize, width: usize) -> Stem {
        if height.max(width) <= 96 { Stem::Small } else { Stem::Photo }
    }
}

impl fmt::Display for Stem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Stem::Photo => "photo",
            Stem::Small => "small",
        })
    }
}

impl FromStr for Stem {
    type Err = Error;

    fn from_str(text: &str) -> Result<Stem> {
        [Stem::Photo, Stem::Small].into_iter().find(|stem| stem.to_string() == text).ok_or_else(|| {
            Error::Setting {
                name: Setting::Stem,
                expected: "photo or small".to_owned(),
                found: text.to_owned(),
            }
        })
    }
}

impl Architecture {
    /// All of them.
    pub const ALL: [Architecture; 4] =
        [Architecture::ResNet10, Architecture::ResNet18, Architecture::ResNet50, Architecture::ConvNet128];

    /// The network for images of `height` × `width`; `stem` matters to residual networks only.
    pub fn network(self, height: usize, width: usize, stem: Stem) -> Result<Network> {
        let wrong = |expected| {
            Err(Error::Setting { name: Setting::ImageSize, expected, found: format!("{height}×{width}") })
        };
        if height.max(width) > LARGEST_SIDE {
            return wrong(format!("at most {LARGEST_SIDE} pixels a side"));
        }
        let mut network = Network::for_images(height, width);
        match self {
            Architecture::ResNet10 => resnet(&mut network, stem, basic_block, [1, 1, 1, 1], Last::Linear),
            Architecture::ResNet18 => resnet(&mut network, stem, basic_block, [2, 2, 2, 2], Last::Relu),
            Architecture::ResNet50 => resnet(&mut network, stem, bottleneck, [3, 4, 6, 3], Last::Relu),
            Architecture::ConvNet128 => convnet(&mut network),
        }
        if network.nodes().iter().any(|node| node.shape.is_empty()) {
            return wrong(format!("larger images for {self}"));
        }
        Ok(network)
    }

    /// The size of the images that the paper trains it on.
    pub fn usual_size(self) -> usize {
        match self {
            Architecture::ConvNet128 => 84,
            _ => 224,
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Architecture::ResNet10 => "resnet10",
            Architecture::ResNet18 => "resnet18",
            Architecture::ResNet50 => "resnet50",
            Architecture::ConvNet128 => "convnet128",
        })
    }
}

impl FromStr for Architecture {
    type Err = Error;

    fn from_str(text: &str) -> Result<Architecture> {
        Architecture::ALL.into_iter().find(|a| a.to_string() == text).ok_or_else(|| Error::Setting {
            name: Setting::Architecture,
            expected: "resnet10, resnet18, resnet50 or convnet128".to_owned(),
            found: text.to_owned(),
        })
    }
}

/// Far above what these networks are designed for; larger sizes are typos, and would overflow.
const LARGEST_SIDE: usize = 4096;

/// How the last block ends.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    Relu,
    Linear,
}

/// A block: network, name, input, width, stride, whether it ends in ReLU.
type Block = fn(&mut Network, &str, Value, usize, usize, bool) -> Value;

/// Stem, four stages, mean over all pixels.
fn resnet(network: &mut Network, stem: Stem, block: Block, blocks: [usize; 4], last: Last) {
    let stem = match stem {
        Stem::Photo => (7, 2, 3),
        Stem::Small => (3, 1, 1),
    };
    let x = network.convolution("conv1", Value::Image, 64, stem);
    let x = network.normalise("bn1", x, None, true);
    let mut x = network.max_pool(x, (3, 2, 1));
    for (stage, (width, count)) in [64, 128, 256, 512].into_iter().zip(blocks).enumerate() {
        for i in 0..count {
            let name = format!("layer{}.{i}", stage + 1);
            let stride = if stage > 0 && i == 0 { 2 } else { 1 };
            let relu = last == Last::Relu || stage < 3 || i + 1 < count;
            x = block(network, &name, x, width, stride, relu);
        }
    }
    network.mean_pool(x);
}

/// Two 3×3 convolutions and a shortcut.
fn basic_block(
    network: &mut Network,
    name: &str,
    x: Value,
    width: usize,
    stride: usize,
    relu: bool,
) -> Value {
    let y = network.convolution(&format!("{name}.conv1"), x, width, (3, stride, 1));
    let y = network.normalise(&format!("{name}.bn1"), y, None, true);
    let y = network.convolution(&format!("{name}.conv2"), y, width, (3, 1, 1));
    let shortcut = shortcut(network, name, x, width, stride);
    network.normalise(&format!("{name}.bn2"), y, Some(shortcut), relu)
}

/// 1×1, 3×3 and 1×1 to four times the width, and a shortcut.
fn bottleneck(network: &mut Network, name: &str, x: Value, width: usize, stride: usize, relu: bool) -> Value {
    let y = network.convolution(&format!("{name}.conv1"), x, width, (1, 1, 0));
    let y = network.normalise(&format!("{name}.bn1"), y, None, true);
    let y = network.convolution(&format!("{name}.conv2"), y, width, (3, stride, 1));
    let y = network.normalise(&format!("{name}.bn2"), y, None, true);
    let y = network.convolution(&format!("{name}.conv3"), y, 4 * width, (1, 1, 0));
    let shortcut = shortcut(network, name, x, 4 * width, stride);
    network.normalise(&format!("{name}.bn3"), y, Some(shortcut), relu)
}

/// The block's input itself, or a 1×1 convolution of it where the width or the size changes.
fn shortcut(network: &mut Network, name: &str, x: Value, width: usize, stride: usize) -> Value {
    if network.shape(x).channels == width && stride == 1 {
        return x;
    }
    let y = network.convolution(&format!("{name}.downsample.0"), x, width, (1, stride, 0));
    network.normalise(&format!("{name}.downsample.1"), y, None, false)
}

/// Four times convolution, normalisation, ReLU, 2×2 max-pool; no ReLU in the last block.
fn convnet(network: &mut Network) {
    let mut x = Value::Image;
    for (i, width) in [64, 64, 128, 128].into_iter().enumerate() {
        x = network.convolution(&format!("block{i}.conv"), x, width, (3, 1, 1));
        x = network.normalise(&format!("block{i}.bn"), x, None, i < 3);
        x = network.max_pool(x, (2, 2, 0));
    }
    network.flatten(x);
}
