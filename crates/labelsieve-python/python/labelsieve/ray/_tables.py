"""Tables of features cut into pieces of rows that tasks read one by one, on whatever storage they are.

The formats and the names of columns are those of ``labelsieve score``. What is read here is checked there again: the plan
has a digest of every class, and a bin whose rows are not those of the plan is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ._array_files import Head, Labels, read_array_names, read_labels, read_values
from ._storage import Storage, ending, join

EMBEDDINGS = ("embedding", "features", "vector")
LABELS = ("class", "label")
IDS = ("id", "key", "uid", "image_path")
_NETWORK = b"labelsieve.network"


@dataclass(frozen=True)
class Columns:
    """Names of columns of Parquet files where they are not the usual ones, and a separate file of labels."""

    embedding: Optional[str] = None
    label: Optional[str] = None
    id: Optional[str] = None
    labels: Optional[str] = None

    def named(self) -> "Columns":
        """The names under which rows are passed on."""
        return Columns(self.embedding or "embedding", self.label or "class", self.id or "id")


@dataclass(frozen=True)
class Piece:
    """Rows ``first`` to ``first + n_rows`` of one file; ``offset`` is the number of the first one in the whole table."""

    path: str
    first: int
    n_rows: int
    offset: int
    #: Parquet with what is known of the rows of an array, beside it.
    metadata: Optional[str] = None


@dataclass(frozen=True)
class Layout:
    """A table as its header describes it, without its rows."""

    path: str
    pieces: tuple[Piece, ...]
    n_rows: int
    dim: int
    #: Bytes of one row of numbers.
    row_bytes: int
    has_ids: bool
    #: The network that made the features, if the table says so.
    network: Optional[str]


@dataclass(frozen=True)
class Rows:
    """Some rows of a table. Labels are None where the table has none."""

    ids: "pa.Array"
    labels: Optional["pa.Array"]
    values: npt.NDArray[Any]


def layout(storage: Storage, path: str, columns: Columns) -> Layout:
    """Looks at a table: how many rows of which width it has, and where."""
    if storage.is_folder(path):
        return _clip_retrieval(storage, path, columns)
    if ending(path) == "parquet":
        return _parquet(storage, path, columns)
    if ending(path) in ("npy", "npz"):
        return _array(storage, path)
    raise ValueError(f"`{path}`: expected features (.npz, .npy, .parquet or a clip-retrieval folder), found `.{ending(path)}`")


def cut(table: Layout, piece_bytes: int) -> list[Piece]:
    """The table in pieces of at most about this size; rows of a Parquet file are cut between its groups."""
    most = max(1, piece_bytes // max(1, table.row_bytes))
    pieces: list[Piece] = []
    for piece in table.pieces:
        last = pieces[-1] if pieces else None
        if ending(piece.path) == "parquet":  # already its groups: join those that fit
            if last is not None and last.path == piece.path and last.n_rows + piece.n_rows <= most:
                pieces[-1] = Piece(last.path, last.first, last.n_rows + piece.n_rows, last.offset)
            else:
                pieces.append(piece)
            continue
        for start in range(0, piece.n_rows, most):
            n_rows = min(most, piece.n_rows - start)
            pieces.append(Piece(piece.path, piece.first + start, n_rows, piece.offset + start, piece.metadata))
    return pieces


def read_names(storage: Storage, piece: Piece, columns: Columns) -> tuple[Optional["pa.Array"], Optional["pa.Array"]]:
    """Ids and labels of the rows of a piece, as texts, each if the table has them."""
    labels = None if columns.labels is None else read_labels(storage, columns.labels).slice(piece.offset, piece.n_rows)
    if ending(piece.path) == "parquet" or piece.metadata is not None:
        own = _parquet_names(storage, piece, columns)
    else:
        own = read_array_names(storage, piece.path, piece.first, piece.n_rows)
    return own[0], own[1] if labels is None else labels


def read_rows(storage: Storage, piece: Piece, columns: Columns) -> Rows:
    """The rows of a piece. Ids are row numbers of the whole table where it has no others."""
    ids, labels = read_names(storage, piece, columns)
    if ids is None:
        ids = pa.array(np.arange(piece.offset, piece.offset + piece.n_rows).astype(str), pa.string())
    if ending(piece.path) == "parquet":
        return Rows(ids, labels, _parquet_values(storage, piece, columns))
    return Rows(ids, labels, read_values(storage, piece.path, piece.first, piece.n_rows))


def _parquet(storage: Storage, path: str, columns: Columns) -> Layout:
    with storage.open(path) as file:
        footer = pq.ParquetFile(file)
        schema, metadata = footer.schema_arrow, footer.metadata
        name = _embedding(path, schema, columns)
        kind = schema.field(name).type
        groups = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        dim = getattr(kind, "list_size", None) or _first_width(footer, name)
    offsets = np.cumsum([0, *groups]).tolist()
    pieces = tuple(Piece(path, start, n_rows, start) for start, n_rows in zip(offsets, groups) if n_rows)
    network = (metadata.metadata or {}).get(_NETWORK)
    has_ids = _find(schema.names, columns.id, IDS) is not None
    row_bytes = dim * kind.value_type.bit_width // 8
    return Layout(path, pieces, offsets[-1], dim, row_bytes, has_ids, None if network is None else network.decode())


def _first_width(file: Any, name: str) -> int:
    """How many numbers the first row has, of lists whose type does not say so."""
    for batch in file.iter_batches(batch_size=1, columns=[name]):
        return len(batch.column(0)[0])
    return 0


def _embedding(path: str, schema: Any, columns: Columns) -> str:
    found = _find(schema.names, columns.embedding, EMBEDDINGS)
    if found is None:
        lists = [field.name for field in schema if _is_list_of_floats(field.type)]
        found = lists[0] if len(lists) == 1 and columns.embedding is None else None
    if found is None:
        expected = columns.embedding or "embedding, features or vector, or exactly one list of floats"
        raise ValueError(f"`{path}`: expected a column {expected}, found {', '.join(schema.names)}")
    return found


def _is_list_of_floats(kind: Any) -> bool:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return is_list and bool(pa.types.is_floating(kind.value_type))


def _find(names: list[str], wanted: Optional[str], usual: tuple[str, ...]) -> Optional[str]:
    return next((name for name in ((wanted,) if wanted else usual) if name in names), None)


def _batches(storage: Storage, piece: Piece, path: str, names: list[str]) -> Iterator[Any]:
    """Columns of the rows of a piece, group by group."""
    with storage.open(path) as opened:
        file, start = pq.ParquetFile(opened), 0
        for group in range(file.metadata.num_row_groups):
            end = start + file.metadata.row_group(group).num_rows
            if max(start, piece.first) < min(end, piece.first + piece.n_rows):
                table = file.read_row_group(group, columns=names)
                first = max(piece.first - start, 0)
                yield table.slice(first, min(end, piece.first + piece.n_rows) - start - first)
            start = end


def _parquet_names(
    storage: Storage, piece: Piece, columns: Columns
) -> tuple[Optional["pa.Array"], Optional["pa.Array"]]:
    path = piece.metadata or piece.path
    with storage.open(path) as file:
        names = pq.ParquetFile(file).schema_arrow.names
    found = [_find(names, columns.id, IDS), _find(names, columns.label, LABELS)]
    wanted = list(dict.fromkeys(name for name in found if name))
    if not wanted:
        return None, None
    parts = list(_batches(storage, piece, path, wanted))
    table = pa.concat_tables(parts)
    ids, labels = (None if name is None else texts(table.column(name)) for name in found)
    return ids, labels


def texts(column: Any) -> "pa.Array":
    """A column of texts or integers as texts, in one piece."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):  # what pandas turns integers into when some are missing
        column = column.cast(pa.int64())
    column = pc.fill_null(column.cast(pa.large_string()), "")
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _parquet_values(storage: Storage, piece: Piece, columns: Columns) -> npt.NDArray[Any]:
    with storage.open(piece.path) as file:
        name = _embedding(piece.path, pq.ParquetFile(file).schema_arrow, columns)
    blocks = []
    for table in _batches(storage, piece, piece.path, [name]):
        for chunk in table.column(name).chunks:
            if len(chunk) == 0:
                continue
            numbers = chunk.flatten().to_numpy(zero_copy_only=False)
            if len(numbers) % len(chunk):
                raise ValueError(f"`{piece.path}`: column `{name}`: expected rows of the same length")
            blocks.append(numbers.reshape(len(chunk), -1))
    return np.concatenate(blocks)


