"""What users have, as the arrays that the compiled half takes."""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional, Union

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]
Progress = Union[bool, Callable[[int, int], object], Any, None]


def as_rows(values: Any, name: str = "X") -> Rows:
    """Rows of float32 in C order: the same memory if it is that already, else a copy."""
    array = as_numpy(values, name)
    if array.dtype == object and array.ndim == 1 and len(array) and np.ndim(array[0]) == 1:
        try:
            array = np.stack([np.asarray(row) for row in array])  # a column of vectors in a data frame
        except ValueError:
            raise ValueError(f"{name}: expected rows of equal length, found several lengths") from None
    if array.ndim != 2:
        hint = "\nhint: Reshape your data: one example is X.reshape(1, -1)" if array.ndim == 1 else ""
        raise ValueError(f"{name}: expected 2 dimensions (rows, columns), found {array.ndim}{hint}")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name}: expected numbers, found values of type {array.dtype}")
    if array.shape[1] == 0:
        raise ValueError(f"{name}: expected at least 1 column, found none")
    with np.errstate(over="ignore"):  # what overflows float32 is refused as infinite, with its place
        return np.require(array, np.float32, ["C", "A"])


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


def as_flags(values: Any, name: str, n_rows: int) -> npt.NDArray[np.bool_]:
    """One true or false per row."""
    flags = as_numpy(values, name)
    if flags.shape != (n_rows,):
        raise ValueError(f"{name}: expected one flag per row, {n_rows}, found an array of shape {flags.shape}")
    if flags.dtype == object and all(isinstance(flag, (bool, np.bool_)) for flag in flags):
        flags = flags.astype(bool)
    if flags.dtype.kind in "iuf" and np.isin(flags, (0, 1)).all():
        flags = flags.astype(bool)
    if flags.dtype != bool:
        raise ValueError(f"{name}: expected true or false (or 1 and 0), found values of type {flags.dtype}")
    return np.ascontiguousarray(flags)


def as_progress(progress: Progress) -> Optional[Callable[[int, int], object]]:
    """A function of (done, total) from such a function, a bar of tqdm, or True for a new bar."""
    if progress is None or progress is False:
        return None
    if progress is True:
        from tqdm.auto import tqdm

        progress = tqdm(unit="rows", unit_scale=True)
    if hasattr(progress, "update") and hasattr(progress, "total"):
        return _Bar(progress)
    if not callable(progress):
        raise TypeError(f"progress: expected a function of (done, total) or a tqdm bar, found {type(progress).__name__}")
    return progress


class _Bar:
    """Moves a bar of tqdm."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar

    def __call__(self, done: int, total: int) -> None:
        self.bar.total = total
        self.bar.update(done - self.bar.n)
        if done == total:
            self.bar.refresh()


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
            raise ValueError(f"seed: expected a whole number from 0 to 2**64 - 1, found {random_state}")
        return int(random_state)
    raise ValueError(f"seed: expected a whole number, None or a generator of numpy, found {random_state!r}")
