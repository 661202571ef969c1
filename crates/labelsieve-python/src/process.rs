//! State of a process: threads and open devices. Neither survives a fork, so both are known by process id.

use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use labelsieve_jobs::device::OpenDevice;
use labelsieve_numerics::Device;
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

use crate::errors::{device_error, value_error};

/// Threads and devices of the process `id`; a child made by `fork` inherits the record but neither threads nor devices.
struct Process {
    id: u32,
    /// 0: as many as there are cores, or as `RAYON_NUM_THREADS` says.
    n_threads: usize,
    pool: Option<Arc<rayon::ThreadPool>>,
    devices: Vec<(Device, Arc<OpenDevice>)>,
}

// Only ever locked while attached to the interpreter and never while waiting for anything: `os.fork` runs attached, so
// no child finds this lock taken by a thread that it does not have.
static PROCESS: Mutex<Option<Process>> = Mutex::new(None);

fn with_process<R>(_attached: Python<'_>, work: impl FnOnce(&mut Process) -> R) -> R {
    let mut record = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    let id = std::process::id();
    if record.as_ref().is_none_or(|process| process.id != id) {
        let inherited = record.take();
        let n_threads = inherited.as_ref().map_or(0, |process| process.n_threads);
        std::mem::forget(inherited); // its threads and contexts live in the parent; letting go of them would touch both
        *record = Some(Process { id, n_threads, pool: None, devices: Vec::new() });
    }
    work(record.as_mut().expect("just filled"))
}

/// The threads of this process.
pub fn pool(py: Python<'_>) -> PyResult<Arc<rayon::ThreadPool>> {
    with_process(py, |process| {
        if let Some(pool) = &process.pool {
            return Ok(pool.clone());
        }
        let builder = rayon::ThreadPoolBuilder::new().num_threads(process.n_threads);
        let pool = builder.thread_name(|i| format!("labelsieve-{i}")).build();
        let pool = Arc::new(pool.map_err(|error| value_error(format!("cannot start threads: {error}")))?);
        process.pool = Some(pool.clone());
        Ok(pool)
    })
}

/// The device called `name`, opened once per process because a GPU compiles its kernels then.
pub fn device(py: Python<'_>, name: &str) -> PyResult<Arc<OpenDevice>> {
    let device: Device = name.parse().map_err(value_error)?;
    let known = with_process(py, |process| {
        process.devices.iter().find(|(known, _)| *known == device).map(|(_, opened)| opened.clone())
    });
    if let Some(opened) = known {
        return Ok(opened);
    }
    let opened =
        Arc::new(py.detach(|| labelsieve_jobs::device::open_telling(device, notice)).map_err(device_error)?);
    warn_of_notices(py)?;
    with_process(py, |process| process.devices.push((device, opened.clone())));
    Ok(opened)
}

/// Notices of devices, to be reported once the interpreter is attached again.
static NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn notice(text: &str) {
    NOTICES.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
}

/// Raises the notices of devices as `RuntimeWarning`.
pub fn warn_of_notices(py: Python<'_>) -> PyResult<()> {
    // A child made by `fork` may find it locked for good: what is meant for the parent is not waited for.
    let notices = NOTICES.try_lock().map_or(Vec::new(), |mut notices| std::mem::take(&mut *notices));
    for text in notices {
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 2)?;
    }
    Ok(())
}

/// Sets the number of threads; 0 means one per core.
#[pyfunction]
pub fn set_num_threads(py: Python<'_>, n_threads: usize) {
    with_process(py, |process| {
        process.n_threads = n_threads;
        process.pool = None; // work under way keeps its own
    });
}

/// How many threads work in this process.
#[pyfunction]
pub fn get_num_threads(py: Python<'_>) -> PyResult<usize> {
    Ok(pool(py)?.current_num_threads())
}

/// The device called `name`, in words.
#[pyfunction]
pub fn describe_device(py: Python<'_>, name: &str) -> PyResult<String> {
    Ok(device(py, name)?.to_string())
}
