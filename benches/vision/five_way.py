"""5-way accuracy of prototypes: 600 trials, k = 1 and 5, 15 queries per class, with 95 % intervals.

    labelsieve embed --model M.safetensors --images tiny-lowshot.parquet --where role=novel-val --where split=test --label-column wnid -o F.parquet
    python benches/vision/five_way.py F.parquet …

Needs numpy and pyarrow. Classes with fewer than 20 photos are left out.
"""
import sys

import numpy as np
import pyarrow.parquet as parquet

TRIALS, WAYS, QUERIES = 600, 5, 15

for path in sys.argv[1:]:
    table = parquet.read_table(path)
    features = np.stack([np.asarray(row, dtype=np.float32) for row in table.column("embedding").to_pylist()])
    labels = np.array(table.column("class").to_pylist())
    members = {name: np.flatnonzero(labels == name) for name in np.unique(labels)}
    classes = [name for name, rows in members.items() if len(rows) >= 5 + QUERIES]
    for k in (1, 5):
        rng, shares = np.random.default_rng(k), []
        for _ in range(TRIALS):
            prototypes, queries = [], []
            for name in rng.choice(classes, WAYS, replace=False):
                rows = rng.permutation(members[name])[: k + QUERIES]
                mean = features[rows[:k]].mean(0)
                prototypes.append(mean / np.linalg.norm(mean))
                queries.append(features[rows[k:]])
            best = (np.concatenate(queries) @ np.array(prototypes).T).argmax(1)
            shares.append((best == np.repeat(np.arange(WAYS), QUERIES)).mean())
        shares = 100 * np.array(shares)
        half = 1.96 * shares.std(ddof=1) / np.sqrt(TRIALS)
        print(f"{path}, {len(classes)} classes, k = {k}: {shares.mean():.1f} ± {half:.1f} %")
