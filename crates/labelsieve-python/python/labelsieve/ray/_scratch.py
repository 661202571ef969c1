"""Folders for the time of a task, also when its process is killed: the next task on the node sweeps what it left."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Optional

_PREFIX = "labelsieve-task-"


@contextmanager
def scratch() -> Iterator[str]:
    """A new folder where temporary files go (``TMPDIR``), locked while it is used and removed afterwards."""
    _sweep()
    folder, lock = _locked_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            lock.close()


def _locked_folder() -> tuple[str, Optional[IO[bytes]]]:
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        lock = _lock(folder)
        if lock is not None or sys.platform == "win32":
            return folder, lock
        # Another process swept it between its making and its locking.


def _sweep() -> None:
    """Removes the folders of processes that have ended."""
    for entry in os.scandir(tempfile.gettempdir()):
        if not entry.name.startswith(_PREFIX) or not os.path.exists(os.path.join(entry.path, ".lock")):
            continue
        lock = _lock(entry.path)
        if lock is not None:
            shutil.rmtree(entry.path, ignore_errors=True)
            lock.close()


def _lock(folder: str) -> Optional[IO[bytes]]:
    """A lock on a folder that ends with this process; none if another has it, or on Windows."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        file = open(os.path.join(folder, ".lock"), "wb")
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return file
    except OSError:
        file.close()
        return None
