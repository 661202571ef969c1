"""Work on a Ray cluster: tasks with resources and retries, progress, and failures in our own words."""

from __future__ import annotations

import builtins
import importlib
import os
import platform
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .._labelsieve import __version__
from .._progress import Progress, Stretches
from ._needs import check_installed
from ._peak import reset_peak
from ._storage import FETCHED, in_words

#: Bytes of the object store of a cluster that is started here: files carry the data, tasks only return a few numbers.
_STORE_BYTES = 100 << 20
_MIB = 1 << 20


@dataclass(frozen=True)
class Resources:
    """The resources of a task while it runs, and how often it is tried again when its process or node dies."""

    num_cpus: float = 1
    num_gpus: float = 0
    #: Bytes; None: Ray counts none.
    memory: Optional[int] = None
    max_retries: int = 3

    @property
    def n_threads(self) -> int:
        return max(1, int(self.num_cpus))


@dataclass(frozen=True)
class Task:
    """A function of a module of ours with its arguments; ``weight`` is its share of the progress."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    weight: int = 1
    resources: Resources = Resources()


@dataclass(frozen=True)
class _Done:
    """The result of a task, and its warnings."""

    value: Any
    warnings: list[str]


@dataclass(frozen=True)
class _Failed:
    """An exception of a task: the kind of error and its message."""

    kind: str
    message: str


class Cluster:
    """A connection to Ray, which is closed at the end if it was opened here."""

    def __init__(self, address: Optional[str] = None, num_cpus: Optional[int] = None) -> None:
        check_installed()
        self.ray = importlib.import_module("ray")
        self.is_ours = not self.ray.is_initialized()
        #: Whether no node can join or leave but those that are there.
        self.is_fixed = False
        if not self.is_ours:
            if address is not None or num_cpus is not None:
                raise ValueError("address and num_cpus: expected none, since Ray is already initialized in this process")
            return
        address = address or os.environ.get("RAY_ADDRESS") or "local"
        if address != "local" and num_cpus is not None:
            raise ValueError(f"num_cpus: expected none, since the nodes of `{address}` have their own")
        settings: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": "WARNING"}
        if address == "local":
            self.is_fixed = True
            settings.update(num_cpus=num_cpus, include_dashboard=False, object_store_memory=_STORE_BYTES)
        try:
            self.ray.init(**settings)
        except ConnectionError as error:
            raise ConnectionError(
                f"cannot connect to Ray at `{address}`: {error}\nhint: `ray start --head` starts a cluster; without an address, "
                "one is started on this machine"
            ) from None

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_ours:
            self.ray.shutdown()

    def n_cpus(self) -> int:
        """Cores of all nodes."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def run(
        self,
        tasks: Sequence[Task],
        progress: Progress = None,
        unit: str = "tasks",
        before: int = 0,
    ) -> list[Any]:
        """Runs all tasks and returns what they returned, in their order.

        ``before`` is the weight of what was done already. The first failure ends the run: tasks that wait are dropped, those
        that run are ended, by closing the connection where it is ours. Ray may abort a process that cancels a task which ends
        at that moment ("Tried to complete task that was not pending"), so only a user's own connection cancels.
        """
        self._check_room(tasks)
        told, total = _Told(progress, unit), before + sum(task.weight for task in tasks)
        remote = self.ray.remote(run_task)
        done: dict[int, _Done] = {}
        weight = before
        waiting: dict[Any, int] = {}
        try:
            for position, task in enumerate(tasks):
                waiting[_submit(remote, task)] = position
            told(weight, total)
            while waiting:
                ready, _ = self.ray.wait(list(waiting), num_returns=1, timeout=1.0)
                for reference in ready:
                    position = waiting.pop(reference)
                    done[position] = self._result(reference, tasks[position])
                    weight += tasks[position].weight
                    told(weight, total)
        finally:
            if waiting and not self.is_ours:  # a failure or Ctrl-C
                _, running = self.ray.wait(list(waiting), num_returns=len(waiting), timeout=0)
                for reference in running:
                    self.ray.cancel(reference, force=True)
        _tell_warnings([done[position] for position in sorted(done)])
        return [done[position].value for position in range(len(tasks))]

    def _result(self, reference: Any, task: Task) -> _Done:
        errors = self.ray.exceptions
        try:
            result = self.ray.get(reference)
        except errors.OutOfMemoryError:
            hint = "hint: cut the work into more bins, or run fewer tasks at a time with more `task_cpus`"
            raise MemoryError(f"{task.name}: its node ran out of memory\n{hint}") from None
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.ObjectLostError):
            n = 1 + task.resources.max_retries
            tries = "once" if n == 1 else f"{n} times"
            hint = "hint: the logs of its node say why; out of memory is the usual cause"
            raise RuntimeError(f"{task.name}: its process died {tries}\n{hint}") from None
        except errors.RayTaskError as error:  # before our function ran: it or what it needs cannot be imported
            cause = str(getattr(error, "cause", error)).strip().splitlines()[-1]
            hint = f"hint: every node needs `pip install 'labelsieve[ray]=={__version__}'` for the same Python"
            raise RuntimeError(f"{task.name}: {cause}\n{hint}") from None
        if isinstance(result, _Failed):
            raise _as_error(task.name, result)
        assert isinstance(result, _Done)
        return result

    def _check_room(self, tasks: Sequence[Task]) -> None:
        """Ray would wait for ever, without a word, for a node that is large enough."""
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        for task in tasks:
            need = {"CPU": task.resources.num_cpus, "GPU": task.resources.num_gpus, "memory": task.resources.memory or 0}
            if any(all(node.get(name, 0) >= amount for name, amount in need.items()) for node in nodes):
                continue
            words = f"{need['CPU']:g} cores, {need['GPU']:g} GPUs and {need['memory'] // _MIB:,} MiB"
            message = f"{task.name} needs {words} on one node, and no node has them"
            if self.is_fixed:
                raise ValueError(f"{message}\nhint: cut the work into more bins, or ask for less")
            warnings.warn(f"{message}; waiting until one joins", RuntimeWarning, stacklevel=4)
            return


