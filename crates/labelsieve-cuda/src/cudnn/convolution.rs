//! Convolutions, forwards and backwards.

use cudarc::cudnn::sys;
use labelsieve_networks::Shape;

use super::{Cudnn, Descriptor, Kind, Name, Operations, Plan, Type, data_type};
use crate::error::{Error, Result};
use crate::networks::ActivationPrecision;

/// Which of the three products of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    Forward,
    /// Gradients of the input.
    Input,
    /// Gradients of the weights.
    Weights,
}

/// A convolution of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Problem {
    pub n_images: usize,
    pub from: Shape,
    pub to: Shape,
    pub kernel: usize,
    pub stride: usize,
    pub padding: usize,
}

// Names of the operands, which every direction shares: input or its gradients, weights or theirs, output or theirs.
pub(crate) const INPUT: i64 = 1;
pub(crate) const WEIGHTS: i64 = 2;
pub(crate) const OUTPUT: i64 = 3;

impl Problem {
    /// The way that cuDNN ranks first.
    pub fn plan(&self, cudnn: &Cudnn, direction: Direction, precision: ActivationPrecision) -> Result<Plan> {
        self.candidates(cudnn, direction, precision, 1)?.pop().ok_or_else(|| {
            Error::Failed(format!("cuDNN has no repeatable {direction:?} convolution for {self:?}"))
        })
    }

    /// Up to `most` ways, best guess first.
    pub fn candidates(
        &self,
        cudnn: &Cudnn,
        direction: Direction,
        precision: ActivationPrecision,
        max_plans: usize,
    ) -> Result<Vec<Plan>> {
        Plan::candidates(cudnn, operation(self, direction, precision)?, precision, max_plans)
    }
}

fn operation(problem: &Problem, direction: Direction, precision: ActivationPrecision) -> Result<Operations> {
    use Name as N;
    let (kind, convolution_name, input_name, weights_name, output_name, [alpha, beta]) = match direction {
        Direction::Forward => (
            Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            N::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            N::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            N::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            N::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
            [
                N::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                N::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
            ],
        ),
        Direction::Input => (
            Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            N::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            N::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            N::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            N::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            [
                N::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                N::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
            ],
        ),
        Direction::Weights => (
            Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            N::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
            N::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
            N::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
            N::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
            [
                N::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                N::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
            ],
        ),
    };
    let from = problem.from;
    let to = problem.to;
    let side = problem.kernel;
    let weights = Shape { channels: from.channels, height: side, width: side };
    let input = tensor(INPUT, problem.n_images, from, precision)?;
    let weights = tensor(WEIGHTS, to.channels, weights, precision)?;
    let output = tensor(OUTPUT, problem.n_images, to, precision)?;
    let convolution = convolution(problem)?;
    let operation = Descriptor::new(kind)?;
    operation.set_one(convolution_name, &convolution)?;
    operation.set_one(input_name, &input)?;
    operation.set_one(weights_name, &weights)?;
    operation.set_one(output_name, &output)?;
    operation.set(alpha, Type::CUDNN_TYPE_FLOAT, &[1f32])?;
    operation.set(beta, Type::CUDNN_TYPE_FLOAT, &[0f32])?;
    operation.finish()?;
    Ok(Operations { operations: vec![operation], parts: vec![input, weights, output, convolution] })
}

/// `count` images, or filters, whose channels are side by side.
fn tensor(name: i64, count: usize, shape: Shape, precision: ActivationPrecision) -> Result<Descriptor> {
    let [n, c, h, w] = [count, shape.channels, shape.height, shape.width].map(|size| size as i64);
    let tensor = Descriptor::new(Kind::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_DATA_TYPE, Type::CUDNN_TYPE_DATA_TYPE, &[data_type(precision)])?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_DIMENSIONS, Type::CUDNN_TYPE_INT64, &[n, c, h, w])?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_STRIDES, Type::CUDNN_TYPE_INT64, &[c * h * w, 1, c * w, c])?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_UNIQUE_ID, Type::CUDNN_TYPE_INT64, &[name])?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, Type::CUDNN_TYPE_INT64, &[16i64])?;
    tensor.finish()?;
    Ok(tensor)
}

fn convolution(problem: &Problem) -> Result<Descriptor> {
    let convolution = Descriptor::new(Kind::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)?;
    let both = |name, value: usize| convolution.set(name, Type::CUDNN_TYPE_INT64, &[value as i64; 2]);
    both(Name::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, problem.padding)?;
    both(Name::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, problem.padding)?;
    both(Name::CUDNN_ATTR_CONVOLUTION_DILATIONS, 1)?;
    both(Name::CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, problem.stride)?;
    convolution.set(Name::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, Type::CUDNN_TYPE_INT64, &[2i64])?;
    let compute = sys::cudnnDataType_t::CUDNN_DATA_FLOAT;
    convolution.set(Name::CUDNN_ATTR_CONVOLUTION_COMP_TYPE, Type::CUDNN_TYPE_DATA_TYPE, &[compute])?;
    let mode = sys::cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION;
    convolution.set(Name::CUDNN_ATTR_CONVOLUTION_CONV_MODE, Type::CUDNN_TYPE_CONVOLUTION_MODE, &[mode])?;
    convolution.finish()?;
    Ok(convolution)
}
