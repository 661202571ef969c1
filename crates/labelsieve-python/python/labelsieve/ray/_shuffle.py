"""Rows to bins: each piece of a table becomes a file in which the rows of a bin are a group of their own.

A bin reads its groups from the files of all pieces, in the order of the pieces, and so has its rows in the order of the
table. An example that is a candidate of classes in several bins is in each of them.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Optional

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ._scratch import scratch
from ._storage import Storage, ending
from ._tables import Columns, Piece, read_rows, texts

#: Which bin each group of a file is for.
_BINS = b"labelsieve.bins"
_NETWORK = b"labelsieve.network"
_CANDIDATES = ("id", "class", "matched_name")

#: The bin of each class, by its name.
BinOfClass = Mapping[str, int]


@dataclass(frozen=True)
class RowsToBins:
    """Where the rows of features go: by their own classes, or by a file that says what each is a candidate of."""

    storage: Storage
    columns: Columns
    bin_of_class: BinOfClass
    candidates: Optional[str]
    network: Optional[str]

    def write(self, piece: Piece, output: str) -> None:
        """Writes the rows of a piece, ordered by bin."""
        rows = read_rows(self.storage, piece, self.columns)
        if self.candidates is not None:
            (bins, at), strays = self._of_candidates(rows.ids), 0
        elif rows.labels is None:
            raise ValueError(f"`{piece.path}` contains no classes\nhint: give them with pool_labels or candidates")
        else:
            bins, at = _ordered(_bins_of(rows.labels, self.bin_of_class))
            strays = len(rows.labels) - len(at)
        names, dim = self.columns.named(), rows.values.shape[1]
        columns = {str(names.id): rows.ids.take(pa.array(at))}
        if rows.labels is not None and self.candidates is None:
            columns[str(names.label)] = rows.labels.take(pa.array(at))
        _check_finite(rows.values, at, piece)
        numbers = pa.array(rows.values[at].reshape(-1))
        columns[str(names.embedding)] = pa.FixedSizeListArray.from_arrays(numbers, dim)
        _write_groups(self.storage, pa.table(columns), (bins, strays), self.network, output)

    def _of_candidates(self, ids: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """For every row and bin that it is a candidate in: the bin and the row, ordered by bin, then by row."""
        wanted = pa.table({"id": ids.cast(pa.large_string()), "row": np.arange(len(ids))})
        found = [np.empty(0, np.int64)]
        for table in read_candidates(self.storage, str(self.candidates)):
            bins = _bins_of(texts(table.column("class")), self.bin_of_class)
            named = pa.table({"id": texts(table.column("id")), "bin": bins}).filter(pa.array(bins >= 0))
            joined = wanted.join(named, "id", join_type="inner")
            found.append(joined["bin"].to_numpy() * len(ids) + joined["row"].to_numpy())
        both = np.unique(np.concatenate(found))
        return both // max(1, len(ids)), both % max(1, len(ids))


def candidates_to_bins(storage: Storage, path: str, bin_of_class: BinOfClass, output: str) -> None:
    """Writes the rows of a file of candidates, ordered by bin."""
    tables = [pa.table({name: texts(table.column(name)) for name in _CANDIDATES}) for table in read_candidates(storage, path)]
    table = pa.concat_tables(tables)
    bins, at = _ordered(_bins_of(texts(table.column("class")), bin_of_class))
    _write_groups(storage, table.take(pa.array(at)), (bins, len(table) - len(at)), None, output)


def read_candidates(storage: Storage, path: str) -> Iterator["pa.Table"]:
    """A file of candidates in portions."""
    if ending(path) == "parquet":
        with storage.open(path) as file:
            for batch in pq.ParquetFile(file).iter_batches(batch_size=1 << 20, columns=list(_CANDIDATES)):
                yield pa.table(batch)
        return
    from .._files import read_candidates as read

    with scratch() as folder:
        table = read(storage.fetch(path, folder))
    yield pa.table({name: pa.array(table[name].tolist(), pa.large_string()) for name in _CANDIDATES})


def gather_candidates(storage: Storage, path: str, bin: int, output: str) -> None:
    """Writes the candidates of a bin as a file of their own."""
    with storage.open(path) as opened:
        file = pq.ParquetFile(opened)
        with pq.ParquetWriter(output, file.schema_arrow.remove_metadata()) as writer:
            for group in _groups_of(file, bin):
                writer.write_table(file.read_row_group(group).replace_schema_metadata(None))


def gather_rows(storage: Storage, files: Sequence[str], bin: int, columns: Columns, output: str) -> int:
    """Writes the rows of a bin as an array (.npy) with its table of ids, in the order of the files; returns how many there are.

    Of an array, those who read it keep no more in memory than the classes that they work on.
    """
    names, head, n_rows = columns.named(), None, 0
    with open(output, "wb") as array, open(output + ".ids.csv", "w", encoding="utf-8", newline="") as beside:
        table = csv.writer(beside)
        for path in files:
            with storage.open(path) as opened:
                file = pq.ParquetFile(opened)
                schema = file.schema_arrow
                kind, has_classes = schema.field(names.embedding).type, names.label in schema.names
                network = (schema.metadata or {}).get(_NETWORK, b"").decode()
                if head is None:
                    head = (kind.list_size, np.dtype(kind.value_type.to_pandas_dtype()))
                    _write_head(array, 0, *head)
                    table.writerow(["id", "class", "network"])
                for group in _groups_of(file, bin):
                    rows = file.read_row_group(group)
                    array.write(_numbers(rows.column(names.embedding), head[1]))
                    ids = rows.column(names.id).to_pylist()
                    classes = rows.column(names.label).to_pylist() if has_classes else [""] * len(ids)
                    table.writerows(zip(ids, classes, [network] * len(ids)))
                    n_rows += len(rows)
        if head is not None:
            array.seek(0)
            _write_head(array, n_rows, *head)
    return n_rows


def _numbers(column: Any, dtype: np.dtype[Any]) -> bytes:
    blocks = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    return b"".join(np.ascontiguousarray(block, dtype).tobytes() for block in blocks)


def _write_head(file: IO[bytes], n_rows: int, dim: int, dtype: np.dtype[Any]) -> None:
    """The first bytes of an array: as many for any number of rows, so that they can be written again at the end."""
    text = f"{{'descr': '{dtype.newbyteorder('<').str}', 'fortran_order': False, 'shape': ({n_rows:20}, {dim}), }}"
    file.write(b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + text.ljust(117).encode() + b"\n")


def _groups_of(file: Any, bin: int) -> list[int]:
    bins = json.loads(file.schema_arrow.metadata[_BINS])["bins"]
    return [group for group, of_bin in enumerate(bins) if of_bin == bin]


def n_strays(storage: Storage, path: str) -> int:
    """Rows of classes that are not planned, and that are therefore in no bin."""
    with storage.open(path) as file:
        return int(json.loads(pq.ParquetFile(file).schema_arrow.metadata[_BINS])["n_strays"])


def _check_finite(values: npt.NDArray[Any], at: npt.NDArray[Any], piece: Piece) -> None:
    """Names the row of the file: a bin would know its own rows alone."""
    bad = at[~np.isfinite(values[at]).all(axis=1)]
    if len(bad):
        row = int(bad.min())
        column = int(np.flatnonzero(~np.isfinite(values[row]))[0])
        place = f"`{piece.path}`: row {piece.first + row}, column {column}"
        raise ValueError(f"{place}: expected a finite number, found {values[row, column]}")


def _bins_of(classes: Any, bin_of_class: BinOfClass) -> npt.NDArray[Any]:
    """The bin of every class name; -1 where none is planned for it."""
    encoded = classes.dictionary_encode()
    of_name = np.array([bin_of_class.get(name, -1) for name in encoded.dictionary.to_pylist()] + [-1], np.int64)
    bins: npt.NDArray[Any] = of_name[encoded.indices.to_numpy(zero_copy_only=False)]
    return bins


def _ordered(bins: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The bins in order, and the rows in the order of their bins; without those of no bin."""
    at = np.argsort(bins, kind="stable")
    at = at[bins[at] >= 0]
    return bins[at], at


def _write_groups(
    storage: Storage, table: "pa.Table", of_rows: tuple[npt.NDArray[Any], int], network: Optional[str], output: str
) -> None:
    """Writes a table whose rows are ordered by bin, a group for each; ``of_rows`` are the bins and how many rows have none."""
    bins, strays = of_rows
    found, starts = np.unique(bins, return_index=True)
    metadata = {_BINS: json.dumps({"bins": found.tolist(), "n_strays": strays}).encode()}
    if network is not None:
        metadata[_NETWORK] = network.encode()
    table = table.replace_schema_metadata(metadata)
    with scratch() as folder:
        local = os.path.join(folder, "rows.parquet")
        with pq.ParquetWriter(local, table.schema, compression="none", use_dictionary=False) as writer:
            for start, end in zip(starts, [*starts[1:], len(table)]):
                writer.write_table(table.slice(start, end - start), row_group_size=int(end - start))
        storage.put(local, output)
