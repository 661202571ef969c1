"""Estimators that score candidates and learn from them, as in scikit-learn. They also work without it."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional, Union

import numpy as np
import numpy.typing as npt

from . import _labelsieve
from ._arrays import Rows, as_numpy, as_rows, as_seed
from ._choice import Method
from ._decisions import as_decisions, settled, without_clean
from ._files import save_classifier
from ._is_clean import as_is_clean, check_classes
from ._progress import Progress, as_progress
from ._relevance import _count, _number, as_device, check_base, method_json
from ._sklearn import BaseEstimator, ClassifierMixin, check_fitted, check_rows, check_rows_and_classes
from ._table import Table


class _Labelled(NamedTuple):
    """Classes of rows, as the compiled module takes them: codes into names."""

    names: list[str]
    codes: npt.NDArray[np.int64]
    is_clean: npt.NDArray[np.bool_]


class _CleaningEstimator(BaseEstimator):
    """The base of all estimators: candidates are scored before anything is learned from them."""

    method: Method
    lam: Optional[float]
    neighbours: Optional[int]
    beta: float
    settings: Optional[Mapping[str, Any]]
    base: Any
    device: str
    random_state: Any
    progress: Progress

    def _clean(
        self, X: Any, y: Any, is_clean: Any, relevance: Any = None, decisions: Any = None, frames_to_user: int = 2
    ) -> tuple[Rows, int]:
        """Checks the input, scores the candidates, and returns the rows and the seed."""
        method = method_json(self.method, self.lam, self.neighbours, self.beta, self.settings)
        check_base(self.method, self.base)
        base = None if self.base is None else as_rows(self.base, "base")
        seed = as_seed(self.random_state)
        X, y = check_rows_and_classes(self, X, y)
        flags = as_is_clean(is_clean, len(X), type(self).__name__)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._codes = codes.reshape(-1).astype(np.int64)
        check_classes(self.classes_, self._codes, flags)
        self.is_clean_ = flags
        decided = None
        if decisions is not None:
            decided = without_clean(as_decisions(decisions, len(X)), flags, stacklevel=2 + frames_to_user)
            self.decisions_ = np.array(decided, object)
        elif hasattr(self, "decisions_"):
            del self.decisions_  # of an earlier fit
        self.device_ = _labelsieve.describe_device(as_device(self.device))
        if hasattr(self, "probability_"):
            del self.probability_  # of an earlier fit
        if relevance is None:
            progress = as_progress(self.progress)
            found = _labelsieve.clean(X, self._labels(), method, seed, self.device, decided, base, progress)
            self.relevance_, self.best_clean_, self.best_clean_similarity_, self.reciprocal_neighbours_ = found[:4]
            is_copy, probability = found[4:]
            if probability is not None:
                self.probability_: npt.NDArray[np.float32] = probability
            _warn_of_copies(is_copy, stacklevel=2 + frames_to_user)
            counted = np.where(is_copy, np.float32(0), self.relevance_)
        else:
            self.relevance_ = counted = _as_relevance(relevance, flags)
            if decided is not None:
                self.relevance_ = counted = settled(counted, decided)
        self.sample_weight_ = self._sample_weight(counted)
        return X, seed

    def _labels(self) -> _Labelled:
        return _Labelled([str(name) for name in self.classes_.tolist()], self._codes, self.is_clean_)

    def _sample_weight(self, counted: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """The weights of eq. (6): relevance over the class's total, 1 on average."""
        relevance = counted.astype(np.float64)
        totals = np.bincount(self._codes, weights=relevance, minlength=len(self.classes_))
        weights: npt.NDArray[np.float64] = relevance / totals[self._codes] * (len(relevance) / len(self.classes_))
        return weights

    def to_table(self, ids: Any = None) -> Table:
        """One row per example with its class, relevance and reasons, as ``labelsieve score`` writes them.

        ``ids`` names the examples; by default their row numbers.
        """
        check_fitted(self, "relevance_")
        n = len(self.relevance_)
        names = np.arange(n).astype(str) if ids is None else as_numpy(ids, "ids").astype(str)
        if names.shape != (n,):
            raise ValueError(f"ids: expected one per example, {n}, found an array of shape {names.shape}")
        columns: dict[str, Any] = {
            "id": names.astype(object),
            "class": self.classes_[self._codes].astype(str).astype(object),
            "relevance": self.relevance_,
        }
        if hasattr(self, "probability_"):
            columns["probability"] = self.probability_
        columns["is_clean"] = self.is_clean_
        if hasattr(self, "best_clean_"):
            has_reasons = self.best_clean_ >= 0
            columns["best_clean"] = _where(has_reasons, names[self.best_clean_])
            columns["best_clean_similarity"] = self.best_clean_similarity_
            counts = self.reciprocal_neighbours_
            columns["reciprocal_neighbours"] = _where(counts >= 0, counts)
        if hasattr(self, "decisions_"):
            columns["decision"] = self.decisions_
        return Table(columns)


