"""Exact nearest neighbours as sparse matrices of scipy."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _labelsieve
from ._arrays import as_rows
from ._choice import GraphMode, as_choice
from ._progress import Progress, as_progress
from ._relevance import _count, as_device


def knn_graph(
    X: Any,
    k: int = _labelsieve.NEIGHBOURS,
    mode: GraphMode = "similarity",
    device: str = "auto",
    progress: Progress = None,
) -> Any:
    """The exact nearest neighbours of every row, as a ``scipy.sparse.csr_matrix`` of shape (N, N).

    Parameters
    ----------
    X : array of shape (N, d)
        Rows, scaled to unit length; see :func:`relevance` for what is copied.
    k : int, default 50
        Neighbours per row; all other rows when there are fewer. A row is never its own neighbour. Equal similarities
        are ordered by lower index.
    mode : {"similarity", "distance", "affinity"}
        * ``"similarity"``: cosines, largest first in every row.
        * ``"distance"``: cleanlab's convention, which ``Datalab.find_issues(knn_graph=…)`` takes: cosine distances
          ``1 - cosine``, ascending in every row. Equal rows have distance 0, stored explicitly.
        * ``"affinity"``: the paper's matrix A: cosines of *reciprocal* neighbours that are positive. Symmetric.
    device, progress
        As in :func:`relevance`.

    Examples
    --------
    >>> from labelsieve import knn_graph
    >>> knn_graph([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], k=1).toarray().round(2)
    array([[0. , 0.8, 0. ],
           [0.8, 0. , 0. ],
           [0. , 0.6, 0. ]], dtype=float32)
    """
    as_choice("mode", mode, GraphMode)
    try:
        from scipy.sparse import csr_matrix
    except ImportError:
        raise ImportError("knn_graph needs scipy\nhint: pip install scipy") from None
    rows, k, device, progress = as_rows(X), _count("k", k), as_device(device), as_progress(progress)
    shape = (len(rows), len(rows))
    if mode == "affinity":
        offsets, columns, values = _labelsieve.affinity(rows, k, device, progress)
        return csr_matrix((values, columns.astype(np.int32), offsets), shape=shape)
    lists, similarities = _labelsieve.neighbours(rows, k, device, progress)
    width = lists.shape[1]
    offsets = np.arange(len(rows) + 1, dtype=np.int64) * width
    if mode == "distance":
        similarities = np.maximum(1 - similarities.astype(np.float64), 0.0)
    return csr_matrix((similarities.ravel(), lists.ravel().astype(np.int32), offsets), shape=shape)
