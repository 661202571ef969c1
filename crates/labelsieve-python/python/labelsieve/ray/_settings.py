"""Where work runs, what each task occupies, and where parts are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from .._files import Path
from .._progress import Progress
from .._relevance import as_device
from ._cluster import Cluster, Resources
from ._storage import Storage


@dataclass(frozen=True)
class Settings:
    """How work is spread over a Ray cluster.

    Parameters
    ----------
    address : str, optional
        Cluster to connect to: ``"auto"``, ``"ray://host:10001"``; by default ``RAY_ADDRESS``, or a new one on this machine
        (``"local"``). A process that has called ``ray.init`` keeps its cluster.
    num_cpus : int, optional
        Cores of a cluster that is started on this machine; by default all.
    task_cpus : float, default 1
        Cores of a task, which works with as many threads.
    num_gpus : float, default 0
        GPUs of a task. With any, work is done on the GPU; else on the CPU.
    max_retries : int, default 3
        How often a task whose process or node died is tried again.
    work : path or URL, optional
        Folder of parts, which all nodes reach; by default beside the output (``OUTPUT.parts``).
    keep_work : bool
        Keep the parts after the result is written.
    storage_options : dict, optional
        What the file system of URLs is opened with, as fsspec has it: keys, ``endpoint_url`` and so on. By default what the
        environment of each node says.
    progress : callable, tqdm bar or True, optional
        ``progress(done, total)``.
    """

    address: Optional[str] = None
    num_cpus: Optional[int] = None
    task_cpus: float = 1
    num_gpus: float = 0
    max_retries: int = 3
    work: Optional[Path] = None
    keep_work: bool = False
    storage_options: dict[str, Any] = field(default_factory=dict)
    progress: Progress = None

    def __post_init__(self) -> None:
        for name, least in (("task_cpus", 0), ("num_gpus", 0), ("max_retries", 0)):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or value < least or (name == "task_cpus" and value == 0):
                raise ValueError(f"{name}: expected a positive number, found {value!r}")

    def cluster(self) -> Cluster:
        return Cluster(self.address, self.num_cpus)

    def storage(self) -> Storage:
        return Storage(dict(self.storage_options))

    def resources(self, memory: Optional[int] = None) -> Resources:
        return Resources(self.task_cpus, self.num_gpus, memory, self.max_retries)

    def light(self, memory: Optional[int] = None) -> Resources:
        """For tasks that move rows: one core, no GPU."""
        return Resources(1, 0, memory, self.max_retries)

    def device(self, device: str) -> str:
        """The device of every task. ``auto`` must not mean one thing on one node and another on the next."""
        name = as_device(device)
        if name == "auto":
            return "cuda" if self.num_gpus else "cpu"
        if name.startswith("cuda") and not self.num_gpus:
            raise ValueError(f"device: `{name}` needs GPUs for tasks, found num_gpus=0\nhint: give num_gpus=1")
        return name
