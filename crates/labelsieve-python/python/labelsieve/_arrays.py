"""Converts what users pass to the arrays that the compiled module takes."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]


def as_rows(values: Any, name: str = "X") -> Rows:
    """Rows of float32 in C order: the same memory if possible, else a copy."""
    check_columns(values, name)
    array = as_numpy(values, name)
    if array.ndim == 0:
        hint = "\nhint: labelsieve.read_features reads files" if isinstance(values, (str, os.PathLike)) else ""
        found = "None" if values is None else f"{type(values).__name__} {values!r:.60}"
        raise ValueError(f"{name}: expected rows of numbers, found {found}{hint}")
    if array.dtype == object and array.ndim == 1 and len(array) and np.ndim(array[0]) == 1:
        try:
            array = np.stack([np.asarray(row) for row in array])  # a column of vectors in a data frame
        except ValueError:
            raise ValueError(f"{name}: expected rows of equal length, found several lengths") from None
    if array.ndim != 2:
        raise ValueError(f"{name}: expected 2 dimensions (rows, columns), found {array.ndim}{_shape_hint(array, name)}")
    if array.dtype == object:
        array = _numbers(array, name)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name}: expected numbers, found values of type {array.dtype}")
    if array.shape[1] == 0:
        raise ValueError(f"{name}: expected at least 1 column, found none")
    with np.errstate(over="ignore"):  # what overflows float32 is refused as infinite, with its place
        return np.require(array, np.float32, ["C", "A"])


def check_columns(values: Any, name: str = "X") -> None:
    """Refuses data frame columns that are not numeric, by name."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(values, pandas.DataFrame):
        return
    wrong = [position for position in range(values.shape[1]) if not _is_numeric(values.iloc[:, position])]
    if not wrong:
        return
    columns = [values.columns[position] for position in wrong]
    first: Any = values.iloc[0, wrong[0]] if len(values) else ""
    found = ", ".join(f"`{column}`" for column in columns[:5]) + (" and more" if len(columns) > 5 else "")
    is_vector = np.ndim(first) == 1
    what = "vectors" if is_vector else f"e.g. {first!r}"
    hint = f"{name}[{columns[0]!r}]" if is_vector else f"{name}.drop(columns={columns[:5]!r})"
    raise ValueError(f"{name}: expected columns of numbers, found {what} in {found}\nhint: use {hint}")


def _is_numeric(column: Any) -> bool:
    if column.dtype != object:
        numeric: bool = sys.modules["pandas"].api.types.is_numeric_dtype(column.dtype)
        return numeric
    return all(isinstance(value, (int, float, np.number, np.bool_)) or value is None for value in column)


def _shape_hint(array: npt.NDArray[Any], name: str) -> str:
    if array.ndim == 1 and array.size == 0:
        return f"\nhint: {name} is empty"
    if array.ndim == 1:
        return f"\nhint: Reshape your data: a single example is {name}.reshape(1, -1)"
    return f"\nhint: one row per example: {name}.reshape(len({name}), -1)" if array.ndim > 2 else ""


def _numbers(array: npt.NDArray[Any], name: str) -> npt.NDArray[np.float64]:
    """Python numbers of several types, as one type; anything else is refused with its place."""
    for (row, column), value in np.ndenumerate(array):
        if not isinstance(value, (int, float, np.number, np.bool_)):
            raise ValueError(f"{name}, row {row}, column {column}: expected a number, found {value!r}")
    return array.astype(np.float64)


def as_numpy(values: Any, name: str) -> npt.NDArray[Any]:
    """numpy, torch on the CPU, pandas, pyarrow, lists: as one array."""
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise TypeError(f"{name}: sparse data was passed, but dense data is required\nhint: use X.toarray()")
    if is_tensor(values):
        return _from_torch(values, name)
    if type(values).__module__.split(".")[0] == "pyarrow":
        return _from_arrow(values, name)
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{name}: expected rows of equal length, found several lengths") from None


def is_tensor(values: Any) -> bool:
    """Whether these are values of torch, without importing it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def _from_torch(tensor: Any, name: str) -> npt.NDArray[Any]:
    if tensor.device.type != "cpu":
        raise ValueError(f"{name}: expected a tensor on the CPU, found one on {tensor.device}\nhint: use {name}.cpu()")
    tensor = tensor.detach()
    if str(tensor.dtype) == "torch.bfloat16":  # numpy has no such type
        tensor = tensor.float()
    array: npt.NDArray[Any] = tensor.numpy()
    return array


def _from_arrow(values: Any, name: str) -> npt.NDArray[Any]:
    import pyarrow as pa

    if isinstance(values, (pa.Table, pa.RecordBatch)):
        columns = [_from_arrow(values.column(column), name) for column in values.column_names]
        if len(columns) == 1:
            return columns[0]
        return np.column_stack(columns)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
        if isinstance(values, pa.ChunkedArray):  # older pyarrow keeps one chunk wrapped
            values = pa.concat_arrays(values.chunks)
    if isinstance(values, pa.FixedSizeListArray):
        if values.null_count:
            raise ValueError(f"{name}: expected a vector in every row, found {values.null_count} missing")
        flat: npt.NDArray[Any] = values.flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(len(values), values.type.list_size)
    array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array


def as_seed(random_state: Any) -> int:
    """A seed from what scikit-learn calls a random state; None draws a new one."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if not 0 <= random_state < 2**64:
            raise ValueError(f"seed: expected an integer in [0, 2**64), found {random_state}")
        return int(random_state)
    raise ValueError(f"seed: expected an integer, None or a numpy generator, found {random_state!r}")
