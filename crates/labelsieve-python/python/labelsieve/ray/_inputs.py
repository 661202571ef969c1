"""Files that a task works on: as they are, or fetched to the node with what belongs to them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Optional

from .._files import Path
from ._storage import Storage, all_identities, basename, ending, is_local, join, normalized, without_ending

#: Inputs of ``score`` besides the pool: every bin reads them whole.
SCORE_INPUTS = ("clean", "class_text", "decisions", "base", "clean_labels")


def normalized_paths(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The options with those that are paths made valid in every folder; ``names`` are the options that may be some."""
    paths = {name: options.get(name) for name in names}
    return {**options, **{name: _each(path) for name, path in paths.items() if path is not None}}


def _each(path: Any) -> Any:
    return normalized(path) if isinstance(path, (str, bytes)) or hasattr(path, "__fspath__") else [normalized(p) for p in path]


def identities(storage: Storage, paths: Iterable[Optional[str]]) -> list[Any]:
    """Values that change when an input, or a file that belongs to it, is replaced. An input that does not exist is an error."""
    found = []
    for path in paths:
        if path is not None and not storage.exists(path):
            raise FileNotFoundError(f"cannot open `{path}`: there is no such file")
        found.append(None if path is None else [storage.identity(path), all_identities(storage, beside(storage, path))])
    return found


def beside(storage: Storage, path: str) -> list[str]:
    """Files that are read along with this one, where they exist."""
    names: list[str] = []
    if ending(path) in ("npy", "npz"):
        names = [f"{path}.ids.csv"]
    elif ending(path) == "tar":
        names = [f"{without_ending(path)}.parquet"]
    elif ending(path) in ("csv", "tsv", "parquet"):
        names = [f"{path}.log"]  # of a review that is under way
    elif ending(path) == "onnx":
        folder = path[: -len(basename(path))]
        names = [f"{without_ending(path)}.json", f"{path}_data", f"{path}.data", join(folder, "preprocessor_config.json")]
    return [name for name in names if storage.exists(name)]


def fetch(storage: Storage, path: Optional[str], folder: str) -> Optional[str]:
    """A local path of an input, with what belongs to it beside it."""
    if path is None or is_local(path):
        return path
    for name in beside(storage, path):
        storage.fetch(name, folder)
    return storage.fetch(path, folder)


def fetch_all(storage: Storage, options: Mapping[str, Any], names: Iterable[str], folder: str) -> dict[str, Any]:
    """The options with every input that is elsewhere fetched, each into a folder of its own, under its own name."""
    return {**options, **{name: fetch(storage, options.get(name), join(folder, name)) for name in names if options.get(name)}}


def check_names(function: str, job: Callable[..., Any], options: Mapping[str, Any], without: Iterable[str] = ()) -> None:
    """Refuses options that the job does not know, and those in ``without``, which make no sense here."""
    known = set(inspect.signature(job).parameters) - {"output", "progress", *without}
    for name in options:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def as_path(name: str, path: Path) -> str:
    """A path or URL that every node understands."""
    try:
        return normalized(path)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
