#!/usr/bin/env python3
"""Unit-norm rows of one class for the comparison, as one .npz file.

    python generate.py --rows 10000 --like tiny -o class.npz            # generated, with the spectrum of real features
    python generate.py --rows 10000 --like flat -o class.npz            # generated, no direction above the others
    python generate.py --rows 10000 --features tiny.parquet -o class.npz   # rows of a file

The rows imitate the web images found for one class name: some show the class, the rest are something else.

--like tiny, --like fashion: clusters whose centres and whose rows around them vary as measured on the features of two
    photo sets (spectra.json, made by spectrum.py). Few directions carry most of a row, as in all features of trained
    networks. The class is the largest cluster. 512 columns.
--like flat: round(sqrt(N)) clusters, at least 4 and at most 300, around uniform directions, with isotropic noise:
    row = normalise(centre + g / sqrt(d)), so two rows of a cluster have a cosine of about 0.5. The class takes 0.3 of
    the rows, the others share the rest by log-normal weights.
--features FILE: random rows of a Parquet file with `embedding` and `class`; the clean ones are of its largest class.
    With fewer rows than asked for it is an error; `--rows 0` takes all.

Arrays written (f32, C order):

    clean    k x d        the clean rows
    noisy    (N - k) x d  the noisy rows, shuffled
    clean20  20 x d       clean rows for the grid of shots and episodes; its first k rows are `clean`
    truth    N - k, u8    1 where a noisy row belongs to the class
"""

import argparse
import json
import math
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
GRID_CLEAN_ROWS = 20
BLOCK = 8192


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Scales each row to unit norm, in place."""
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


class Measured:
    """Clusters with the spectra of real features, turned at random so that no column is special."""

    def __init__(self, constants: dict, seed: int, n_clusters: int | None = None):
        rng = np.random.default_rng(seed)
        n_clusters, dim = n_clusters or constants["n_clusters"], constants["dim"]
        between, within = (interpolate(constants[name], constants["at"], dim) for name in ("between", "within"))
        self.share = rng.lognormal(sigma=constants["size_sigma"], size=n_clusters)
        self.share /= self.share.sum()
        spread = rng.lognormal(sigma=constants["spread_sigma"], size=n_clusters)
        spread *= constants["tightness"] / math.sqrt(self.share @ spread**2)
        self.spread = spread.astype(np.float32)
        self.deviation = np.sqrt(within).astype(np.float32)
        self.centres = (rng.standard_normal((n_clusters, dim)) * np.sqrt(between)).astype(np.float32)
        self.turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0].astype(np.float32)
        self.class_cluster = int(self.share.argmax())

    def rows(self, cluster: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One row of each of the given clusters."""
        rows = rng.standard_normal((len(cluster), len(self.deviation)), dtype=np.float32)
        rows *= self.deviation
        rows *= self.spread[cluster, None]
        rows += self.centres[cluster]
        return unit_rows(rows @ self.turn)


