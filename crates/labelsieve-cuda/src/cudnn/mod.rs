//! cuDNN through its graph interface: an operation is described, the library proposes ways to do it, best guess first, and
//! the first that repeats itself exactly is taken. Nothing is timed, so every run takes the same way and a resumed training
//! equals an unbroken one.
#![expect(unsafe_code, reason = "cuDNN is a C library; each block says what makes it sound")]

pub(crate) mod attention;
pub(crate) mod convolution;

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use cudarc::cudnn::sys::{
    self, cudnnBackendAttributeName_t as Name, cudnnBackendAttributeType_t as Type,
    cudnnBackendDescriptorType_t as Kind, cudnnBackendHeurMode_t as Heuristic, cudnnStatus_t as Status,
};
use cudarc::driver::CudaStream;

use crate::error::{Error, Result};
use crate::networks::ActivationPrecision;

/// A handle to cuDNN that queues its work on one stream.
pub(crate) struct Cudnn {
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

/// A way to do an operation, ready to run.
pub(crate) struct Plan {
    plan: Descriptor,
    /// Bytes it needs beside its operands.
    pub workspace: usize,
    /// What the plan was made from: the library may still refer to it.
    _config: Descriptor,
    _parts: Arc<Vec<Descriptor>>,
}

const MAX_WORKSPACE: usize = 1 << 30;

impl Plan {
    /// Up to `most` ways to do what the operations describe, best guess first.
    fn candidates(
        cudnn: &Cudnn,
        operations: Operations,
        precision: ActivationPrecision,
        max_plans: usize,
    ) -> Result<Vec<Plan>> {
        let mut plans = Vec::new();
        let (graph, parts) = operations.graph(cudnn)?;
        let parts = Arc::new(parts);
        for heuristic in [Heuristic::CUDNN_HEUR_MODE_A, Heuristic::CUDNN_HEUR_MODE_FALLBACK] {
            for config in proposals(&graph, heuristic)? {
                if plans.len() == max_plans {
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
        Ok((workspace <= MAX_WORKSPACE).then_some(plan))
    }

    /// Queues it. Names and addresses of the operands, and the address of `workspace` bytes.
    pub fn run<const N: usize>(
        &self,
        cudnn: &Cudnn,
        operands: [(i64, u64); N],
        workspace: u64,
    ) -> Result<()> {
        let pack = Descriptor::new(Kind::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)?;
        let addresses = operands.map(|(_, address)| address);
        pack.set(Name::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, Type::CUDNN_TYPE_VOID_PTR, &addresses)?;
        let names = operands.map(|(name, _)| name);
        pack.set(Name::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, Type::CUDNN_TYPE_INT64, &names)?;
        pack.set(Name::CUDNN_ATTR_VARIANT_PACK_WORKSPACE, Type::CUDNN_TYPE_VOID_PTR, &[workspace])?;
        pack.finish()?;
        // SAFETY: plan and pack are finished; the addresses are those of buffers with the sizes that the plan was made for.
        checked(unsafe { sys::cudnnBackendExecute(cudnn.handle, self.plan.0, pack.0) })
    }
}

/// Operations that are done together, with all that describes them.
#[derive(Default)]
struct Operations {
    operations: Vec<Descriptor>,
    parts: Vec<Descriptor>,
}

impl Operations {
    fn graph(self, cudnn: &Cudnn) -> Result<(Descriptor, Vec<Descriptor>)> {
        let graph = Descriptor::new(Kind::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)?;
        let raw: Vec<_> = self.operations.iter().map(|operation| operation.0).collect();
        graph.set(Name::CUDNN_ATTR_OPERATIONGRAPH_OPS, Type::CUDNN_TYPE_BACKEND_DESCRIPTOR, &raw)?;
        graph.set(Name::CUDNN_ATTR_OPERATIONGRAPH_HANDLE, Type::CUDNN_TYPE_HANDLE, &[cudnn.handle])?;
        graph.finish()?;
        let mut parts = self.parts;
        parts.extend(self.operations);
        Ok((graph, parts))
    }
}

fn data_type(precision: ActivationPrecision) -> sys::cudnnDataType_t {
    match precision {
        ActivationPrecision::Bf16 => sys::cudnnDataType_t::CUDNN_DATA_BFLOAT16,
        ActivationPrecision::F32 => sys::cudnnDataType_t::CUDNN_DATA_FLOAT,
    }
}

/// What the library proposes, best guess first.
fn proposals(graph: &Descriptor, heuristic: Heuristic) -> Result<Vec<Descriptor>> {
    const MAX_CONFIGS: usize = 32;
    let search = Descriptor::new(Kind::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)?;
    search.set_one(Name::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)?;
    search.set(Name::CUDNN_ATTR_ENGINEHEUR_MODE, Type::CUDNN_TYPE_HEUR_MODE, &[heuristic])?;
    if search.finish().is_err() {
        return Ok(Vec::new()); // no proposals at all
    }
    let new = |_| Descriptor::new(Kind::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    let mut configs = (0..MAX_CONFIGS).map(new).collect::<Result<Vec<Descriptor>>>()?;
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
        let count = values.len() as i64;
        let values = values.as_ptr().cast::<c_void>();
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
        let capacity = values.len() as i64;
        let mut count = 0;
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
