//! Attention in one kernel: softmax(Q Kᵀ) V, whose square of scores is never written down.

use cudarc::cudnn::sys;

use super::{Cudnn, Descriptor, Kind, Name, Operations, Plan, Type, data_type};
use crate::error::Result;
use crate::networks::ActivationPrecision;

/// Attention within sequences of one length. Numbers of a head are side by side, heads too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Problem {
    pub sequences: usize,
    pub heads: usize,
    /// Numbers of a head.
    pub head: usize,
    /// Tokens that ask, and those that are asked.
    pub queries: usize,
    pub tokens: usize,
    /// Numbers from one sequence of queries to the next; 0 if all have the same ones.
    pub query_sequence: usize,
    /// Numbers from one query to the next, from one key (and value) to the next.
    pub query_stride: usize,
    pub stride: usize,
}

pub(crate) const QUERIES: i64 = 1;
pub(crate) const KEYS: i64 = 2;
pub(crate) const VALUES: i64 = 3;
pub(crate) const OUTPUT: i64 = 4;
/// The logarithm of each query's sum, an `f32`: nobody reads it, but only who asks for it gets the fast kernels.
pub(crate) const SUMS: i64 = 5;

/// The first name that is free for what is never written down.
const FIRST_VIRTUAL: i64 = 10;

impl Problem {
    /// The way that cuDNN ranks first; none if it has none for numbers of this kind.
    pub fn plan(&self, cudnn: &Cudnn, precision: ActivationPrecision) -> Result<Option<Plan>> {
        if precision == ActivationPrecision::F32 || !self.head.is_multiple_of(8) {
            return Ok(None);
        }
        match self.operations(precision).and_then(|graph| Plan::candidates(cudnn, graph, precision, 1)) {
            Ok(mut plans) => Ok(plans.pop()),
            Err(crate::Error::OutOfMemory) => Err(crate::Error::OutOfMemory),
            Err(_) => Ok(None), // an older library that cannot even describe it
        }
    }

    /// Bytes of [`SUMS`].
    pub fn sums_size(&self) -> usize {
        4 * self.sequences * self.heads * self.queries
    }

    /// The pattern that cuDNN knows as attention: scores, their softmax step by step, and the mean of values by it.
    fn operations(&self, precision: ActivationPrecision) -> Result<Operations> {
        let element = data_type(precision);
        let [n, h, d, q, t] =
            [self.sequences, self.heads, self.head, self.queries, self.tokens].map(|size| size as i64);
        let [query_sequence, query_stride, stride] =
            [self.query_sequence, self.query_stride, self.stride].map(|step| step as i64);
        let score_strides = [h * q * t, q * t, t, 1];
        let sum_strides = [h * q, q, 1, 1];
        let operand = |name, sizes, strides| tensor(name, sizes, strides, element, false);
        let number = sys::cudnnDataType_t::CUDNN_DATA_FLOAT;
        let scores = |place: i64, of| tensor(FIRST_VIRTUAL + place, [n, h, q, t], score_strides, of, true);
        let sums = |place: i64| tensor(FIRST_VIRTUAL + place, [n, h, q, 1], sum_strides, number, true);

        let queries = operand(QUERIES, [n, h, q, d], [query_sequence, d, query_stride, 1])?;
        let keys = operand(KEYS, [n, h, d, t], [t * stride, d, 1, stride])?; // transposed
        let values = operand(VALUES, [n, h, t, d], [t * stride, d, stride, 1])?;
        let output = operand(OUTPUT, [n, h, q, d], [q * h * d, d, h * d, 1])?;
        let products = scores(0, number)?;
        let largest = sums(1)?;
        let below = scores(2, number)?;
        let powers = scores(3, number)?;
        let total = sums(4)?;
        let shares = scores(5, element)?;
        let log = sums(6)?;
        let written = tensor(SUMS, [n, h, q, 1], sum_strides, number, false)?;

        let mut all = Operations::default();
        all.matmul([&queries, &keys, &products])?;
        all.reduction(sys::cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_MAX, [&products, &largest])?;
        all.pointwise(sys::cudnnPointwiseMode_t::CUDNN_POINTWISE_SUB, &products, Some(&largest), &below)?;
        all.pointwise(sys::cudnnPointwiseMode_t::CUDNN_POINTWISE_EXP, &below, None, &powers)?;
        all.reduction(sys::cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_ADD, [&powers, &total])?;
        all.pointwise(sys::cudnnPointwiseMode_t::CUDNN_POINTWISE_LOG, &total, None, &log)?;
        all.pointwise(sys::cudnnPointwiseMode_t::CUDNN_POINTWISE_ADD, &largest, Some(&log), &written)?;
        all.pointwise(sys::cudnnPointwiseMode_t::CUDNN_POINTWISE_DIV, &powers, Some(&total), &shares)?;
        all.matmul([&shares, &values, &output])?;
        all.parts.extend([queries, keys, values, output, products, largest, below, powers, total, shares]);
        all.parts.extend([log, written]);
        Ok(all)
    }
}

