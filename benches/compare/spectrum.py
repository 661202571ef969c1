#!/usr/bin/env python3
"""Measures features of photo sets and writes spectra.json, from which generate.py makes rows like them.

    python spectrum.py tiny=tiny.parquet fashion=fashion.parquet > spectra.json    # measure; the table goes to stderr
    python spectrum.py --check tiny=tiny.parquet fashion=fashion.parquet           # only the table

The rows (Parquet with `embedding`, or .npy) are turned to their principal directions and clustered by k-means (100
clusters, 10 iterations, faiss). Kept per set:

    between, within   variance of the cluster centres and of the rows around them, per principal direction, largest
                      first, at 40 positions (`at`) in a geometric row
    size_sigma        standard deviation of the logarithm of cluster sizes
    spread_sigma      the same for the root mean square distance of a cluster's rows to their centre
    tightness         factor on `within`'s deviations: real clusters are not Gaussian and have closer neighbours.
                      Chosen among five values for the table to agree best

The table compares real and generated rows, at the number of rows of the set: which share of all pairs could
still be among the 50 nearest by the bound x1.y1 + |x2||y2|, the first p principal directions being exact (400 random
rows, exact thresholds), and how similar the 1st and the 50th neighbour are (5th, 50th and 95th percentile).
"""

import argparse
import json
import sys

import faiss
import numpy as np

from generate import Measured, constants_of, generated, unit_rows

N_CLUSTERS, N_QUERIES, NEIGHBOURS = 100, 400, 50
LEADING = (32, 64, 128, 256)
TIGHTNESS = (1.0, 0.95, 0.9, 0.85, 0.8)


def read(path: str) -> np.ndarray:
    if path.endswith(".npy"):
        return unit_rows(np.load(path).astype(np.float32))
    import pyarrow.parquet as pq

    column = pq.read_table(path, columns=["embedding"])["embedding"].combine_chunks()
    return unit_rows(column.flatten().to_numpy().reshape(len(column), -1).astype(np.float32))


def turned(rows: np.ndarray) -> np.ndarray:
    """The rows in their principal directions, the one with most of them first."""
    _, directions = np.linalg.eigh(rows.T.astype(np.float64) @ rows)
    return rows @ directions[:, ::-1].astype(np.float32)


def measure(rows: np.ndarray) -> dict:
    """The constants of one set, but for the tightness."""
    n, dim = rows.shape
    rows = turned(rows)
    kmeans = faiss.Kmeans(dim, N_CLUSTERS, niter=10, seed=1, max_points_per_centroid=n)
    kmeans.train(rows)
    cluster = kmeans.index.search(rows, 1)[1].ravel()
    size = np.bincount(cluster, minlength=N_CLUSTERS)
    centres = np.zeros((N_CLUSTERS, dim))
    np.add.at(centres, cluster, rows)
    centres /= np.maximum(size, 1)[:, None]
    rest = rows - centres[cluster].astype(np.float32)
    square = np.bincount(cluster, weights=(rest**2).sum(axis=1), minlength=N_CLUSTERS)
    used = size > 1
    at = np.unique(np.geomspace(1, dim, 40).round().astype(int))
    between, within = (size @ centres**2 / n)[at - 1], (rest**2).mean(axis=0, dtype=np.float64)[at - 1]
    return {
        "dim": dim,
        "n_clusters": N_CLUSTERS,
        "size_sigma": round(float(np.log(size[used]).std()), 3),
        "spread_sigma": round(float(np.log(square[used] / size[used]).std() / 2), 3),
        "at": at.tolist(),
        "between": [float(f"{value:.4g}") for value in between],
        "within": [float(f"{value:.4g}") for value in within],
    }


def likeness(rows: np.ndarray) -> dict:
    """One line of the table."""
    query = np.random.default_rng(0).choice(len(rows), N_QUERIES, replace=False)
    similarity = rows[query] @ rows.T
    similarity[np.arange(N_QUERIES), query] = -1
    nearest = np.sort(np.partition(similarity, -NEIGHBOURS, axis=1)[:, -NEIGHBOURS:], axis=1)
    rows, surviving = turned(rows), []
    for p in LEADING:
        rest = np.sqrt(np.maximum(1 - (rows[:, :p] ** 2).sum(axis=1), 0))
        bound = rows[query, :p] @ rows[:, :p].T + rest[query, None] * rest
        surviving.append(float((bound >= nearest[:, :1]).mean()))
    return {
        "surviving": surviving,
        "first": np.percentile(nearest[:, -1], [5, 50, 95]).tolist(),
        "last": np.percentile(nearest[:, 0], [5, 50, 95]).tolist(),
    }


def like(constants: dict, n: int) -> dict:
    return likeness(generated(Measured(constants, 0), n, 1, 0)["noisy"])


def distance(a: dict, b: dict) -> float:
    """How far two lines are apart: ratios of survivors, and of how far the 50th neighbour is from identity."""
    ratios = [x / y for x, y in zip(a["surviving"], b["surviving"])] + [(1 - a["last"][1]) / (1 - b["last"][1])]
    return float(np.abs(np.log(ratios)).mean())


def line(name: str, n: int, found: dict) -> str:
    shares = " ".join(f"{100 * share:>8.3f} %" for share in found["surviving"])
    triples = "   ".join(" ".join(f"{value:.2f}" for value in found[key]) for key in ("first", "last"))
    return f"{name:>22} {n:>7} {shares}   {triples}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the spectra of features for generate.py.")
    parser.add_argument("sets", nargs="+", metavar="NAME=FILE", help="features, .parquet or .npy")
    parser.add_argument("--check", action="store_true", help="compare with spectra.json instead of making it")
    args = parser.parse_args()
    title = " ".join(f"p = {p}".rjust(10) for p in LEADING)
    print(f"{'':>22} {'N':>7} {title}   1st neighbour    50th neighbour", file=sys.stderr)
    measured = {}
    for name, path in (text.split("=", 1) for text in args.sets):
        rows = read(path)
        real, n = likeness(rows), len(rows)
        print(line(name, n, real), file=sys.stderr, flush=True)
        if args.check:
            best = constants_of(name)
        else:
            constants = measure(rows)
            tried = [constants | {"tightness": tightness} for tightness in TIGHTNESS]
            best = min(tried, key=lambda constants: distance(like(constants, n), real))
            measured[name] = best
        print(line(f"generated, {name}", n, like(best, n)), file=sys.stderr, flush=True)
    if not args.check:
        lines = (f'"{name}": {json.dumps(constants)}' for name, constants in measured.items())
        print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
