"""Shared fixtures: golden files, a sample small enough to be quick, and a Ray cluster."""

import json
from pathlib import Path

import numpy as np
import pytest

import labelsieve

REPOSITORY = Path(__file__).resolve().parents[3]
GOLDEN = REPOSITORY / "crates/labelsieve/tests/golden"


@pytest.fixture
def golden():
    """A golden file of the Rust tests, made by independent Python (make_golden.py beside it)."""
    return lambda name: json.loads((GOLDEN / f"{name}.json").read_text())


@pytest.fixture(scope="session")
def sample():
    return labelsieve.demo_data(n_classes=6, n_clean=3, largest_pool=200, n_test=20)


@pytest.fixture(scope="session")
def one_class(sample):
    """Clean rows, candidates, and which of these belong to the class."""
    one = sample.y == 0
    return sample.X[one & sample.is_clean], sample.X[one & ~sample.is_clean], sample.truth[one & ~sample.is_clean]


def unit(rows):
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)


@pytest.fixture(scope="session")
def nodes():
    """A Ray cluster of two nodes on this machine; tests are skipped where Ray is missing."""
    from ray_cluster import Nodes

    started = Nodes()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def examples(tmp_path_factory):
    """Examples in files that no test writes to, and what a single run makes of them."""
    from ray_cluster import make_examples

    return make_examples(tmp_path_factory.mktemp("examples"))
