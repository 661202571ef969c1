"""The parts of scikit-learn that the estimators use: the real ones if it is installed, else minimal replacements."""

from __future__ import annotations

import inspect
import os
import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._arrays import Rows, as_numpy, as_rows, check_columns, is_tensor
from ._is_clean import IN_FOLDS

if TYPE_CHECKING:

    class BaseEstimator:
        """Parameters by name."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The parameters."""
            ...

        def set_params(self, **params: Any) -> Any:
            """Sets parameters."""
            ...

        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        """Accuracy."""

        def score(self, X: Any, y: Any) -> float:
            """Share of examples whose class is predicted."""
            ...

    has_sklearn: bool

    def validate_data(estimator: Any, *arrays: Any, **settings: Any) -> Any: ...
    def check_classification_targets(y: Any) -> None: ...
    def check_is_fitted(estimator: Any, attribute: str) -> None: ...

else:
    try:
        from sklearn.base import BaseEstimator, ClassifierMixin
        from sklearn.exceptions import FitFailedWarning
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import check_is_fitted, validate_data

        has_sklearn = True
        # A fold that leaves a class without a clean row cannot be fitted. scikit-learn only warns: the mean score of every
        # setting becomes NaN, and the first is reported as best. Appended, so that the user's filters take precedence.
        failed_fold = "(?s).*will be set to nan.*" + re.escape(IN_FOLDS)
        warnings.filterwarnings("error", failed_fold, FitFailedWarning, append=True)
    except ImportError:
        has_sklearn = False

        class BaseEstimator:
            """Parameters by name, as in scikit-learn."""

            @classmethod
            def _names(cls) -> list[str]:
                return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

            def get_params(self, deep: bool = True) -> dict[str, Any]:
                """The parameters."""
                return {name: getattr(self, name) for name in self._names()}

            def set_params(self, **params: Any) -> Any:
                """Sets parameters."""
                for name, value in params.items():
                    if name not in self._names():
                        raise ValueError(f"no parameter `{name}`: expected one of {', '.join(self._names())}")
                    setattr(self, name, value)
                return self

            def __repr__(self) -> str:
                given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
                return f"{type(self).__name__}({given})"

        class ClassifierMixin:
            """Accuracy, as in scikit-learn."""

            def score(self, X: Any, y: Any) -> float:
                """Share of examples whose class is predicted."""
                return float(np.mean(self.predict(X) == np.asarray(y)))


def check_rows_and_classes(estimator: Any, X: Any, y: Any) -> tuple[Rows, npt.NDArray[Any]]:
    """The examples that `fit` was given."""
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    X, y = _familiar(X), as_numpy(y, "y")
    check_columns(X)
    if y.dtype.kind == "O" and any(value is None or value != value for value in y.ravel()):
        row = next(i for i, value in enumerate(y.ravel()) if value is None or value != value)
        raise ValueError(f"y, row {row}: expected a class, found {y.ravel()[row]}")
    if y.dtype.kind == "O" and all(isinstance(value, str) for value in y.ravel()):
        y = y.astype(str)  # a column of a data frame
    if has_sklearn:
        X, y = validate_data(estimator, X, y, dtype=np.float32, order="C", multi_output=False, ensure_all_finite=False)
        check_classification_targets(y)
        return as_rows(X), y
    X = as_rows(X)
    if y.shape != (len(X),):
        raise ValueError(f"y: expected one class per row, {len(X)}, found an array of shape {y.shape}")
    if len(X) == 0:
        raise ValueError("X: expected at least 1 row, found none")
    estimator.n_features_in_ = X.shape[1]
    return X, y


def check_rows(estimator: Any, X: Any) -> Rows:
    """The examples to predict."""
    X = _familiar(X)
    check_columns(X)
    if has_sklearn:
        return as_rows(validate_data(estimator, X, dtype=np.float32, order="C", reset=False, ensure_all_finite=False))
    rows = as_rows(X)
    if rows.shape[1] != estimator.n_features_in_:
        name, expected = type(estimator).__name__, estimator.n_features_in_
        raise ValueError(f"X has {rows.shape[1]} features, but {name} is expecting {expected} features as input")
    return rows


def check_fitted(estimator: Any, attribute: str) -> None:
    """Refuses an estimator that was not fitted yet."""
    if has_sklearn:
        check_is_fitted(estimator, attribute)
    elif not hasattr(estimator, attribute):
        raise ValueError(f"this {type(estimator).__name__} is not fitted yet\nhint: call fit first")


def _familiar(X: Any) -> Any:
    """Converts what scikit-learn cannot read to an array that it can."""
    is_arrow = type(X).__module__.split(".")[0] == "pyarrow"
    is_vectors = getattr(X, "dtype", None) == object and getattr(X, "ndim", 0) == 1
    is_text = isinstance(X, np.ndarray) and X.dtype.kind in "US"  # refused here, parsed as numbers there
    is_path = isinstance(X, (str, os.PathLike))
    return as_rows(X) if is_arrow or is_vectors or is_text or is_path or is_tensor(X) else X
