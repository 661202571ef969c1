//! Kernels of transformers: CUDA C for everything except products.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction};

use crate::error::Result;
use crate::kernels::{Modules, kernels};
use crate::networks::ActivationPrecision;
use crate::networks::kernels::options;

/// The common start of every kernel file.
const PRELUDE: &str =
    concat!(include_str!("../../networks/kernels/element.cu"), "\n", include_str!("warps.cu"));

kernels! {
    "rows.cu": normalise_rows activate gate_rows patch_rows sequence_rows first_rows mean_rows;
    "attention.cu": attend rotate_heads;
}

impl Kernels {
    /// Compiles all files side by side for the GPU of `context`.
    pub fn compile(context: &Arc<CudaContext>, precision: ActivationPrecision) -> Result<Kernels> {
        let (major, minor) = context.compute_capability()?;
        let architecture = format!("sm_{major}{minor}");
        Kernels::find(&Modules::compile(context, &architecture, FILES, PRELUDE, options(precision))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_compiles_for_both_precisions() {
        for precision in [ActivationPrecision::Bf16, ActivationPrecision::F32] {
            crate::kernels::check_files(FILES, PRELUDE, options(precision));
        }
    }
}
