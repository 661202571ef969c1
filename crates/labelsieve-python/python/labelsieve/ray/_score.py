"""``score`` on a cluster: classes packed into bins, rows shuffled to them, a task for each, and the parts merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from .._files import Path
from .._jobs import score_files
from ._score_tasks import Planning, Share, check_part
from ._cluster import Cluster, Task
from ._inputs import SCORE_INPUTS, as_path, check_names, identities, normalized_paths
from ._merge import merge_parts
from ._options import COMMANDS
from ._settings import Settings
from ._shuffle import RowsToBins, candidates_to_bins, n_strays
from ._storage import Storage, ending
from ._summary import Bin, cleaned
from ._tables import Columns, Layout, cut, layout
from ._work import Work, numbered

#: Options that are inputs.
_ALL = (*SCORE_INPUTS, "pool", "pool_labels", "candidates")
#: Rows that a task shuffles at a time.
_PIECE_BYTES = 256 << 20
#: Bytes that a process of Ray's takes before it works on anything.
_PROCESS_BYTES = 400 << 20
#: Bins for every task that the cluster can run at a time, so that all are busy to the end.
_BINS_PER_SLOT = 4


def score(
    clean: Optional[Path],
    pool: Path,
    output: Path,
    *,
    bins: Optional[int] = None,
    memory: Optional[str] = None,
    settings: Optional[Settings] = None,
    **options: Any,
) -> dict[str, Any]:
    """Scores the relevance of every candidate to its class on a Ray cluster; the file is the one that
    :func:`labelsieve.score_files` writes, byte for byte.

    Parameters
    ----------
    clean, pool, output : paths or URLs
        As in :func:`labelsieve.score_files`.
    bins : int, optional
        Into how many parts the work is cut; by default four for every task that the cluster runs at a time.
    memory : str, optional
        What a bin should keep within, such as ``"8GiB"``.
    settings : Settings, optional
        The cluster, the resources of a task and where parts are kept.
    **options
        All others of :func:`labelsieve.score_files`, with the same defaults.

    Returns
    -------
    dict
        What :func:`labelsieve.score_files` returns, and ``bins``: what each was planned to take and took, slowest first.
    """
    run = _Run.of(settings or Settings(), clean, pool, output, {"bins": bins, "memory": memory}, options)
    with run.settings.cluster() as cluster, run.work.kept():
        plan = run.plan(cluster)
        pieces = run.shuffle(cluster, plan)
        scored = run.score(cluster, plan, pieces)
        merged = run.merge(cluster, len(plan["bins"]))
    strays = run.n_strays(pieces)
    run.work.remove()
    return cleaned(plan, scored, merged, strays)


@dataclass(frozen=True)
class _Run:
    """One call, from its arguments to its parts."""

    settings: Settings
    storage: Storage
    work: Work
    table: Layout
    columns: Columns
    output: str
    #: Of :func:`labelsieve.score_files`; paths are valid everywhere.
    options: dict[str, Any]
    packing: dict[str, Any]

    @staticmethod
    def of(
        settings: Settings,
        clean: Optional[Path],
        pool: Path,
        output: Path,
        packing: dict[str, Any],
        options: dict[str, Any],
    ) -> "_Run":
        check_names("score", score_files, options, without=COMMANDS["score"].without)
        options["device"] = settings.device(options.get("device", "auto"))
        options = normalized_paths({**options, "clean": clean, "pool": pool}, _ALL)
        storage, target = settings.storage(), as_path("output", output)
        if ending(target) not in ("parquet", "csv"):
            raise ValueError(f"cannot write `{target}`: the extension must be .parquet or .csv")
        inputs = {name: options.get(name) for name in _ALL}
        own = {name: value for name, value in options.items() if name not in inputs}
        found = dict(zip(inputs, identities(storage, inputs.values())))
        key = {"command": "score", "options": own, "packing": packing, "inputs": found}
        names = ("embedding_column", "label_column", "id_column", "pool_labels")
        columns = Columns(*(options.get(name) for name in names))
        table = layout(storage, options["pool"], columns)
        _check_table(table, options)
        return _Run(settings, storage, Work(settings, target, key), table, columns, target, options, packing)

    def plan(self, cluster: Cluster) -> dict[str, Any]:
        """The plan of an earlier call, or a new one, which a task makes: it opens all tables."""
        plan = self.work.read_json("plan.json")
        if plan is None:
            slots = max(1, int(cluster.n_cpus() / self.settings.task_cpus))
            needs = self.settings.light(self._table_bytes() + _PROCESS_BYTES)
            planning = Planning(self.storage, self.options, self.packing, _BINS_PER_SLOT * slots, self.table)
            cluster.run([Task("the plan", planning.run, (self.work.path("plan.json"),), resources=needs)])
            plan = self.work.read_json("plan.json")
        assert isinstance(plan, dict)
        return plan

    def shuffle(self, cluster: Cluster, plan: dict[str, Any]) -> list[str]:
        """The files of all pieces; those that an earlier call made are not made again."""
        places = {position: index for index, planned in enumerate(plan["bins"]) for position in planned["classes"]}
        bin_of_class = {planned["name"]: places[position] for position, planned in enumerate(plan["classes"])}
        pieces = cut(self.table, _PIECE_BYTES)
        done = self.work.finished("rows")
        candidates, tasks = self.options.get("candidates"), []
        rows = RowsToBins(self.storage, self.columns, bin_of_class, candidates, self.table.network)
        for index, piece in enumerate(pieces):
            if numbered("rows", index) not in done:
                needs = self.settings.light(3 * piece.n_rows * self.table.row_bytes + _PROCESS_BYTES)
                output = self.work.path("rows", numbered("rows", index))
                tasks.append(Task(f"rows {index} of {len(pieces)}", rows.write, (piece, output), piece.n_rows, needs))
        if candidates is not None and "candidates.parquet" not in done:
            job = (self.storage, candidates, bin_of_class, self.work.path("rows", "candidates.parquet"))
            needs = self.settings.light(8 * self.storage.size(candidates) + _PROCESS_BYTES)
            tasks.append(Task("the candidates", candidates_to_bins, job, 0, needs))
        before = self.table.n_rows - sum(task.weight for task in tasks)
        cluster.run(tasks, self.settings.progress, "rows shuffled", before=before)
        return [self.work.path("rows", numbered("rows", index)) for index in range(len(pieces))]

    def score(self, cluster: Cluster, plan: dict[str, Any], pieces: list[str]) -> list[Bin]:
        """Scores the bins that are not yet, those that take longest first."""
        bins, done = plan["bins"], self._finished(plan)
        self.work.say_resumed(len(done), len(bins), "bins")
        order = sorted((i for i in range(len(bins)) if i not in done), key=lambda i: -bins[i]["seconds"])
        share = Share(self.storage, self.work.folder, self.options, self.columns, tuple(pieces))
        tasks = [self._bin_task(share, index, plan) for index in order]
        n_before = sum(bins[index]["n_candidates"] for index in done)
        cluster.run(tasks, self.settings.progress, "candidates", before=n_before)
        return [self._bin(index, plan, is_resumed=index in done) for index in range(len(bins))]

    def merge(self, cluster: Cluster, n_bins: int) -> dict[str, Any]:
        parts = [self.work.path("bins", numbered("bin", index)) for index in range(n_bins)]
        task = Task("the merge", merge_parts, (self.storage, parts, self.output), resources=self.settings.light())
        merged: dict[str, Any] = cluster.run([task])[0]
        return merged

    def n_strays(self, pieces: list[str]) -> int:
        """Candidates whose class has no clean example, which no bin knows of."""
        with_classes = pieces if self.options.get("candidates") is None else [self.work.path("rows", "candidates.parquet")]
        return sum(n_strays(self.storage, path) for path in with_classes)

    def _bin_task(self, share: Share, index: int, plan: dict[str, Any]) -> Task:
        planned = plan["bins"][index]
        needs = self.settings.resources(planned["memory_bytes"] + _PROCESS_BYTES)
        name = f"bin {index} of {len(plan['bins'])}"
        limit = plan["memory_bytes"] if planned["out_of_core"] and self.options["device"] == "cpu" else None
        return Task(name, share.score, (index, limit), planned["n_candidates"], needs)

    def _bin(self, index: int, plan: dict[str, Any], *, is_resumed: bool) -> Bin:
        noted = self.work.read_json("bins", f"bin-{index:05}.json")
        assert noted is not None
        return Bin(index, plan["bins"][index], **noted, is_resumed=is_resumed)

    def _finished(self, plan: dict[str, Any]) -> set[int]:
        """The bins of this plan whose part is there. Those of another are an error: nothing else may write here."""
        names, found = self.work.finished("bins"), set()
        for index in range(len(plan["bins"])):
            if numbered("bin", index) in names and f"bin-{index:05}.json" in names:
                check_part(self.storage, self.work.path("bins", numbered("bin", index)), plan, index)
                found.add(index)
        return found

    def _table_bytes(self) -> int:
        """The bytes of the pool in memory where it is opened whole: arrays stay on disk."""
        return 4 * self.table.n_rows * self.table.dim if ending(self.table.path) == "parquet" else 0


def _check_table(table: Layout, options: Mapping[str, Any]) -> None:
    if table.n_rows == 0:
        raise ValueError(f"`{table.path}` contains no examples")
    if options.get("candidates") is not None and not table.has_ids:
        hint = "hint: give them a column `id`; row numbers do not survive a shuffle"
        raise ValueError(f"`{table.path}` has no ids, by which candidates are known\n{hint}")
