"""The relevance of one class's candidates, and what all functions share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from . import _labelsieve
from ._arrays import Rows, as_rows, as_seed
from ._choice import Method, as_choice
from ._decisions import as_decisions
from ._progress import Progress, as_progress


def relevance(
    clean: Any,
    noisy: Any,
    method: Method = "auto",
    lam: Optional[float] = None,
    seed: Any = 0,
    device: str = "auto",
    *,
    others: Any = None,
    other_classes: Any = None,
    decisions: Any = None,
    neighbours: Optional[int] = None,
    beta: float = 1.0,
    settings: Optional[Mapping[str, Any]] = None,
    progress: Progress = None,
) -> npt.NDArray[np.float32]:
    """How much each candidate of one class belongs to it, in [0, 1].

    Parameters
    ----------
    clean : array of shape (k, d)
        Verified examples of the class, at least one. Any array of numbers: numpy, a torch tensor on the CPU, a data
        frame, a column of vectors. Rows are scaled to unit length; all-zero rows stay zero.
    noisy : array of shape (z, d)
        The candidates.
    method : {"auto", "gcn", "mlp", "label-propagation", "similarity", "linear", "beta", "mixture"}
        The paper's graph convolutional network, one of its baselines, a mixture of this class and others, or what suits
        the class: network and mixture together.
    lam : float, optional
        Weight of the candidates in the loss of ``auto``, ``gcn`` and ``mlp``; small keeps more of them. By default the
        paper's choice for k (:func:`paper_lambda`).
    seed : int, default 0
        The same seed gives the same numbers, at any number of threads.
    device : str, default "auto"
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    others : array of shape (m, d), optional
        Examples of other classes; ``linear`` needs them.
    other_classes : array of shape (m, d), optional
        One row for each other class that a candidate may come from, e.g. the mean of its examples; ``mixture`` and
        ``auto`` compare candidates with them. Without any, ``mixture`` gives 1 to all and ``auto`` goes without it.
    decisions : array of shape (z,), optional
        What a person decided about each candidate: ``"accept"``, ``"reject"``, ``"unsure"`` or None. Accepted ones count
        as clean examples and get relevance 1; rejected ones count as known negatives and get 0.
    neighbours : int, optional
        Neighbours per example in the graph; by default 50 for ``gcn`` and ``label-propagation``, and by the number of
        candidates for ``auto``.
    beta : float, default 1.0
        The relevance that ``beta`` gives to every candidate.
    settings : mapping, optional
        Further settings of the method by name, e.g. ``{"training": {"iterations": 200, "dropout": 0.0}}``.
    progress : callable, tqdm bar or True, optional
        ``progress(done, total)`` is called about twenty times a second, in rows; each counts once for the graph and
        once for the training. An exception in it stops the work. True shows a tqdm bar, or without tqdm a plain
        percentage on stderr.

    Returns
    -------
    array of shape (z,), float32

    Notes
    -----
    C-contiguous float32 arrays are read in place. If their rows have unit length (to 1e-6) they are used as they are;
    otherwise the method works on one normalised copy. Do not write to the arrays during the call.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve import relevance
    >>> clean = np.array([[1.0, 0.0], [0.9, 0.1]])
    >>> noisy = np.array([[0.8, 0.1], [0.1, 0.9]])
    >>> found = relevance(clean, noisy, method="similarity")
    >>> bool(found[0] > found[1])
    True
    """
    candidates = as_rows(noisy, "noisy")
    found, _ = _labelsieve.relevance(
        as_rows(clean, "clean"),
        candidates,
        None if others is None else as_rows(others, "others"),
        None if other_classes is None else as_rows(other_classes, "other_classes"),
        method_json(method, lam, neighbours, beta, settings),
        as_seed(seed),
        as_device(device),
        None if decisions is None else as_decisions(decisions, len(candidates)),
        as_progress(progress),
    )
    return found


def method_json(
    method: Method,
    lam: Optional[float],
    neighbours: Optional[int],
    beta: float,
    settings: Optional[Mapping[str, Any]],
) -> str:
    """A method and its settings as JSON, the form that all front ends of Labelsieve share."""
    name = as_choice("method", method, Method)
    described: dict[str, Any] = {"method": name}
    if name in ("auto", "gcn", "mlp"):
        described["lambda"] = None if lam is None else _number("lam", lam)
    if name in ("auto", "gcn", "label-propagation", "mixture") and neighbours is not None:
        described["neighbours"] = _count("neighbours", neighbours)
    if name == "beta":
        described["beta"] = _number("beta", beta)
    if settings is not None and not isinstance(settings, Mapping):
        raise ValueError(f"settings: expected a mapping of names to values, found {settings!r}")
    described.update(settings or {})
    try:
        return json.dumps(described)
    except TypeError as error:
        raise ValueError(f"settings: expected numbers, strings and mappings of them: {error}") from None


def check_base(method: Method, base: Any) -> None:
    """Base classes that no method compares with would have no effect."""
    if base is not None and as_choice("method", method, Method) not in ("auto", "mixture"):
        raise ValueError(f"base: expected none with method `{method}`, which compares candidates with no other class")


def as_device(device: Any) -> str:
    """The name of a device; the compiled module knows which exist."""
    if not isinstance(device, str):
        raise ValueError(f"device: expected auto, cpu, cuda or cuda:0, cuda:1, …, found {device!r}")
    return device


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected a number, found {value!r}") from None
    if not np.isfinite(number):
        raise ValueError(f"{name}: expected a finite number, found {number}")
    return number


_AT_LEAST = {0: "a non-negative integer", 1: "a positive integer"}


def _count(name: str, value: Any, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name}: expected {_AT_LEAST[least]}, found {value!r}")
    return int(value)


def normalize(X: Any) -> Rows:
    """The rows scaled to unit length, as the method uses them; such an array is never copied again.

    >>> import labelsieve
    >>> labelsieve.normalize([[3.0, 4.0], [0.0, 0.0]])
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    rows, _ = _labelsieve.normalize(as_rows(X))
    return rows


def paper_lambda(n_clean: int) -> float:
    """The λ that the paper found best for this number of clean examples, interpolated between 1, 2, 5, 10 and 20.

    >>> import labelsieve
    >>> [round(labelsieve.paper_lambda(k), 3) for k in (1, 2, 5, 20)]
    [0.01, 0.05, 0.5, 5.0]
    """
    return _labelsieve.paper_lambda(_count("n_clean", n_clean))


def set_num_threads(n_threads: int) -> None:
    """Sets the number of threads of this process; 0 means one per core. Results do not depend on it.

    >>> import labelsieve
    >>> labelsieve.set_num_threads(2)
    >>> labelsieve.get_num_threads()
    2
    >>> labelsieve.set_num_threads(0)
    """
    _labelsieve.set_num_threads(_count("n_threads", n_threads, least=0))


def describe_device(device: str = "auto") -> str:
    """The device that a name selects on this machine, and why it is not a GPU.

    >>> import labelsieve
    >>> labelsieve.describe_device("cpu")
    'cpu (asked for)'
    """
    return _labelsieve.describe_device(as_device(device))
