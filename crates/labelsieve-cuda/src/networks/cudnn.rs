//! Convolutions by cuDNN, through its graph interface: an operation is described, the library proposes ways to do it, best
//! guess first, and the first that repeats itself exactly is taken. Nothing is timed, so every run takes the same way and a
//! resumed training equals an unbroken one.
#![expect(unsafe_code, reason = "cuDNN is a C library; each block says what makes it sound")]

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use cudarc::cudnn::sys::{
    self, cudnnBackendAttributeName_t as Name, cudnnBackendAttributeType_t as Type,
    cudnnBackendDescriptorType_t as Kind, cudnnBackendHeurMode_t as Heuristic, cudnnStatus_t as Status,
};
use cudarc::driver::CudaStream;
use labelsieve_vision::Shape;

use super::ActivationPrecision;
use crate::error::{Error, Result};

/// A handle to cuDNN that queues its work on one stream.
pub(super) struct Cudnn {
    handle: sys::cudnnHandle_t,
}

// SAFETY: a handle may move between threads; its owner uses it from one at a time.
unsafe impl Send for Cudnn {}

impl Cudnn {
    /// Fails when the library is missing, which cudarc would answer with a panic.
    pub fn check() -> Result<()> {
        // SAFETY: loading the library runs only its own initialisers.
        match unsafe { sys::is_culib_present() } {
            true => Ok(()),
            false => Err(Error::MissingCudnn),
        }
    }

    /// The context of the stream must be the thread's.
    pub fn new(stream: &CudaStream) -> Result<Cudnn> {
        Cudnn::check()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the library is there; both calls get what they ask for, and the stream outlives the handle (see `Learner`).
        unsafe {
            checked(sys::cudnnCreate(&mut handle))?;
            let cudnn = Cudnn { handle };
            checked(sys::cudnnSetStream(handle, stream.cu_stream().cast()))?;
            Ok(cudnn)
        }
    }
}

impl Drop for Cudnn {
    fn drop(&mut self) {
        // SAFETY: made by `cudnnCreate`, destroyed once. Nothing can be done about a failure.
        let _ = unsafe { sys::cudnnDestroy(self.handle) };
    }
}

/// Which of the three products of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Direction {
    Forward,
    /// Gradients of the input.
    Input,
    /// Gradients of the weights.
    Weights,
}

/// A convolution of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Problem {
    pub n_images: usize,
    pub from: Shape,
    pub to: Shape,
    pub kernel: usize,
    pub stride: usize,
    pub padding: usize,
}

/// A way to compute one product, ready to run.
pub(super) struct Plan {
    plan: Descriptor,
    /// Bytes it needs beside its operands.
    pub workspace: usize,
    /// What the plan was made from: the library may still refer to it.
    _config: Descriptor,
    _parts: Arc<Vec<Descriptor>>,
}

// Names of the operands, which every direction shares: input or its gradients, weights or theirs, output or theirs.
const INPUT: i64 = 1;
const WEIGHTS: i64 = 2;
const OUTPUT: i64 = 3;

const MOST_WORKSPACE: usize = 1 << 30;

impl Plan {
    /// The way that cuDNN ranks first.
    pub fn new(
        cudnn: &Cudnn,
        problem: &Problem,
        direction: Direction,
        precision: ActivationPrecision,
    ) -> Result<Plan> {
        Plan::candidates(cudnn, problem, direction, precision, 1)?.pop().ok_or_else(|| {
            Error::Failed(format!("cuDNN has no repeatable {direction:?} convolution for {problem:?}"))
        })
    }

    /// Up to `most` ways, best guess first.
    fn candidates(
        cudnn: &Cudnn,
        problem: &Problem,
        direction: Direction,
        precision: ActivationPrecision,
        most: usize,
    ) -> Result<Vec<Plan>> {
        let mut plans = Vec::new();
        let (graph, parts) = operation(cudnn, problem, direction, precision)?;
        let parts = Arc::new(parts);
        for heuristic in [Heuristic::CUDNN_HEUR_MODE_A, Heuristic::CUDNN_HEUR_MODE_FALLBACK] {
            for config in proposals(&graph, heuristic)? {
                if plans.len() == most {
                    return Ok(plans);
                }
                if is_welcome(&config, precision)? {
                    plans.extend(Plan::from_proposal(cudnn, config, &parts)?);
                }
            }
        }
        Ok(plans)
    }