class Cleaner(_CleaningEstimator):
    """Scores how much each candidate belongs to its class.

    Parameters
    ----------
    method, lam, neighbours, beta, settings, device, progress
        As in :func:`labelsieve.relevance`. ``linear`` takes its negatives from the clean examples of other classes;
        ``mixture`` and ``auto`` compare candidates with the means of those.
    base : array of shape (m, d), optional
        One row for each base class that candidates of ``mixture`` and ``auto`` are compared with as well.
    random_state : int, RandomState, Generator or None, default 0
        The seed; None draws a new one in every ``fit``. A class's random numbers depend on the seed and the class's name,
        not on which other classes there are, and equal those of ``labelsieve score --seed``.

    Attributes
    ----------
    relevance_ : array of shape (N,)
        In [0, 1]; 1 for clean examples.
    probability_ : array of shape (N,)
        The probability that each belongs to its class, from methods that know it (``auto``); 1 for clean examples. Unlike
        relevance, it is meant to be thresholded: of those with 0.8, about four in five should belong.
    sample_weight_ : array of shape (N,)
        For ``fit(X, y, sample_weight=…)`` of any classifier: relevance divided by the class's total, so that every class
        counts the same (eq. 6), 1 on average.
    best_clean_, best_clean_similarity_ : arrays of shape (N,)
        Row of the most similar clean example of the class, and its cosine; -1 and NaN for clean examples.
    reciprocal_neighbours_ : array of shape (N,)
        Neighbours in the graph; -1 for clean examples and for methods without a graph.
    classes_, is_clean_, n_features_in_, device_
        What was fitted, and on which device.
    decisions_ : array of shape (N,)
        The decisions about candidates, where ``fit`` got any.

    Notes
    -----
    A candidate whose features are those of a clean example of its class is that example, and counts once, as clean: it
    has relevance 1, that example in ``best_clean_`` with similarity 1, -1 ``reciprocal_neighbours_`` and
    ``sample_weight_`` 0, takes no part in scoring the others, and no classifier learns from it. A warning says how many
    there are.

    Examples
    --------
    >>> import labelsieve
    >>> data = labelsieve.demo_data(n_classes=5, n_clean=5)
    >>> cleaner = labelsieve.Cleaner(lam=0.5).fit(data.X, data.y, is_clean=data.is_clean)
    >>> candidates = ~data.is_clean
    >>> right, wrong = candidates & data.truth, candidates & ~data.truth
    >>> bool(cleaner.relevance_[right].mean() > cleaner.relevance_[wrong].mean() + 0.1)
    True
    """

    def __init__(
        self,
        method: Method = "auto",
        *,
        lam: Optional[float] = None,
        neighbours: Optional[int] = None,
        beta: float = 1.0,
        settings: Optional[Mapping[str, Any]] = None,
        base: Any = None,
        device: str = "auto",
        random_state: Any = 0,
        progress: Progress = None,
    ) -> None:
        self.method = method
        self.lam = lam
        self.neighbours = neighbours
        self.beta = beta
        self.settings = settings
        self.base = base
        self.device = device
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, is_clean: Any = None, decisions: Any = None) -> Cleaner:
        """Scores the candidates among the examples.

        Parameters
        ----------
        X : array of shape (N, d)
            Features of clean examples and candidates, in any order.
        y : array of shape (N,)
            The class of each, e.g. from its text or its folder: strings or numbers. An example that is a candidate of two
            classes appears twice.
        is_clean : array of shape (N,), or True
            Which labels are verified: true or false (or 1 and 0) for every row, not row numbers. Every class needs at
            least one. A single True means that all are verified and there is nothing to score.
        decisions : array of shape (N,), optional
            What a person decided about candidates: ``"accept"``, ``"reject"``, ``"unsure"`` or None for every row.
            Accepted ones count as clean examples and get relevance 1; rejected ones count as known negatives and get 0.
        """
        self._clean(X, y, is_clean, decisions=decisions)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class _CosineScores(ClassifierMixin, _CleaningEstimator):
    """Prediction by the largest cosine (eq. 4)."""

    scale: float

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Cosines with the classes' weights, of shape (N, K); for two classes their difference, of shape (N,)."""
        cosines = self._cosines(X)
        return cosines[:, 1] - cosines[:, 0] if len(self.classes_) == 2 else cosines

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of largest cosine."""
        cosines = self._cosines(X)
        found: npt.NDArray[Any] = self.classes_[cosines.argmax(axis=1)]
        return found

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Softmax of the cosines times ``scale``."""
        cosines = self._cosines(X)
        return softmax(self.scale_ * cosines)

    def save(
        self, path: Union[str, os.PathLike[str]], backbone: Optional[str] = None, network: Optional[str] = None
    ) -> None:
        """Writes the classifier as ``labelsieve train`` does, for ``labelsieve predict`` and :func:`read_classifier`.

        ``network`` is the network that made the features, as :func:`read_features` reports it; the command line refuses
        to use the classifier on features of another network.
        """
        check_fitted(self, "coef_")
        settings = {"classifier": type(self).__name__, "parameters": _plain(self.get_params())}
        save_classifier(path, self.classes_, self.coef_, self.scale_, backbone, settings, network)

    def _cosines(self, X: Any) -> npt.NDArray[np.float64]:
        check_fitted(self, "coef_")
        return _labelsieve.scores(check_rows(self, X), self.coef_).astype(np.float64)

    def _learn(
        self, X: Any, y: Any, is_clean: Any, relevance: Any, decisions: Any, cosine: Optional[dict[str, Any]]
    ) -> None:
        self.scale_ = _number("scale", self.scale)
        if self.scale_ <= 0:
            raise ValueError(f"scale: expected a positive number, found {self.scale}")
        X, seed = self._clean(X, y, is_clean, relevance, decisions, frames_to_user=3)
        progress = as_progress(self.progress) if cosine is not None else None
        settings = None if cosine is None else json.dumps(cosine)
        self.coef_ = _labelsieve.train(X, self._labels(), self.relevance_, settings, seed, self.device, progress)


