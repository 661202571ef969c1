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
    method: Method = "gcn",
    lam: Optional[float] = None,
    seed: Any = 0,
    device: str = "auto",
    *,
    others: Any = None,
    decisions: Any = None,
    neighbours: int = _labelsieve.NEIGHBOURS,
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
    method : {"gcn", "mlp", "label-propagation", "similarity", "linear", "beta"}
        The paper's graph convolutional network, or one of its baselines.
    lam : float, optional
        Weight of the candidates in the loss of ``gcn`` and ``mlp``; small keeps more of them. By default the paper's
        choice for k (:func:`paper_lambda`).
    seed : int, default 0
        The same seed gives the same numbers, at any number of threads.
    device : str, default "auto"
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    others : array of shape (m, d), optional
        Examples of other classes; ``linear`` needs them.
    decisions : array of shape (z,), optional
        What a person decided about each candidate: ``"accept"``, ``"reject"``, ``"unsure"`` or None. Accepted ones count
        as clean examples and get relevance 1; rejected ones count as known negatives and get 0.
    neighbours : int, default 50
        Neighbours per example in the graph of ``gcn`` and ``label-propagation``.
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
        method_json(method, lam, neighbours, beta, settings),
        as_seed(seed),
        as_device(device),
        None if decisions is None else as_decisions(decisions, len(candidates)),
        as_progress(progress),
    )
    return found


def method_json(
    method: Method, lam: Optional[float], neighbours: int, beta: float, settings: Optional[Mapping[str, Any]]
) -> str:
    """A method and its settings as JSON, the form that all front ends of Labelsieve share."""
    name = as_choice("method", method, Method)
    described: dict[str, Any] = {"method": name}
    if name in ("gcn", "mlp"):
        described["lambda"] = None if lam is None else _number("lam", lam)
    if name in ("gcn", "label-propagation"):
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
