//! The networks of the paper and EfficientNet-Lite0, each on a few lines.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, Setting};
use crate::network::Activation::{self, Linear, Relu, Relu6};
use crate::network::{Geometry, Network, Value};

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
    /// Sixteen blocks of depthwise convolutions, as published for mobile devices in 2020; d = 1280.
    #[serde(rename = "efficientnet-lite0")]
    EfficientNetLite0,
}

/// The first layers of a residual network.
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
    /// The stem for images of this size.
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
    pub const ALL: [Architecture; 5] = [
        Architecture::ResNet10,
        Architecture::ResNet18,
        Architecture::ResNet50,
        Architecture::ConvNet128,
        Architecture::EfficientNetLite0,
    ];

    /// The network for images of `height` × `width`; `stem` matters to residual networks only.
    pub fn network(self, height: usize, width: usize, stem: Stem) -> Result<Network> {
        let wrong = |expected| {
            Err(Error::Setting { name: Setting::ImageSize, expected, found: format!("{height}×{width}") })
        };
        if height.max(width) > MAX_SIDE {
            return wrong(format!("at most {MAX_SIDE} pixels per side"));
        }
        let mut network = Network::for_images(height, width);
        match self {
            Architecture::ResNet10 => resnet(&mut network, stem, basic_block, [1, 1, 1, 1], Linear),
            Architecture::ResNet18 => resnet(&mut network, stem, basic_block, [2, 2, 2, 2], Relu),
            Architecture::ResNet50 => resnet(&mut network, stem, bottleneck, [3, 4, 6, 3], Relu),
            Architecture::ConvNet128 => convnet(&mut network),
            Architecture::EfficientNetLite0 => efficientnet_lite0(&mut network),
        }
        if network.nodes().iter().any(|node| node.shape.is_empty()) {
            return wrong(format!("larger images for {self}"));
        }
        Ok(network)
    }

    /// The size of the images that it is usually trained on.
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
            Architecture::EfficientNetLite0 => "efficientnet-lite0",
        })
    }
}

impl FromStr for Architecture {
    type Err = Error;

    fn from_str(text: &str) -> Result<Architecture> {
        Architecture::ALL.into_iter().find(|a| a.to_string() == text).ok_or_else(|| Error::Setting {
            name: Setting::Architecture,
            expected: "resnet10, resnet18, resnet50, convnet128 or efficientnet-lite0".to_owned(),
            found: text.to_owned(),
        })
    }
}

/// Far above what networks are designed for; larger sizes are typos, and would overflow.
pub(crate) const MAX_SIDE: usize = 4096;

/// A block: network, name, input, width, stride, how it ends.
type Block = fn(&mut Network, &str, Value, usize, usize, Activation) -> Value;