class PrototypeClassifier(_CosineScores):
    """Represents a class by the mean of its examples, weighted by relevance (eq. 5).

    Parameters
    ----------
    scale : float, default 10.0
        The factor on cosines before the softmax of ``predict_proba``.
    method, lam, neighbours, beta, settings, base, device, random_state, progress
        How candidates are scored; as in :class:`Cleaner`.

    Attributes
    ----------
    coef_ : array of shape (K, d)
        One unit row per class.
    relevance_, sample_weight_, classes_, …
        As in :class:`Cleaner`.

    Examples
    --------
    >>> import labelsieve
    >>> data = labelsieve.demo_data()
    >>> cleaned = labelsieve.PrototypeClassifier().fit(data.X, data.y, is_clean=data.is_clean)
    >>> trusting = labelsieve.PrototypeClassifier(method="beta").fit(data.X, data.y, is_clean=data.is_clean)
    >>> cleaned.score(data.X_test, data.y_test) > trusting.score(data.X_test, data.y_test)
    True
    """

    def __init__(
        self,
        *,
        scale: float = 10.0,
        method: Method = "auto",
        lam: Optional[float] = None,
        neighbours: Optional[int] = None,
        beta: float = 1.0,
        settings: Optional[Mapping[str, Any]] = None,
        base: Any = None,
        device: str = "auto",
        random_state: Any = 0,
        progress: Progress = None,
    ) -> None:
        self.scale = scale
        self.method = method
        self.lam = lam
        self.neighbours = neighbours
        self.beta = beta
        self.settings = settings
        self.base = base
        self.device = device
        self.random_state = random_state
        self.progress = progress

    def fit(
        self, X: Any, y: Any, is_clean: Any = None, relevance: Any = None, decisions: Any = None
    ) -> PrototypeClassifier:
        """Scores the candidates, then learns from all examples, weighted by relevance.

        ``X``, ``y``, ``is_clean`` and ``decisions`` as in :meth:`Cleaner.fit`. With ``relevance``, one number in [0, 1] per example
        (ignored for clean ones), nothing is scored: for relevance that is already known.
        """
        self._learn(X, y, is_clean, relevance, decisions, None)
        return self