def _clip_retrieval(storage: Storage, folder: str, columns: Columns) -> Layout:
    found = []
    for name in storage.names(join(folder, "img_emb")):
        match = re.fullmatch(r"img_emb_(\d+)\.npy", name)
        if match:
            found.append((int(match[1]), match[1], join(folder, "img_emb", name)))
    if not found:
        raise ValueError(f"`{folder}`: expected a clip-retrieval folder with files `img_emb/img_emb_{{number}}.npy`, found none")
    pieces, offset, shapes, has_ids = [], 0, set(), True
    for _, number, path in sorted(found):
        metadata = join(folder, "metadata", f"metadata_{number}.parquet")
        head = Head.of(storage, path)
        pieces.append(Piece(path, 0, head.n_rows, offset, metadata))
        with storage.open(metadata) as file:
            has_ids &= _find(pq.ParquetFile(file).schema_arrow.names, columns.id, IDS) is not None
        offset += head.n_rows
        shapes.add((head.dim, head.row_bytes))
    if len({dim for dim, _ in shapes}) > 1:
        raise ValueError(f"`{folder}`: expected rows of one width in all files, found {sorted(dim for dim, _ in shapes)}")
    return Layout(folder, tuple(pieces), offset, *max(shapes), has_ids, None)


def _array(storage: Storage, path: str) -> Layout:
    head, said = Head.of(storage, path), Labels.of(storage, path)
    return Layout(path, (Piece(path, 0, head.n_rows, 0),), head.n_rows, head.dim, head.row_bytes, said.has_ids, said.network)