impl Operations {
    fn matmul(&mut self, [a, b, out]: [&Descriptor; 3]) -> Result<()> {
        let kind = Descriptor::new(Kind::CUDNN_BACKEND_MATMUL_DESCRIPTOR)?;
        let compute = sys::cudnnDataType_t::CUDNN_DATA_FLOAT;
        kind.set(Name::CUDNN_ATTR_MATMUL_COMP_TYPE, Type::CUDNN_TYPE_DATA_TYPE, &[compute])?;
        kind.finish()?;
        let operation = Descriptor::new(Kind::CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)?;
        operation.set_one(Name::CUDNN_ATTR_OPERATION_MATMUL_ADESC, a)?;
        operation.set_one(Name::CUDNN_ATTR_OPERATION_MATMUL_BDESC, b)?;
        operation.set_one(Name::CUDNN_ATTR_OPERATION_MATMUL_CDESC, out)?;
        operation.set_one(Name::CUDNN_ATTR_OPERATION_MATMUL_DESC, &kind)?;
        self.add(kind, operation)
    }

    fn reduction(&mut self, by: sys::cudnnReduceTensorOp_t, [from, to]: [&Descriptor; 2]) -> Result<()> {
        let kind = Descriptor::new(Kind::CUDNN_BACKEND_REDUCTION_DESCRIPTOR)?;
        let compute = sys::cudnnDataType_t::CUDNN_DATA_FLOAT;
        kind.set(Name::CUDNN_ATTR_REDUCTION_COMP_TYPE, Type::CUDNN_TYPE_DATA_TYPE, &[compute])?;
        kind.set(Name::CUDNN_ATTR_REDUCTION_OPERATOR, Type::CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, &[by])?;
        kind.finish()?;
        let operation = Descriptor::new(Kind::CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)?;
        operation.set_one(Name::CUDNN_ATTR_OPERATION_REDUCTION_XDESC, from)?;
        operation.set_one(Name::CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to)?;
        operation.set_one(Name::CUDNN_ATTR_OPERATION_REDUCTION_DESC, &kind)?;
        self.add(kind, operation)
    }

    fn pointwise(
        &mut self,
        mode: sys::cudnnPointwiseMode_t,
        x: &Descriptor,
        b: Option<&Descriptor>,
        y: &Descriptor,
    ) -> Result<()> {
        let kind = Descriptor::new(Kind::CUDNN_BACKEND_POINTWISE_DESCRIPTOR)?;
        let compute = sys::cudnnDataType_t::CUDNN_DATA_FLOAT;
        kind.set(Name::CUDNN_ATTR_POINTWISE_MODE, Type::CUDNN_TYPE_POINTWISE_MODE, &[mode])?;
        kind.set(Name::CUDNN_ATTR_POINTWISE_MATH_PREC, Type::CUDNN_TYPE_DATA_TYPE, &[compute])?;
        kind.finish()?;
        let operation = Descriptor::new(Kind::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)?;
        operation.set_one(Name::CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, &kind)?;
        operation.set_one(Name::CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)?;
        if let Some(b) = b {
            operation.set_one(Name::CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b)?;
        }
        operation.set_one(Name::CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y)?;
        self.add(kind, operation)
    }

    fn add(&mut self, kind: Descriptor, operation: Descriptor) -> Result<()> {
        operation.finish()?;
        self.parts.push(kind);
        self.operations.push(operation);
        Ok(())
    }
}

fn tensor(
    name: i64,
    sizes: [i64; 4],
    strides: [i64; 4],
    of: sys::cudnnDataType_t,
    is_virtual: bool,
) -> Result<Descriptor> {
    let tensor = Descriptor::new(Kind::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_DATA_TYPE, Type::CUDNN_TYPE_DATA_TYPE, &[of])?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_DIMENSIONS, Type::CUDNN_TYPE_INT64, &sizes)?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_STRIDES, Type::CUDNN_TYPE_INT64, &strides)?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_UNIQUE_ID, Type::CUDNN_TYPE_INT64, &[name])?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, Type::CUDNN_TYPE_INT64, &[16i64])?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_IS_VIRTUAL, Type::CUDNN_TYPE_BOOLEAN, &[is_virtual])?;
    tensor.finish()?;
    Ok(tensor)
}
