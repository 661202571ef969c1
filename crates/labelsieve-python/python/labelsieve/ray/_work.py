"""The folder of a run's parts: what is finished is there whole, and nothing else counts.

Its name holds a digest of the options and of what identifies every input, so that another run finds nothing of this one.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Optional

from .._labelsieve import __version__
from ._settings import Settings
from ._storage import Storage, join, normalized

_log = logging.getLogger("labelsieve")


class Work:
    """Where the parts of one run are."""

    def __init__(self, settings: Settings, output: str, key: dict[str, Any]) -> None:
        self.storage: Storage = settings.storage()
        self.parent = f"{output}.parts" if settings.work is None else normalized(settings.work)
        text = json.dumps({"version": __version__, **key}, sort_keys=True, default=str)
        self.folder = join(self.parent, hashlib.sha256(text.encode()).hexdigest()[:16])
        self.keep = settings.keep_work

    def path(self, *names: str) -> str:
        return join(self.folder, *names)

    def finished(self, *folder: str) -> set[str]:
        """Names of the files that are there."""
        return {name for name in self.storage.names(self.path(*folder)) if ".tmp-" not in name}

    def read_json(self, *names: str) -> Optional[Any]:
        """The note there, if there is one."""
        path = self.path(*names)
        return json.loads(self.storage.read_text(path)) if self.storage.exists(path) else None

    def remove(self) -> None:
        """Everything, now that the result is written; the parts of other runs stay."""
        if self.keep:
            _log.info("parts are kept in `%s`", self.folder)
            return
        self.storage.remove_folder(self.folder)
        if not self.storage.files_below(self.parent):
            self.storage.remove_folder(self.parent)

    def say_resumed(self, n_done: int, n_all: int, what: str) -> None:
        if n_done:
            _log.info("resuming: %d of %d %s done", n_done, n_all, what)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Says where finished parts are when the work ends early."""
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted; finished parts are kept in `{self.folder}`, and the same call resumes") from None
        except Exception:
            _log.info("finished parts are kept in `%s`; the same call resumes", self.folder)
            raise


def numbered(stem: str, index: int) -> str:
    """``bin-00003.parquet``: names sort as their numbers do."""
    return f"{stem}-{index:05}.parquet"
