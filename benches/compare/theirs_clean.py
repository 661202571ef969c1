#!/usr/bin/env python3
"""`labelsieve score --method gcn` as a script: pyarrow, faiss, scipy, PyTorch, from Parquet to Parquet.

    python theirs_clean.py --clean clean.parquet --pool pool.parquet --candidates candidates.parquet --output r.parquet

Writes one row per candidate: id, class, relevance, is_clean, matched_name, best_clean, best_clean_similarity and
reciprocal_neighbours, as ours does, clean examples first. The seconds of each step go to stdout as JSON.
"""

import argparse
import json
import time
from collections import defaultdict

from theirs import LAMBDA_OF_SHOT, normalised_graph, search, torch, train  # first: it sets the threads

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def features_of(table: pa.Table) -> np.ndarray:
    column = table["embedding"].combine_chunks()
    rows = np.ascontiguousarray(column.flatten().to_numpy().reshape(len(column), -1), dtype=np.float32)
    faiss.normalize_L2(rows)
    return rows


def rows_by_class(classes: pa.ChunkedArray) -> dict[str, np.ndarray]:
    rows = defaultdict(list)
    for row, name in enumerate(classes.to_pylist()):
        rows[name].append(row)
    return {name: np.array(of_class) for name, of_class in rows.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Clean classes with faiss, scipy and PyTorch, from file to file.")
    for name in ("--clean", "--pool", "--candidates", "--output"):
        parser.add_argument(name, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sparse", choices=["coo", "csr", "csr-transposed"], default="coo")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    faiss.omp_set_num_threads(args.threads)
    seconds, started = defaultdict(float), time.perf_counter()

    def lap(step: str) -> None:
        nonlocal started
        now = time.perf_counter()
        seconds[step] += now - started
        started = now

    clean, noisy, candidates = (pq.read_table(path) for path in (args.clean, args.pool, args.candidates))
    clean_features, noisy_features = features_of(clean), features_of(noisy)
    lap("read")
    found = pc.index_in(candidates["id"], value_set=noisy["id"].combine_chunks()).to_numpy()
    by_class, clean_by_class = rows_by_class(candidates["class"]), rows_by_class(clean["class"])
    clean_ids = np.array(clean["id"].to_pylist(), dtype=object)
    lap("join")

    columns = defaultdict(list)
    for name, clean_rows in clean_by_class.items():
        of_class, k = by_class[name], len(clean_rows)
        rows = np.vstack([clean_features[clean_rows], noisy_features[found[of_class]]])
        similarity, neighbour = search(rows)
        lap("search")
        graph = normalised_graph(similarity, neighbour)
        lap("graph")
        relevance = train(graph, rows, k, LAMBDA_OF_SHOT[k], args.seed, args.sparse)
        lap("gcn")
        to_clean = rows[k:] @ rows[:k].T
        best = to_clean.argmax(axis=1)
        n = k + len(of_class)
        no_clean = [None] * k
        columns["id"] += [*clean_ids[clean_rows], *candidates["id"].take(of_class).to_pylist()]
        columns["class"] += [name] * n
        columns["relevance"].append(np.concatenate([np.ones(k, np.float32), relevance]))
        columns["is_clean"].append(np.arange(n) < k)
        columns["matched_name"] += no_clean + candidates["matched_name"].take(of_class).to_pylist()
        columns["best_clean"] += [*no_clean, *clean_ids[clean_rows][best]]
        columns["best_clean_similarity"] += [*no_clean, *to_clean.max(axis=1).tolist()]
        columns["reciprocal_neighbours"] += [*no_clean, *(np.diff(graph.indptr)[k:] - 1).tolist()]
        lap("rows")
    columns["relevance"], columns["is_clean"] = (np.concatenate(columns[name]) for name in ("relevance", "is_clean"))
    pq.write_table(pa.table(dict(columns)), args.output)
    lap("write")
    print(json.dumps({"seconds": dict(seconds)}))


if __name__ == "__main__":
    main()
