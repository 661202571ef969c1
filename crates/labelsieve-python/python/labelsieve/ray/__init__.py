"""``match``, ``embed``, ``score`` and ``train`` on a Ray cluster, from files to files on any storage.

>>> import labelsieve.ray
>>> labelsieve.ray.score(  # doctest: +SKIP
...     "s3://bucket/clean.parquet", "s3://bucket/photos.parquet", "s3://bucket/relevance.parquet",
...     candidates="s3://bucket/candidates.parquet", settings=labelsieve.ray.Settings(address="auto"),
... )

Results are those of the functions of one machine (:func:`labelsieve.score_files` and so on), byte for byte. What is finished
is kept beside the output until all is done, so that the same call resumes a run that was killed. Needs
``pip install 'labelsieve[ray]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._embed import embed
    from ._match import match
    from ._score import score
    from ._settings import Settings
    from ._train import train

__all__ = ["Settings", "embed", "match", "score", "train"]

_MODULES = {"Settings": "_settings", "embed": "_embed", "match": "_match", "score": "_score", "train": "_train"}


def __getattr__(name: str) -> Any:
    # They import pyarrow, which may be missing, and is not needed for `--help`.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    from ._needs import check_installed

    check_installed()
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
