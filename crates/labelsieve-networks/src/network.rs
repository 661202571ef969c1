//! A network is a list of layers. Devices walk it forwards to compute features and backwards to learn.

use serde::{Deserialize, Serialize};

/// The shape of a layer's output for one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    /// Channels.
    pub channels: usize,
    /// Rows of pixels.
    pub height: usize,
    /// Pixels per row.
    pub width: usize,
}

impl Shape {
    /// Its number of values.
    pub fn len(self) -> usize {
        self.channels * self.height * self.width
    }

    /// Whether it is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Which result a layer reads: the image, or the output of an earlier node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The normalised image.
    Image,
    /// The output of the node at this position.
    Node(usize),
}

/// Zeros before the first row and the first column; after the last ones, as many as the output needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Padding {
    /// Rows above.
    pub top: usize,
    /// Columns to the left.
    pub left: usize,
}

impl Padding {
    /// The same number of rows and columns.
    pub fn of(both: usize) -> Padding {
        Padding { top: both, left: both }
    }
}

/// Where the windows of a convolution lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Side of the square kernel.
    pub kernel: usize,
    /// Step between two windows.
    pub stride: usize,
    /// Zeros around the image.
    pub padding: Padding,
}

impl Geometry {
    /// Windows with `padding` zeros on each side of the image.
    pub(crate) fn new(kernel: usize, stride: usize, padding: usize) -> Geometry {
        Geometry { kernel, stride, padding: Padding::of(padding) }
    }
}

/// The function that is applied to a normalised value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// The identity.
    Linear,
    /// max(x, 0).
    Relu,
    /// min(max(x, 0), 6).
    Relu6,
}

impl Activation {
    /// The smallest and the largest possible output.
    pub fn range(self) -> (f32, f32) {
        match self {
            Activation::Linear => (f32::NEG_INFINITY, f32::INFINITY),
            Activation::Relu => (0.0, f32::INFINITY),
            Activation::Relu6 => (0.0, 6.0),
        }
    }
}

/// A kind of layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// A convolution without bias, zeros around the image. Weights: out × in × kernel × kernel.
    Convolution {
        /// Side of the square kernel.
        kernel: usize,
        /// Step between two positions of the kernel.
        stride: usize,
        /// Zeros around the image.
        padding: Padding,
    },
    /// A convolution of each channel by itself, without bias. Weights: channels × 1 × kernel × kernel.
    Depthwise {
        /// Side of the square kernel.
        kernel: usize,
        /// Step between two positions of the kernel.
        stride: usize,
        /// Zeros around the image.
        padding: Padding,
    },
    /// Batch normalisation, an optional addition of another value, and an activation.
    Normalise {
        /// The shortcut that is added, if any.
        add: Option<Value>,
        /// The activation.
        activation: Activation,
    },
    /// The largest value of each window.
    MaxPool {
        /// Side of the square window.
        kernel: usize,
        /// Step between two windows.
        stride: usize,
        /// Places outside the image that a window may cover on each side; they never win.
        padding: usize,
    },
    /// The mean over all pixels: the feature of a residual network.
    MeanPool,
    /// All numbers in the order channel, row, column: the feature of ConvNet-128.
    Flatten,
}

/// A layer and its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name in torchvision, or in the original implementation; empty if it has no parameters.
    pub name: String,
    /// The layer.
    pub layer: Layer,
    /// Its input.
    pub input: Value,
    /// The shape of its input.
    pub input_shape: Shape,
    /// The shape of its output for one image.
    pub shape: Shape,
}

/// The role of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Weights of a convolution: out × in × kernel × kernel.
    Convolution,
    /// Weights of a convolution of each channel by itself: channels × 1 × kernel × kernel.
    Depthwise,
    /// Scale of a normalisation.
    Scale,
    /// Shift of a normalisation.
    Shift,
    /// Running mean of a normalisation: measured, not learned.
    RunningMean,
    /// Running variance of a normalisation: measured, not learned.
    RunningVariance,
    /// Class weights of the cosine classifier: classes × d.
    ClassWeights,
    /// Scale s of the cosine classifier.
    ClassScale,
}

