//! What a network asks of the device, in order, and which images share memory.

use labelsieve_networks::{Activation, Layer, Network, Node, Padding, Role, Shape, Value};

use super::layout::{IMAGE_CHANNELS, Layout};
use crate::error::{Error, Result};

/// A convolution. Numbers of images are positions in [`Schedule::images`].
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Convolution {
    pub input: usize,
    pub output: usize,
    pub from: Shape,
    pub to: Shape,
    pub kernel: usize,
    pub stride: usize,
    pub padding: Padding,
    pub channels: Channels,
    /// Where the weights start.
    pub weights: usize,
}

/// Which channels of the input a channel of the output reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Channels {
    All,
    Own,
}

/// A normalisation with what follows it: an addition, an activation, a max-pool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Normalise {
    pub input: usize,
    pub output: usize,
    pub add: Option<usize>,
    pub activation: Activation,
    pub pool: Option<Pool>,
    pub from: Shape,
    pub to: Shape,
    /// Where its parameters start.
    pub scale: usize,
    pub shift: usize,
    pub running_mean: usize,
    pub running_variance: usize,
    /// Where its table starts: four rows of as many numbers as channels, see `normalise.cu`.
    pub table: usize,
}

/// A max-pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pool {
    pub kernel: usize,
    pub stride: usize,
    pub padding: usize,
}

/// How the last image becomes a feature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Feature {
    Mean,
    Flatten,
}

/// One kind of work on images.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Work {
    Convolution(Convolution),
    Normalise(Normalise),
}

/// All work of a network, each after what it needs.
#[derive(Debug)]
pub(super) struct Schedule {
    /// The shape of each image that is written down; the first is the input with the zeros around it.
    pub images: Vec<Shape>,
    /// The zeros before the first row and column of the input.
    pub frame: Padding,
    pub work: Vec<Work>,
    /// The image that features are read from, and how.
    pub last: usize,
    pub feature: Feature,
    /// Numbers in all tables.
    pub table_len: usize,
    /// Added to variances.
    pub epsilon: f32,
}

impl Schedule {
    /// Joins every max-pool with the normalisation before it.
    pub fn new(network: &Network, layout: &Layout) -> Result<Schedule> {
        let (input, frame) = framed_input(network);
        let mut builder =
            Builder { layout, images: vec![input], work: Vec::new(), of: Vec::new(), table_len: 0 };
        let mut end = None;
        for (position, node) in network.nodes().iter().enumerate() {
            if end.is_some() {
                return Err(unsupported(node, "a layer behind the feature"));
            }
            match node.layer {
                Layer::MeanPool => end = Some((builder.image(node, node.input)?, Feature::Mean)),
                Layer::Flatten => end = Some((builder.image(node, node.input)?, Feature::Flatten)),
                _ => builder.push(network, position, node)?,
            }
        }
        let Some((last, feature)) = end else {
            return Err(Error::Failed("the network does not end in a feature layer".to_owned()));
        };
        let Builder { images, work, table_len, .. } = builder;
        Ok(Schedule { images, frame, work, last, feature, table_len, epsilon: network.epsilon })
    }
}

struct Builder<'a> {
    layout: &'a Layout,
    images: Vec<Shape>,
    work: Vec<Work>,
    /// The image of each node so far; none where it is never written.
    of: Vec<Option<usize>>,
    table_len: usize,
}

impl Builder<'_> {
    fn image(&self, node: &Node, value: Value) -> Result<usize> {
        match value {
            Value::Image => Ok(0),
            Value::Node(n) => self.of[n].ok_or_else(|| unsupported(node, "what only a max-pool should read")),
        }
    }

    fn new_image(&mut self, shape: Shape) -> usize {
        self.images.push(shape);
        self.images.len() - 1
    }

    fn push(&mut self, network: &Network, position: usize, node: &Node) -> Result<()> {
        let start = |role| self.layout.start(Some(position), role);
        let image = match node.layer {
            Layer::Convolution { kernel, stride, padding } => {
                let input = self.image(node, node.input)?;
                let weights = start(Role::Convolution);
                let from = self.images[input];
                let to = node.shape;
                let padding = match (node.input, is_symmetric(node)) {
                    (_, true) => padding,
                    (Value::Image, false) => Padding::of(0), // the zeros are part of the image
                    (_, false) => return Err(unsupported(node, "more zeros on one side")),
                };
                let output = self.new_image(to);
                self.work.push(Work::Convolution(Convolution {
                    input,
                    output,
                    from,
                    to,
                    kernel,
                    stride,
                    padding,
                    channels: Channels::All,
                    weights,
                }));
                Some(output)
            }
            Layer::Depthwise { kernel, stride, padding } => {
                let input = self.image(node, node.input)?;
                let weights = start(Role::Depthwise);
                let from = self.images[input];
                let to = node.shape;
                if !from.channels.is_multiple_of(8) || input == 0 {
                    return Err(unsupported(node, "a number of channels that is no multiple of eight"));
                }
                let output = self.new_image(to);
                let channels = Channels::Own;
                self.work.push(Work::Convolution(Convolution {
                    input,
                    output,
                    from,
                    to,
                    kernel,
                    stride,
                    padding,
                    channels,
                    weights,
                }));
                Some(output)
            }
            Layer::Normalise { add, activation } => {
                let scale = start(Role::Scale);
                let shift = start(Role::Shift);
                let running_mean = start(Role::RunningMean);
                let running_variance = start(Role::RunningVariance);
                let input = self.image(node, node.input)?;
                let add = add.map(|add| self.image(node, add)).transpose()?;
                let from = self.images[input];
                let table = self.table_len;
                if !from.channels.is_multiple_of(8) || input == 0 {
                    return Err(unsupported(node, "a number of channels that is no multiple of eight"));
                }
                self.table_len += 4 * from.channels;
                let pooled = pool_alone_reads(network, position);
                let output = if pooled { usize::MAX } else { self.new_image(from) };
                self.work.push(Work::Normalise(Normalise {
                    input,
                    output,
                    add,
                    activation,
                    pool: None,
                    from,
                    to: from,
                    scale,
                    shift,
                    running_mean,
                    running_variance,
                    table,
                }));
                (!pooled).then_some(output)
            }
            Layer::MaxPool { kernel, stride, padding } => {
                let output = self.new_image(node.shape);
                match self.work.last_mut() {
                    Some(Work::Normalise(last)) if last.output == usize::MAX && last.add.is_none() => {
                        (last.output, last.to) = (output, node.shape);
                        last.pool = Some(Pool { kernel, stride, padding });
                    }
                    _ => return Err(unsupported(node, "a max-pool that follows no normalisation")),
                }
                Some(output)
            }
            Layer::MeanPool | Layer::Flatten => None,
        };
        self.of.push(image);
        Ok(())
    }
}

