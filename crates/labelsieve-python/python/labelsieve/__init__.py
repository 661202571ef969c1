"""Relevance of web-collected examples from a few verified ones.

>>> import labelsieve
>>> data = labelsieve.demo_data()
>>> one = data.y == 3
>>> clean, noisy = data.X[one & data.is_clean], data.X[one & ~data.is_clean]
>>> relevance = labelsieve.relevance(clean, noisy)
>>> truth = data.truth[one & ~data.is_clean]
>>> bool(relevance[truth].mean() > relevance[~truth].mean())
True

The method is that of *Graph convolutional networks for learning with few clean and many noisy labels* (Iscen, Tolias,
Avrithis, Chum and Schmid, ECCV 2020). Only numpy is required; scikit-learn, scipy, pandas, pyarrow and torch are used
if they are installed and needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._choice import Method
from ._demo import DemoData, demo_data
from ._files import (
    Examples,
    Run,
    SavedClassifier,
    read_candidates,
    read_classifier,
    read_decisions,
    read_features,
    read_relevance,
    read_run,
    read_truth,
    write_relevance,
)
from ._graph import knn_graph
from ._handoffs import CleanlabInputs, to_cleanlab, to_fiftyone
from ._jobs import (
    classes_files,
    embed_files,
    embed_text_files,
    evaluate_files,
    finetune_files,
    import_decisions,
    match_files,
    merge_files,
    plan_files,
    predict_files,
    pretrain_files,
    report_files,
    review_files,
    run_files,
    score_files,
    train_files,
)
from ._label_studio import read_label_studio, to_label_studio
from ._labelsieve import __version__, get_num_threads
from ._matching import match
from ._relevance import describe_device, normalize, paper_lambda, relevance, set_num_threads
from ._report import report
from ._table import Table

if TYPE_CHECKING:
    from ._estimators import Cleaner, CosineClassifier, DiscriminantClassifier, PrototypeClassifier
    from ._folds import CleanKFold

__all__ = [
    "CleanKFold",
    "Cleaner",
    "CleanlabInputs",
    "CosineClassifier",
    "DemoData",
    "DiscriminantClassifier",
    "Examples",
    "Method",
    "PrototypeClassifier",
    "Run",
    "SavedClassifier",
    "Table",
    "__version__",
    "classes_files",
    "demo_data",
    "describe_device",
    "embed_files",
    "embed_text_files",
    "evaluate_files",
    "finetune_files",
    "get_num_threads",
    "import_decisions",
    "knn_graph",
    "match",
    "match_files",
    "merge_files",
    "normalize",
    "paper_lambda",
    "plan_files",
    "predict_files",
    "pretrain_files",
    "read_candidates",
    "read_classifier",
    "read_decisions",
    "read_features",
    "read_label_studio",
    "read_relevance",
    "read_run",
    "read_truth",
    "relevance",
    "report",
    "report_files",
    "review_files",
    "run_files",
    "score_files",
    "set_num_threads",
    "to_cleanlab",
    "to_fiftyone",
    "to_label_studio",
    "train_files",
    "write_relevance",
]

_ESTIMATORS = ("Cleaner", "CosineClassifier", "DiscriminantClassifier", "PrototypeClassifier")


def __getattr__(name: str) -> Any:
    # Estimators import scikit-learn if it is installed, which takes a second; do it only when they are used.
    if name in _ESTIMATORS:
        from . import _estimators

        return getattr(_estimators, name)
    if name == "CleanKFold":
        from ._folds import CleanKFold

        return CleanKFold
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
