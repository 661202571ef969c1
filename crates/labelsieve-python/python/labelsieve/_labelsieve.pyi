"""The compiled half. Nothing here is public; `labelsieve` wraps it."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Optional, Protocol, Union, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Discriminant",
    "NEIGHBOURS",
    "__version__",
    "affinity",
    "candidate_statistics",
    "clean",
    "commands",
    "describe_device",
    "describe_options",
    "find_names",
    "get_num_threads",
    "join_features",
    "neighbours",
    "normalize",
    "paper_lambda",
    "read_candidates",
    "read_class_file",
    "read_classifier",
    "read_decisions",
    "read_features",
    "read_relevance",
    "read_run",
    "read_truth",
    "relevance",
    "report",
    "run_command",
    "run_job",
    "run_review",
    "scores",
    "set_num_threads",
    "synthetic",
    "train",
    "write_classifier",
    "write_relevance",
]

__version__: str
NEIGHBOURS: int

_Path = Union[str, os.PathLike[str]]
_Rows = npt.NDArray[np.float32]
_Numbers = npt.NDArray[np.float32]
_Integers = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]
_Progress = Optional[Callable[[int, int], object]]
_Reasons = tuple[Optional[str], Optional[str], Optional[float], Optional[int]]
_Class = tuple[str, str, list[str], list[str]]

class _Stretches(Protocol):
    def begin(self, unit: str) -> None: ...
    def __call__(self, done: int, total: int) -> object: ...

_Options = dict[str, Any]

class _Labelled(Protocol):
    @property
    def names(self) -> list[str]: ...
    @property
    def codes(self) -> _Integers: ...
    @property
    def is_clean(self) -> _Flags: ...

def run_command(arguments: Sequence[str]) -> int: ...
def normalize(rows: _Rows) -> tuple[_Rows, bool]: ...
def set_num_threads(n_threads: int) -> None: ...
def get_num_threads() -> int:
    """How many threads work in this process."""

def describe_device(name: str) -> str: ...
def relevance(
    clean: _Rows,
    noisy: _Rows,
    others: Optional[_Rows],
    other_classes: Optional[_Rows],
    method: str,
    seed: int,
    device: str,
    decisions: Optional[list[Optional[str]]],
    progress: _Progress,
) -> tuple[_Numbers, Optional[npt.NDArray[np.uint32]]]: ...
def clean(
    x: _Rows,
    labels: _Labelled,
    method: str,
    seed: int,
    device: str,
    decisions: Optional[list[Optional[str]]],
    base: Optional[_Rows],
    progress: _Progress,
) -> tuple[_Numbers, _Integers, _Numbers, _Integers, _Flags, Optional[_Numbers]]: ...
def paper_lambda(n_clean: int) -> float: ...
def train(
    x: _Rows,
    labels: _Labelled,
    relevance: _Numbers,
    cosine: Optional[str],
    seed: int,
    device: str,
    progress: _Progress,
) -> _Rows: ...
def scores(x: _Rows, weights: _Rows) -> _Rows: ...

@final
class Discriminant:
    def __new__(
        cls,
        means: _Rows,
        covariance: _Rows,
        basis: Optional[_Rows],
        origin: tuple[float, int],
        confidence: tuple[float, _Numbers],
    ) -> Discriminant: ...
    @staticmethod
    def fit(x: _Rows, labels: _Labelled, weights: _Numbers, shrinkage: str) -> Discriminant: ...
    @staticmethod
    def read(path: _Path) -> Optional[Discriminant]: ...
    def parts(self) -> tuple[_Rows, _Rows, Optional[_Rows], float, int]: ...
    def confidence(self) -> tuple[float, _Numbers]: ...
    def scores(self, x: _Rows) -> _Rows: ...
    def probabilities(self, x: _Rows) -> _Rows: ...
    def typicality(self, x: _Rows) -> _Numbers: ...
    def save(
        self, path: _Path, classes: list[str], origin: tuple[Optional[str], Optional[str]], settings: str
    ) -> None: ...

def neighbours(
    x: _Rows, count: int, device: str, progress: _Progress
) -> tuple[npt.NDArray[np.uint32], _Rows]: ...
def affinity(
    x: _Rows, count: int, device: str, progress: _Progress
) -> tuple[_Integers, npt.NDArray[np.uint32], _Numbers]: ...
def find_names(
    rows: list[list[tuple[int, str]]], classes: list[_Class], rule: str, progress: _Progress
) -> tuple[_Integers, _Integers, _Integers, _Integers, list[str]]: ...
def run_job(command: str, options: _Options, progress: Optional[_Stretches]) -> str: ...
def run_review(options: _Options, opened: Callable[[str], object]) -> str: ...
def describe_options(command: str) -> str: ...
def commands() -> list[str]: ...
def join_features(parts: Sequence[_Path], output: _Path, progress: Optional[_Stretches]) -> str: ...
def read_class_file(path: _Path) -> list[_Class]: ...
def candidate_statistics(classes: _Path, counts: dict[str, int]) -> str: ...
def synthetic(
    n_classes: int,
    n_clean: int,
    largest_pool: int,
    noise_ratio: float,
    clusters: int,
    dim: int,
    n_test: int,
    seed: int,
) -> tuple[_Rows, _Integers, _Flags, _Flags, _Rows, _Integers]: ...
def read_relevance(
    path: _Path,
) -> tuple[
    list[str],
    list[str],
    _Numbers,
    Optional[_Numbers],
    _Flags,
    list[_Reasons],
    Optional[list[Optional[str]]],
    dict[str, str],
]: ...
def read_run(path: _Path) -> tuple[str, str, str]: ...
def write_relevance(
    path: _Path,
    ids: list[str],
    classes: list[str],
    relevance: _Numbers,
    probability: Optional[list[Optional[float]]],
    is_clean: _Flags,
    reasons: list[_Reasons],
    decisions: Optional[list[Optional[str]]],
    metadata: list[tuple[str, str]],
) -> None: ...
def report(
    path: _Path,
    output: _Path,
    truth: Optional[_Path],
    decisions: Optional[_Path],
    images: Optional[_Path],
    title: Optional[str],
    per_class: int,
) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]: ...
def read_candidates(path: _Path) -> tuple[list[str], list[str], list[str]]: ...
def read_decisions(path: _Path) -> tuple[list[str], list[str], list[Optional[str]], list[str], list[str]]: ...
def read_truth(path: _Path) -> tuple[list[str], list[str], _Flags]: ...
def read_features(
    path: _Path,
    labels: Optional[_Path],
    embedding_column: Optional[str],
    label_column: Optional[str],
    id_column: Optional[str],
) -> tuple[_Rows, Optional[list[str]], Optional[list[str]], Optional[str]]: ...
def read_classifier(
    path: _Path,
) -> tuple[list[str], _Rows, float, tuple[Optional[str], Optional[str]], int, str]: ...
def write_classifier(
    path: _Path,
    classes: list[str],
    weight: _Rows,
    scale: float,
    origin: tuple[Optional[str], Optional[str]],
    n_base: int,
    settings: str,
) -> None: ...