def run_task(function: Callable[..., Any], arguments: tuple[Any, ...], n_threads: int, version: str) -> Any:
    """Runs the function on a node and returns its result, its warnings or its exception."""
    from .._relevance import set_num_threads

    if version != __version__:
        found = f"labelsieve {__version__} on `{node_name()}`, but {version} where the work was started"
        return _Failed("RuntimeError", f"found {found}\nhint: install the same version on every node")
    set_num_threads(n_threads)
    reset_peak()
    FETCHED.clear()
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            value = function(*arguments)
    except Exception as error:
        return _Failed(type(error).__name__, in_words(str(error) or repr(error)))
    told = [in_words(str(warning.message)) for warning in seen if issubclass(warning.category, (UserWarning, RuntimeWarning))]
    return _Done(value, told)


def node_name() -> str:
    """The name of this machine."""
    return platform.node()


def _submit(remote: Any, task: Task) -> Any:
    needs = task.resources
    options = {
        "name": f"labelsieve: {task.name}",
        "num_cpus": needs.num_cpus,
        "num_gpus": needs.num_gpus,
        "max_retries": needs.max_retries,
    }
    if needs.memory is not None:
        options["memory"] = needs.memory
    return remote.options(**options).remote(task.function, task.arguments, needs.n_threads, __version__)


def _as_error(name: str, failed: _Failed) -> Exception:
    """An error of the same kind where Python has it, with the task's name before the message."""
    kind = getattr(builtins, failed.kind, RuntimeError)
    if not (isinstance(kind, type) and issubclass(kind, Exception)) or issubclass(kind, UnicodeError):
        kind = RuntimeError
    error: Exception = kind(f"{name}: {failed.message}")
    return error


def _tell_warnings(done: list[_Done]) -> None:
    """Warnings of all tasks, each once."""
    for message in dict.fromkeys(message for result in done for message in result.warnings):
        warnings.warn(message, stacklevel=4)


class _Told:
    """Progress, if anybody asked for it."""

    def __init__(self, progress: Progress, unit: str) -> None:
        self.stretches = None if progress is None or progress is False else Stretches(progress)
        if self.stretches is not None:
            self.stretches.begin(unit)

    def __call__(self, done: int, total: int) -> None:
        if self.stretches is not None and total > 0:
            self.stretches(done, total)
