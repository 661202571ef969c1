//! What a network asks of the device, in order, and which images share memory.

use labelsieve_vision::{Layer, Network, Node, Role, Shape, Value};

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
    pub padding: usize,
    /// Where the weights start.
    pub weights: usize,
}

/// A normalisation with what follows it: an addition, a ReLU, a max-pool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Normalise {
    pub input: usize,
    pub output: usize,
    pub add: Option<usize>,
    pub relu: bool,
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
    /// The shape of each image that is written down; the first is the input.
    pub images: Vec<Shape>,
    pub work: Vec<Work>,
    /// The image that features are read from, and how.
    pub last: usize,
    pub feature: Feature,
    /// Numbers in all tables.
    pub table_len: usize,
}

impl Schedule {
    /// Joins every max-pool with the normalisation before it.
    pub fn new(network: &Network, layout: &Layout) -> Result<Schedule> {
        let input = Shape { channels: IMAGE_CHANNELS, ..network.input() };
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
        Ok(Schedule { images, work, last, feature, table_len })
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
                let (input, weights) = (self.image(node, node.input)?, start(Role::Convolution));
                let (from, to) = (self.images[input], node.shape);
                let output = self.new_image(to);
                self.work.push(Work::Convolution(Convolution {
                    input,
                    output,
                    from,
                    to,
                    kernel,
                    stride,
                    padding,
                    weights,
                }));
                Some(output)
            }
            Layer::Normalise { add, relu } => {
                let (scale, shift) = (start(Role::Scale), start(Role::Shift));
                let (running_mean, running_variance) =
                    (start(Role::RunningMean), start(Role::RunningVariance));
                let input = self.image(node, node.input)?;
                let add = add.map(|add| self.image(node, add)).transpose()?;
                let (from, table) = (self.images[input], self.table_len);
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
                    relu,
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
    use labelsieve_vision::{Architecture, Stem};

    fn schedule(architecture: Architecture, height: usize, width: usize) -> Schedule {
        let network = architecture.network(height, width, Stem::Photo).unwrap();
        Schedule::new(&network, &Layout::new(&network, 3)).unwrap()
    }

    #[test]
    fn every_network_has_a_schedule() {
        for architecture in Architecture::ALL {
            let schedule = schedule(architecture, 96, 128);
            let pools = |work: &&Work| matches!(work, Work::Normalise(Normalise { pool: Some(_), .. }));
            let expected = if architecture == Architecture::ConvNet128 { 4 } else { 1 };
            assert_eq!(schedule.work.iter().filter(pools).count(), expected);
        }
    }

    #[test]
    fn the_normalised_image_before_a_max_pool_is_never_written() {
        let schedule = schedule(Architecture::ConvNet128, 84, 84);
        let sizes: Vec<usize> = schedule.images.iter().map(|image| image.height).collect();
        assert_eq!(sizes, [84, 84, 42, 42, 21, 21, 10, 10, 5]);
        assert_eq!((schedule.last, schedule.feature), (8, Feature::Flatten));
    }
}
