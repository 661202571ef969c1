"""Exports for FiftyOne and cleanlab; Label Studio's is in `_label_studio.py`."""

from __future__ import annotations

import json
import os
import secrets
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Optional, Union

import numpy as np
import numpy.typing as npt

from ._arrays import Rows, as_numpy, as_rows
from ._choice import as_choice
from ._graph import knn_graph
from ._is_clean import as_flags
from ._table import as_columns, as_relevance, required

Path = Union[str, "os.PathLike[str]"]
#: From an id to a place: a pattern such as ``"https://host/{id}.jpg"``, or a function.
Place = Union[str, Callable[[str], str]]
#: How images that do not exist are treated.
Missing = Literal["raise", "skip", "keep"]


def to_fiftyone(table: Any, folder: Path, image: Place = "{id}", missing: Missing = "raise") -> None:
    """Writes a folder that FiftyOne loads, with ``Classification(label, confidence=relevance)`` on every image.

    Load it with ``fiftyone.Dataset.from_dir(folder, dataset_type=fiftyone.types.FiftyOneImageClassificationDataset,
    data_path="data.json")``. Images stay where they are: ``data.json`` says where. An example of several classes gets
    ``Classifications``. Each label has the attributes ``example`` (the id) and, where the table has it, ``is_clean``.

    Parameters
    ----------
    table : Table, data frame, Arrow table or mapping
        ``id``, ``class`` and ``relevance``, and optionally ``is_clean``.
    folder : path
        The folder to write; created if necessary.
    image : str or callable
        The path of an example's image, from its id; relative ones become absolute.
    missing : {"raise", "skip", "keep"}
        What to do about images that do not exist: refuse them; leave their examples out, with a warning; or write their
        paths anyway, for a machine that has them.

    Examples
    --------
    >>> import labelsieve, tempfile, os
    >>> folder = tempfile.mkdtemp()
    >>> table = {"id": ["a", "b"], "class": ["owl", "owl"], "relevance": [0.25, 1.0]}
    >>> labelsieve.to_fiftyone(table, folder, image="/photos/{id}.jpg", missing="keep")
    >>> sorted(os.listdir(folder))
    ['data.json', 'labels.json']
    """
    as_choice("missing", missing, Missing)
    ids, classes, relevance = scored_rows(table)
    flags = as_columns(table).get("is_clean")
    is_clean = None if flags is None else as_flags(flags, len(ids))
    places = _find_images(ids, placed(image), missing)
    labels: dict[str, list[dict[str, Any]]] = {}
    for row, (name, label, score) in enumerate(zip(ids, classes, relevance)):
        if name not in places:
            continue
        attributes = {"example": name} if is_clean is None else {"example": name, "is_clean": bool(is_clean[row])}
        labels.setdefault(name, []).append({"label": label, "confidence": score, "attributes": attributes})
    # Names of files may hold dots and slashes, which FiftyOne reads as extensions and folders; numbers hold none.
    keys = {name: f"{position:09}" for position, name in enumerate(labels)}
    os.makedirs(folder, exist_ok=True)
    write_json(os.path.join(folder, "data.json"), {keys[name]: places[name] for name in labels})
    targets = {keys[name]: found[0] if len(found) == 1 else found for name, found in labels.items()}
    write_json(os.path.join(folder, "labels.json"), {"classes": sorted(set(classes)), "labels": targets})


class CleanlabInputs(NamedTuple):
    """The inputs of cleanlab's functions."""

    #: Class numbers, from 0.
    labels: npt.NDArray[np.int64]
    #: N×K probabilities.
    pred_probs: npt.NDArray[np.float64]
    #: The features.
    features: Rows
    #: Square CSR of cosine distances: k per row, ascending, no self.
    knn_graph: Any
    #: The class of each number.
    class_names: npt.NDArray[Any]


