//! Arrays of numpy as the method's rows, without a copy where their rows have unit length.
#![expect(
    unsafe_code,
    reason = "the method reads numpy's memory while detached; the blocks say what makes it sound"
)]

use std::sync::Arc;

use labelsieve::Features;
use labelsieve_numerics::BorrowedArray;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::{method_error, value_error};

/// A float32 matrix of numpy in C order, kept alive and read in place.
struct NumpyRows {
    start: *const f32,
    len: usize,
    _array: Py<PyArray2<f32>>,
}

// SAFETY: `_array` keeps the memory alive and is dropped through PyO3, which may happen on any thread. The numbers are
// only read. That Python code does not write to an array while it is being worked on is part of every function's
// contract, as it is with numpy's own functions that release the interpreter lock.
unsafe impl Send for NumpyRows {}
// SAFETY: as above; reading from several threads is reading.
unsafe impl Sync for NumpyRows {}

impl AsRef<[f32]> for NumpyRows {
    fn as_ref(&self) -> &[f32] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `rows_of` took pointer and length from an aligned, contiguous slice of the array that `_array` owns.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl BorrowedArray<f32> for NumpyRows {}

/// An N×d float32 array in C order, as the Python side hands them over.
pub type Rows<'py> = PyReadonlyArray2<'py, f32>;

/// The rows of an array; `name` is what an error calls it.
pub fn features(rows: &Rows<'_>, name: &str) -> PyResult<Features> {
    let dim = rows.shape()[1];
    if rows.shape()[0] == 0 {
        return Ok(Features::empty(dim));
    }
    let slice = rows.as_slice().map_err(|_| value_error(format!("{name}: expected an array in C order")))?;
    if !slice.as_ptr().is_aligned() {
        return Err(value_error(format!("{name}: expected an aligned array")));
    }
    let owner: Bound<'_, PyArray2<f32>> = (**rows).clone();
    let shared = NumpyRows { start: slice.as_ptr(), len: slice.len(), _array: owner.unbind() };
    let data: labelsieve::SharedNumbers = Arc::new(shared);
    Features::shared(data, dim).map_err(|error| match error {
        labelsieve::Error::NotFinite { .. } => value_error(format!("{name}: {error}")),
        error => method_error(error),
    })
}

/// A matrix for Python from numbers row by row.
pub fn matrix<'py, T: numpy::Element>(
    py: Python<'py>,
    values: Vec<T>,
    columns: usize,
) -> PyResult<Bound<'py, PyArray2<T>>> {
    let rows = values.len().checked_div(columns).unwrap_or(0);
    PyArray1::from_vec(py, values).reshape([rows, columns])
}

/// The rows at unit length, in an array of their own; whether they had it already.
#[pyfunction]
pub fn normalize<'py>(py: Python<'py>, rows: Rows<'py>) -> PyResult<(Bound<'py, PyArray2<f32>>, bool)> {
    let features = features(&rows, "X")?;
    let values = features.block(0..features.len()).to_vec();
    Ok((matrix(py, values, features.dim())?, !features.is_copy()))
}
