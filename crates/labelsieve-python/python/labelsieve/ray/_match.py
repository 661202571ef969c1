"""``match`` on a cluster: texts cut into shards, a task for each, and the parts merged.

Files that every node reaches are cut by bytes. Of files on other storage, a task fetches some whole ones.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import pyarrow.parquet as pq

from .. import _labelsieve
from .._files import Path
from .._jobs import Paths, _paths, match_files
from ._cluster import Cluster, Task
from ._inputs import as_path, check_names, fetch, fetch_all, identities, normalized_paths
from ._merge import merge_parts
from ._options import COMMANDS
from ._scratch import scratch
from ._settings import Settings
from ._storage import Storage, basename, ending, is_local, join
from ._work import Work, numbered

#: Bytes of text that a task searches, unless the number of tasks is given.
_SHARD_BYTES = 256 << 20
_MOST_SHARDS = 4096
_PART = b"labelsieve.part"


def match(
    classes: Path,
    text: Paths,
    output: Path,
    *,
    shards: Optional[int] = None,
    settings: Optional[Settings] = None,
    **options: Any,
) -> dict[str, Any]:
    """Finds the candidates of each class on a Ray cluster; the file is the one that :func:`labelsieve.match_files` writes,
    byte for byte.

    Parameters
    ----------
    classes, text, output : paths or URLs
        As in :func:`labelsieve.match_files`.
    shards : int, optional
        Into how many parts the texts are cut; by default one for every 256 MiB.
    settings : Settings, optional
        The cluster, the resources of a task and where parts are kept.
    **options
        All others of :func:`labelsieve.match_files`, with the same defaults.

    Returns
    -------
    dict
        What :func:`labelsieve.match_files` returns, but for the estimate of what another rule would find.
    """
    settings = settings or Settings()
    check_names("match", match_files, options, without=COMMANDS["match"].without)
    storage, target = settings.storage(), as_path("output", output)
    if ending(target) not in ("parquet", "csv"):
        raise ValueError(f"cannot write `{target}`: the extension must be .parquet or .csv")
    outputs = {name: as_path(name, options.pop(name)) for name in ("stats", "download_list") if options.get(name)}
    options["guard_features"] = _paths(options.get("guard_features", ()))
    options = normalized_paths({**options, "classes": classes}, _INPUTS)
    cut = _cut(storage, [as_path("text", path) for path in _paths(text)], shards)
    own = {name: value for name, value in options.items() if name not in _INPUTS}
    inputs = identities(storage, [*options["guard_features"], options.get("features"), options["classes"], *cut.files])
    key = {"command": "match", "options": own, "inputs": inputs, "shards": len(cut), "list": "download_list" in outputs}
    work = Work(settings, target, key)
    kinds = {"candidates": target}
    if "download_list" in outputs:
        kinds["download-list"] = outputs["download_list"]
    with settings.cluster() as cluster, work.kept():
        _search(cluster, Search(storage, work.folder, options, cut, "download-list" in kinds), work, settings)
        summary = _summary(storage, options["classes"], _notes(work, len(cut)))
        merged = cluster.run([_merge(work, kind, len(cut), output, settings) for kind, output in kinds.items()])
    if "photos" in summary:
        summary["photos"]["n_photos"] = merged[1]["n_rows"]  # those that two shards list count once
    if "stats" in outputs:
        counted = {name: summary[name] for name in ("classes", "groups", "n_candidates")}
        storage.put_text(json.dumps(counted, indent=2, ensure_ascii=False) + "\n", outputs["stats"])
    work.remove()
    return summary


_INPUTS = ("classes", "guard_features", "features")


def _search(cluster: Cluster, search: "Search", work: Work, settings: Settings) -> None:
    """Searches the shards that an earlier call left."""
    names = [numbered("shard", index) for index in range(len(search.cut))]
    done = work.finished("candidates")
    left = [index for index, name in enumerate(names) if name not in done]
    work.say_resumed(len(names) - len(left), len(names), "shards")
    tasks = [
        Task(f"shard {index} of {len(names)}", search.run, (index,), search.cut.mib(index), settings.resources())
        for index in left
    ]
    before = sum(search.cut.mib(index) for index in range(len(names))) - sum(task.weight for task in tasks)
    cluster.run(tasks, settings.progress, "MiB", before=before)


def _notes(work: Work, n: int) -> list[dict[str, Any]]:
    return [work.read_json("candidates", f"{numbered('shard', index)}.json") or {} for index in range(n)]


@dataclass(frozen=True)
class Cut:
    """Texts in shards: either all files, cut by bytes, or some whole files for each."""

    files: tuple[str, ...]
    sizes: tuple[int, ...]
    #: First file of each shard, and the end; none where files are cut by bytes.
    bounds: Optional[tuple[int, ...]]
    n_shards: int

    def __len__(self) -> int:
        return self.n_shards

    def mib(self, index: int) -> int:
        """The size of a shard, for the progress."""
        if self.bounds is None:
            return max(1, sum(self.sizes) // self.n_shards >> 20)
        return max(1, sum(self.sizes[self.bounds[index] : self.bounds[index + 1]]) >> 20)


@dataclass(frozen=True)
class Search:
    """The search that every shard shares."""

    storage: Storage
    folder: str
    options: Mapping[str, Any]
    cut: Cut
    lists_downloads: bool

    def run(self, index: int) -> None:
        """Searches a shard and puts its parts, and before the last one what there is to say about them."""
        name, n = numbered("shard", index), len(self.cut)
        with scratch() as folder:
            inputs = fetch_all(self.storage, self.options, ("classes", "features"), folder)
            guards = self.options.get("guard_features", ())
            inputs["guard_features"] = [fetch(self.storage, path, join(folder, f"guard{i}")) for i, path in enumerate(guards)]
            files, shard = list(self.cut.files), f"{index}/{n}"
            if self.cut.bounds is not None:
                first, end = self.cut.bounds[index : index + 2]
                files = [str(fetch(self.storage, self.cut.files[i], join(folder, f"text{i}"))) for i in range(first, end)]
                shard = "0/1"
            part, listed = os.path.join(folder, name), os.path.join(folder, "downloads.parquet")
            if self.lists_downloads:
                inputs["download_list"] = listed
            summary = match_files(text=files, output=part, shard=shard, **inputs)
            if self.cut.bounds is not None:
                run = _run_of(self.cut)
                for path in (part, listed)[: 1 + self.lists_downloads]:
                    _relabel(path, run, index, n)
            if self.lists_downloads:
                self.storage.put(listed, join(self.folder, "download-list", name))
            self.storage.put_text(json.dumps(summary), join(self.folder, "candidates", f"{name}.json"))
            self.storage.put(part, join(self.folder, "candidates", name))


def _merge(work: Work, kind: str, n: int, output: str, settings: Settings) -> Task:
    parts = [work.path(kind, numbered("shard", index)) for index in range(n)]
    return Task(f"the merge of `{output}`", merge_parts, (work.storage, parts, output), resources=settings.light())


def _cut(storage: Storage, texts: Sequence[str], shards: Optional[int]) -> Cut:
    if shards is not None and (not isinstance(shards, int) or shards < 1):
        raise ValueError(f"shards: expected a positive integer, found {shards!r}")
    if all(is_local(path) for path in texts):
        files = tuple(path for text in texts for path in storage.expand(text))
        sizes = tuple(sum(_sizes(storage, path)) for path in files)
        n = shards or min(_MOST_SHARDS, -(-sum(sizes) // _SHARD_BYTES))
        return Cut(files, sizes, None, max(1, n))
    files = tuple(file for text in texts for path in storage.expand(text) for file in _files_of(storage, path))
    sizes = tuple(storage.size(path) for path in files)
    n = min(len(files), shards or min(_MOST_SHARDS, max(1, -(-sum(sizes) // _SHARD_BYTES))))
    return Cut(files, sizes, _bounds(sizes, n), n)


def _sizes(storage: Storage, path: str) -> list[int]:
    return [storage.size(join(path, name)) for name in storage.files_below(path)] if storage.is_folder(path) else [storage.size(path)]


def _bounds(sizes: Sequence[int], n: int) -> tuple[int, ...]:
    """Cuts files into ``n`` runs of about the same size, none of them empty."""
    bounds, done, total = [0], 0, max(1, sum(sizes))
    for index, size in enumerate(sizes):
        done += size
        left_files, left_shards = len(sizes) - index - 1, n - len(bounds)
        if left_shards > 0 and (done * n >= total * len(bounds) or left_files == left_shards):
            bounds.append(index + 1)
    return (*bounds, len(sizes)) if bounds[-1] != len(sizes) else tuple(bounds)


def _files_of(storage: Storage, path: str) -> list[str]:
    """The files of a folder on other storage, in the order in which ``match`` reads them."""
    if not storage.is_folder(path):
        return [path]
    metadata = [re.fullmatch(r"metadata_(\d+)\.parquet", name) for name in storage.names(join(path, "metadata"))]
    numbers = sorted((int(found[1]), found[0]) for found in metadata if found)
    if numbers:
        return [join(path, "metadata", name) for _, name in numbers]
    tables = [name for name in storage.names(path) if ending(name) == "parquet"]
    if not tables or "metadata.parquet" in tables:
        raise ValueError(
            f"`{path}`: expected a folder of Parquet files or of clip-retrieval\n"
            "hint: of a folder of images, give the metadata file itself"
        )
    return [join(path, name) for name in tables]


def _run_of(cut: Cut) -> str:
    """A digest that parts of the same whole files share; the folder that they are in says the rest."""
    import hashlib

    return hashlib.sha256(json.dumps([[basename(path) for path in cut.files], cut.sizes]).encode()).hexdigest()


def _relabel(path: str, run: str, index: int, of: int) -> None:
    """Makes the only part of some files one of many of all files."""
    table, metadata = pq.read_table(path), pq.read_metadata(path).metadata
    metadata = {key: value for key, value in metadata.items() if key != b"ARROW:schema"}
    part = {**json.loads(metadata[_PART]), "run": run, "index": index, "of": of}
    pq.write_table(table.replace_schema_metadata({**metadata, _PART: json.dumps(part).encode()}), path)


def _summary(storage: Storage, classes: str, notes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The summary of ``match_files`` for all shards."""
    found: dict[str, int] = {}
    for note in notes:
        for of_class in note["classes"]:
            found[of_class["id"]] = found.get(of_class["id"], 0) + of_class["n_candidates"]
    with scratch() as folder:
        local = str(fetch(storage, classes, folder))
        statistics = json.loads(_labelsieve.candidate_statistics(local, found))
    counted = ("n_rows", "n_malformed", "n_damaged_files", "n_leaks")
    whole = {**statistics, **{name: sum(note[name] for note in notes) for name in counted}}
    if whole["n_candidates"] == 0:
        raise ValueError(
            f"no candidates: none of the {whole['n_rows']} texts contains a name of a class\n"
            "hint: try another `rule`, or other columns with `text_columns`"
        )
    photos = [note["photos"] for note in notes if "photos" in note]
    if photos:
        whole["photos"] = {name: sum(listed[name] for listed in photos) for name in photos[0]}
    return whole
