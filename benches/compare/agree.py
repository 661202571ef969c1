#!/usr/bin/env python3
"""Spearman's rank correlation of two relevance files: whether both sides find the same rows relevant.

    python agree.py THEIRS.npy OURS.npy
    python agree.py THEIRS.parquet OURS.parquet

An .npy may hold the noisy rows alone or all rows with the clean ones first; the common tail is compared. In Parquet
files candidates are joined by id and class, and the result is the median over the classes.
Prints {"spearman": ..., "mean_difference": ..., "rows": ...}.
"""

import json
import sys
from collections import defaultdict

import numpy as np
from scipy.stats import spearmanr


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    return float(spearmanr(first, second).statistic)


def of_arrays(paths: list[str]) -> tuple[float, np.ndarray]:
    first, second = (np.load(path).ravel().astype(np.float64) for path in paths)
    n_rows = min(len(first), len(second))
    first, second = first[-n_rows:], second[-n_rows:]
    return spearman(first, second), np.abs(first - second)


def of_tables(paths: list[str]) -> tuple[float, np.ndarray]:
    import pyarrow.parquet as pq

    names = ["id", "class", "relevance", "is_clean"]
    first, second = (
        {(name, id): value for id, name, value, clean in zip(*(t[c].to_pylist() for c in names)) if not clean}
        for t in (pq.read_table(path, columns=names) for path in paths)
    )
    if first.keys() != second.keys():
        sys.exit(f"error: the files have different candidates: {len(first)} and {len(second)}")
    pairs = defaultdict(list)
    for key, value in first.items():
        pairs[key[0]].append((value, second[key]))
    each = [spearman(*np.array(values).T) for values in pairs.values()]
    values = np.array([pair for of_class in pairs.values() for pair in of_class])
    return float(np.nanmedian(each)), np.abs(values[:, 0] - values[:, 1])


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("error: expected two files\nhint: python agree.py THEIRS.npy OURS.npy")
    found, difference = (of_tables if sys.argv[1].endswith(".parquet") else of_arrays)(sys.argv[1:])
    print(json.dumps({
        "spearman": found if np.isfinite(found) else None,  # a constant side has no ranks
        "mean_difference": float(difference.mean()),
        "rows": len(difference),
    }))


if __name__ == "__main__":
    main()
