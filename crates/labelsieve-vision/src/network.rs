//! A network is a list of layers. Devices walk it forwards to compute features and backwards to learn.

use serde::{Deserialize, Serialize};

/// What a layer puts out for one image.
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
    /// How many numbers it is.
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

/// One kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// A convolution without bias, zeros around the image. Weights: out × in × kernel × kernel.
    Convolution {
        /// Side of the square kernel.
        kernel: usize,
        /// Step between two places of the kernel.
        stride: usize,
        /// Zeros on each side.
        padding: usize,
    },
    /// Batch normalisation, then the addition of another value, then ReLU: the last two where asked for.
    Normalise {
        /// The shortcut that is added, if any.
        add: Option<Value>,
        /// Whether negative results become zero.
        relu: bool,
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

/// A layer in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name, as torchvision names it; empty when it has no parameters.
    pub name: String,
    /// What it does.
    pub layer: Layer,
    /// What it reads.
    pub input: Value,
    /// The shape of what it reads.
    pub input_shape: Shape,
    /// What it puts out for one image.
    pub shape: Shape,
}

/// What a parameter is for, and how it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Weights of a convolution: out × in × kernel × kernel.
    Convolution,
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
    /// What it is for.
    pub role: Role,
    /// The node it belongs to; `None` for the classifier's.
    pub node: Option<usize>,
}

impl Parameter {
    /// How many numbers it is.
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
}

impl Network {
    /// An empty network for images of `height` × `width`. Normalises with the usual ImageNet figures.
    pub fn for_images(height: usize, width: usize) -> Network {
        let input = Shape { channels: 3, height, width };
        Network { nodes: Vec::new(), input, mean: [0.485, 0.456, 0.406], deviation: [0.229, 0.224, 0.225] }
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
        (kernel, stride, padding): (usize, usize, usize),
    ) -> Value {
        let from = self.shape(input);
        let shape = Shape { channels, ..windows(from, kernel, stride, padding) };
        self.push(name, Layer::Convolution { kernel, stride, padding }, input, shape)
    }

    /// Appends a normalisation, an addition if `add`, and a ReLU if `relu`.
    pub(crate) fn normalise(&mut self, name: &str, input: Value, add: Option<Value>, relu: bool) -> Value {
        let shape = self.shape(input);
        self.push(name, Layer::Normalise { add, relu }, input, shape)
    }

    /// Appends a max-pool.
    pub(crate) fn max_pool(
        &mut self,
        input: Value,
        (kernel, stride, padding): (usize, usize, usize),
    ) -> Value {
        let shape = windows(self.shape(input), kernel, stride, padding);
        self.push("", Layer::MaxPool { kernel, stride, padding }, input, shape)
    }

    /// Appends the mean over all pixels.
    pub(crate) fn mean_pool(&mut self, input: Value) -> Value {
        let shape = Shape { height: 1, width: 1, ..self.shape(input) };
        self.push("", Layer::MeanPool, input, shape)
    }

    /// Appends the change to one long row.
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

/// How many windows fit, with `padding` on each side.
fn windows(from: Shape, kernel: usize, stride: usize, padding: usize) -> Shape {
    let count = |size: usize| (size + 2 * padding).checked_sub(kernel).map_or(0, |rest| rest / stride + 1);
    Shape { height: count(from.height), width: count(from.width), ..from }
}
