"""The report of a run, as one HTML file."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Optional, Union

from . import _labelsieve
from ._files import Path, write_relevance
from ._relevance import _count


def report(
    run: Any,
    output: Path = "report.html",
    *,
    truth: Optional[Path] = None,
    decisions: Optional[Path] = None,
    images: Optional[Path] = None,
    title: Optional[str] = None,
    per_class: int = 60,
) -> dict[str, Union[int, dict[str, str]]]:
    """Writes one self-contained HTML file: tables, figures, and ranked galleries of every class.

    Parameters
    ----------
    run : path, Table, data frame, Arrow table or mapping
        A run directory; a relevance file; or a table of relevance, e.g. ``Cleaner.to_table(ids)``.
    output : path, default "report.html"
        The file to write, whole or not at all.
    truth : path, optional
        A Parquet file of ``id``, ``class`` and ``relevant``, for the figures that need it.
    decisions : path, optional
        A ``.parquet``, ``.csv`` or ``.tsv`` file of ``id``, ``class`` and ``decision``, to mark what people decided. By
        default what the relevance file says.
    images : path, optional
        A folder of pictures or a Parquet file of them, by the examples' ids.
    title : str, optional
        The heading.
    per_class : int, default 60
        Candidates shown with a picture in each class: half from the top of the ranking, a quarter each from the middle
        and the bottom. The others are listed.

    Returns
    -------
    dict
        What the report holds: numbers of ``tables``, ``figures``, ``classes``, ``examples``, ``pictures`` and
        ``decisions`` (candidates that people decided about), and ``unreadable``, the pictures that could not be read with
        the reasons.

    Examples
    --------
    >>> import labelsieve, os, tempfile
    >>> data = labelsieve.demo_data(n_classes=3)
    >>> table = labelsieve.Cleaner().fit(data.X, data.y, is_clean=data.is_clean).to_table()
    >>> path = os.path.join(tempfile.mkdtemp(), "report.html")
    >>> labelsieve.report(table, path, title="Three classes")["classes"]
    3
    """
    per_class = _count("per_class", per_class)
    if isinstance(run, (str, os.PathLike)):
        return _write(run, output, (truth, decisions, images), title, per_class)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "relevance.parquet")
        write_relevance(path, run)
        return _write(path, output, (truth, decisions, images), title or "Relevance", per_class)


def _write(
    run: Path,
    output: Path,
    files: tuple[Optional[Path], Optional[Path], Optional[Path]],
    title: Optional[str],
    per_class: int,
) -> dict[str, Union[int, dict[str, str]]]:
    counts, unreadable = _labelsieve.report(run, output, *files, title, per_class)
    return {**dict(counts), "unreadable": dict(unreadable)}