/// Stem, four stages, mean over all pixels.
fn resnet(network: &mut Network, stem: Stem, block: Block, blocks: [usize; 4], last: Activation) {
    let stem = match stem {
        Stem::Photo => Geometry::new(7, 2, 3),
        Stem::Small => Geometry::new(3, 1, 1),
    };
    let x = network.convolution("conv1", Value::Image, 64, stem);
    let x = network.normalise("bn1", x, None, Relu);
    let mut x = network.max_pool(x, 3, 2, 1);
    for (stage, (width, count)) in [64, 128, 256, 512].into_iter().zip(blocks).enumerate() {
        for i in 0..count {
            let name = format!("layer{}.{i}", stage + 1);
            let stride = if stage > 0 && i == 0 { 2 } else { 1 };
            let end = if stage < 3 || i + 1 < count { Relu } else { last };
            x = block(network, &name, x, width, stride, end);
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
    end: Activation,
) -> Value {
    let y = network.convolution(&format!("{name}.conv1"), x, width, Geometry::new(3, stride, 1));
    let y = network.normalise(&format!("{name}.bn1"), y, None, Relu);
    let y = network.convolution(&format!("{name}.conv2"), y, width, Geometry::new(3, 1, 1));
    let shortcut = shortcut(network, name, x, width, stride);
    network.normalise(&format!("{name}.bn2"), y, Some(shortcut), end)
}

/// 1×1, 3×3 and 1×1 to four times the width, and a shortcut.
fn bottleneck(
    network: &mut Network,
    name: &str,
    x: Value,
    width: usize,
    stride: usize,
    end: Activation,
) -> Value {
    let y = network.convolution(&format!("{name}.conv1"), x, width, Geometry::new(1, 1, 0));
    let y = network.normalise(&format!("{name}.bn1"), y, None, Relu);
    let y = network.convolution(&format!("{name}.conv2"), y, width, Geometry::new(3, stride, 1));
    let y = network.normalise(&format!("{name}.bn2"), y, None, Relu);
    let y = network.convolution(&format!("{name}.conv3"), y, 4 * width, Geometry::new(1, 1, 0));
    let shortcut = shortcut(network, name, x, 4 * width, stride);
    network.normalise(&format!("{name}.bn3"), y, Some(shortcut), end)
}

/// The block's input itself, or a 1×1 convolution of it where the width or the size changes.
fn shortcut(network: &mut Network, name: &str, x: Value, width: usize, stride: usize) -> Value {
    if network.shape(x).channels == width && stride == 1 {
        return x;
    }
    let y = network.convolution(&format!("{name}.downsample.0"), x, width, Geometry::new(1, stride, 0));
    network.normalise(&format!("{name}.downsample.1"), y, None, Linear)
}

/// Four times convolution, normalisation, ReLU, 2×2 max-pool; no ReLU in the last block.
fn convnet(network: &mut Network) {
    let mut x = Value::Image;
    for (i, width) in [64, 64, 128, 128].into_iter().enumerate() {
        x = network.convolution(&format!("block{i}.conv"), x, width, Geometry::new(3, 1, 1));
        x = network.normalise(&format!("block{i}.bn"), x, None, if i < 3 { Relu } else { Linear });
        x = network.max_pool(x, 2, 2, 0);
    }
    network.flatten(x);
}

/// EfficientNet-Lite0: a stem, seven stages of blocks that widen, convolve each channel by itself and narrow again, and a
/// last widening to 1280 channels. The names and the ε are those of the PyPI package `efficientnet_lite_pytorch`.
fn efficientnet_lite0(network: &mut Network) {
    /// Blocks, kernel, stride of the first block, how much wider it is inside, channels.
    const STAGES: [(usize, usize, usize, usize, usize); 7] = [
        (1, 3, 1, 1, 16),
        (2, 3, 2, 6, 24),
        (2, 5, 2, 6, 40),
        (3, 3, 2, 6, 80),
        (3, 5, 1, 6, 112),
        (4, 5, 2, 6, 192),
        (1, 3, 1, 6, 320),
    ];
    network.epsilon = 1e-3;
    let x = network.same_convolution("_conv_stem", Value::Image, 32, 3, 2);
    let mut x = network.normalise("_bn0", x, None, Relu6);
    let mut block = 0;
    for (count, kernel, stride, widening, channels) in STAGES {
        for i in 0..count {
            let stride = if i == 0 { stride } else { 1 };
            x = inverted_block(network, &format!("_blocks.{block}"), x, channels, widening, kernel, stride);
            block += 1;
        }
    }
    let x = network.same_convolution("_conv_head", x, 1280, 1, 1);
    let x = network.normalise("_bn1", x, None, Relu6);
    network.mean_pool(x);
}

/// 1×1 to `widening` times the channels, a convolution of each channel by itself, 1×1 to `channels`; the input is added
/// where it has the shape of the output.
fn inverted_block(
    network: &mut Network,
    name: &str,
    x: Value,
    channels: usize,
    widening: usize,
    kernel: usize,
    stride: usize,
) -> Value {
    let before = network.shape(x).channels;
    let mut y = x;
    if widening > 1 {
        y = network.same_convolution(&format!("{name}._expand_conv"), x, widening * before, 1, 1);
        y = network.normalise(&format!("{name}._bn0"), y, None, Relu6);
    }
    y = network.depthwise(&format!("{name}._depthwise_conv"), y, kernel, stride);
    y = network.normalise(&format!("{name}._bn1"), y, None, Relu6);
    y = network.same_convolution(&format!("{name}._project_conv"), y, channels, 1, 1);
    let shortcut = (stride == 1 && before == channels).then_some(x);
    network.normalise(&format!("{name}._bn2"), y, shortcut, Linear)
}
