"""Decisions about candidates: one word per row."""

from __future__ import annotations

import warnings
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from ._arrays import as_numpy
from ._table import is_missing

WORDS = ("accept", "reject", "unsure")
MEANING = '"accept", "reject", "unsure" or None'


def as_decisions(values: Any, n_rows: int) -> list[Optional[str]]:
    """One decision or None per row; empty texts, NaN and ``"undecided"`` are None too."""
    given = as_numpy(values, "decisions")
    if given.shape != (n_rows,):
        found = f"{len(given)}" if given.ndim == 1 else f"an array of shape {given.shape}"
        raise ValueError(f"decisions: expected {MEANING} for each of {n_rows} rows, found {found}{_hint(values)}")
    return [_as_decision(value, row) for row, value in enumerate(given.tolist())]


def _as_decision(value: Any, row: int) -> Optional[str]:
    if is_missing(value) or value in ("", "undecided"):
        return None
    if isinstance(value, str) and value in WORDS:
        return value
    raise ValueError(f"decisions, row {row}: expected {MEANING}, found {value!r}")


def without_clean(decisions: list[Optional[str]], is_clean: npt.NDArray[np.bool_], stacklevel: int) -> list[Optional[str]]:
    """Decisions about candidates alone: clean examples need none."""
    n = sum(decision is not None and bool(flag) for decision, flag in zip(decisions, is_clean))
    if n:
        noun = "decision" if n == 1 else "decisions"
        warnings.warn(f"ignoring {n} {noun} about clean examples", UserWarning, stacklevel=stacklevel)
    return [None if flag else decision for decision, flag in zip(decisions, is_clean)]


def settled(relevance: npt.NDArray[np.float32], decisions: list[Optional[str]]) -> npt.NDArray[np.float32]:
    """Relevance with 1 for what was accepted and 0 for what was rejected."""
    fixed = {"accept": np.float32(1), "reject": np.float32(0)}
    return np.array([fixed.get(word or "", known) for word, known in zip(decisions, relevance)], np.float32)


def _hint(values: Any) -> str:
    if isinstance(values, dict):
        return "\nhint: from a mapping by id, pass [decisions.get(id) for id in ids]"
    return ""
