"""Generated features with known truth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _labelsieve
from ._arrays import Rows, as_seed
from ._relevance import _count, _number


class DemoData(NamedTuple):
    """Examples of several classes with known truth, and a test set."""

    #: Features, one row per example.
    X: Rows
    #: The class each example is a candidate of.
    y: npt.NDArray[np.int64]
    #: Which examples are verified.
    is_clean: npt.NDArray[np.bool_]
    #: Which examples really belong to their class; unknown in practice.
    truth: npt.NDArray[np.bool_]
    #: Features of the test examples.
    X_test: Rows
    #: Their classes.
    y_test: npt.NDArray[np.int64]


def demo_data(
    n_classes: int = 20,
    n_clean: int = 2,
    largest_pool: int = 600,
    noise_ratio: float = 0.6,
    clusters: int = 3,
    dim: int = 64,
    n_test: int = 40,
    seed: Any = 0,
) -> DemoData:
    """The generated sample of ``labelsieve demo``: invented words, each with several senses.

    Every class has ``n_clean`` verified examples and a pool of candidates (``largest_pool`` in the first class, a tenth
    of it in the last), of which a share ``noise_ratio`` belongs to one of ``clusters`` other senses of the word
    (0: each to its own sense).

    >>> import labelsieve
    >>> data = labelsieve.demo_data(n_classes=3)
    >>> data.X.shape, int(data.is_clean.sum())
    ((856, 64), 6)
    """
    for name, count in {"n_classes": n_classes, "n_clean": n_clean, "dim": dim}.items():
        _count(name, count)
    for name, count in {"largest_pool": largest_pool, "clusters": clusters, "n_test": n_test}.items():
        _count(name, count, least=0)
    if not 0 <= _number("noise_ratio", noise_ratio) <= 1:
        raise ValueError(f"noise_ratio: expected a number in [0, 1], found {noise_ratio}")
    generated = _labelsieve.synthetic(
        n_classes, n_clean, largest_pool, noise_ratio, clusters, dim, n_test, as_seed(seed)
    )
    return DemoData(*generated)
