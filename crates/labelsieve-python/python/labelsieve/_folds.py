"""Cross-validation that tests on verified labels only."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._arrays import as_numpy, as_seed
from ._is_clean import MEANING, Flags, as_flags, check_classes, named

if TYPE_CHECKING:

    class BaseCrossValidator:
        """The folds; searches recognise a splitter by this method."""

else:
    try:
        from sklearn.model_selection import BaseCrossValidator
    except ImportError:
        BaseCrossValidator = object

Indices = npt.NDArray[np.int64]


class CleanKFold(BaseCrossValidator):
    """Folds for ``GridSearchCV`` and ``cross_val_score`` whose scores rest on verified labels.

    The clean rows are distributed over ``n_splits`` folds, class by class. Each fold is the test set once; the other clean
    rows and *all* candidates are the training set. No score is distorted by a wrong label, and every class keeps a
    clean row to learn from. scikit-learn's own splitters guarantee neither.

    A class needs two clean rows. With fewer clean rows than folds, a class is not in every test set. A candidate that is
    a copy of a clean row stays in the training set: remove copies first, or scores are too high.

    Parameters
    ----------
    is_clean : array of shape (N,), optional
        Which labels are verified. If omitted, it comes from ``fit(X, y, is_clean=…)`` of the search, if scikit-learn's
        metadata routing is on.
    n_splits : int, default 5
        Number of folds, at least 2.
    random_state : int, RandomState, Generator or None, default 0
        The seed for distributing rows; None draws a new one in every ``split``.

    Examples
    --------
    >>> import labelsieve
    >>> data = labelsieve.demo_data(n_classes=3, n_clean=4)
    >>> folds = labelsieve.CleanKFold(data.is_clean, n_splits=4)
    >>> for train, test in folds.split(data.X, data.y):
    ...     print(len(test), bool(data.is_clean[test].all()), int(data.is_clean[train].sum()))
    3 True 9
    3 True 9
    3 True 9
    3 True 9

    ``GridSearchCV(CosineClassifier(), {"lam": [0.1, 1.0]}, cv=folds).fit(X, y, is_clean=is_clean)`` uses them.
    """

    # With metadata routing, searches pass `is_clean` to `split` without being asked to.
    __metadata_request__split = {"is_clean": True}

    def __init__(self, is_clean: Any = None, n_splits: int = 5, random_state: Any = 0) -> None:
        if isinstance(is_clean, (int, float, np.number)):
            hint = "" if isinstance(is_clean, bool) else f"\nhint: CleanKFold(is_clean, n_splits={is_clean})"
            raise ValueError(f"is_clean: expected {MEANING}, found {is_clean}{hint}")
        if isinstance(n_splits, bool) or not isinstance(n_splits, (int, np.integer)) or n_splits < 2:
            raise ValueError(f"n_splits: expected an integer >= 2, found {n_splits!r}")
        self.is_clean = is_clean
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None, is_clean: Any = None) -> int:
        """The number of folds; nothing is read."""
        return int(self.n_splits)

    def split(
        self, X: Any, y: Any = None, groups: Any = None, is_clean: Any = None
    ) -> Iterator[tuple[Indices, Indices]]:
        """Row numbers of training and test set, fold by fold."""
        if groups is not None:
            warnings.warn("groups: ignored by CleanKFold", UserWarning, stacklevel=2)
        fold = self._assign(y, self.is_clean if is_clean is None else is_clean)
        if len(fold) != _n_rows(X):
            raise ValueError(f"y: expected one class per row, {_n_rows(X)}, found {len(fold)}")
        for number in range(self.n_splits):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)

    def _assign(self, y: Any, is_clean: Any) -> Indices:
        """The fold of every clean row, -1 for candidates."""
        if y is None:
            raise ValueError("CleanKFold.split needs y, the class of every row")
        if is_clean is None:
            raise ValueError(
                f"CleanKFold needs is_clean: {MEANING}\nhint: CleanKFold(is_clean), or turn on metadata routing and pass "
                "it to fit"
            )
        labels = as_numpy(y, "y")
        flags = as_flags(is_clean, len(labels))
        classes, codes = np.unique(labels, return_inverse=True)
        codes = codes.reshape(-1)
        check_classes(classes, codes, flags)
        self._check_counts(classes, codes, flags)
        clean = np.random.default_rng(as_seed(self.random_state)).permutation(np.flatnonzero(flags))
        by_class = clean[np.argsort(codes[clean], kind="stable")]
        # Adjacent rows go to different folds, so no fold gets all rows of a class.
        fold = np.full(len(flags), -1, np.int64)
        fold[by_class] = np.arange(len(by_class)) % self.n_splits
        return fold

    def _check_counts(self, classes: npt.NDArray[Any], codes: Indices, flags: Flags) -> None:
        single = np.flatnonzero(np.bincount(codes[flags], minlength=len(classes)) == 1)
        if len(single):
            raise ValueError(
                f"{len(single)} of {len(classes)} classes have a single clean example, which cannot be used for both "
                f"training and testing: {named(classes[single])}\nhint: verify one more example of each, or leave them out of the search"
            )
        if flags.sum() < self.n_splits:
            raise ValueError(f"n_splits: expected at most the number of clean rows, {flags.sum()}, found {self.n_splits}")

    def __repr__(self) -> str:
        given = "" if self.is_clean is None else "is_clean, "
        return f"CleanKFold({given}n_splits={self.n_splits}, random_state={self.random_state!r})"


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
