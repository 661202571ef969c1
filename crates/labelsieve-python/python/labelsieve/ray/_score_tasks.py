"""Tasks of ``score`` on their node: make the plan, and score a bin."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import pyarrow.parquet as pq

from .._files import Examples, read_features
from .._jobs import plan_files, score_files
from ._cluster import node_name
from ._inputs import SCORE_INPUTS, fetch_all
from ._peak import peak_bytes
from ._scratch import scratch
from ._shuffle import gather_candidates, gather_rows
from ._storage import FETCHED, Storage, join
from ._tables import Columns, Layout
from ._work import numbered

_PART = b"labelsieve.part"


@dataclass(frozen=True)
class Planning:
    """The inputs of a plan. Unless the number of bins is given, there are at most ``most_bins``, and none stays empty."""

    storage: Storage
    options: Mapping[str, Any]
    packing: Mapping[str, Any]
    most_bins: int
    table: Layout

    def run(self, output: str) -> None:
        """Packs the classes into bins."""
        with scratch() as folder:
            inputs = fetch_all(self.storage, self.options, (*SCORE_INPUTS, "pool", "pool_labels", "candidates"), folder)
            clean = _clean_tables(inputs)
            self._check_ids(clean)
            n_classes = len({str(label) for table in clean if table.y is not None for label in table.y})
            bins = self.packing["bins"] or max(1, min(self.most_bins, n_classes))
            local = os.path.join(folder, "plan.json")
            plan_files(**inputs, output=local, bins=bins, memory=self.packing["memory"])
            self.storage.put(local, output)

    def _check_ids(self, clean: Sequence[Examples]) -> None:
        """Rows without ids are passed on under their numbers, which must then differ from all other ids."""
        if self.table.has_ids:
            return
        numbers = (str(id) for table in clean if table.ids is not None for id in table.ids)
        taken = next((id for id in numbers if id.isdecimal() and int(id) < self.table.n_rows), None)
        if taken is not None:
            hint = "hint: give the pool a column `id`"
            raise ValueError(f"the clean example `{taken}` has the number of a row of `{self.table.path}`, which has no ids\n{hint}")


def _clean_tables(options: Mapping[str, Any]) -> list[Examples]:
    """Clean examples and texts of classes: few enough to be read whole."""
    columns = {name: options.get(name) for name in ("embedding_column", "label_column", "id_column")}
    tables = []
    if options.get("clean") is not None:
        tables.append(read_features(options["clean"], options.get("clean_labels"), **columns))
    if options.get("class_text") is not None:
        tables.append(read_features(options["class_text"]))
    return tables


@dataclass(frozen=True)
class Share:
    """The settings that all bins share: where the parts of the run are, and the options of ``score_files``."""

    storage: Storage
    folder: str
    options: Mapping[str, Any]
    columns: Columns
    pieces: tuple[str, ...]

    def score(self, index: int, memory: Optional[int] = None) -> None:
        """Scores a bin and puts its part, and before it what there is to say about it. With ``memory``, classes that do not
        fit in so many bytes are scored out of core."""
        began = time.monotonic()
        with scratch() as folder:
            inputs = fetch_all(self.storage, self.options, SCORE_INPUTS, folder)
            inputs.pop("pool_labels", None)  # the rows bring their classes along
            inputs["pool"] = os.path.join(folder, "rows.npy")
            FETCHED[inputs["pool"]] = f"{self.options['pool']} (the rows of bin {index})"
            gather_rows(self.storage, self.pieces, index, self.columns, inputs["pool"])
            if inputs.get("candidates") is not None:
                inputs["candidates"] = os.path.join(folder, "candidates.parquet")
                gather_candidates(self.storage, join(self.folder, "rows", "candidates.parquet"), index, inputs["candidates"])
            plan = self.storage.fetch(join(self.folder, "plan.json"), folder)
            part = os.path.join(folder, numbered("bin", index))
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="skipping ")  # of all bins, the plan has told
                summary = score_files(**inputs, output=part, plan=plan, bin=index, memory=memory)
            noted = {"summary": summary, "seconds": time.monotonic() - began, "peak_bytes": peak_bytes(), "node": node_name()}
            self.storage.put_text(json.dumps(noted), join(self.folder, "bins", f"bin-{index:05}.json"))
            self.storage.put(part, join(self.folder, "bins", numbered("bin", index)))


def check_part(storage: Storage, path: str, plan: Mapping[str, Any], index: int) -> None:
    """Refuses a file that is not this part of this plan."""
    with storage.open(path) as file:
        try:
            text: Optional[bytes] = (pq.read_metadata(file).metadata or {}).get(_PART)
        except Exception as error:
            raise ValueError(f"`{path}` cannot be read: {error}\nhint: remove it, and the same call makes it again") from None
    part = json.loads(text or b"{}")
    if (part.get("run"), part.get("index"), part.get("of")) != (plan["run"], index, len(plan["bins"])):
        found = f"part {part.get('index')} of {part.get('of')} of run {str(part.get('run'))[:12]}"
        expected = f"part {index} of {len(plan['bins'])} of run {plan['run'][:12]}"
        raise ValueError(f"`{path}`: expected {expected}, found {found}\nhint: it is of another run; remove it or give another `work`")
