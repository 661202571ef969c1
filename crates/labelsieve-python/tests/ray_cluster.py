"""A Ray cluster of two nodes on this machine, a folder of examples, and what is needed to disturb the work on them."""

import os
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

os.environ["RAY_AUTH_MODE"] = "disabled"  # Ray would write a token into the home folder
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # and warn that this is going to be so
os.environ["RAY_worker_niceness"] = "0"  # others may be at work on this machine
ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'labelsieve[ray]')")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import pyarrow.parquet as pq  # noqa: E402

import labelsieve  # noqa: E402

NODE = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}


class Nodes:
    """A head, on which the driver is, and another node that can be killed."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        self.folder = tempfile.mkdtemp(prefix="r", dir="/tmp")  # sockets need short paths
        os.mkdir(os.path.join(self.folder, "ray"))
        os.environ["RAY_TMPDIR"] = self.folder
        self.cluster = Cluster(initialize_head=True, head_node_args=NODE)
        self.other = self.cluster.add_node(**NODE)
        ray.init(self.cluster.address, log_to_driver=False, logging_level="ERROR")

    def kill_other(self):
        self.cluster.remove_node(self.other, allow_graceful=False)
        self.other = None

    def replace_other(self):
        self.other = self.cluster.add_node(**NODE)
        self.cluster.wait_for_nodes()

    def stop(self):
        ray.shutdown()
        self.cluster.shutdown()
        del os.environ["RAY_TMPDIR"]
        shutil.rmtree(self.folder, ignore_errors=True)


def write_examples(folder, data):
    """Examples as a user's files: clean.parquet and noisy.parquet with ids and classes, in several row groups."""
    names = list(dict.fromkeys(data.y))
    labels = np.array([f"class {names.index(label)}" for label in data.y])
    ids = np.array([f"photo {row}.jpg" for row in range(len(labels))])
    order = np.random.default_rng(0).permutation(len(labels))  # classes are not in runs
    for name, rows in {"clean": data.is_clean, "noisy": ~data.is_clean}.items():
        rows = order[rows[order]]
        write_table(folder / f"{name}.parquet", ids[rows], labels[rows], data.X[rows])
    return labels, ids


def write_table(path, ids, labels, X, dtype=np.float32):
    numbers = pa.array(np.ascontiguousarray(X, dtype).reshape(-1))
    columns = {"id": pa.array(ids), "class": pa.array(labels), "embedding": pa.FixedSizeListArray.from_arrays(numbers, X.shape[1])}
    pq.write_table(pa.table(columns), path, row_group_size=128)


class InBackground:
    """A call in another thread, whose result or error can be asked for."""

    def __init__(self, call):
        self.result, self.error = None, None

        def work():
            try:
                self.result = call()
            except BaseException as error:
                self.error = error

        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()

    def get(self, timeout=150):
        self.thread.join(timeout)
        assert not self.thread.is_alive(), "it does not end"
        if self.error is not None:
            raise self.error
        return self.result


def workers_at(task):
    """Processes of Ray's that are at work on tasks whose name starts like this."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                title = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if title.startswith(f"ray::labelsieve: {task}"):
                found.append(int(folder.name))
    return found


def kill_one_at(task, timeout=60):
    """Kills a process that is at work on a task, as the system does when memory runs out."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        for pid in workers_at(task):
            os.kill(pid, signal.SIGKILL)
            return pid
        time.sleep(0.02)
    raise AssertionError(f"no worker has `{task}`")


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())


class Examples(NamedTuple):
    """A folder with files that no test writes to, and what a single run says about them."""

    folder: Path
    summary: dict

    @property
    def files(self):
        return str(self.folder / "clean.parquet"), str(self.folder / "noisy.parquet")

    def bytes(self):
        return (self.folder / "single.parquet").read_bytes()


def make_examples(folder):
    labels, ids = write_examples(folder, labelsieve.demo_data(n_classes=8, n_clean=3, largest_pool=400))
    write_candidates(folder, labels, ids)
    files = (folder / "clean.parquet", folder / "noisy.parquet", folder / "single.parquet")
    return Examples(folder, labelsieve.score_files(*files, device="cpu", seed=5))


def write_candidates(folder, labels, ids):
    """Every example is a candidate of its class; some are of the next class too, and some have no features or no clean examples."""
    rows = [(id, label, f"the {label}") for id, label in zip(ids, labels)]
    rows += [(id, f"class {(int(label[6:]) + 1) % 8}", "another name") for id, label in list(zip(ids, labels))[::5]]
    rows += [("lost.jpg", "class 1", "the class 1"), (ids[0], "no such class", "nothing")]
    order = np.random.default_rng(1).permutation(len(rows))
    columns = list(zip(*(rows[at] for at in order)))
    pq.write_table(pa.table(dict(zip(("id", "class", "matched_name"), columns))), folder / "candidates.parquet", row_group_size=300)
