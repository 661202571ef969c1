"""The files that the command line writes, read and written from Python."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple, Optional, Union

import numpy as np
import numpy.typing as npt

from . import _labelsieve
from ._arrays import Rows, as_rows
from ._decisions import as_decisions
from ._is_clean import as_flags
from ._table import Table, as_columns, as_relevance, is_missing, required

Path = Union[str, "os.PathLike[str]"]


def read_relevance(path: Path) -> Table:
    """Reads what ``labelsieve score`` wrote: ``id``, ``class``, ``relevance``, ``is_clean`` and the reasons.

    ``path`` is the Parquet file, or a run directory that holds one. The reasons are ``matched_name``, ``best_clean``,
    ``best_clean_similarity`` and ``reciprocal_neighbours``; unknown values are None or NaN. A file that was made with
    decisions also has ``decision``.

    >>> import labelsieve, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "relevance.parquet")
    >>> columns = {"id": ["a", "b"], "class": ["owl", "owl"], "relevance": [1.0, 0.3], "is_clean": [True, False]}
    >>> labelsieve.write_relevance(path, columns)
    >>> labelsieve.read_relevance(path)["relevance"]
    array([1. , 0.3], dtype=float32)
    """
    if os.path.isdir(path):
        path = os.path.join(path, "relevance.parquet")
    ids, classes, relevance, probability, is_clean, reasons, decisions, metadata = _labelsieve.read_relevance(path)
    columns: dict[str, npt.NDArray[Any]] = {"id": texts(ids), "class": texts(classes), "relevance": relevance}
    if probability is not None:
        columns["probability"] = probability
    columns["is_clean"] = is_clean
    matched, best, similarity, neighbours = zip(*reasons) if reasons else ((), (), (), ())
    columns["matched_name"] = texts(list(matched))
    columns["best_clean"] = texts(list(best))
    columns["best_clean_similarity"] = np.array([np.nan if s is None else s for s in similarity], np.float32)
    columns["reciprocal_neighbours"] = texts(list(neighbours))
    if decisions is not None:
        columns["decision"] = texts(decisions)
    return Table(columns, metadata)


def write_relevance(path: Path, table: Any, metadata: Optional[dict[str, str]] = None) -> None:
    """Writes a relevance file for ``labelsieve train`` and ``labelsieve report``, whole or not at all.

    ``table`` is a data frame, an Arrow table or a mapping with the columns ``id``, ``class``, ``relevance`` and
    ``is_clean``, and optionally ``probability``, ``matched_name``, ``best_clean``, ``best_clean_similarity``,
    ``reciprocal_neighbours`` and ``decision``; e.g. ``Cleaner.to_table()``.
    """
    columns = required(table, "id", "class", "relevance", "is_clean")
    n = len(columns["id"])
    optional = (("matched_name", str), ("best_clean", str), ("best_clean_similarity", float), ("reciprocal_neighbours", int))
    reasons = [_optional(columns.get(name, [None] * n), kind) for name, kind in optional]
    _labelsieve.write_relevance(
        path,
        [str(value) for value in columns["id"]],
        [str(value) for value in columns["class"]],
        np.array(as_relevance(columns["relevance"]), np.float32),
        _optional(columns["probability"], float) if "probability" in columns else None,
        as_flags(columns["is_clean"], n),
        list(zip(*reasons)),
        as_decisions(columns["decision"], n) if "decision" in columns else None,
        list((metadata or getattr(table, "metadata", None) or {}).items()),
    )


def read_decisions(path: Path) -> Table:
    """Reads what people decided about candidates: ``id``, ``class``, ``decision``, ``by`` and ``at``, earliest first.

    ``path`` is a .parquet, .csv or .tsv file; what a review that is under way has noted beside it is read too. The last
    row of a candidate counts; ``decision`` is None where one was withdrawn.

    >>> import labelsieve, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "decisions.csv")
    >>> _ = open(path, "w").write("id,class,decision\\na,owl,accept\\n")
    >>> labelsieve.read_decisions(path)["decision"].tolist()
    ['accept']
    """
    ids, classes, decisions, by, at = _labelsieve.read_decisions(path)
    columns = {"id": texts(ids), "class": texts(classes), "decision": texts(decisions), "by": texts(by), "at": texts(at)}
    return Table(columns)


class Run(NamedTuple):
    """A finished run: what was done, and the results."""

    #: Title, description, settings, commands, notes.
    info: dict[str, Any]
    #: Result tables, as in ``tables.json``.
    tables: list[dict[str, Any]]
    #: Figures, as in ``figures.json``.
    figures: list[dict[str, Any]]
    #: Relevance of every candidate, if the run has it.
    relevance: Optional[Table]
    #: Which candidates belong to their class, if that is known.
    truth: Optional[Table]


def read_run(path: Path) -> Run:
    """Reads a run directory: ``run.json``, and tables, figures, relevance and truth if they exist."""
    info, tables, figures = (json.loads(text) for text in _labelsieve.read_run(path))
    relevance = read_relevance(path) if os.path.exists(os.path.join(path, "relevance.parquet")) else None
    truth = read_truth(path) if os.path.exists(os.path.join(path, "truth.parquet")) else None
    return Run(info, tables, figures, relevance, truth)


def read_candidates(path: Path) -> Table:
    """Reads what ``labelsieve match`` wrote: ``id``, ``class`` and ``matched_name``."""
    ids, classes, names = _labelsieve.read_candidates(path)
    return Table({"id": texts(ids), "class": texts(classes), "matched_name": texts(names)})


def read_truth(path: Path) -> Table:
    """Reads which candidates are relevant: ``id``, ``class`` and ``relevant``, from a file or a run directory."""
    if os.path.isdir(path):
        path = os.path.join(path, "truth.parquet")
    ids, classes, relevant = _labelsieve.read_truth(path)
    return Table({"id": texts(ids), "class": texts(classes), "relevant": relevant})


class _Examples(NamedTuple):
    """Features with what the file says about them."""

    #: Features as stored, not normalised.
    X: Rows
    #: Classes, if the file has them.
    y: Optional[npt.NDArray[Any]]
    #: Ids of the examples, if the file has them; otherwise the row number is the id.
    ids: Optional[npt.NDArray[Any]]


class Examples(_Examples):
    """Features with what the file says about them: ``X``, ``y``, ``ids``."""

    #: The network that made the features, if the file says so. Pass it on with what is made of them: to ``save`` of an
    #: estimator, or to :func:`write_relevance` as ``metadata={"labelsieve.network": network}``.
    network: Optional[str] = None


def read_features(
    path: Path,
    labels: Optional[Path] = None,
    *,
    embedding_column: Optional[str] = None,
    label_column: Optional[str] = None,
    id_column: Optional[str] = None,
) -> Examples:
    """Reads features from ``.npz``, ``.npy``, ``.parquet`` or a clip-retrieval folder, as the command line does.

    ``labels`` is a separate file of labels. The columns are for Parquet files with unusual names.
    """
    X, y, ids, network = _labelsieve.read_features(path, labels, embedding_column, label_column, id_column)
    examples = Examples(X, None if y is None else texts(y), None if ids is None else texts(ids))
    examples.network = network
    return examples


class SavedClassifier:
    """A classifier from a file: predicts, but does not learn."""

    def __init__(
        self,
        classes: list[str],
        coef: Any,
        scale: float,
        backbone: Optional[str] = None,
        n_base: int = 0,
        settings: Optional[dict[str, Any]] = None,
        network: Optional[str] = None,
        discriminant: Any = None,
    ) -> None:
        #: The classes' names.
        self.classes_ = texts(classes)
        #: One row per class: weights of unit length, or the mean of a discriminant's class.
        self.coef_ = as_rows(coef, "coef")
        self._discriminant = discriminant
        #: The factor on cosines before the softmax.
        self.scale_ = scale
        #: The network that made the features as the user calls it, if known.
        self.backbone = backbone
        #: The network that made the features, with a digest of it, if known.
        self.network = network
        #: How many of the leading classes are base classes.
        self.n_base = n_base
        #: The settings of the run that trained it.
        self.settings = settings or {}

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Cosines with the classes' weights, or a discriminant's scores, of shape (N, K)."""
        if self._discriminant is not None:
            return self._discriminant.scores(as_rows(X)).astype(np.float64)  # type: ignore[no-any-return]
        return _labelsieve.scores(as_rows(X), self.coef_).astype(np.float64)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of highest score."""
        found: npt.NDArray[Any] = self.classes_[self.decision_function(X).argmax(axis=1)]
        return found

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Softmax of the cosines times the scale; of a discriminant, probabilities by left-out clean examples."""
        if self._discriminant is not None:
            return self._discriminant.probabilities(as_rows(X)).astype(np.float64)  # type: ignore[no-any-return]
        from ._estimators import softmax

        return softmax(self.scale_ * self.decision_function(X))

    def typicality(self, X: Any) -> npt.NDArray[np.float64]:
        """How typical each example is of its best class, as :meth:`DiscriminantClassifier.typicality`; of discriminants only."""
        if self._discriminant is None:
            raise ValueError("typicality: expected a discriminant, found a classifier by cosine")
        return self._discriminant.typicality(as_rows(X)).astype(np.float64)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"SavedClassifier({len(self.classes_)} classes of {self.coef_.shape[1]} columns)"


