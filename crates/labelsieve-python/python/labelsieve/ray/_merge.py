"""Parts to one file, as a task."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .._jobs import merge_files
from ._scratch import scratch
from ._storage import Storage, basename


def merge_parts(storage: Storage, parts: Sequence[str], output: str) -> dict[str, Any]:
    """Fetches all parts, merges them and puts the result."""
    with scratch() as folder:
        local = [storage.fetch(part, os.path.join(folder, "parts")) for part in parts]
        merged = os.path.join(folder, basename(output))
        summary = merge_files(local, merged)
        storage.put(merged, output)
    return summary
