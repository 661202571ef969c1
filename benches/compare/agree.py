#!/usr/bin/env python3
"""Spearman's rank correlation of two relevance files: do both sides find the same rows relevant?

    python agree.py THEIRS.npy OURS.npy

A file may hold the noisy rows alone or all rows with the clean ones first; the common tail is compared.
Prints {"spearman": ..., "mean_difference": ..., "rows": ...}.
"""

import json
import sys

import numpy as np
from scipy.stats import spearmanr


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("error: expected two .npy files\nhint: python agree.py THEIRS.npy OURS.npy")
    first, second = (np.load(path).ravel().astype(np.float64) for path in sys.argv[1:])
    n_rows = min(len(first), len(second))
    first, second = first[-n_rows:], second[-n_rows:]
    spearman = float(spearmanr(first, second).statistic)
    print(json.dumps({
        "spearman": spearman if np.isfinite(spearman) else None,  # a constant side has no ranks
        "mean_difference": float(np.abs(first - second).mean()),
        "rows": n_rows,
    }))


if __name__ == "__main__":
    main()
