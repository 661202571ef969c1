"""Candidates by text."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from . import _labelsieve
from ._choice import Rule, as_choice
from ._files import texts
from ._progress import Progress, as_progress
from ._table import Table, as_columns, is_missing

#: Columns that are searched by default, most trusted first, and columns of ids: those of `labelsieve match`.
TEXT_COLUMNS = ("title", "description", "caption", "text", "tags", "user_tags")
ID_COLUMNS = ("id", "key", "uid", "image_path", "file_name")

ClassTuple = tuple[str, str, list[str], list[str]]


def match(
    captions: Any,
    classes: Any,
    rule: Rule = "phrase",
    *,
    text_columns: Optional[Iterable[str]] = None,
    id_column: Optional[str] = None,
    progress: Progress = None,
) -> Table:
    """Finds the candidates of each class: examples whose texts contain one of its names.

    Parameters
    ----------
    captions : sequence of str, or a data frame, Arrow table or mapping of columns
        One text per example, or a table with columns of texts or of lists of texts (tags). Missing values are
        skipped. For files of millions of rows use ``labelsieve match``, which streams them.
    classes : sequence, mapping or path
        Names; ``{id: [names]}``; dictionaries with ``id``, ``names``, ``display_name`` and ``exclude``; or a class file
        (.toml, .csv, .txt).
    rule : {"phrase", "plural", "any-word", "substring"}
        When a text contains a name: its words, whole and in order; each in the singular or the plural; one of them; or
        its letters, inside words too.
    text_columns : names, optional
        The columns to search, most trusted first. By default those of title, description, caption, text, tags and
        user_tags that exist.
    id_column : str, optional
        The column that names the example. By default id, key, uid, image_path or file_name, else the row number.

    Returns
    -------
    Table
        One row per example and class: ``id``, ``class``, ``matched_name``, ``field`` (the column where it was found)
        and ``row``.

    Examples
    --------
    >>> from labelsieve import match
    >>> found = match(["A black widow on its web", "Black Widow (2021)", "my cat"], ["black widow", "cat"])
    >>> list(zip(found["row"].tolist(), found["class"]))
    [(0, 'black widow'), (1, 'black widow'), (2, 'cat')]
    >>> crane = {"id": "crane", "names": ["crane"], "exclude": ["crane fly"]}
    >>> match({"title": ["a crane fly", "two cranes"]}, [crane], rule="plural")["row"].tolist()
    [1]
    """
    rule_name = as_choice("rule", rule, Rule)
    entries = _as_classes(classes)
    columns, ids = _as_texts(captions, text_columns, id_column)
    fields = list(columns)
    n_rows = len(next(iter(columns.values())))
    rows: list[list[tuple[int, str]]] = [[] for _ in range(n_rows)]
    for position, (name, values) in enumerate(columns.items()):
        for row, value in enumerate(values):
            rows[row].extend((position, text) for text in _texts_of(value, name, row))
    found_rows, found_classes, names, found_columns, odd = _labelsieve.find_names(
        rows, entries, rule_name, as_progress(progress)
    )
    for warning in odd:
        warnings.warn(warning, UserWarning, stacklevel=2)
    pairs = list(zip(found_classes.tolist(), names.tolist()))
    return Table(
        {
            "id": texts([str(ids[row]) if ids is not None else str(row) for row in found_rows.tolist()]),
            "class": texts([entries[c][0] for c, _ in pairs]),
            "matched_name": texts([entries[c][2][name] for c, name in pairs]),
            "field": texts([fields[column] for column in found_columns.tolist()]),
            "row": found_rows,
        }
    )


def _as_classes(classes: Any) -> list[ClassTuple]:
    if isinstance(classes, (str, os.PathLike)):
        return _labelsieve.read_class_file(classes)
    if isinstance(classes, Mapping):
        return [_as_class({"id": key, **(v if isinstance(v, Mapping) else {"names": v})}) for key, v in classes.items()]
    if not isinstance(classes, Iterable):
        raise TypeError(f"classes: expected names, a mapping or a class file, found {type(classes).__name__}")
    return [_as_class(entry if isinstance(entry, Mapping) else {"id": entry}) for entry in classes]


def _as_class(entry: Mapping[str, Any]) -> ClassTuple:
    unknown = set(entry) - {"id", "names", "display_name", "exclude"}
    if unknown or "id" not in entry:
        found = ", ".join(sorted(map(str, entry)))
        raise ValueError(f"classes: expected entries with id, names, display_name and exclude, found {found}")
    key = str(entry["id"])
    names = _as_names(entry.get("names") or [entry.get("display_name") or key])
    return key, str(entry.get("display_name") or names[0]), names, _as_names(entry.get("exclude") or [])


def _as_names(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else [str(name) for name in names]


def _as_texts(
    captions: Any, text_columns: Optional[Iterable[str]], id_column: Optional[str]
) -> tuple[dict[str, list[Any]], Optional[list[Any]]]:
    """The columns to search, by name, and the ids."""
    if isinstance(captions, (str, bytes)):
        raise TypeError("captions: expected a sequence of texts, found one text\nhint: put it in a list")
    is_table = hasattr(captions, "column_names") or isinstance(captions, Mapping) or hasattr(captions, "columns")
    if not is_table:
        values = captions.to_pylist() if hasattr(captions, "to_pylist") else list(captions)
        return {"caption": values}, None
    columns = as_columns(captions, "captions")
    wanted = list(text_columns) if text_columns is not None else [name for name in TEXT_COLUMNS if name in columns]
    given = ", ".join(columns) or "none"
    if not wanted:
        raise ValueError(f"captions: expected a column {', '.join(TEXT_COLUMNS)}, found {given}\nhint: name it with text_columns")
    id_column = id_column or next((name for name in ID_COLUMNS if name in columns), None)
    for name in [*wanted, *([id_column] if id_column else [])]:
        if name not in columns:
            raise ValueError(f"captions: expected a column `{name}`, found {given}")
    return {name: columns[name] for name in wanted}, columns[id_column] if id_column else None


def _texts_of(value: Any, column: str, row: int) -> list[str]:
    if isinstance(value, str):
        return [value]
    if is_missing(value):
        return []
    if hasattr(value, "as_py"):  # a scalar of Arrow
        return _texts_of(value.as_py(), column, row)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, Mapping)):
        return [text for part in value for text in _texts_of(part, column, row)]
    raise ValueError(f"column `{column}`, row {row}: expected text, found {type(value).__name__}")