class CosineClassifier(_CosineScores):
    """A cosine classifier that starts from the prototypes, with every example weighted by its relevance (eq. 6).

    Parameters
    ----------
    epochs, batch_size, learning_rate, final_learning_rate, momentum
        SGD; the learning rate falls by half a cosine. The paper chooses ``epochs`` from 10, 20, 30, 50 and
        ``batch_size`` from 512 to 8192 on validation classes.
    scale : float, default 10.0
        The factor on cosines before the softmax.
    method, lam, neighbours, beta, settings, base, device, random_state, progress
        How candidates are scored; as in :class:`Cleaner`.

    Attributes
    ----------
    coef_, relevance_, sample_weight_, classes_, …
        As in :class:`PrototypeClassifier`.

    Examples
    --------
    >>> import labelsieve
    >>> data = labelsieve.demo_data(n_classes=5)
    >>> classifier = labelsieve.CosineClassifier(epochs=10).fit(data.X, data.y, is_clean=data.is_clean)
    >>> classifier.predict_proba(data.X_test).shape
    (200, 5)
    """

    def __init__(
        self,
        *,
        epochs: int = 30,
        batch_size: int = 512,
        learning_rate: float = 0.1,
        final_learning_rate: float = 0.001,
        momentum: float = 0.9,
        scale: float = 10.0,
        method: Method = "auto",
        lam: Optional[float] = None,
        neighbours: Optional[int] = None,
        beta: float = 1.0,
        settings: Optional[Mapping[str, Any]] = None,
        base: Any = None,
        device: str = "auto",
        random_state: Any = 0,
        progress: Progress = None,
    ) -> None:
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.final_learning_rate = final_learning_rate
        self.momentum = momentum
        self.scale = scale
        self.method = method
        self.lam = lam
        self.neighbours = neighbours
        self.beta = beta
        self.settings = settings
        self.base = base
        self.device = device
        self.random_state = random_state
        self.progress = progress

    def fit(
        self, X: Any, y: Any, is_clean: Any = None, relevance: Any = None, decisions: Any = None
    ) -> CosineClassifier:
        """As :meth:`PrototypeClassifier.fit`."""
        counts = {name: _count(name, getattr(self, name)) for name in ("epochs", "batch_size")}
        rates = ("learning_rate", "final_learning_rate", "momentum", "scale")
        cosine = {**counts, **{name: _number(name, getattr(self, name)) for name in rates}}
        self._learn(X, y, is_clean, relevance, decisions, cosine)
        return self


