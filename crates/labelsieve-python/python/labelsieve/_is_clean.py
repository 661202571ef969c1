"""Which labels are verified: the argument that everything depends on, and the ways to get it wrong."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arrays import as_numpy

Flags = npt.NDArray[np.bool_]

MEANING = "one true or false per row, true where the label is verified"
#: `_sklearn.py` recognises a search that failed on such a fold by these words.
IN_FOLDS = "for folds of a cross-validation use cv=labelsieve.CleanKFold(is_clean)"
#: How many classes an error names.
NAMED = 5


def as_is_clean(values: Any, n_rows: int, owner: str) -> Flags:
    """One true or false per row from what the user gave; a single ``True`` means that all labels are verified."""
    if values is None:
        raise ValueError(
            f"{owner}.fit needs is_clean: {MEANING}\nhint: fit(X, y, is_clean=mask), or is_clean=True if all labels are "
            "verified and there is nothing to score; pipelines and searches pass it on, see set_fit_request"
        )
    if isinstance(values, (bool, np.bool_)):
        return np.full(n_rows, bool(values))
    flags = as_flags(values, n_rows)
    if flags.all():
        warnings.warn(
            f"is_clean is true in all {n_rows} rows: there are no candidates, and nothing is scored\n"
            "hint: pass is_clean=True if that is intended",
            UserWarning,
            stacklevel=4,  # the caller of `Cleaner.fit`
        )
    return flags


def as_flags(values: Any, n_rows: int) -> Flags:
    """One true or false per row, from booleans or from 0 and 1."""
    flags = as_numpy(values, "is_clean")
    if flags.shape != (n_rows,):
        raise ValueError(f"is_clean: expected {MEANING}, {n_rows} in all, found {_shape(flags)}{_hint(flags, n_rows)}")
    if flags.dtype == bool:
        return np.ascontiguousarray(flags)
    if flags.dtype.kind in "iuf":
        right = np.isin(flags, (0, 1))
    else:  # from a data frame with missing values
        right = np.array([isinstance(flag, (int, float, np.bool_, np.number)) and flag in (0, 1) for flag in flags.tolist()])
    if not right.all():
        row = int(right.argmin())
        found = flags.tolist()[row]
        raise ValueError(f"is_clean, row {row}: expected true or false (or 1 and 0), found {found!r}{_hint(flags, n_rows)}")
    return flags.astype(bool)


def check_classes(classes: npt.NDArray[Any], codes: npt.NDArray[np.int64], is_clean: Flags) -> None:
    """Refuses classes without a clean example, by name."""
    if not is_clean.any():
        raise ValueError(
            f"is_clean: expected at least one verified example of every class, found none in {len(is_clean)} rows\n"
            f"hint: true means verified; are the flags inverted? {IN_FOLDS}"
        )
    counts = np.bincount(codes, minlength=len(classes))
    without = np.flatnonzero(np.bincount(codes[is_clean], minlength=len(classes)) == 0)
    if len(without) == 0:
        return
    if len(without) == 1:
        found = f"class `{classes[without[0]]}` has {counts[without[0]]} candidates but no clean example"
    else:
        found = f"{len(without)} of {len(classes)} classes have candidates but no clean example: {named(classes[without])}"
    raise ValueError(f"{found}\nhint: set is_clean for at least one example of every class; {IN_FOLDS}")


def named(classes: npt.NDArray[Any]) -> str:
    """The first few classes by name, and how many more there are."""
    names = ", ".join(f"`{name}`" for name in classes[:NAMED])
    return names if len(classes) <= NAMED else f"{names} and {len(classes) - NAMED} more"


def _shape(flags: npt.NDArray[Any]) -> str:
    if flags.ndim == 0:
        return f"{flags.item()!r}"
    return f"{len(flags)}" if flags.ndim == 1 else f"an array of shape {flags.shape}"


def _hint(flags: npt.NDArray[Any], n_rows: int) -> str:
    """The values as a message shows them."""
    if flags.ndim == 2 and 1 in flags.shape:
        return "\nhint: pass one column, e.g. is_clean.ravel(), or frame[\"is_clean\"] instead of frame[[\"is_clean\"]]"
    if flags.dtype.kind in "iu" and flags.ndim == 1 and _look_like_rows(flags, n_rows):
        return "\nhint: are these row numbers? mask = np.zeros(len(X), bool); mask[rows] = True; is_clean=mask"
    if flags.ndim == 1 and (flags.dtype.kind in "US" or any(isinstance(flag, str) for flag in flags.tolist())):
        return '\nhint: compare texts, e.g. is_clean=(column == "yes")'
    return ""


def _look_like_rows(flags: npt.NDArray[Any], n_rows: int) -> bool:
    return len(flags) > 0 and len(np.unique(flags)) == len(flags) and 0 <= flags.min() and flags.max() < n_rows
