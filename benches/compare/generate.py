#!/usr/bin/env python3
"""Clustered unit-norm rows for the comparison, as one .npz file.

    python generate.py --rows 10000 --dim 512 --clean 1 --seed 0 -o class.npz

The rows imitate the web images found for one class name: some show the class, the rest belong to
many unrelated themes of very different sizes.

* clusters: round(sqrt(N)), at least 4, at most 300; cluster 0 is the class
* centres: independent uniform directions, unit norm
* sizes: the class takes `--class-share` of the noisy rows (0.3); the others share the rest by
  log-normal weights (sigma 1), so large and small themes occur together
* row = normalise(centre + noise * g / sqrt(d)), g standard normal; two rows of one cluster then have
  an expected cosine of about 1 / (1 + noise^2): 0.5 at noise = 1; of different clusters about 0

Arrays written (f32, C order):

    clean    k x d        the clean rows, from the class cluster
    noisy    (N - k) x d  the noisy rows, shuffled
    clean20  20 x d       clean rows for the grid of shots and episodes; its first k rows are `clean`
    truth    N - k, u8    1 where a noisy row comes from the class cluster
"""

import argparse
import math

import numpy as np

GRID_CLEAN_ROWS = 20
BLOCK = 8192


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Scales each row to unit norm, in place."""
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def around(centres: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    """One row near each of the given centres."""
    rows = rng.standard_normal(centres.shape, dtype=np.float32)
    rows *= np.float32(noise / math.sqrt(centres.shape[1]))
    rows += centres
    return unit_rows(rows)


def cluster_of_rows(n_noisy: int, n_clusters: int, class_share: float, rng: np.random.Generator) -> np.ndarray:
    """The cluster of each noisy row; cluster 0 is the class."""
    weights = rng.lognormal(sigma=1.0, size=n_clusters - 1)
    share = np.concatenate([[class_share], (1.0 - class_share) * weights / weights.sum()])
    return rng.choice(n_clusters, size=n_noisy, p=share)


def generate(n_rows: int, dim: int, n_clean: int, seed: int, noise: float, class_share: float) -> dict[str, np.ndarray]:
    """The four arrays described at the top of this file."""
    rng = np.random.default_rng(seed)
    n_noisy = n_rows - n_clean
    n_clusters = min(max(round(math.sqrt(n_rows)), 4), 300)
    centres = unit_rows(rng.standard_normal((n_clusters, dim), dtype=np.float32))

    pool = around(np.repeat(centres[:1], max(GRID_CLEAN_ROWS, n_clean), axis=0), noise, rng)
    cluster = cluster_of_rows(n_noisy, n_clusters, class_share, rng)
    noisy = np.empty((n_noisy, dim), dtype=np.float32)
    for start in range(0, n_noisy, BLOCK):  # blocks keep the memory small at N = 100k and more
        block = slice(start, start + BLOCK)
        noisy[block] = around(centres[cluster[block]], noise, rng)
    return {
        "clean": pool[:n_clean],
        "noisy": noisy,
        "clean20": pool[:GRID_CLEAN_ROWS],
        "truth": (cluster == 0).astype(np.uint8),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Write clustered unit-norm rows for benches/compare.")
    parser.add_argument("--rows", type=int, required=True, help="N, clean and noisy rows together")
    parser.add_argument("--dim", type=int, default=512, help="d, columns (512)")
    parser.add_argument("--clean", type=int, default=1, help="k, clean rows (1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", type=float, default=1.0, help="spread of a cluster (1.0)")
    parser.add_argument("--class-share", type=float, default=0.3, help="noisy rows that show the class (0.3)")
    parser.add_argument("-o", "--out", required=True, help="the .npz file to write")
    args = parser.parse_args()
    if not 1 <= args.clean < args.rows:
        parser.error(f"--clean must be at least 1 and below --rows, got {args.clean} of {args.rows}")
    np.savez(args.out, **generate(args.rows, args.dim, args.clean, args.seed, args.noise, args.class_share))


if __name__ == "__main__":
    main()
