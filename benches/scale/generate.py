#!/usr/bin/env python3
"""Captions, classes and features for benches/scale/run: `generate.py FOLDER [--captions N] [--candidates N] [--classes N]`.

Writes, the same bytes for the same arguments:

    captions.tsv      id and caption, a tab between them; one in ten mentions a class
    classes.csv       the classes, each with one name of two words
    pool.parquet      features (f16) of the captions that mention a class, in the order of the captions
    clean.parquet     five clean examples of each class

The first class has a tenth of all candidates, the others follow a power law down to a handful. Three in five candidates
show their class; the others show one of three other classes, as those of an ambiguous name would. Rows vary around
the centre of what they show, most in few directions, as features of trained networks do.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SYLLABLES = [c + v for c in "b c d f g h k l m n p r s t v w st tr ch".split() for v in "a e i o u ea ou".split()]
BLOCK = 1 << 18


def words(n, rng):
    """Distinct made-up words of two or three syllables."""
    found = {}
    while len(found) < n:
        found.setdefault("".join(rng.choice(SYLLABLES, size=rng.integers(2, 4))), None)
    return np.array(list(found))


def sizes(n_classes, n_candidates):
    """Candidates of each class: a tenth for the first, a power law for the others."""
    largest = n_candidates // 10
    weights = np.arange(2, n_classes + 1) ** -0.8
    others = np.maximum(np.floor(weights / weights.sum() * (n_candidates - largest)), 5).astype(int)
    others[0] += n_candidates - largest - others.sum()
    return np.concatenate([[largest], others])


class Space:
    """Centres of classes, and rows around them."""

    def __init__(self, n_classes, dim, rng):
        spectrum = np.arange(1, dim + 1) ** -0.7
        self.deviation = (spectrum / np.linalg.norm(spectrum)).astype(np.float32)
        self.centres = rng.standard_normal((n_classes, dim), dtype=np.float32) * self.deviation
        self.turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0].astype(np.float32)

    def rows(self, shown, rng):
        rows = rng.standard_normal((len(shown), len(self.deviation)), dtype=np.float32) * (0.8 * self.deviation)
        rows = (rows + self.centres[shown]) @ self.turn
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)


def table(ids, rows, classes=None):
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
    columns = {"id": pa.array(ids), "embedding": lists}
    if classes is not None:
        columns["class"] = pa.array(classes)
    return pa.table(columns)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--captions", type=int, default=20_000_000)
    parser.add_argument("--candidates", type=int, default=2_000_000)
    parser.add_argument("--classes", type=int, default=2_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(options.seed)

    vocabulary = words(20_000, rng)
    pairs = rng.permutation(100 * 100)[: options.classes] if options.classes <= 10_000 else None
    if pairs is None:
        parser.error("--classes: expected at most 10000")
    names = np.array([f"{vocabulary[pair // 100]} {vocabulary[100 + pair % 100]}" for pair in pairs])
    plain = vocabulary[200:]  # no word of a name
    ids = np.array([f"class{c:05}" for c in range(options.classes)])
    (options.folder / "classes.csv").write_text(
        "id,names\n" + "".join(f"{id},{name}\n" for id, name in zip(ids, names))
    )

    mentioned = np.repeat(np.arange(options.classes), sizes(options.classes, options.candidates))
    rng.shuffle(mentioned)
    positions = np.sort(rng.choice(options.captions, size=options.candidates, replace=False))
    mention = np.full(options.captions, -1, dtype=np.int32)
    mention[positions] = mentioned

    with open(options.folder / "captions.tsv", "w") as captions:
        captions.write("id\tcaption\n")
        for start in range(0, options.captions, BLOCK):
            classes = mention[start : start + BLOCK]
            drawn = plain[rng.integers(0, len(plain), size=(len(classes), 6))]
            name = np.where(classes >= 0, names[classes], plain[rng.integers(0, len(plain), size=len(classes))])
            lines = (
                f"photo{start + i:09}\t{' '.join(row[:3])} {middle} {' '.join(row[3:])}\n"
                for i, (row, middle) in enumerate(zip(drawn, name))
            )
            captions.writelines(lines)

    space = Space(options.classes, options.dim, rng)
    senses = rng.integers(0, options.classes, size=(options.classes, 3))
    schema = table(["a"], np.zeros((1, options.dim), dtype=np.float16)).schema
    with pq.ParquetWriter(options.folder / "pool.parquet", schema, compression="none") as writer:
        for start in range(0, options.candidates, BLOCK):
            classes = mentioned[start : start + BLOCK]
            other = senses[classes, rng.integers(0, 3, size=len(classes))]
            shown = np.where(rng.random(len(classes)) < 0.6, classes, other)
            photos = [f"photo{position:09}" for position in positions[start : start + BLOCK]]
            writer.write_table(table(photos, space.rows(shown, rng)))

    clean = np.repeat(np.arange(options.classes), 5)
    photos = [f"clean{i:06}" for i in range(len(clean))]
    pq.write_table(table(photos, space.rows(clean, rng), ids[clean]), options.folder / "clean.parquet")


if __name__ == "__main__":
    main()