def read_classifier(path: Path) -> SavedClassifier:
    """Reads what ``labelsieve train`` or ``save`` of an estimator wrote.

    >>> import labelsieve, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> data = labelsieve.demo_data(n_classes=3)
    >>> labelsieve.PrototypeClassifier().fit(data.X, data.y, is_clean=data.is_clean).save(path)
    >>> labelsieve.read_classifier(path)
    SavedClassifier(3 classes of 64 columns)
    """
    classes, weight, scale, (backbone, network), n_base, settings = _labelsieve.read_classifier(path)
    discriminant = _labelsieve.Discriminant.read(path)
    return SavedClassifier(classes, weight, scale, backbone, n_base, json.loads(settings), network, discriminant)


def save_classifier(
    path: Path,
    classes: Any,
    coef: Rows,
    scale: float,
    backbone: Optional[str],
    settings: dict[str, Any],
    network: Optional[str] = None,
) -> None:
    """Writes a classifier, whole or not at all."""
    names = [str(name) for name in classes]
    _labelsieve.write_classifier(path, names, coef, scale, (backbone, network), 0, json.dumps(settings))


def texts(values: list[Any]) -> npt.NDArray[Any]:
    """Texts as objects: numpy's own strings are padded to the longest."""
    return np.array(values, dtype=object) if len(values) else np.empty(0, dtype=object)


def _optional(values: list[Any], kind: type) -> list[Any]:
    return [None if is_missing(value) else kind(value) for value in values]