def to_cleanlab(X: Any, y: Any, classifier: Any, k: int = 10, path: Optional[Path] = None) -> CleanlabInputs:
    """Labels, probabilities, features and a neighbour graph, as cleanlab takes them.

    Parameters
    ----------
    X, y : arrays of shape (N, d) and (N,)
        Examples and their given classes.
    classifier
        A fitted classifier with ``classes_`` and ``predict_proba``. cleanlab asks for probabilities from outside the
        training set; a classifier fitted on the same examples trusts their labels too much.
    k : int, default 10
        Neighbours per row.
    path : path, optional
        An ``.npz`` to write the arrays to; the graph as ``knn_data``, ``knn_indices`` and ``knn_indptr``.

    Examples
    --------
    >>> import labelsieve
    >>> data = labelsieve.demo_data(n_classes=3)
    >>> classifier = labelsieve.PrototypeClassifier().fit(data.X, data.y, is_clean=data.is_clean)
    >>> inputs = labelsieve.to_cleanlab(data.X, data.y, classifier)
    >>> inputs.pred_probs.shape, inputs.knn_graph.shape
    ((856, 3), (856, 856))

    ``Datalab({"label": inputs.labels}, label_name="label").find_issues(pred_probs=inputs.pred_probs,
    knn_graph=inputs.knn_graph)`` continues from here.
    """
    rows, y = as_rows(X), as_numpy(y, "y")
    if not hasattr(classifier, "classes_") or not hasattr(classifier, "predict_proba"):
        raise ValueError(
            f"classifier: expected a fitted classifier with predict_proba, found {type(classifier).__name__}\nhint: call fit first"
        )
    names = as_numpy(classifier.classes_, "classes_")
    positions = {str(name): position for position, name in enumerate(names.tolist())}
    if y.shape != (len(rows),):
        raise ValueError(f"y: expected one class per row, {len(rows)}, found an array of shape {y.shape}")
    unknown = next((row for row, label in enumerate(y.tolist()) if str(label) not in positions), None)
    if unknown is not None:
        raise ValueError(f"y, row {unknown}: expected a class of the classifier, found {y.tolist()[unknown]!r}")
    labels = np.array([positions[str(label)] for label in y.tolist()], np.int64)
    graph = knn_graph(rows, k, mode="distance")
    inputs = CleanlabInputs(labels, classifier.predict_proba(rows), rows, graph, names)
    if path is not None:
        arrays = {
            "labels": labels,
            "pred_probs": inputs.pred_probs,
            "features": rows,
            "class_names": names.astype(str),
            "knn_data": graph.data,
            "knn_indices": graph.indices,
            "knn_indptr": graph.indptr,
        }
        _write(path, lambda file: np.savez(file, **arrays))
    return inputs


def _find_images(ids: list[str], place: Callable[[str], str], missing: Missing) -> dict[str, str]:
    """The absolute path of every image, without those to be skipped."""
    places = {name: os.path.abspath(place(name)) for name in ids}
    absent = [] if missing == "keep" else [name for name, path in places.items() if not os.path.isfile(path)]
    if not absent:
        return places
    some = ", ".join(f"`{places[name]}`" for name in absent[:3]) + (", …" if len(absent) > 3 else "")
    found = f"{len(absent)} of {len(places)} images do not exist: {some}"
    if missing == "raise" or len(absent) == len(places):
        raise FileNotFoundError(
            f"{found}\nhint: image= maps an id to a path on this machine, not on the web; "
            'missing="skip" leaves such examples out, missing="keep" writes them anyway'
        )
    warnings.warn(f"left out: {found}", UserWarning, stacklevel=3)
    return {name: places[name] for name in places.keys() - set(absent)}


def scored_rows(table: Any) -> tuple[list[str], list[str], list[float]]:
    """Ids, classes and relevance of a table."""
    columns = required(table, "id", "class", "relevance")
    relevance = [round(score, 6) for score in as_relevance(columns["relevance"])]
    return [str(name) for name in columns["id"]], [str(name) for name in columns["class"]], relevance


def placed(image: Place) -> Callable[[str], str]:
    """From an id to its image."""
    if callable(image):
        return image
    if "{id}" not in image:
        raise ValueError(f"image: expected a pattern with {{id}} in it, found `{image}`")
    return lambda name: image.replace("{id}", name)


def write_json(path: Path, value: Any) -> None:
    """Writes JSON, whole or not at all."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    _write(path, lambda file: file.write(text.encode()))


def _write(path: Path, fill: Callable[[Any], object]) -> None:
    """A file that appears whole or not at all."""
    folder, name = os.path.split(os.path.abspath(path))
    unfinished = os.path.join(folder, f".{name}.{secrets.token_hex(8)}")
    try:
        with open(unfinished, "xb") as file:
            fill(file)
        os.replace(unfinished, path)
    except BaseException:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise
