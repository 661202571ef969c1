"""``embed`` on a cluster: a task for each source of images, and one file of features at the end."""

from __future__ import annotations

import csv
import json
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from .. import _labelsieve
from .._files import Path
from .._jobs import Paths, _paths, embed_files
from ._cluster import Task
from ._inputs import as_path, check_names, fetch, fetch_all, identities, normalized_paths
from ._options import COMMANDS
from ._scratch import scratch
from ._settings import Settings
from ._storage import FETCHED, Storage, basename, ending, is_local, join
from ._work import Work, numbered

#: Files of these endings are packed images; others right below a folder make it a folder of images.
_PACKED = ("tar", "parquet")


def embed(
    model: Optional[Path],
    images: Paths,
    output: Path,
    *,
    settings: Optional[Settings] = None,
    **options: Any,
) -> dict[str, Any]:
    """Turns images into features of unit length on a Ray cluster; the file is the one that
    :func:`labelsieve.embed_files` writes.

    Parameters
    ----------
    model, images, output : paths or URLs
        As in :func:`labelsieve.embed_files`; the output is .parquet. Each .tar and .parquet file is a task, also those in a
        folder; a folder of image files is one.
    settings : Settings, optional
        The cluster, the resources of a task and where parts are kept.
    **options
        All others of :func:`labelsieve.embed_files`, with the same defaults. A PCA can be applied, but not fitted.

    Returns
    -------
    dict
        What :func:`labelsieve.embed_files` returns.
    """
    settings = settings or Settings()
    check_names("embed", embed_files, options, without=(*COMMANDS["embed"].without, "on_empty"))
    began, storage, target = time.monotonic(), settings.storage(), as_path("output", output)
    if ending(target) != "parquet":
        raise ValueError(f"cannot write `{target}`: features of several tasks are joined in a .parquet file")
    sources = _sources(storage, [as_path("images", path) for path in _paths(images)])
    options = normalized_paths({**options, "device": settings.device(options.get("device", "auto"))}, ("pca",))
    network = _network(storage, model)
    inputs = [options.get("pca"), network if network and storage.exists(network) else None, *sources]
    own = {**{name: value for name, value in options.items() if name != "pca"}, "model": basename(network or "")}
    key = {"command": "embed", "options": own, "inputs": identities(storage, inputs)}
    work = Work(settings, target, key)
    with settings.cluster() as cluster, work.kept():
        names = [numbered("images", index) for index in range(len(sources))]
        done = work.finished("parts")
        open_ = [i for i, name in enumerate(names) if name not in done or f"{name}.json" not in done]
        work.say_resumed(len(sources) - len(open_), len(sources), "sources")
        job = (storage, network, options)
        tasks = [
            Task(f"`{sources[i]}`", embed_source, (*job, sources[i], work.path("parts", names[i])), 1, settings.resources())
            for i in open_
        ]
        cluster.run(tasks, settings.progress, "sources", before=len(sources) - len(open_))
        parts = [work.path("parts", name) for name in names]
        joined = cluster.run([Task("the join", join_parts, (storage, parts, target), resources=settings.light())])[0]
    summary = {**joined, "images_per_second": joined["n_images"] / max(1e-9, time.monotonic() - began)}
    work.remove()
    if summary["n_skipped"]:
        n, listed = summary["n_skipped"], summary["skipped_list"]
        warnings.warn(f"{n} of {n + summary['n_images']} images were skipped; `{listed}` says why", stacklevel=2)
    return summary


def embed_source(
    storage: Storage, model: Optional[str], options: Mapping[str, Any], source: str, output: str
) -> None:
    """Embeds one source of images and puts the features, and before them what there is to say about them."""
    with scratch() as folder:
        inputs = fetch_all(storage, options, ("pca",), folder)
        network = model if model is None or not storage.exists(model) else fetch(storage, model, join(folder, "model"))
        images = str(fetch(storage, source, join(folder, "images")))
        part = os.path.join(folder, "features.parquet")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"\d+ of \d+ images were skipped")
            summary = embed_files(network, [images], part, on_empty="write", **inputs)
        noted = {"summary": summary, "skipped": _skipped(f"{part}.skipped.csv")}
        storage.put_text(json.dumps(noted), f"{output}.json")
        storage.put(part, output)


def _skipped(path: str) -> list[list[str]]:
    """The images that could not be read: ids, which are paths for whole files, and reasons."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [[FETCHED.get(row[0], row[0]), *row[1:]] for row in rows]


def join_parts(storage: Storage, parts: Sequence[str], output: str) -> dict[str, Any]:
    """One file of features, and one list of what could not be read."""
    noted = [json.loads(storage.read_text(f"{part}.json")) for part in parts]
    skipped = [row for note in noted for row in note["skipped"]]
    listed = f"{output}.skipped.csv"
    with scratch() as folder:
        local = [storage.fetch(part, os.path.join(folder, "parts")) for part in parts]
        joined = os.path.join(folder, basename(output))
        found = json.loads(_labelsieve.join_features(local, joined, None))
        if skipped:
            with open(os.path.join(folder, "skipped.csv"), "w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([["id", "reason"], *skipped])
            storage.put(os.path.join(folder, "skipped.csv"), listed)
        else:
            storage.remove(listed)
        storage.put(joined, output)
    names = ("n_skipped", "n_damaged_files", "n_with_class")
    counts = {name: sum(note["summary"][name] for note in noted) for name in names}
    return {**found, **counts, "ids_table": None, "skipped_list": listed if skipped else None, "variance_kept": None}


def _sources(storage: Storage, given: Sequence[str]) -> list[str]:
    """The sources, in order, each the work of one task."""
    found: list[str] = []
    for path in (path for pattern in given for path in storage.expand(pattern)):
        if storage.is_folder(path):
            found.extend(_below(storage, path))
        elif ending(path) in _PACKED:
            found.append(path)
        elif not storage.exists(path):
            raise FileNotFoundError(f"cannot open `{path}`: there is no such file")
        else:
            raise ValueError(
                f"`{path}`: expected a folder, .tar or .parquet files, found a single file\n"
                "hint: give the folder of image files, or pack them into tars, which are embedded side by side"
            )
    return found


def _below(storage: Storage, folder: str) -> list[str]:
    names = storage.names(folder)
    tars, tables = ([name for name in names if ending(name) == kind] for kind in _PACKED)
    if tars:
        return [join(folder, name) for name in tars]
    if tables and "metadata.parquet" not in tables:
        return [join(folder, name) for name in tables]
    return [folder]


def _network(storage: Storage, model: Optional[Path]) -> Optional[str]:
    """A network as every node finds it; names of built-in ones stay as they are."""
    if model is None:
        return None
    text = os.fspath(model)
    return text if is_local(text) and not os.path.exists(text) else as_path("model", text)
