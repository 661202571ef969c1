"""``train`` on a cluster: one job, on a node that is large enough for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Optional

from .._files import Path
from .._jobs import train_files
from ._cluster import Task
from ._inputs import as_path, check_names, fetch_all, identities, normalized_paths
from ._scratch import scratch
from ._settings import Settings
from ._storage import Storage, basename, ending
from ._tables import Columns, layout

_INPUTS = (
    "clean",
    "pool",
    "relevance",
    "class_text",
    "decisions",
    "base",
    "clean_labels",
    "pool_labels",
)
#: Bytes that a process of Ray's takes before it works on anything.
_PROCESS_BYTES = 400 << 20


def train(
    clean: Optional[Path],
    pool: Path,
    relevance: Path,
    output: Path,
    *,
    memory: Optional[int] = None,
    settings: Optional[Settings] = None,
    **options: Any,
) -> dict[str, Any]:
    """Learns a classifier in which every candidate counts by its relevance, in one task of a Ray cluster; the file is the one
    that :func:`labelsieve.train_files` writes, byte for byte.

    Parameters
    ----------
    clean, pool, relevance, output : paths or URLs
        As in :func:`labelsieve.train_files`.
    memory : int, optional
        Bytes that the task occupies; by default twice what the pool takes.
    settings : Settings, optional
        The cluster and the resources of the task.
    **options
        All others of :func:`labelsieve.train_files`, with the same defaults.

    Returns
    -------
    dict
        What :func:`labelsieve.train_files` returns.
    """
    settings = settings or Settings()
    check_names("train", train_files, options)
    storage, target = settings.storage(), as_path("output", output)
    given = {**options, "clean": clean, "pool": pool, "relevance": relevance}
    options = normalized_paths({**given, "device": settings.device(options.get("device", "auto"))}, _INPUTS)
    identities(storage, (options.get(name) for name in _INPUTS))  # what is not there is told before a cluster starts
    if ending(target) != "safetensors":
        raise ValueError(f"cannot write `{target}`: the extension must be .safetensors")
    names = ("embedding_column", "label_column", "id_column", "pool_labels")
    table = layout(storage, options["pool"], Columns(*(options.get(name) for name in names)))
    needs = settings.resources(memory or 8 * table.n_rows * table.dim + _PROCESS_BYTES)
    with settings.cluster() as cluster:
        done = cluster.run([Task("train", train_one, (storage, options, target), resources=needs)], settings.progress)
    trained: dict[str, Any] = done[0]
    return trained


def train_one(storage: Storage, options: Mapping[str, Any], output: str) -> dict[str, Any]:
    """Fetches the inputs, trains, and puts the classifier."""
    with scratch() as folder:
        inputs = fetch_all(storage, options, _INPUTS, folder)
        local = os.path.join(folder, basename(output))
        summary = train_files(**inputs, output=local)
        storage.put(local, output)
    return summary