/// Whether a convolution has as many zeros behind its input as before it, or can have them without another output.
fn is_symmetric(node: &Node) -> bool {
    let Layer::Convolution { kernel, stride, padding } = node.layer else { return true };
    let count =
        |size: usize, zeros: usize| (size + 2 * zeros).checked_sub(kernel).map(|rest| rest / stride + 1);
    let from = node.input_shape;
    let to = node.shape;
    padding.top == padding.left
        && count(from.height, padding.top) == Some(to.height)
        && count(from.width, padding.left) == Some(to.width)
}

/// The shape of the input on the device, and the zeros before it: all that its reader needs where cuDNN cannot be told of
/// them, since they are not the same on all sides; else none.
fn framed_input(network: &Network) -> (Shape, Padding) {
    let input = Shape { channels: IMAGE_CHANNELS, ..network.input() };
    let reader = network.nodes().iter().find(|node| node.input == Value::Image && !is_symmetric(node));
    let Some(Node { layer: Layer::Convolution { kernel, stride, padding }, shape, .. }) = reader else {
        return (input, Padding::of(0));
    };
    let reached = |windows: usize| (windows - 1) * stride + kernel;
    let height = reached(shape.height).max(input.height + padding.top);
    let width = reached(shape.width).max(input.width + padding.left);
    (Shape { height, width, ..input }, *padding)
}

/// Whether the next node is a max-pool of this one, and nothing else reads it.
fn pool_alone_reads(network: &Network, position: usize) -> bool {
    let reads = |node: &Node| {
        let added =
            matches!(node.layer, Layer::Normalise { add: Some(add), .. } if add == Value::Node(position));
        added || node.input == Value::Node(position)
    };
    let next = network.nodes().get(position + 1);
    next.is_some_and(|next| matches!(next.layer, Layer::MaxPool { .. }) && reads(next))
        && network.nodes().iter().filter(|node| reads(node)).count() == 1
}

fn unsupported(node: &Node, what: &str) -> Error {
    Error::Failed(format!("layer `{}` {:?}: {what} is not supported", node.name, node.layer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use labelsieve_networks::{Architecture, Stem};

    fn schedule(architecture: Architecture, height: usize, width: usize) -> Schedule {
        let network = architecture.network(height, width, Stem::Photo).unwrap();
        Schedule::new(&network, &Layout::new(&network, 3)).unwrap()
    }

    #[test]
    fn every_network_has_a_schedule() {
        for architecture in Architecture::ALL {
            let schedule = schedule(architecture, 96, 128);
            let pools = |work: &&Work| matches!(work, Work::Normalise(Normalise { pool: Some(_), .. }));
            let expected = match architecture {
                Architecture::ConvNet128 => 4,
                Architecture::EfficientNetLite0 => 0,
                _ => 1,
            };
            assert_eq!(schedule.work.iter().filter(pools).count(), expected);
        }
    }

    #[test]
    fn zeros_on_one_side_of_the_input_are_part_of_it() {
        let even = schedule(Architecture::EfficientNetLite0, 96, 128);
        assert_eq!((even.images[0].height, even.images[0].width, even.frame), (97, 129, Padding::of(0)));
        let odd = schedule(Architecture::EfficientNetLite0, 97, 129);
        assert_eq!((odd.images[0].height, odd.images[0].width), (97, 129));
        let mixed = schedule(Architecture::EfficientNetLite0, 97, 128);
        let frame = Padding { top: 1, left: 0 };
        assert_eq!((mixed.images[0].height, mixed.images[0].width, mixed.frame), (99, 129, frame));
        let symmetric = schedule(Architecture::ResNet10, 96, 128);
        assert_eq!((symmetric.images[0].height, symmetric.frame), (96, Padding::of(0)));
    }

    #[test]
    fn the_normalised_image_before_a_max_pool_is_never_written() {
        let schedule = schedule(Architecture::ConvNet128, 84, 84);
        let sizes: Vec<usize> = schedule.images.iter().map(|image| image.height).collect();
        assert_eq!(sizes, [84, 84, 42, 42, 21, 21, 10, 10, 5]);
        assert_eq!((schedule.last, schedule.feature), (8, Feature::Flatten));
    }
}
