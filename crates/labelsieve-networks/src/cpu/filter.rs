//! The interface of all kinds of convolution.

use super::tensor::Tensor;
use crate::network::Activation;

/// A convolution between tensors of known shape. Weights are packed: in the order in which it reads them.
pub(super) trait Filter: Send + Sync {
    /// Weights as files hold them, packed.
    fn pack(&self, weights: &[f32]) -> Vec<f32>;

    /// The inverse of [`Filter::pack`].
    fn unpack(&self, packed: &[f32]) -> Vec<f32>;

    /// Multiplies the packed weights of each output channel by its factor.
    fn scale_outputs(&self, packed: &mut [f32], factors: &[f32]);

    /// `output = input * weights`, then `finish`.
    fn forward(&self, input: &Tensor, weights: &[f32], finish: Finish, output: &mut Tensor);

    /// The gradient by the input from that by the output.
    fn backward(&self, by_output: &Tensor, weights: &[f32], add: Accumulate, by_input: &mut Tensor);

    /// The gradient by the packed weights, written to `gradient`.
    fn weight_gradient(&self, input: &Tensor, by_output: &Tensor, gradient: &mut [f32]);
}

/// The steps after the products of a convolution.
#[derive(Clone, Copy)]
pub(super) struct Finish<'a> {
    /// One number per channel that sums start from.
    pub bias: Option<&'a [f32]>,
    /// Added, laid out as the output.
    pub add: Option<&'a Tensor>,
    /// Applied to the results.
    pub activation: Activation,
}

impl Finish<'_> {
    /// The products and nothing else.
    pub const PLAIN: Finish<'static> = Finish { bias: None, add: None, activation: Activation::Linear };
}

/// Whether a gradient replaces what is there or is added to it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Accumulate {
    Replace,
    Add,
}