    /// None if this machine cannot do it that way after all.
    fn from_proposal(
        cudnn: &Cudnn,
        config: Descriptor,
        parts: &Arc<Vec<Descriptor>>,
    ) -> Result<Option<Plan>> {
        let plan = Descriptor::new(Kind::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)?;
        plan.set(Name::CUDNN_ATTR_EXECUTION_PLAN_HANDLE, Type::CUDNN_TYPE_HANDLE, &[cudnn.handle])?;
        plan.set_one(Name::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, &config)?;
        if plan.finish().is_err() {
            return Ok(None);
        }
        let mut workspace = [0i64];
        plan.get(Name::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, Type::CUDNN_TYPE_INT64, &mut workspace)?;
        let workspace = workspace[0].max(0) as usize;
        let plan = Plan { plan, workspace, _config: config, _parts: parts.clone() };
        Ok((workspace <= MOST_WORKSPACE).then_some(plan))
    }

    /// Queues the product. Addresses of the operands, and of `workspace` bytes.
    pub fn run(&self, cudnn: &Cudnn, input: u64, weights: u64, output: u64, workspace: u64) -> Result<()> {
        let pack = Descriptor::new(Kind::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)?;
        pack.set(
            Name::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
            Type::CUDNN_TYPE_VOID_PTR,
            &[input, weights, output],
        )?;
        pack.set(
            Name::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
            Type::CUDNN_TYPE_INT64,
            &[INPUT, WEIGHTS, OUTPUT],
        )?;
        pack.set(Name::CUDNN_ATTR_VARIANT_PACK_WORKSPACE, Type::CUDNN_TYPE_VOID_PTR, &[workspace])?;
        pack.finish()?;
        // SAFETY: plan and pack are finished; the addresses are those of buffers with the sizes that the plan was made for.
        checked(unsafe { sys::cudnnBackendExecute(cudnn.handle, self.plan.0, pack.0) })
    }
}

/// The graph of one convolution, and its parts.
fn operation(
    cudnn: &Cudnn,
    problem: &Problem,
    direction: Direction,
    precision: ActivationPrecision,
) -> Result<(Descriptor, Vec<Descriptor>)> {
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
    let (from, to, side) = (problem.from, problem.to, problem.kernel);
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
    let graph = Descriptor::new(Kind::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)?;
    graph.set_one(N::CUDNN_ATTR_OPERATIONGRAPH_OPS, &operation)?;
    graph.set(N::CUDNN_ATTR_OPERATIONGRAPH_HANDLE, Type::CUDNN_TYPE_HANDLE, &[cudnn.handle])?;
    graph.finish()?;
    Ok((graph, vec![input, weights, output, convolution, operation]))
}

