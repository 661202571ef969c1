//! The kernels: CUDA C, one file per idea, compiled at startup for the GPU in use.
#![expect(unsafe_code, reason = "NVRTC is a C library; each block says what makes it sound")]

use std::ffi::{CStr, CString};
use std::sync::Arc;

use cudarc::driver::sys::CUfunction_attribute;
use cudarc::driver::{CudaContext, CudaFunction, CudaModule};
use cudarc::nvrtc::{Ptx, result, sys};

use crate::error::{Error, Result};

const COMMON: &str = include_str!("common.cu");

/// Declares `Kernels`, a field for each kernel, and `FILES`, the text of each file.
macro_rules! kernels {
    ($($file:literal: $($name:ident)+;)+) => {
        /// Every kernel by name.
        pub(crate) struct Kernels {
            $($(pub $name: CudaFunction,)+)+
        }

        const FILES: &[(&str, &str)] = &[$(($file, include_str!($file))),+];

        impl Kernels {
            fn find(modules: &Modules) -> Result<Kernels> {
                Ok(Kernels { $($($name: modules.function($file, stringify!($name))?,)+)+ })
            }
        }
    };
}
pub(crate) use kernels;

kernels! {
    "screen.cu": round_rows select_candidates rank_candidates;
    "directions.cu": random_signs trace_and_square cholesky forward_substitution deviation lead_rows gather_rows;
    "floors.cu": guess_floors count_survivors count_steps start_steps order_rows;
    "pairs.cu": screen_pairs_64 screen_pairs_96 screen_pairs_128;
    "survivors.cu": rank_survivors;
    "affinity.cu": mutual_edges running_sum insertion_sums insertion_totals clean_similarities clean_neighbours
        last_neighbours class_edges propagate_features;
    "network.cu": find_row_keys initial_parameters forward_wide forward_narrow probability gather backward_wide backward_narrow adam;
    "label_propagation.cu": flow_scale flow_start flow_first_square flow_apply flow_step flow_turn;
    "classifier.cu": similarity_to weighted_sums total_sums choose_rows logit_gradients unit_rows momentum_step;
}

/// Shared memory of the products with X. Forward, a stage has 128 rows of 32 columns of X and those of Θ₁ of one or eight cells;
/// backward, 32 rows of 128 columns of X, ∂s and active units.
pub(crate) const FORWARD_WIDE_SHARED: u32 = 3 * (128 + 8 * 16) * 128;
pub(crate) const FORWARD_NARROW_SHARED: u32 = 4 * (128 + 16) * 128;
pub(crate) const BACKWARD_WIDE_SHARED: u32 = 4 * 32 * (512 + 8 * 6);
pub(crate) const BACKWARD_NARROW_SHARED: u32 = 4 * 32 * (512 + 6);

/// Shared memory of `cholesky`: p × p numbers for the most directions there are.
pub(crate) const CHOLESKY_SHARED: u32 = 127 * 127 * 4;

/// Shared memory of `screen_pairs` for leads of `width` numbers: two buffers of 128 columns, each 16 bytes longer than it is.
pub(crate) fn pairs_shared(width: usize) -> u32 {
    (2 * 128 * (width / 8 + 1) * 16) as u32
}

impl Kernels {
    /// Compiles all files side by side and loads them.
    pub fn compile(context: &Arc<CudaContext>, architecture: &str) -> Result<Kernels> {
        let kernels = Kernels::find(&Modules::compile(context, architecture, FILES, "", &[])?)?;
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        kernels.cholesky.set_attribute(attribute, CHOLESKY_SHARED as i32)?;
        for width in [64, 96, 128] {
            kernels.screen_pairs(width).set_attribute(attribute, pairs_shared(width) as i32)?;
        }
        for (kernel, bytes) in [
            (&kernels.forward_wide, FORWARD_WIDE_SHARED),
            (&kernels.forward_narrow, FORWARD_NARROW_SHARED),
            (&kernels.backward_wide, BACKWARD_WIDE_SHARED),
            (&kernels.backward_narrow, BACKWARD_NARROW_SHARED),
        ] {
            kernel.set_attribute(attribute, bytes as i32)?;
        }
        Ok(kernels)
    }

