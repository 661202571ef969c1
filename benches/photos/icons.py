#!/usr/bin/env python3
"""The icons of the demo and their base classes, as the two files that `labelsieve-bench photos configs/icons.toml` reads.

    pip install pyarrow
    cargo run --release -p labelsieve-icons --example export_icons -- 224 icons
    python3 benches/photos/icons.py icons -o DIR

Writes `icons.parquet` (the drawings, with class, role and split) and `icons-pool.parquet` (candidates with their truth) to DIR.
"""

import argparse
import bz2
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

DATA = Path(__file__).parents[2] / "crates/labelsieve-icons/data"
# Part of the sample: folder of the drawings, role, split.
PARTS = {
    "clean": ("clean", "novel", "train"),
    "test": ("test", "novel", "test"),
    "pool": ("pool", "pool", "train"),
    "base": ("base/train", "base", "train"),
    "base-test": ("base/test", "base", "test"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("drawings", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    photos, pool = [], []
    for name in ("icons.jsonl.bz2", "base.jsonl.bz2"):
        with bz2.open(DATA / name, "rt") as lines:
            for icon in map(json.loads, lines):
                folder, role, split = PARTS[icon["part"]]
                file = options.drawings / folder / (icon["class"] or "") / f"{icon['id'].replace(':', '_')}.png"
                photos.append({
                    "id": icon["id"], "title": icon["title"], "class": icon["class"] or "", "role": role, "split": split,
                    "image": file.read_bytes(),
                })
                if icon["part"] == "pool":
                    pool += [{"class": c, "id": icon["id"], "relevant": r} for c, r in icon["truth"].items()]
    options.output.mkdir(parents=True, exist_ok=True)
    for name, rows in (("icons.parquet", photos), ("icons-pool.parquet", pool)):
        pq.write_table(pa.Table.from_pylist(rows), options.output / name)
        print(f"{options.output / name}: {len(rows)} rows")


if __name__ == "__main__":
    main()
