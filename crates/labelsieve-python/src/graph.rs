//! Neighbour lists and the affinity matrix, as arrays that scipy puts together.

use labelsieve::Features;
use labelsieve::graph::{Affinity, Neighbours};
use labelsieve_jobs::device::OpenDevice;
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

use crate::arrays::{Rows, features, matrix};
use crate::errors::{method_error, value_error};
use crate::process::device as open_device;
use crate::work::{Task, run};

/// N×k indices and similarities.
type Lists<'py> = (Bound<'py, PyArray2<u32>>, Bound<'py, PyArray2<f32>>);

/// Each row's `count` nearest others, best first.
#[pyfunction]
pub fn neighbours<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    count: usize,
    device: &str,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Lists<'py>> {
    let found = search(py, &features(&x, "X")?, count, device, progress)?;
    let (indices, similarities) = found.lists();
    let width = found.width();
    Ok((matrix(py, indices.to_vec(), width)?, matrix(py, similarities.to_vec(), width)?))
}

/// A matrix in compressed sparse rows: offsets, columns, values.
type Csr<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f32>>);

/// A: the reciprocal ones among the `count` nearest neighbours.
#[pyfunction]
pub fn affinity<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    count: usize,
    device: &str,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Csr<'py>> {
    let found = search(py, &features(&x, "X")?, count, device, progress)?;
    let affinity = run(py, &Task::new(0), None, || Affinity::reciprocal(&found))?;
    let mut offsets = vec![0i64];
    let mut columns = Vec::with_capacity(affinity.n_entries());
    let mut values = Vec::with_capacity(affinity.n_entries());
    for i in 0..affinity.len() {
        let (row_columns, row_values) = affinity.row(i);
        columns.extend_from_slice(row_columns);
        values.extend_from_slice(row_values);
        offsets.push(columns.len() as i64);
    }
    Ok((PyArray1::from_vec(py, offsets), PyArray1::from_vec(py, columns), PyArray1::from_vec(py, values)))
}

fn search(
    py: Python<'_>,
    features: &Features,
    count: usize,
    device: &str,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Neighbours> {
    if count == 0 {
        return Err(value_error("k: expected a positive integer, found 0"));
    }
    let opened = open_device(py, device)?;
    let task = Task::new(features.len());
    run(py, &task, progress.as_ref(), || match &*opened {
        OpenDevice::Cpu { .. } => Neighbours::exact_watched(features, count, task.watch()),
        OpenDevice::Cuda(gpu) => Ok(gpu.neighbours(features, count)?),
        OpenDevice::Found(gpu) => gpu.neighbours(features, count),
    })?
    .map_err(method_error)
}
