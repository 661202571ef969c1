"""Columns of equal length, which pandas and pyarrow take as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

import numpy as np
import numpy.typing as npt


class Table(dict[str, npt.NDArray[Any]]):
    """A dictionary of columns, in order; ``pandas.DataFrame(table)`` and ``pyarrow.table(table)`` take it.

    >>> from labelsieve import Table
    >>> table = Table({"id": ["a", "b"], "relevance": [0.9, 0.2]})
    >>> table
    Table(2 rows: id, relevance)
    >>> table["relevance"]
    array([0.9, 0.2])
    """

    #: Metadata of the run, from the file.
    metadata: dict[str, str]

    def __init__(self, columns: Mapping[str, Any], metadata: Optional[Mapping[str, str]] = None) -> None:
        super().__init__({name: _column(values) for name, values in columns.items()})
        self.metadata = dict(metadata or {})
        lengths = {name: len(values) for name, values in self.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns: expected equal lengths, found {lengths}")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.values()))) if self else 0

    def where(self, mask: Any) -> Table:
        """The rows where the mask is true, or with these row numbers."""
        return Table({name: values[np.asarray(mask)] for name, values in self.items()}, self.metadata)

    def to_pandas(self) -> Any:
        """As a ``pandas.DataFrame``."""
        import pandas

        return pandas.DataFrame(dict(self))

    def to_arrow(self) -> Any:
        """As a ``pyarrow.Table``; missing values become null."""
        import pyarrow

        arrays = {name: pyarrow.array(values, from_pandas=True) for name, values in self.items()}
        return pyarrow.table(arrays, metadata=self.metadata or None)

    def __repr__(self) -> str:
        return f"Table({self.n_rows} rows: {', '.join(self)})"


def _column(values: Any) -> npt.NDArray[Any]:
    if isinstance(values, np.ndarray):
        return values
    array = np.asarray(values)
    # Texts as objects: numpy's own strings are padded to the longest.
    return np.array(values, dtype=object) if array.dtype.kind in "USO" else array


def as_columns(table: Any, name: str = "table") -> dict[str, list[Any]]:
    """The columns of a data frame, an Arrow table or a mapping, as lists."""
    if hasattr(table, "column_names"):  # pyarrow
        return {str(column): table.column(column).to_pylist() for column in table.column_names}
    if isinstance(table, Mapping) or hasattr(table, "columns"):  # a dictionary, pandas or polars
        names = table.keys() if isinstance(table, Mapping) else table.columns
        return {str(column): list(table[column]) for column in names}
    raise TypeError(f"{name}: expected a data frame, an Arrow table or a mapping, found {type(table).__name__}")


def required(table: Any, *names: str) -> dict[str, list[Any]]:
    """The columns of a table that has these, of equal length, with nothing missing in ids and classes."""
    columns = as_columns(table)
    for name in names:
        if name not in columns:
            raise ValueError(f"table: expected a column `{name}`, found {', '.join(columns) or 'none'}")
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns: expected equal lengths, found {lengths}")
    for name in ("id", "class"):
        row = next((row for row, value in enumerate(columns[name]) if is_missing(value)), None)
        if row is not None:
            raise ValueError(f"{name}, row {row}: expected a name, found {columns[name][row]}")
    return columns


def as_relevance(values: list[Any]) -> list[float]:
    """Numbers in [0, 1]; anything else is refused with its row."""
    for row, value in enumerate(values):
        try:
            right = 0 <= float(value) <= 1
        except (TypeError, ValueError):
            right = False
        if not right:
            raise ValueError(f"relevance, row {row}: expected a number in [0, 1], found {value!r}")
    return [float(value) for value in values]


def is_missing(value: Any) -> bool:
    """None, NaN, or what pandas puts in their place."""
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and value != value)