impl Role {
    /// Whether gradients change it.
    pub fn is_learned(self) -> bool {
        !matches!(self, Role::RunningMean | Role::RunningVariance)
    }
}

/// A named tensor of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name in a weight file, e.g. `layer1.0.conv1.weight`.
    pub name: String,
    /// Its sizes, outermost first.
    pub shape: Vec<usize>,
    /// Its role.
    pub role: Role,
    /// The node it belongs to; `None` for the classifier's.
    pub node: Option<usize>,
}

impl Parameter {
    /// Its number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A network for images of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    nodes: Vec<Node>,
    input: Shape,
    /// Subtracted from each channel of an image with values from 0 to 1.
    pub mean: [f32; 3],
    /// Each channel is divided by it afterwards.
    pub deviation: [f32; 3],
    /// Added to the variances of all normalisations.
    pub epsilon: f32,
}

impl Network {
    /// An empty network for images of `height` × `width`, normalised with ImageNet's mean and standard deviation.
    pub fn for_images(height: usize, width: usize) -> Network {
        let input = Shape { channels: 3, height, width };
        let mean = [0.485, 0.456, 0.406];
        let deviation = [0.229, 0.224, 0.225];
        Network { nodes: Vec::new(), input, mean, deviation, epsilon: 1e-5 }
    }

    /// The nodes, each after those it reads.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The shape of an image.
    pub fn input(&self) -> Shape {
        self.input
    }

    /// Width d of a feature.
    pub fn dim(&self) -> usize {
        self.shape(self.output()).len()
    }

    /// The feature.
    pub fn output(&self) -> Value {
        self.nodes.len().checked_sub(1).map_or(Value::Image, Value::Node)
    }

    /// The shape of a value.
    pub fn shape(&self, value: Value) -> Shape {
        match value {
            Value::Image => self.input,
            Value::Node(node) => self.nodes[node].shape,
        }
    }