class Flat:
    """Clusters around uniform directions with isotropic noise; cluster 0 is the class."""

    def __init__(self, n_rows: int, dim: int, seed: int, class_share: float = 0.3):
        rng = np.random.default_rng(seed)
        n_clusters = min(max(round(math.sqrt(n_rows)), 4), 300)
        self.centres = unit_rows(rng.standard_normal((n_clusters, dim), dtype=np.float32))
        weights = rng.lognormal(sigma=1.0, size=n_clusters - 1)
        self.share = np.concatenate([[class_share], (1.0 - class_share) * weights / weights.sum()])
        self.class_cluster = 0

    def rows(self, cluster: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One row of each of the given clusters."""
        rows = rng.standard_normal((len(cluster), self.centres.shape[1]), dtype=np.float32)
        rows /= np.float32(math.sqrt(rows.shape[1]))
        rows += self.centres[cluster]
        return unit_rows(rows)


def interpolate(values: list[float], at: list[int], dim: int) -> np.ndarray:
    """A spectrum of `dim` numbers from those kept at some positions, straight lines between the logarithms."""
    return np.exp(np.interp(np.log(np.arange(1, dim + 1)), np.log(at), np.log(values)))


def constants_of(name: str) -> dict:
    """The statistics of a photo set, measured by spectrum.py."""
    return json.loads((HERE / "spectra.json").read_text())[name]


def blocks(source: Measured | Flat, cluster: np.ndarray, rng: np.random.Generator):
    """The rows of these clusters, a few thousand at a time, so that a million need little memory."""
    for start in range(0, len(cluster), BLOCK):
        yield source.rows(cluster[start:start + BLOCK], rng)


def generated(source: Measured | Flat, n_noisy: int, n_clean: int, seed: int) -> dict[str, np.ndarray]:
    """The four arrays, from clusters."""
    rng = np.random.default_rng([seed, 1])
    pool = source.rows(np.full(max(GRID_CLEAN_ROWS, n_clean), source.class_cluster), rng)
    cluster = rng.choice(len(source.share), size=n_noisy, p=source.share)
    noisy = np.empty((n_noisy, pool.shape[1]), dtype=np.float32)
    start = 0
    for rows in blocks(source, cluster, rng):
        noisy[start:start + len(rows)] = rows
        start += len(rows)
    return arrays(pool, n_clean, noisy, cluster == source.class_cluster)


def drawn(path: str, n_rows: int, n_clean: int, seed: int) -> dict[str, np.ndarray]:
    """The four arrays, from a file of features and classes."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["embedding", "class"])
    column = table["embedding"].combine_chunks()
    features = unit_rows(column.flatten().to_numpy().reshape(len(column), -1).astype(np.float32))
    _, code, size = np.unique(table["class"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True,
                              return_counts=True)
    rng = np.random.default_rng(seed)
    is_class = code == size.argmax()
    clean = rng.choice(np.flatnonzero(is_class), max(GRID_CLEAN_ROWS, n_clean), replace=False)
    others = rng.permutation(np.setdiff1d(np.arange(len(features)), clean))
    if n_rows - n_clean > len(others):
        sys.exit(f"error: `{path}` has {len(others)} rows besides the clean ones, {n_rows - n_clean} are wanted")
    others = others[:n_rows - n_clean] if n_rows else others
    return arrays(features[clean], n_clean, features[others], is_class[others])


def arrays(pool: np.ndarray, n_clean: int, noisy: np.ndarray, truth: np.ndarray) -> dict[str, np.ndarray]:
    return {"clean": pool[:n_clean], "noisy": noisy, "clean20": pool[:GRID_CLEAN_ROWS], "truth": truth.astype(np.uint8)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the rows of one class for benches/compare.")
    parser.add_argument("--rows", type=int, required=True, help="N, clean and noisy rows together")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--like", choices=["tiny", "fashion", "flat"], help="generate rows of this kind")
    source.add_argument("--features", metavar="FILE", help="draw rows of this .parquet")
    parser.add_argument("--dim", type=int, default=512, help="columns, for --like flat (512)")
    parser.add_argument("--clean", type=int, default=1, help="k, clean rows (1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--out", required=True, help="the .npz file to write")
    args = parser.parse_args()
    if args.clean < 1 or (args.rows <= args.clean and not (args.features and args.rows == 0)):
        parser.error(f"--clean must be at least 1 and below --rows, got {args.clean} of {args.rows}")
    if args.features:
        made = drawn(args.features, args.rows, args.clean, args.seed)
    else:
        flat = args.like == "flat"
        source = Flat(args.rows, args.dim, args.seed) if flat else Measured(constants_of(args.like), args.seed)
        made = generated(source, args.rows - args.clean, args.clean, args.seed)
    np.savez(args.out, **made)


if __name__ == "__main__":
    main()
