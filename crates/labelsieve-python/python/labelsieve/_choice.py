"""Names of methods, modes and rules: typed for editors, and refused with the nearest spelling."""

from __future__ import annotations

import difflib
from typing import Any, Literal, get_args

#: How candidates are scored.
Method = Literal["auto", "gcn", "mlp", "label-propagation", "similarity", "linear", "beta", "mixture"]
#: The numbers that :func:`labelsieve.knn_graph` stores.
GraphMode = Literal["similarity", "distance", "affinity"]
#: When a text contains a name.
Rule = Literal["phrase", "plural", "any-word", "substring"]
#: How a file stores its texts.
TextFormat = Literal["yfcc", "csv", "tsv", "jsonl", "parquet"]
#: Classifiers of features.
ClassifierName = Literal["auto", "prototype", "cosine", "discriminant"]
#: Which classes compete while a network is fine-tuned.
SoftmaxMode = Literal["joint", "separate"]
#: Whether images of which none can be read are an error or a file without rows.
OnEmpty = Literal["refuse", "write"]
#: How numbers are stored.
StoredAs = Literal["f32", "f16"]


def as_choice(name: str, value: Any, kind: Any) -> str:
    """One of the names of a ``Literal``; underscores may stand for hyphens."""
    choices = get_args(kind)
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected {_listed(choices)}, found {value!r}")
    if value.replace("_", "-") in choices:
        return value.replace("_", "-")
    near = difflib.get_close_matches(value.strip().lower().replace("_", "-"), choices, 1)
    hint = f"\nhint: did you mean `{near[0]}`?" if near else ""
    raise ValueError(f"{name}: expected {_listed(choices)}, found `{value}`{hint}")


def _listed(choices: tuple[str, ...]) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}"