    /// All tensors in the order of the nodes, then the classifier's for `n_classes` classes (none for 0).
    pub fn parameters(&self, n_classes: usize) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        for (position, node) in self.nodes.iter().enumerate() {
            let mut push = |suffix: &str, shape: Vec<usize>, role| {
                let name = format!("{}.{suffix}", node.name);
                parameters.push(Parameter { name, shape, role, node: Some(position) });
            };
            let channels = node.shape.channels;
            match node.layer {
                Layer::Convolution { kernel, .. } => {
                    push(
                        "weight",
                        vec![channels, node.input_shape.channels, kernel, kernel],
                        Role::Convolution,
                    );
                }
                Layer::Depthwise { kernel, .. } => {
                    push("weight", vec![channels, 1, kernel, kernel], Role::Depthwise);
                }
                Layer::Normalise { .. } => {
                    push("weight", vec![channels], Role::Scale);
                    push("bias", vec![channels], Role::Shift);
                    push("running_mean", vec![channels], Role::RunningMean);
                    push("running_var", vec![channels], Role::RunningVariance);
                }
                Layer::MaxPool { .. } | Layer::MeanPool | Layer::Flatten => (),
            }
        }
        if n_classes > 0 {
            let mut push = |name: &str, shape: Vec<usize>, role| {
                parameters.push(Parameter { name: name.to_owned(), shape, role, node: None });
            };
            push("classifier.weight", vec![n_classes, self.dim()], Role::ClassWeights);
            push("classifier.scale", vec![1], Role::ClassScale);
        }
        parameters
    }

    /// Appends a convolution to `channels` channels.
    pub(crate) fn convolution(
        &mut self,
        name: &str,
        input: Value,
        channels: usize,
        geometry: Geometry,
    ) -> Value {
        let Geometry { kernel, stride, padding } = geometry;
        let shape = Shape { channels, ..windows(self.shape(input), geometry) };
        self.push(name, Layer::Convolution { kernel, stride, padding }, input, shape)
    }

    /// Appends a convolution to `channels` channels, with an output for every `stride`-th pixel.
    pub(crate) fn same_convolution(
        &mut self,
        name: &str,
        input: Value,
        channels: usize,
        kernel: usize,
        stride: usize,
    ) -> Value {
        let (shape, padding) = same_windows(self.shape(input), kernel, stride);
        let shape = Shape { channels, ..shape };
        self.push(name, Layer::Convolution { kernel, stride, padding }, input, shape)
    }

    /// Appends a convolution of each channel by itself, with an output for every `stride`-th pixel.
    pub(crate) fn depthwise(&mut self, name: &str, input: Value, kernel: usize, stride: usize) -> Value {
        let (shape, padding) = same_windows(self.shape(input), kernel, stride);
        self.push(name, Layer::Depthwise { kernel, stride, padding }, input, shape)
    }

    /// Appends a normalisation, an addition if `add`, and an activation.
    pub(crate) fn normalise(
        &mut self,
        name: &str,
        input: Value,
        add: Option<Value>,
        activation: Activation,
    ) -> Value {
        let shape = self.shape(input);
        self.push(name, Layer::Normalise { add, activation }, input, shape)
    }

    /// Appends a max-pool.
    pub(crate) fn max_pool(&mut self, input: Value, kernel: usize, stride: usize, padding: usize) -> Value {
        let shape = windows(self.shape(input), Geometry::new(kernel, stride, padding));
        self.push("", Layer::MaxPool { kernel, stride, padding }, input, shape)
    }

    /// Appends the mean over all pixels.
    pub(crate) fn mean_pool(&mut self, input: Value) -> Value {
        let shape = Shape { height: 1, width: 1, ..self.shape(input) };
        self.push("", Layer::MeanPool, input, shape)
    }

    /// Appends the flattening to a single row.
    pub(crate) fn flatten(&mut self, input: Value) -> Value {
        let shape = Shape { channels: self.shape(input).len(), height: 1, width: 1 };
        self.push("", Layer::Flatten, input, shape)
    }

    fn push(&mut self, name: &str, layer: Layer, input: Value, shape: Shape) -> Value {
        let input_shape = self.shape(input);
        self.nodes.push(Node { name: name.to_owned(), layer, input, input_shape, shape });
        Value::Node(self.nodes.len() - 1)
    }
}

/// How many windows fit, with the same padding on opposite sides.
fn windows(from: Shape, geometry: Geometry) -> Shape {
    let Geometry { kernel, stride, padding } = geometry;
    let count = |size: usize, padding: usize| {
        (size + 2 * padding).checked_sub(kernel).map_or(0, |rest| rest / stride + 1)
    };
    Shape { height: count(from.height, padding.top), width: count(from.width, padding.left), ..from }
}

/// One window for every `stride`-th pixel, padded as TensorFlow's "same": with an odd number of zeros, the extra one comes
/// after the image.
fn same_windows(from: Shape, kernel: usize, stride: usize) -> (Shape, Padding) {
    let count = |size: usize| size.div_ceil(stride);
    let before = |size: usize| ((count(size).max(1) - 1) * stride + kernel).saturating_sub(size) / 2;
    let shape = Shape { height: count(from.height), width: count(from.width), ..from };
    (shape, Padding { top: before(from.height), left: before(from.width) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_windows_are_centred_with_the_odd_zero_behind() {
        let of = |height, width, kernel, stride| {
            let (shape, padding) = same_windows(Shape { channels: 8, height, width }, kernel, stride);
            ((shape.height, shape.width), (padding.top, padding.left))
        };
        assert_eq!(of(224, 225, 3, 2), ((112, 113), (0, 1)));
        assert_eq!(of(56, 57, 5, 2), ((28, 29), (1, 2)));
        assert_eq!(of(7, 1, 5, 1), ((7, 1), (2, 2)));
        assert_eq!(of(7, 7, 1, 1), ((7, 7), (0, 0)));
        assert_eq!(of(8, 8, 1, 2), ((4, 4), (0, 0)));
    }
}
