"""The packages that a cluster needs besides labelsieve."""

from __future__ import annotations

import importlib.util


def check_installed() -> None:
    """Says what is missing and how to get it."""
    missing = [name for name in ("ray", "pyarrow", "fsspec") if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f"labelsieve.ray needs {' and '.join(missing)}\nhint: pip install 'labelsieve[ray]'")