/// `count` images, or filters, whose channels are side by side.
fn tensor(name: i64, count: usize, shape: Shape, precision: ActivationPrecision) -> Result<Descriptor> {
    let [n, c, h, w] = [count, shape.channels, shape.height, shape.width].map(|size| size as i64);
    let data_type = match precision {
        ActivationPrecision::Bf16 => sys::cudnnDataType_t::CUDNN_DATA_BFLOAT16,
        ActivationPrecision::F32 => sys::cudnnDataType_t::CUDNN_DATA_FLOAT,
    };
    let tensor = Descriptor::new(Kind::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_DATA_TYPE, Type::CUDNN_TYPE_DATA_TYPE, &[data_type])?;
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

/// What the library proposes, best guess first.
fn proposals(graph: &Descriptor, heuristic: Heuristic) -> Result<Vec<Descriptor>> {
    const MOST: usize = 32;
    let search = Descriptor::new(Kind::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)?;
    search.set_one(Name::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)?;
    search.set(Name::CUDNN_ATTR_ENGINEHEUR_MODE, Type::CUDNN_TYPE_HEUR_MODE, &[heuristic])?;
    if search.finish().is_err() {
        return Ok(Vec::new()); // no proposals at all
    }
    let new = |_| Descriptor::new(Kind::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    let mut configs = (0..MOST).map(new).collect::<Result<Vec<Descriptor>>>()?;
    let mut raw: Vec<_> = configs.iter().map(|config| config.0).collect();
    let count =
        search.get(Name::CUDNN_ATTR_ENGINEHEUR_RESULTS, Type::CUDNN_TYPE_BACKEND_DESCRIPTOR, &mut raw)?;
    configs.truncate(count);
    Ok(configs)
}

/// Whether a way repeats itself exactly and computes as precisely as asked for.
fn is_welcome(config: &Descriptor, precision: ActivationPrecision) -> Result<bool> {
    use sys::cudnnBackendNumericalNote_t as Note;
    let engine = Descriptor::new(Kind::CUDNN_BACKEND_ENGINE_DESCRIPTOR)?;
    let mut raw = [engine.0];
    config.get(Name::CUDNN_ATTR_ENGINECFG_ENGINE, Type::CUDNN_TYPE_BACKEND_DESCRIPTOR, &mut raw)?;
    let mut notes = [0u32; 32]; // numbers, not the enumeration: a newer library may know more
    let count =
        engine.get(Name::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, Type::CUDNN_TYPE_NUMERICAL_NOTE, &mut notes)?;
    let unwelcome: &[Note] = match precision {
        ActivationPrecision::Bf16 => &[
            Note::CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
            Note::CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
        ],
        ActivationPrecision::F32 => &[
            Note::CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
            Note::CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
            Note::CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
            Note::CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
            Note::CUDNN_NUMERICAL_NOTE_FFT,
            Note::CUDNN_NUMERICAL_NOTE_WINOGRAD,
        ],
    };
    Ok(!notes[..count].iter().any(|note| unwelcome.iter().any(|u| *u as u32 == *note)))
}

/// Something described to cuDNN.
struct Descriptor(sys::cudnnBackendDescriptor_t);

// SAFETY: may move between threads; its owner, a learner, uses all of its descriptors from one thread at a time.
unsafe impl Send for Descriptor {}
// SAFETY: as above.
unsafe impl Sync for Descriptor {}

impl Descriptor {
    fn new(kind: Kind) -> Result<Descriptor> {
        let mut descriptor = std::ptr::null_mut();
        // SAFETY: writes one pointer.
        checked(unsafe { sys::cudnnBackendCreateDescriptor(kind, &mut descriptor) })?;
        Ok(Descriptor(descriptor))
    }

    /// `T` must be what `of` stands for in C.
    fn set<T>(&self, name: Name, of: Type, values: &[T]) -> Result<()> {
        let (count, values) = (values.len() as i64, values.as_ptr().cast::<c_void>());
        // SAFETY: `values` holds `count` values of the type; the library copies them.
        checked(unsafe { sys::cudnnBackendSetAttribute(self.0, name, of, count, values) })
    }

    fn set_one(&self, name: Name, part: &Descriptor) -> Result<()> {
        self.set(name, Type::CUDNN_TYPE_BACKEND_DESCRIPTOR, &[part.0])
    }

    fn finish(&self) -> Result<()> {
        // SAFETY: the descriptor is alive.
        checked(unsafe { sys::cudnnBackendFinalize(self.0) })
    }

    /// Fills `values` as far as there are any; how many came.
    fn get<T>(&self, name: Name, of: Type, values: &mut [T]) -> Result<usize> {
        let (capacity, mut count) = (values.len() as i64, 0);
        let values = values.as_mut_ptr().cast::<c_void>();
        // SAFETY: `values` has space for as many values of the type as it says.
        checked(unsafe { sys::cudnnBackendGetAttribute(self.0, name, of, capacity, &mut count, values) })?;
        Ok(count.clamp(0, capacity) as usize)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: made by `cudnnBackendCreateDescriptor`, destroyed once. Nothing can be done about a failure.
        let _ = unsafe { sys::cudnnBackendDestroyDescriptor(self.0) };
    }
}

fn checked(status: Status) -> Result<()> {
    match status {
        Status::CUDNN_STATUS_SUCCESS => Ok(()),
        Status::CUDNN_STATUS_ALLOC_FAILED => Err(Error::OutOfMemory),
        status => {
            // SAFETY: returns a text that lives as long as the library.
            let text = unsafe { CStr::from_ptr(sys::cudnnGetErrorString(status)) };
            Err(Error::Failed(format!("cuDNN: {}", text.to_string_lossy())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cuda;
    use crate::networks::layout::Layout;
    use crate::networks::schedule::{Channels, Convolution, Schedule, Work};
    use cudarc::driver::CudaSlice;
    use labelsieve_vision::{Architecture, Stem};

    /// Microseconds of each way to do a product, in cuDNN's order.
    fn times(cudnn: &Cudnn, stream: &Arc<CudaStream>, problem: &Problem, direction: Direction) -> Vec<f32> {
        let plans = Plan::candidates(cudnn, problem, direction, ActivationPrecision::Bf16, 8).unwrap();
        let weights = problem.from.channels * problem.to.channels * problem.kernel.pow(2);
        let lens = [problem.n_images * problem.from.len(), weights, problem.n_images * problem.to.len()];
        let operands: Vec<CudaSlice<u16>> =
            lens.iter().map(|&len| stream.alloc_zeros(len).unwrap()).collect();
        let [input, weights, output] = [0, 1, 2].map(|i| crate::gpu::at(&operands[i]));
        let workspace = plans.iter().map(|plan| plan.workspace).max().unwrap_or(0);
        let workspace: CudaSlice<u8> = stream.alloc_zeros(workspace.max(1)).unwrap();
        let timed = Some(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT);
        let time = |plan: &Plan| {
            let run = || plan.run(cudnn, input, weights, output, crate::gpu::at(&workspace)).unwrap();
            (0..3).for_each(|_| run());
            let start = stream.record_event(timed).unwrap();
            (0..20).for_each(|_| run());
            start.elapsed_ms(&stream.record_event(timed).unwrap()).unwrap() * 1000.0 / 20.0
        };
        plans.iter().map(time).collect()
    }

    /// How good the first guess is, for a person to read: `cargo test … -- --ignored --nocapture ways_to_convolve`.
    #[test]
    #[ignore = "prints timings"]
    fn ways_to_convolve() {
        let cuda = Cuda::open(0).unwrap();
        let stream = cuda.gpu().context.new_stream().unwrap();
        let cudnn = Cudnn::new(&stream).unwrap();
        for (architecture, size, n_images) in [
            (Architecture::ResNet10, 224, 128),
            (Architecture::ConvNet128, 84, 256),
            (Architecture::ResNet10, 64, 256),
        ] {
            let network = architecture.network(size, size, Stem::for_images(size, size)).unwrap();
            let schedule = Schedule::new(&network, &Layout::new(&network, 0)).unwrap();
            let (mut first, mut best) = (0.0, 0.0);
            for work in &schedule.work {
                let Work::Convolution(Convolution {
                    from,
                    to,
                    kernel,
                    stride,
                    padding,
                    input,
                    channels: Channels::All,
                    ..
                }) = *work
                else {
                    continue;
                };
                for direction in [Direction::Forward, Direction::Input, Direction::Weights] {
                    if input == 0 && direction == Direction::Input {
                        continue;
                    }
                    let problem = Problem { n_images, from, to, kernel, stride, padding: padding.top };
                    let times = times(&cudnn, &stream, &problem, direction);
                    first += times[0];
                    best += times.iter().copied().fold(f32::INFINITY, f32::min);
                    let flops = 2 * n_images * to.len() * from.channels * kernel.pow(2);
                    let rate = flops as f32 / times[0] / 1e6;
                    println!(
                        "{direction:?} {from:?} {to:?} k{kernel} s{stride}: {rate:.0} TFLOP/s, µs {times:.0?}"
                    );
                }
            }
            println!("{architecture} {size}: first guesses {first:.0} µs, best {best:.0} µs");
        }
    }
}
