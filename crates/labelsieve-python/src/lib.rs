//! The compiled half of the Python package `labelsieve`: arrays in, arrays out.
//!
//! The public interface is in `python/labelsieve`, which checks arguments; this module (`labelsieve._labelsieve`) passes
//! them to the method. Its own logic is that of an extension: the interpreter keeps running, Ctrl-C is handled
//! (`work.rs`), and a process may fork (`process.rs`).

mod arrays;
mod classifier;
mod discriminant;
mod errors;
mod files;
mod graph;
mod jobs;
mod matching;
mod monitor;
mod process;
mod relevance;
mod report;
mod review;
mod spelling;
mod steps;
mod synthetic;
mod work;

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command line, program name first, and returns its exit code.
#[pyfunction]
fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| labelsieve_cli::run(arguments))
}

/// Where the interpreter that runs us has its packages. Places that depend on the working directory do not count.
#[cfg(feature = "onnx")]
fn packages(py: Python<'_>) -> PyResult<Vec<std::path::PathBuf>> {
    let path = py.import("sys")?.getattr("path")?;
    let folders = path.try_iter()?.filter_map(|folder| folder.ok()?.extract::<std::path::PathBuf>().ok());
    Ok(folders.filter(|folder| folder.is_absolute()).collect())
}

#[pymodule]
fn _labelsieve(module: &Bound<'_, PyModule>) -> PyResult<()> {
    labelsieve_cli::panics::install();
    #[cfg(feature = "onnx")]
    labelsieve_networks::opening::onnx::look_in(packages(module.py())?);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("NEIGHBOURS", labelsieve::graph::NEIGHBOURS)?;
    module.add_function(wrap_pyfunction!(run_command, module)?)?;
    module.add_function(wrap_pyfunction!(arrays::normalize, module)?)?;
    module.add_function(wrap_pyfunction!(process::set_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(process::get_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(process::describe_device, module)?)?;
    module.add_function(wrap_pyfunction!(relevance::relevance, module)?)?;
    module.add_function(wrap_pyfunction!(relevance::clean, module)?)?;
    module.add_function(wrap_pyfunction!(relevance::paper_lambda, module)?)?;
    module.add_function(wrap_pyfunction!(classifier::train, module)?)?;
    module.add_function(wrap_pyfunction!(classifier::scores, module)?)?;
    module.add_class::<discriminant::PyDiscriminant>()?;
    module.add_function(wrap_pyfunction!(graph::neighbours, module)?)?;
    module.add_function(wrap_pyfunction!(graph::affinity, module)?)?;
    module.add_function(wrap_pyfunction!(matching::find_names, module)?)?;
    module.add_function(wrap_pyfunction!(matching::read_class_file, module)?)?;
    module.add_function(wrap_pyfunction!(matching::candidate_statistics, module)?)?;
    module.add_function(wrap_pyfunction!(synthetic::synthetic, module)?)?;
    module.add_function(wrap_pyfunction!(report::report, module)?)?;
    module.add_function(wrap_pyfunction!(review::run_review, module)?)?;
    jobs::register(module)?;
    files::register(module)
}
