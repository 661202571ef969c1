//! Linear layers by cuBLASLt: products with the bias, an activation or the shortcut joined on. For every shape the library's
//! first proposal is taken; nothing is timed, so every run takes the same way.
#![expect(unsafe_code, reason = "cuBLASLt is a C library; each block says what makes it sound")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use cudarc::cublaslt::result::CublasError;
use cudarc::cublaslt::{result, sys};
use cudarc::driver::{CudaSlice, CudaStream};

use crate::error::{Error, Result};
use crate::gpu::at;
use crate::networks::ActivationPrecision;

/// Bytes that a product may take beside its operands: what NVIDIA advises for Hopper.
const WORKSPACE: usize = 32 << 20;

/// What is done with W x + b.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Then {
    Store,
    /// Added to what is there.
    Add,
    /// Through GELU by tanh.
    Gelu,
}

/// Which product: `rows` rows of `inputs` numbers become rows of `outputs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub rows: usize,
    pub inputs: usize,
    pub outputs: usize,
    pub then: Then,
}

/// Addresses on the device.
pub(super) struct Operands {
    pub rows: u64,
    pub weight: u64,
    pub bias: u64,
    pub out: u64,
}

/// Makes products on one stream, each shape planned once.
pub(super) struct Products {
    plans: HashMap<Shape, Plan>,
    workspace: CudaSlice<u8>,
    precision: ActivationPrecision,
    handle: sys::cublasLtHandle_t,
    stream: Arc<CudaStream>,
}

// SAFETY: handle and descriptors may move between threads; their owner uses them from one at a time.
unsafe impl Send for Products {}

impl Products {
    /// Fails when the library is missing, which cudarc would answer with a panic.
    pub fn new(stream: &Arc<CudaStream>, precision: ActivationPrecision) -> Result<Products> {
        // SAFETY: loading the library runs only its own initialisers.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::MissingLibrary { name: "cuBLASLt" });
        }
        // SAFETY: whatever uses the workspace writes it first.
        let workspace = unsafe { stream.alloc(WORKSPACE) }?;
        let handle = result::create_handle().map_err(refused)?;
        Ok(Products { plans: HashMap::new(), workspace, precision, handle, stream: stream.clone() })
    }

    /// Queues a product.
    pub fn run(&mut self, shape: Shape, operands: &Operands) -> Result<()> {
        if !self.plans.contains_key(&shape) {
            let plan = Plan::new(self.handle, shape, self.precision).map_err(refused)?;
            self.plans.insert(shape, plan);
        }
        let plan = &self.plans[&shape];
        let one = 1f32;
        let beta = if shape.then == Then::Add { 1f32 } else { 0f32 };
        let pointer = |address: u64| address as *const c_void;
        let bias = sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER;
        // SAFETY: the descriptors are alive, the addresses are those of buffers of the sizes they say, and the scalars are read
        // before the call returns.
        unsafe {
            plan.describe(bias, &operands.bias).map_err(refused)?;
            result::matmul(
                self.handle,
                plan.description,
                (&raw const one).cast(),
                (&raw const beta).cast(),
                pointer(operands.weight),
                plan.weight,
                pointer(operands.rows),
                plan.rows,
                pointer(operands.out),
                plan.out,
                operands.out as *mut c_void,
                plan.out,
                &plan.algorithm,
                at(&self.workspace) as *mut c_void,
                WORKSPACE,
                self.stream.cu_stream().cast(),
            )
            .map_err(refused)
        }
    }
}

impl Drop for Products {
    fn drop(&mut self) {
        self.plans.clear();
        // SAFETY: made by `create_handle`, destroyed once. Nothing can be done about a failure.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

/// A product as the library wants it described, and how it will be done.
struct Plan {
    description: sys::cublasLtMatmulDesc_t,
    weight: sys::cublasLtMatrixLayout_t,
    rows: sys::cublasLtMatrixLayout_t,
    out: sys::cublasLtMatrixLayout_t,
    algorithm: sys::cublasLtMatmulAlgo_t,
}

impl Plan {
    /// The library counts columns first, so it is asked for outᵀ = W rowsᵀ, where W is stored as its own transpose.
    fn new(
        handle: sys::cublasLtHandle_t,
        shape: Shape,
        precision: ActivationPrecision,
    ) -> std::result::Result<Plan, CublasError> {
        use sys::cublasLtEpilogue_t as Epilogue;
        use sys::cublasLtMatmulDescAttributes_t as Attribute;
        let number = match precision {
            ActivationPrecision::Bf16 => sys::cudaDataType::CUDA_R_16BF,
            ActivationPrecision::F32 => sys::cudaDataType::CUDA_R_32F,
        };
        let Shape { rows, inputs, outputs, then } = shape;
        let layout = |rows: usize, columns: usize| {
            result::create_matrix_layout(number, rows as u64, columns as u64, rows as i64)
        };
        let compute = sys::cublasComputeType_t::CUBLAS_COMPUTE_32F;
        let mut plan = Plan {
            description: result::create_matmul_desc(compute, sys::cudaDataType::CUDA_R_32F)?,
            weight: layout(inputs, outputs)?,
            rows: layout(inputs, rows)?,
            out: layout(outputs, rows)?,
            algorithm: sys::cublasLtMatmulAlgo_t { data: [0; 8] },
        };
        let transposed = cudarc::cublas::sys::cublasOperation_t::CUBLAS_OP_T;
        let epilogue = match then {
            Then::Store | Then::Add => Epilogue::CUBLASLT_EPILOGUE_BIAS,
            Then::Gelu => Epilogue::CUBLASLT_EPILOGUE_GELU_BIAS,
        };
        let workspace = WORKSPACE;
        let limit = sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        // SAFETY: every descriptor is alive, and every attribute has the type that the library documents for it.
        unsafe {
            plan.describe(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &transposed)?;
            plan.describe(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
            let preference = result::create_matmul_pref()?;
            let found = result::set_matmul_pref_attribute(
                preference,
                limit,
                (&raw const workspace).cast(),
                size_of::<usize>(),
            )
            .and_then(|()| {
                result::get_matmul_algo_heuristic(
                    handle,
                    plan.description,
                    plan.weight,
                    plan.rows,
                    plan.out,
                    plan.out,
                    preference,
                )
            });
            result::destroy_matmul_pref(preference)?;
            plan.algorithm = found?.algo;
        }
        Ok(plan)
    }

    /// # Safety
    /// `T` is what the attribute is in C.
    unsafe fn describe<T>(
        &self,
        attribute: sys::cublasLtMatmulDescAttributes_t,
        value: &T,
    ) -> std::result::Result<(), CublasError> {
        let value = std::ptr::from_ref(value).cast();
        // SAFETY: the description is alive, the caller answers for the type.
        unsafe { result::set_matmul_desc_attribute(self.description, attribute, value, size_of::<T>()) }
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: made by the library, destroyed once. Nothing can be done about a failure.
        unsafe {
            for layout in [self.weight, self.rows, self.out] {
                let _ = result::destroy_matrix_layout(layout);
            }
            let _ = result::destroy_matmul_desc(self.description);
        }
    }
}

fn refused(error: CublasError) -> Error {
    match error.0 {
        sys::cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED => Error::OutOfMemory,
        _ => Error::Failed(format!("cuBLASLt: {:?}", error.0)),
    }
}