    /// The kernel for leads of `width` numbers.
    pub fn screen_pairs(&self, width: usize) -> &CudaFunction {
        match width {
            64 => &self.screen_pairs_64,
            96 => &self.screen_pairs_96,
            128 => &self.screen_pairs_128,
            _ => unreachable!("leads have 64, 96 or 128 numbers"),
        }
    }
}

/// Compiled files.
pub(crate) struct Modules(Vec<(&'static str, Arc<CudaModule>)>);

impl Modules {
    /// Compiles all files side by side, each after the common start and `prelude`, and loads them.
    pub fn compile(
        context: &Arc<CudaContext>,
        architecture: &str,
        files: &[(&'static str, &str)],
        prelude: &str,
        options: &[&str],
    ) -> Result<Modules> {
        let images: Vec<Result<Vec<u8>>> = std::thread::scope(|scope| {
            let compile = |&(file, source): &(&'static str, &str)| {
                let source = whole_source(file, prelude, source);
                scope.spawn(move || compile_file(file, &source, architecture, options))
            };
            let threads: Vec<_> = files.iter().map(compile).collect();
            threads.into_iter().map(|t| t.join().expect("the compiler does not panic")).collect()
        });
        let mut modules = Vec::new();
        for ((file, _), image) in files.iter().zip(images) {
            modules.push((*file, context.load_module(Ptx::from_binary(image?))?));
        }
        Ok(Modules(modules))
    }

    pub fn function(&self, file: &str, name: &str) -> Result<CudaFunction> {
        let module = self.0.iter().find(|(of, _)| *of == file).map(|(_, module)| module);
        Ok(module.expect("every file has a module").load_function(name)?)
    }
}

fn whole_source(file: &str, prelude: &str, source: &str) -> String {
    format!("{COMMON}\n{prelude}\n#line 1 \"{file}\"\n{source}")
}

/// Machine code for `architecture`. Sums and products are rounded separately (`--fmad=false`): the kernels call `fmaf`
/// explicitly, and `dot` must give the bits of the CPU.
fn compile_file(
    file: &'static str,
    source: &str,
    architecture: &str,
    more_options: &[&str],
) -> Result<Vec<u8>> {
    let failed = |log: String| Error::Compile { file, architecture: architecture.to_owned(), log };
    let refused = |error: result::NvrtcError| failed(format!("{error:?}"));
    let source = CString::new(source).expect("kernel files hold no zero byte");
    let program = result::create_program(&source, None).map_err(refused)?;
    let mut options = vec![
        format!("--gpu-architecture={architecture}"),
        "--fmad=false".to_owned(),
        "--std=c++17".to_owned(),
    ];
    options.extend(more_options.iter().map(|option| (*option).to_owned()));
    // SAFETY: the program was just made and is destroyed once, after its last use; buffers have the sizes NVRTC asks for.
    unsafe {
        if result::compile_program(program, &options).is_err() {
            let log = result::get_program_log(program).map_err(refused)?;
            let text = CStr::from_ptr(log.as_ptr()).to_string_lossy().into_owned();
            result::destroy_program(program).map_err(refused)?;
            return Err(failed(text));
        }
        let mut size = 0;
        sys::nvrtcGetCUBINSize(program, &mut size).result().map_err(refused)?;
        let mut image = vec![0u8; size];
        sys::nvrtcGetCUBIN(program, image.as_mut_ptr().cast()).result().map_err(refused)?;
        result::destroy_program(program).map_err(refused)?;
        Ok(image)
    }
}

/// Compiles for every architecture we name. The compiler needs no GPU, so this runs wherever NVRTC is installed.
#[cfg(test)]
pub(crate) fn check_files(files: &[(&'static str, &str)], prelude: &str, options: &[&str]) {
    // SAFETY: looks for a library.
    if !unsafe { sys::is_culib_present() } {
        eprintln!("skipped: NVRTC is not installed");
        return;
    }
    for architecture in ["sm_80", "sm_90", "sm_120"] {
        for (file, source) in files {
            compile_file(file, &whole_source(file, prelude, source), architecture, options).unwrap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_compiles_for_every_architecture_we_name() {
        check_files(FILES, "", &[]);
    }
}
