//! Where the parameters of a network are on the device.
//!
//! One long array, as in a [`Snapshot`](labelsieve_networks::Snapshot), but every tensor starts at a multiple of 64 numbers,
//! and the weights of a convolution are in the order that images are stored in: out, row, column, in; those of a depthwise one
//! row, column, channel. The image has eight channels there; the weights of those that are zero are zero and stay so.
#![expect(unsafe_code, reason = "declares what a kernel reads")]

use std::ops::Range;

use cudarc::driver::DeviceRepr;
use labelsieve_networks::{Network, Role};

/// Channels that an image has on the device: red, green, blue and five zeros. Tensor cores want multiples of eight.
pub(super) const IMAGE_CHANNELS: usize = 8;

const ALIGNMENT: usize = 64;
const PIECE: usize = 2048;

/// How a tensor is stored and updated.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// out × in × places on the host, out × places × `padded` on the device.
    Convolution {
        n_in: usize,
        padded: usize,
        places: usize,
    },
    /// channels × places on the host, places × channels on the device.
    Depthwise {
        channels: usize,
        places: usize,
    },
    Plain,
    Scale,
    Measured,
}

#[derive(Clone, Debug)]
struct Tensor {
    node: Option<usize>,
    role: Role,
    kind: Kind,
    host: Range<usize>,
    device: Range<usize>,
}

/// A part of the parameters that one block of `descend` updates. Laid out as in `head.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    start: u32,
    length: u32,
    kind: u32,
}

// SAFETY: `repr(C)`, and the kernel declares the same fields.
unsafe impl DeviceRepr for Piece {}

/// The places of all tensors of a network.
#[derive(Debug)]
pub(super) struct Layout {
    tensors: Vec<Tensor>,
    /// Numbers on the host.
    pub host_len: usize,
    /// Numbers on the device, gaps included.
    pub len: usize,
}

impl Layout {
    pub fn new(network: &Network, n_classes: usize) -> Layout {
        let mut tensors = Vec::new();
        let mut host_len = 0;
        let mut len = 0;
        for parameter in network.parameters(n_classes) {
            let shape = &parameter.shape;
            let kind = match parameter.role {
                Role::Convolution => Kind::Convolution {
                    n_in: shape[1],
                    padded: shape[1].next_multiple_of(IMAGE_CHANNELS),
                    places: shape[2] * shape[3],
                },
                Role::Depthwise => Kind::Depthwise { channels: shape[0], places: shape[2] * shape[3] },
                Role::Scale | Role::Shift | Role::ClassWeights => Kind::Plain,
                Role::ClassScale => Kind::Scale,
                Role::RunningMean | Role::RunningVariance => Kind::Measured,
            };
            let size = match kind {
                Kind::Convolution { padded, places, .. } => shape[0] * padded * places,
                _ => parameter.len(),
            };
            let host = host_len..host_len + parameter.len();
            let device = len..len + size;
            (host_len, len) = (host.end, device.end.next_multiple_of(ALIGNMENT));
            tensors.push(Tensor { node: parameter.node, role: parameter.role, kind, host, device });
        }
        Layout { tensors, host_len, len }
    }

    /// Where the tensor with this role of `node` (`None` for the classifier) starts on the device.
    pub fn start(&self, node: Option<usize>, role: Role) -> usize {
        let found = self.tensors.iter().find(|t| t.node == node && t.role == role);
        found.expect("the network has such a tensor").device.start
    }

    /// Numbers of the host in the order of the device.
    pub fn to_device(&self, host: &[f32]) -> Vec<f32> {
        let mut device = vec![0.0; self.len];
        for tensor in &self.tensors {
            let from = &host[tensor.host.clone()];
            let to = &mut device[tensor.device.clone()];
            match tensor.kind {
                Kind::Convolution { n_in, padded, places } => {
                    each_weight(from.len(), n_in, padded, places, |h, d| to[d] = from[h]);
                }
                Kind::Depthwise { channels, places } => {
                    (0..from.len()).for_each(|h| to[h % places * channels + h / places] = from[h]);
                }
                _ => to.copy_from_slice(from),
            }
        }
        device
    }

    /// Numbers of the device in the order of the host.
    pub fn to_host(&self, device: &[f32]) -> Vec<f32> {
        let mut host = vec![0.0; self.host_len];
        for tensor in &self.tensors {
            let from = &device[tensor.device.clone()];
            let to = &mut host[tensor.host.clone()];
            match tensor.kind {
                Kind::Convolution { n_in, padded, places } => {
                    each_weight(to.len(), n_in, padded, places, |h, d| to[h] = from[d]);
                }
                Kind::Depthwise { channels, places } => {
                    (0..to.len()).for_each(|h| to[h] = from[h % places * channels + h / places]);
                }
                _ => to.copy_from_slice(from),
            }
        }
        host
    }

    /// Everything that learns, cut into pieces of which each is of one kind.
    pub fn pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for tensor in &self.tensors {
            let kind = match tensor.kind {
                Kind::Convolution { .. } => 0,
                Kind::Plain | Kind::Depthwise { .. } => 1,
                Kind::Scale => 2,
                Kind::Measured => continue,
            };
            for start in tensor.device.clone().step_by(PIECE) {
                let length = PIECE.min(tensor.device.end - start) as u32;
                pieces.push(Piece { start: start as u32, length, kind });
            }
        }
        pieces
    }
}

/// Calls `at(host, device)` for every weight of a convolution.
fn each_weight(len: usize, n_in: usize, padded: usize, places: usize, mut at: impl FnMut(usize, usize)) {
    for host in 0..len {
        let out = host / (n_in * places);
        let input = host / places % n_in;
        let place = host % places;
        at(host, (out * places + place) * padded + input);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use labelsieve_networks::{Architecture, Stem};

    #[test]
    fn parameters_survive_the_way_to_the_device_and_back() {
        for architecture in Architecture::ALL {
            let network = architecture.network(32, 48, Stem::Small).unwrap();
            let layout = Layout::new(&network, 7);
            let host: Vec<f32> = (0..layout.host_len).map(|i| i as f32).collect();
            assert_eq!(layout.to_host(&layout.to_device(&host)), host);
        }
    }

    #[test]
    fn weights_stand_channel_by_channel_behind_each_other_and_missing_channels_are_zero() {
        let network = Architecture::ResNet10.network(64, 64, Stem::Small).unwrap();
        let layout = Layout::new(&network, 0);
        let host: Vec<f32> = (1..=layout.host_len).map(|i| i as f32).collect();
        let device = layout.to_device(&host);
        // Out channel 0: 3 × 9 weights. The first place holds number 0 of each of the three channels.
        assert_eq!(device[..8], [1.0, 10.0, 19.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(device[8..11], [2.0, 11.0, 20.0]);
        assert_eq!(device[72], 28.0); // out channel 1
    }

    #[test]
    fn pieces_cover_what_learns_once_and_nothing_else() {
        let network = Architecture::ConvNet128.network(32, 32, Stem::Small).unwrap();
        let layout = Layout::new(&network, 5);
        let mut covered = vec![0; layout.len];
        for piece in layout.pieces() {
            covered[piece.start as usize..(piece.start + piece.length) as usize]
                .iter_mut()
                .for_each(|n| *n += 1);
        }
        let mut expected = vec![0; layout.len];
        for tensor in layout.tensors.iter().filter(|t| t.role.is_learned()) {
            expected[tensor.device.clone()].fill(1);
        }
        assert_eq!(covered, expected);
    }
}
