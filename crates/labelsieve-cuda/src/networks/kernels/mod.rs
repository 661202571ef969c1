//! The kernels of the networks, for operations that cuDNN lacks or does slower.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction};

use super::ActivationPrecision;
use crate::error::Result;
use crate::kernels::{Modules, kernels};

/// The common start of every kernel file.
const PRELUDE: &str = concat!(include_str!("element.cu"), "\n", include_str!("sums.cu"));

kernels! {
    "image.cu": normalise_images mean_features spread_mean_gradients flatten_features unflatten_gradients;
    "normalise.cu": value_sums batch_table running_table normalise gradient_sums gradient_table input_gradients normalise_pool
        pool_input_gradients;
    "depthwise.cu": depthwise depthwise_input_gradients depthwise_tap_sums depthwise_tap_totals;
    "head.cu": unit_rows row_gradients class_gradients count_step descend;
}

impl Kernels {
    /// Compiles all files for images of numbers of this precision.
    pub fn compile(context: &Arc<CudaContext>, precision: ActivationPrecision) -> Result<Kernels> {
        let (major, minor) = context.compute_capability()?;
        let architecture = format!("sm_{major}{minor}");
        Kernels::find(&Modules::compile(context, &architecture, FILES, PRELUDE, options(precision))?)
    }
}

/// The macro definitions of a precision.
pub(crate) fn options(precision: ActivationPrecision) -> &'static [&'static str] {
    match precision {
        ActivationPrecision::Bf16 => &[],
        ActivationPrecision::F32 => &["--define-macro=EXACT"],
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
