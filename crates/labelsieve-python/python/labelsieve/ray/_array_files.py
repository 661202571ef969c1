"""Arrays of features (.npy, .npz) on whatever storage they are: some of their rows, and what these are called."""

from __future__ import annotations

import csv
import io
import zipfile
from dataclasses import dataclass
from typing import IO, Any, Optional

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ._storage import Storage, ending

#: Numpy's format of arrays, which not every version of numpy has types for.
_format: Any = np.lib.format
#: Features and labels in an .npz, in the order in which they are tried.
_ARRAYS = (("features_all", "labels_all"), ("features", "labels"), ("X", "y"))


@dataclass(frozen=True)
class Head:
    """The header of an array."""

    n_rows: int
    dim: int
    dtype: np.dtype[Any]
    start: int

    @property
    def row_bytes(self) -> int:
        return self.dim * self.dtype.itemsize

    @staticmethod
    def of(storage: Storage, path: str) -> "Head":
        with storage.open(path) as file, _numbers(path, file) as numbers:
            return Head.read(path, numbers)

    @staticmethod
    def read(path: str, file: IO[bytes]) -> "Head":
        version = _format.read_magic(file)
        read = _format.read_array_header_1_0 if version == (1, 0) else _format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        if fortran or len(shape) != 2 or dtype.kind != "f":
            raise ValueError(f"`{path}`: expected f2, f4 or f8 features in contiguous rows, found {dtype} of shape {shape}")
        return Head(shape[0], shape[1], dtype, file.tell())


@dataclass(frozen=True)
class Labels:
    """The ids and labels that come with an array, in it or in the table beside it."""

    has_ids: bool
    network: Optional[str]

    @staticmethod
    def of(storage: Storage, path: str) -> "Labels":
        members, beside = _members(storage, path), _ids_table(storage, path)
        network = next(iter(beside.get("network", [])), "")
        if "network" in members:
            network = bytes(_read_member(storage, path, "network").astype(np.uint8)).decode(errors="replace")
        return Labels("ids" in members or bool(beside), network or None)


def read_values(storage: Storage, path: str, first: int, n_rows: int) -> npt.NDArray[Any]:
    """Some rows of numbers."""
    with storage.open(path) as file, _numbers(path, file) as numbers:
        head = Head.read(path, numbers)
        numbers.seek(head.start + first * head.row_bytes)  # in a compressed archive, by reading up to there
        content = numbers.read(n_rows * head.row_bytes)
    values = np.frombuffer(content, head.dtype).reshape(n_rows, head.dim)
    return values.astype(head.dtype.newbyteorder("="))


def read_array_names(
    storage: Storage, path: str, first: int, n_rows: int
) -> tuple[Optional["pa.Array"], Optional["pa.Array"]]:
    """Ids and labels of some rows, as texts, each if they are known."""
    members, beside = _members(storage, path), _ids_table(storage, path)
    rows = slice(first, first + n_rows)

    def numbers(name: str) -> "pa.Array":
        return pa.array(_read_member(storage, path, name)[rows].astype(str), pa.large_string())

    of_features = next((labels for features, labels in _ARRAYS if features in members), "")
    ids = numbers("ids") if "ids" in members else None
    labels = numbers(of_features) if of_features in members else None
    if ids is None and beside:
        ids = pa.array(beside["id"][rows], pa.large_string())
    if labels is None and all(beside.get("class", [""])):
        labels = pa.array(beside["class"][rows], pa.large_string())
    return ids, labels


def read_labels(storage: Storage, path: str) -> "pa.Array":
    """A separate file of labels: integers in .npy, or one label per line."""
    with storage.open(path) as file:
        content = file.read()
    if content.startswith(b"\x93NUMPY"):
        return pa.array(np.load(io.BytesIO(content)).astype(str), pa.large_string())
    lines = content.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n").split("\n")
    return pa.array([line.strip() for line in lines], pa.large_string())


def _ids_table(storage: Storage, path: str) -> dict[str, list[str]]:
    """The table ``NAME.ids.csv`` beside an array by column, if there is one."""
    if not storage.exists(path + ".ids.csv"):
        return {}
    with storage.open(path + ".ids.csv") as file:
        rows = list(csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline="")))
    return {name: [row[at] if at < len(row) else "" for row in rows[1:]] for at, name in enumerate(rows[0])}


def _members(storage: Storage, path: str) -> list[str]:
    """Names of the arrays of an .npz; none of an .npy."""
    if ending(path) != "npz":
        return []
    with storage.open(path) as file, zipfile.ZipFile(file) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def _read_member(storage: Storage, path: str, member: str) -> npt.NDArray[Any]:
    with storage.open(path) as file, zipfile.ZipFile(file) as archive, archive.open(member + ".npy") as array:
        return np.asarray(_format.read_array(array))


def _numbers(path: str, file: IO[bytes]) -> IO[bytes]:
    """The bytes of the features: the file itself, or the member of an archive."""
    if ending(path) != "npz":
        return file
    archive = zipfile.ZipFile(file)
    names = archive.namelist()
    member = next((features for features, _ in _ARRAYS if f"{features}.npy" in names), None)
    if member is None:
        raise ValueError(f"`{path}`: expected an array features_all, features or X, found {', '.join(names)}")
    return archive.open(f"{member}.npy")