class DiscriminantClassifier(ClassifierMixin, _CleaningEstimator):
    """Gaussian classes that share one covariance, with every example weighted by the probability that it belongs.

    Learned in closed form: no epochs, no learning rate. Clean examples are left out in turn to choose the shrinkage and to make
    probabilities of scores.

    Parameters
    ----------
    shrinkage : float or {"auto", "ledoit-wolf", "oas", "left-out"}, default "auto"
        How far the covariance is drawn towards a multiple of the unit matrix, above 0 and at most 1, or how that is chosen.
    method, lam, neighbours, beta, settings, base, device, random_state, progress
        How candidates are scored; as in :class:`Cleaner`.

    Attributes
    ----------
    means_ : array of shape (K, d)
        The weighted mean of each class.
    covariance_ : array of shape (r, r)
        The covariance within classes, over the columns, or over the rows of ``basis_`` with fewer examples than columns.
    basis_ : array of shape (r, d) or None
        Orthonormal rows that span the examples.
    shrinkage_ : float
        The shrinkage in use.
    relevance_, sample_weight_, classes_, …
        As in :class:`Cleaner`.

    Examples
    --------
    >>> import labelsieve
    >>> data = labelsieve.demo_data(n_classes=5)
    >>> classifier = labelsieve.DiscriminantClassifier().fit(data.X, data.y, is_clean=data.is_clean)
    >>> classifier.predict_proba(data.X_test).shape
    (200, 5)
    """

    def __init__(
        self,
        *,
        shrinkage: Union[float, str] = "auto",
        method: Method = "auto",
        lam: Optional[float] = None,
        neighbours: Optional[int] = None,
        beta: float = 1.0,
        settings: Optional[Mapping[str, Any]] = None,
        base: Any = None,
        device: str = "auto",
        random_state: Any = 0,
        progress: Progress = None,
    ) -> None:
        self.shrinkage = shrinkage
        self.method = method
        self.lam = lam
        self.neighbours = neighbours
        self.beta = beta
        self.settings = settings
        self.base = base
        self.device = device
        self.random_state = random_state
        self.progress = progress

    def fit(
        self, X: Any, y: Any, is_clean: Any = None, relevance: Any = None, decisions: Any = None
    ) -> DiscriminantClassifier:
        """Scores the candidates, then learns from all examples.

        ``X``, ``y``, ``is_clean`` and ``decisions`` as in :meth:`Cleaner.fit`. With ``relevance``, one number in [0, 1] per example
        (ignored for clean ones), nothing is scored: for relevance, or better probabilities, that are already known.
        """
        shrinkage = self.shrinkage if isinstance(self.shrinkage, str) else str(_number("shrinkage", self.shrinkage))
        X, _ = self._clean(X, y, is_clean, relevance, decisions)
        weights = self.probability_ if hasattr(self, "probability_") else self.relevance_
        weights = np.where(self.relevance_ > 0, weights, np.float32(0)).astype(np.float32)
        self._model = _labelsieve.Discriminant.fit(X, self._labels(), weights, shrinkage)
        self.means_, self.covariance_, self.basis_, self.shrinkage_, self._n_pooled = self._model.parts()
        self._confidence = self._model.confidence()
        return self

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Scores of shape (N, K): −½ the squared distance to each class, but for what is the same for all classes. For two classes
        the second less the first, of shape (N,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of highest score."""
        scores = self._scores(X)
        found: npt.NDArray[Any] = self.classes_[scores.argmax(axis=1)]
        return found

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probability of each class, given that an example belongs to one of them."""
        model = self._discriminant()
        probabilities = model.probabilities(check_rows(self, X)).astype(np.float64)
        total: npt.NDArray[np.float64] = probabilities / probabilities.sum(axis=1, keepdims=True)
        return total

    def typicality(self, X: Any) -> npt.NDArray[np.float64]:
        """How typical each example is of its best class: the share of clean examples as far from theirs, or farther.

        It compares with clean examples that are left out in turn: of examples like these, at most a share α have typicality α or
        less, so ``typicality(X) <= 0.05`` finds those of no class and loses about one in twenty of the others, more if they are
        less typical than the clean ones. With n clean examples left out it is at least 1/(n + 1).
        """
        model = self._discriminant()
        return model.typicality(check_rows(self, X)).astype(np.float64)

    def save(
        self, path: Union[str, os.PathLike[str]], backbone: Optional[str] = None, network: Optional[str] = None
    ) -> None:
        """Writes the classifier as ``labelsieve train`` does, for ``labelsieve predict`` and :func:`read_classifier`.

        ``network`` as in :meth:`PrototypeClassifier.save`.
        """
        model = self._discriminant()
        settings = {"classifier": type(self).__name__, "parameters": _plain(self.get_params())}
        names = [str(name) for name in self.classes_]
        model.save(os.fspath(path), names, (backbone, network), json.dumps(settings))

    def _scores(self, X: Any) -> npt.NDArray[np.float64]:
        return self._discriminant().scores(check_rows(self, X)).astype(np.float64)

    def _discriminant(self) -> _labelsieve.Discriminant:
        check_fitted(self, "means_")
        if not hasattr(self, "_model"):
            origin = (self.shrinkage_, self._n_pooled)
            self._model = _labelsieve.Discriminant(
                self.means_, self.covariance_, self.basis_, origin, self._confidence
            )
        return self._model

    def __getstate__(self) -> dict[str, Any]:
        """All but the compiled model, which the arrays are enough for."""
        parent = getattr(super(), "__getstate__", None)  # not in Python before 3.11 without scikit-learn
        state = self.__dict__ if parent is None else parent()
        return {name: value for name, value in state.items() if name != "_model"}


def _warn_of_copies(is_copy: npt.NDArray[np.bool_], stacklevel: int) -> None:
    n = int(is_copy.sum())
    if n:
        are = "candidate is also a clean example of its" if n == 1 else "candidates are also clean examples of their"
        warnings.warn(f"{n} {are} class, by identical features; used once, as clean", stacklevel=stacklevel)


def softmax(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Rows that add up to 1."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: npt.NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return probabilities


def _where(mask: npt.NDArray[np.bool_], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values where the mask is true, else None."""
    column = np.full(len(values), None, dtype=object)
    column[mask] = values[mask].tolist()
    return column


def _as_relevance(relevance: Any, is_clean: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
    given = as_numpy(relevance, "relevance")
    if given.shape != is_clean.shape:
        raise ValueError(
            f"relevance: expected one number per example, {len(is_clean)}, found an array of shape {given.shape}"
        )
    if given.dtype.kind not in "fiubO":
        raise ValueError(f"relevance: expected numbers, found values of type {given.dtype}")
    found = np.where(is_clean, np.float32(1), given.astype(np.float32))
    wrong = ~((found >= 0) & (found <= 1))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"relevance, row {row}: expected a number in [0, 1], found {given[row]}")
    return found


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters that JSON can hold; others are replaced by the name of their type."""
    numpy_as_python = {n: v.item() if isinstance(v, np.generic) else v for n, v in parameters.items()}
    plain = (bool, int, float, str, type(None), dict, list, tuple)
    return {n: v if isinstance(v, plain) else type(v).__name__ for n, v in numpy_as_python.items()}
