#!/usr/bin/env python3
"""Generates files with many classes, for the end-to-end comparisons.

    python classes.py --classes 300 -o FOLDER            # long-tailed, Parquet
    python classes.py --million 1000000 -o FOLDER        # one class of this many candidates, .npy

Rows are generated like real features (generate.py, Measured), one cluster per class; three in ten candidates of a class
are of its own cluster, the others of any. Parquet:

    clean.parquet       id, class, embedding: 5 of each class
    pool.parquet        id, embedding: all candidates, shuffled
    candidates.parquet  id, class, matched_name, field: as `labelsieve match` writes them

With --million: clean.npy and pool.npy (f32), and clean.txt and pool.txt with the class of each row.
"""

import argparse
from pathlib import Path

import numpy as np

from generate import Measured, blocks, constants_of

N_CLEAN = 5


def long_tailed(n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of candidates: 300 in the middle, a few of some thousands, none above 10,000."""
    return np.clip(rng.lognormal(np.log(300), 1.2, n_classes), 20, 10_000).astype(int)


def candidates_of(source: Measured, own: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """The clusters of the candidates of one class."""
    others = rng.choice(len(source.share), size=n, p=source.share)
    return np.where(rng.random(n) < 0.3, own, others)


def write_classes(args: argparse.Namespace, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def table(rows: np.ndarray, **columns) -> pa.Table:
        embedding = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
        return pa.table(columns | {"embedding": embedding})

    rng = np.random.default_rng(args.seed)
    source = Measured(constants_of(args.like), args.seed, n_clusters=args.classes)
    names = [f"class {c:03}" for c in range(args.classes)]
    own = np.repeat(np.arange(args.classes), N_CLEAN)
    clean = table(source.rows(own, rng), id=[f"clean{i}" for i in range(len(own))], **{"class": [names[c] for c in own]})
    pq.write_table(clean, folder / "clean.parquet")

    sizes = long_tailed(args.classes, rng)
    cluster = np.concatenate([candidates_of(source, c, n, rng) for c, n in enumerate(sizes)])
    ids = [f"photo{i:07}" for i in rng.permutation(len(cluster))]
    of_class = np.repeat(np.arange(args.classes), sizes)
    pq.write_table(pa.table({
        "id": ids,
        "class": [names[c] for c in of_class],
        "matched_name": [names[c] for c in of_class],
        "field": ["title"] * len(ids),
    }), folder / "candidates.parquet")
    order = rng.permutation(len(cluster))  # features come in an order of their own
    rows = np.concatenate(list(blocks(source, cluster[order], rng)))
    pq.write_table(table(rows, id=[ids[i] for i in order]), folder / "pool.parquet", row_group_size=65_536)
    print(f"{args.classes} classes, {len(ids)} candidates, from {sizes.min()} to {sizes.max()} a class")


def write_one(args: argparse.Namespace, folder: Path) -> None:
    rng = np.random.default_rng(args.seed)
    source = Measured(constants_of(args.like), args.seed)
    np.save(folder / "clean.npy", source.rows(np.full(N_CLEAN, source.class_cluster), rng))
    cluster = candidates_of(source, source.class_cluster, args.million, rng)
    shape = (args.million, len(source.deviation))
    with open(folder / "pool.npy", "wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for rows in blocks(source, cluster, rng):
            file.write(rows.data)
    for name, n in (("clean", N_CLEAN), ("pool", args.million)):
        (folder / f"{name}.txt").write_text("one class\n" * n)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write classes as files for benches/compare.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--classes", type=int, metavar="N", help="so many long-tailed classes")
    what.add_argument("--million", type=int, metavar="N", help="one class of so many candidates")
    parser.add_argument("--like", choices=["tiny", "fashion"], default="tiny", help="whose spectrum (tiny)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--out", required=True, help="an existing folder")
    args = parser.parse_args()
    (write_classes if args.classes else write_one)(args, Path(args.out))


if __name__ == "__main__":
    main()
